"""docs/sizing.md: what is reckoned follows from what is measured."""

import re
from pathlib import Path

import pytest

from tests.bench.kept_year import HOUR_BYTES, Stream, months

PAGE = (Path(__file__).parents[2] / "docs" / "sizing.md").read_text()
SIZES = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
TIMES = {"s": 1, "min": 60, "h": 3600}
A_DAY = 1440  # cells of a shard
ROUNDED = 0.06


def measured(what: str) -> float:
    """The first number of the figure in the row that begins so."""
    [found] = re.findall(rf"(?m)^\| {re.escape(what)}[^|]*\| ([\d.]+)", PAGE)
    return float(found)


def rows(title: str) -> list[list[str]]:
    """The cells of the first table below a title, without its head."""
    table = PAGE.partition(f"## {title}\n")[2].partition("|---")[2].partition("\n\n")[0]
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[1:]
    ]


def number(text: str, units: dict[str, int]) -> float:
    value, _, unit = text.replace(",", "").partition(" ")
    return float(value) * units.get(unit, 1)


@pytest.mark.parametrize("row", rows("Reckoned: room a day"), ids=lambda row: row[0])
def test_room_is_what_is_measured_times_how_much_there_is(row: list[str]) -> None:
    shards, messages = (number(text, {}) for text in row[:2])
    cells = shards * A_DAY
    wanted = (
        messages * measured("room of kept traces"),
        cells * measured("room of the ledger"),
        cells * 7 * measured("room of an audit"),
    )
    assert [number(text, SIZES) for text in row[2:]] == pytest.approx(wanted, rel=ROUNDED)


@pytest.mark.parametrize("row", rows("Reckoned: work a day"), ids=lambda row: row[0])
def test_work_is_what_is_measured_times_the_messages(row: list[str]) -> None:
    tens = number(row[0], {}) / 1e7
    embedded = measured("first audit with its ingest, embedded, 10 M messages")
    [both] = re.findall(r"typed cold, 2 cores: [^|]*\| [\d.]+ s, ([\d.]+) s", PAGE)
    wanted = (tens * embedded, tens * float(both) * 2)
    found = [number(text, TIMES) for text in row[1:]]
    assert found == pytest.approx(wanted, rel=ROUNDED, abs=0.5)


def test_a_day_has_the_requests_of_its_watches_and_its_night() -> None:
    asked = {row[0].split("`")[1] if "`" in row[0] else row[0]: row[1:] for row in rows("Requests")}
    night = [asked[name] for name in ("audit", "Airflow's steps of a night", "maintain")]
    for column, said in enumerate((26_000, 5_800)):
        of_night = sum(number(row[column], {}) for row in night)
        total = 96 * number(asked["watch"][column], {}) + of_night
        assert said == pytest.approx(total, rel=ROUNDED)
        assert f"{said:,}" in PAGE


def test_two_years_are_what_is_measured_night_by_night() -> None:
    assert measured("room of its kept sums") == HOUR_BYTES
    assert "\n".join(months(Stream(200, 200_000_000))) in PAGE
