"""What a day asks for: `docs/sizing.md` shows what `doctor --size` reckons."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

from shardaudit.model.words import byte_size
from shardaudit.report.sizing import Day, day_words, usual_day

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
