"""What an audit writes of ids is what is new: evidence of its days, findings that changed."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from shardaudit.model.tables.audit_tables import EVIDENCE, FINDINGS, TRANSITIONS
from shardaudit.model.tables.table import Table
from shardaudit.store.warehouse import Warehouse
from tests.builders import T0, sink_row, trace_line
from tests.spark.audit.nights import DAY, DAY_S, MINUTE, audited, of_day, published
from tests.spark.lake import Lake
from tests.spark.lines import lines

NIGHTS, HOURS = 3, range(0, DAY_S, 3600)
SAID = ("message_id", "kind", "cause", "state", "shard_id", "sent_at", "sequence_numbers")


def faulty_day(lake: Lake, day: int) -> None:
    """Of its messages two are lost, and one is doubled."""
    of_day(lake, day, *HOURS)
    lake.log(f"lost-{day}.jsonl", [trace_line(day * DAY_S + n) for n in (7200 + 1, 7200 + 2)])
    lake.land([sink_row(day * DAY_S + 3600)])


def writes(lake: Lake, table: Table, *, since: int) -> list[tuple[int, int, int]]:
    """Of each commit since a version: files that came and their rows; files that went."""
    place = lake.folder / "warehouse" / table.name / "_delta_log"
    found = []
    for number in range(since + 1, version(lake, table) + 1):
        log = (place / f"{number:020}.json").read_text().splitlines()
        actions = [json.loads(line) for line in log]
        came = [json.loads(one["add"]["stats"])["numRecords"] for one in actions if "add" in one]
        found.append((len(came), sum(came), sum("remove" in one for one in actions)))
    return found


def version(lake: Lake, table: Table) -> int:
    place = lake.folder / "warehouse" / table.name
    return DeltaTable(place).version() if place.exists() else 0


def findings(warehouse: Warehouse) -> list[tuple[object, ...]]:
    rows = warehouse.read(FINDINGS).select(*SAID).collect()
    return sorted((tuple(row) for row in rows), key=str)


def test_night_writes_its_own_days_alone_and_nothing_when_nothing_is_new(
    lake: Lake, spark: SparkSession, tmp_path: Path
) -> None:
    per_night = []
    for day in range(NIGHTS):
        faulty_day(lake, day)
        before = version(lake, EVIDENCE)
        audited(lake, day)
        per_night.append(writes(lake, EVIDENCE, since=before))
    # T0 is no midnight: a night's day is a part of two, and those before it stay as they are.
    assert per_night[1:] == [per_night[1]] * (NIGHTS - 1)
    known = lines(lake.warehouse, EVIDENCE)
    tables = (EVIDENCE, FINDINGS, TRANSITIONS)
    last = [version(lake, table) for table in tables]
    for minutes, since in enumerate((NIGHTS - 1, 0)):
        report = audited(lake, NIGHTS - 1, since=since, ahead=minutes * MINUTE)
        assert published(lake, report) == report
    assert [version(lake, table) for table in tables] == last
    assert lines(lake.warehouse, EVIDENCE) == known
    said = findings(lake.warehouse)
    lake.warehouse = Warehouse(spark, str(tmp_path / "anew"))
    audited(lake, NIGHTS - 1, since=0)
    assert findings(lake.warehouse) == said


class DiedError(Exception):
    """A command that ended there."""


class Dying:
    """A progress that ends the audit behind its look at ids."""

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        if name == "classify":
            raise DiedError
        yield


def test_night_that_died_behind_its_evidence_is_repeated_with_the_same_outcome(lake: Lake) -> None:
    for day in range(2):
        faulty_day(lake, day)
    audited(lake, 0)
    with pytest.raises(DiedError):
        audited(lake, 1, progress=Dying())
    last, known = version(lake, EVIDENCE), lines(lake.warehouse, EVIDENCE)
    audited(lake, 1)
    assert (version(lake, EVIDENCE), lines(lake.warehouse, EVIDENCE)) == (last, known)
    assert len(findings(lake.warehouse)) == 2 * 3
    lake.land([sink_row(DAY_S + 7201, landed_at=T0 + 2 * DAY)])
    audited(lake, 1)
    left = {row.message_id for row in lake.rows(EVIDENCE) if row.landed_count == 0}
    assert left == {"m7201", "m7202", f"m{DAY_S + 7202}"}
