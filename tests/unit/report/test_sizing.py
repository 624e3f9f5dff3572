"""What a day asks for: `docs/sizing.md` shows what `doctor --size` reckons."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from shardaudit.model.words import byte_size
from shardaudit.report.sizing import (
    GETS,
    PRICES,
    PRICES_OF,
    PUTS,
    Day,
    Prices,
    cents,
    day_words,
    dollars,
    usual_day,
)

DOC = (Path(__file__).parents[3] / "docs" / "sizing.md").read_text()
MINUTES = 1440


def numbers(columns: int) -> list[list[str]]:
    """The rows of the document's tables that are so wide and begin with a number."""
    rows = [
        line.strip("|").split("|") for line in DOC.splitlines() if re.match(r"\| [\d,]+ \|", line)
    ]
    return [[text.strip() for text in row] for row in rows if len(row) == columns]


def test_tables_of_the_document_are_what_is_reckoned() -> None:
    assert [row[:2] for row in numbers(5)] == [
        ["10", "500,000"],
        ["200", "200,000,000"],
        ["1,800", "2,000,000,000"],
    ]
    for shards, sent, *room in numbers(5):
        cells = int(shards.replace(",", "")) * MINUTES
        assert room == list(map(byte_size, Day(int(sent.replace(",", "")), cells, 7).room.values()))


def test_usual_day_is_that_of_the_newest_audit_whatever_its_window() -> None:
    end = datetime(2026, 11, 3, tzinfo=UTC)
    audit = {
        "window_start": end - timedelta(hours=12),
        "window_end": end,
        "sent": 300_000,
        "cells_total": 720,
    }
    day = usual_day(audit, looked_at=timedelta(days=7))
    assert day == Day(messages=600_000, cells=1440, looked_at=7)
    assert day.fits_one_machine
    assert not Day(messages=8e6, cells=1440, looked_at=7).fits_one_machine
    assert "600,000 messages and 1,440 cells a day" in day_words(day)
    assert f"list prices of {PRICES_OF} (yours differ)" in day_words(day)


def test_a_day_costs_its_requests_its_work_and_what_it_adds() -> None:
    prices = Prices(gib_month=2, put=0.01, get=0.001, core_hour=3, memory_gib_hour=0.5)
    found = dollars(Day(messages=2**30 / 32, cells=0, looked_at=7), prices)
    assert found == pytest.approx(
        {
            "requests": PUTS * 0.01 + GETS * 0.001,
            "embedded": 2**30 / 32 * 6.3e-6 / 3600 * 4,
            "Apache Spark": 2**30 / 32 * 63e-6 / 3600 * 4,
            "stored": 2,
        }
    )


def test_dollars_of_the_document_are_what_is_reckoned() -> None:
    shards = {row[1]: int(row[0].replace(",", "")) for row in numbers(5)}
    assert len(numbers(6)) == len(shards) * len(PRICES)
    for sent, region, *said in numbers(6):
        day = Day(int(sent.replace(",", "")), shards[sent] * MINUTES, 7)
        assert said == [cents(amount) for amount in dollars(day, PRICES[region]).values()]


def test_prices_of_the_document_are_those_of_the_command() -> None:
    table = DOC.partition("| list price |")[2].partition("\n\n")[0].splitlines()[2:]
    prices = [
        [float(cell.strip().strip("$")) for cell in line.strip("|").split("|")[1:]]
        for line in table
    ]
    assert list(map(list, zip(*prices, strict=True))) == [
        pytest.approx(
            [one.gib_month, one.put * 1e3, one.get * 1e4, one.core_hour, one.memory_gib_hour]
        )
        for one in PRICES.values()
    ]
