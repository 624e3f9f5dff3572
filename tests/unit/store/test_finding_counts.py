"""What a page says of findings is what all of them say, however they came to be in their files."""

import random
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from shardaudit.adapters.lake.delta_rs import DeltaRs
from shardaudit.model.config.parts import Aws
from shardaudit.model.config.settings import Settings
from shardaudit.model.tables.audit_tables import FINDINGS, TRANSITIONS
from shardaudit.model.tables.ledger_tables import FINDING_COUNTS
from shardaudit.model.verdict import LIVE, Cause, Kind, State
from shardaudit.model.window import Window
from shardaudit.store.cell_grid import ShardRange
from shardaudit.store.read_findings import (
    FindingValues,
    WantedFindings,
    each_finding,
    open_counts,
    open_missing,
    read_findings,
    transitions_of,
)
from tests.page_warehouse import Row, write_rows

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
SEEDS = range(20)


def settings(folder: Path) -> Settings:
    return Settings(warehouse=str(folder), streams={})


def some_finding(draw: random.Random, number: int) -> Row:
    hours = draw.choice([None, *range(-40, 40, 8)])
    deadline = draw.choice([None, *range(4)])
    return {
        "stream": draw.choice(["events", "orders"]),
        "shard_id": f"shard-{draw.randrange(3)}",
        "message_id": f"m{number}",
        "kind": draw.choice([*Kind]).value,
        "cause": draw.choice([*Cause]).value,
        "state": draw.choice([*State]).value,
        "sent_at": None if hours is None else NOON + timedelta(hours=hours),
        "recoverable_until": None if deadline is None else NOON + timedelta(days=deadline),
        "opened_at": NOON,
    }


def write_findings(folder: Path, draw: random.Random) -> None:
    """In files of several writers; the last of them replaces rows of the others."""
    for part in range(3):
        found = [some_finding(draw, part * 40 + number) for number in range(draw.randrange(1, 40))]
        write_rows(folder, FINDINGS, found)
    tables = DeltaRs(str(folder), Aws())
    [*known] = each_finding(settings(folder), WantedFindings({}))
    changed = draw.sample(known, k=draw.randrange(len(known)))
    tables.upsert([{**row, "state": draw.choice([*State]).value} for row in changed], FINDINGS)


def in_order(rows: list[FindingValues]) -> list[FindingValues]:
    """As a person reads them: by deadline, those without one last."""
    names = ("stream", "shard_id", "message_id", "kind")
    rows = sorted(rows, key=lambda row: [row[name] for name in names])
    return sorted(rows, key=lambda row: row["recoverable_until"] or NOON + timedelta(days=99))


@pytest.mark.parametrize("seed", SEEDS)
def test_counts_and_lists_are_those_of_all_findings(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311 - a test
    write_findings(tmp_path, draw)
    rows = list(each_finding(settings(tmp_path), WantedFindings({})))
    live = defaultdict(list)
    for row in rows:
        if row["state"] in LIVE:
            live[row["stream"], row["kind"]].append(row["recoverable_until"])
    assert {
        (one.stream, one.kind): (one.ids, one.deadline) for one in open_counts(settings(tmp_path))
    } == {key: (len(until), min(filter(None, until), default=None)) for key, until in live.items()}
    shards = ShardRange("shard-1", draw.choice(["shard-1", None]))
    open_ones = [
        row["recoverable_until"]
        for row in rows
        if (row["stream"], row["kind"], row["state"]) == ("events", "missing", "open")
        and "shard-1" <= row["shard_id"] <= (shards.last or "z")
    ]
    found = open_missing(settings(tmp_path), "events", shards=shards)
    nearest = min(filter(None, open_ones), default=None)
    assert (found.ids, found.deadline) == (len(open_ones), nearest)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_list_is_the_first_of_all_that_match(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311 - a test
    write_findings(tmp_path, draw)
    sent = draw.choice([None, Window(NOON - timedelta(days=1), NOON + timedelta(hours=9))])
    values = {"kind": "missing"} if draw.random() < 0.5 else {}
    wanted = WantedFindings(
        values, ShardRange("shard-1"), sent=sent, part=draw.choice(["", "m1", "nothing"])
    )
    rows = in_order(list(each_finding(settings(tmp_path), wanted)))
    limit = draw.randrange(1, 12)
    found = read_findings(settings(tmp_path), wanted, limit=limit)
    assert list(found.rows) == rows[:limit]
    assert found.is_whole
    assert (
        found.total == len(rows)
        if found.is_counted
        else len(rows[:limit]) <= found.total <= len(rows)
    )


def test_what_may_not_be_read_is_said(tmp_path: Path) -> None:
    draw = random.Random(7)  # noqa: S311 - a test
    write_findings(tmp_path, draw)
    rows = list(each_finding(settings(tmp_path), WantedFindings({})))
    found = read_findings(settings(tmp_path), WantedFindings({}), limit=5, most_read=1)
    assert (found.is_whole, found.total) == (False, len(rows))
    found = read_findings(settings(tmp_path), WantedFindings({}, part="m"), limit=5, most_read=1)
    assert (found.is_whole, found.is_counted) == (False, False)


def kept_of(path: str, **values: object) -> Row:
    row = {"file": path, "stream": "events", "shard_id": "a", "kind": "missing", "cause": "lost"}
    return row | {"state": "open", "ids": 1000, "first_deadline": NOON, **values}


def test_what_is_kept_of_a_file_counts_as_long_as_the_file_is_there(tmp_path: Path) -> None:
    """So does nothing else: not what is kept of others, nor what was known before a change."""
    finding = {"stream": "events", "kind": "missing", "state": "open", "cause": "lost"}
    write_rows(tmp_path, FINDINGS, [finding | {"message_id": "a"}])
    tables = DeltaRs(str(tmp_path), Aws())
    [file] = tables.files(FINDINGS)
    write_rows(tmp_path, FINDING_COUNTS, [kept_of(file["path"]), kept_of("another")])
    assert [one.ids for one in open_counts(settings(tmp_path))] == [1000]  # it is not read again
    # Killed before anything is kept of what it wrote:
    write_rows(tmp_path, FINDINGS, [finding | {"message_id": "b"}])
    assert [one.ids for one in open_counts(settings(tmp_path))] == [1001]
    tables.upsert([finding | {"message_id": "a", "state": "planned"}], FINDINGS)
    assert [one.ids for one in open_counts(settings(tmp_path))] == [2]
    assert open_missing(settings(tmp_path), "events", shards=ShardRange()).ids == 1


def test_transitions_are_those_of_the_findings_or_none_is_read(tmp_path: Path) -> None:
    names = ("a", "b", "c")
    rows = [
        {"stream": stream, "message_id": name, "kind": "missing", "changed_at": NOON}
        for stream in ("events", "orders")
        for name in names
    ]
    assert transitions_of(settings(tmp_path), "events", [{"message_id": "a"}]) == []
    write_rows(tmp_path, TRANSITIONS, rows[:3])
    write_rows(tmp_path, TRANSITIONS, rows[3:])
    shown = [{"message_id": name, "opened_at": NOON} for name in names[:2]]
    found = transitions_of(settings(tmp_path), "events", shown)
    assert found is not None
    assert sorted((row["stream"], row["message_id"]) for row in found) == [
        ("events", "a"),
        ("events", "b"),
    ]
    later = [row | {"opened_at": NOON + timedelta(days=1)} for row in shown]
    assert transitions_of(settings(tmp_path), "events", shown, most_read=1) is None
    assert transitions_of(settings(tmp_path), "events", later, most_read=1) == []
