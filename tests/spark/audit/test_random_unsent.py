"""Where untraced messages are counted only, an audit counts all as if each were named."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from shardaudit.audit import window_ledger
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.job import audit
from shardaudit.audit.rules import gaps
from shardaudit.audit.rules.classify import COUNTS
from shardaudit.model.retention import Retention
from shardaudit.model.tables.audit_tables import AUDITS, CELLS, FINDINGS
from shardaudit.model.tables.gap_tables import GAPS
from shardaudit.model.verdict import STANDING, Kind
from shardaudit.model.window import Window
from shardaudit.store.warehouse import Warehouse
from tests.builders import T0, sequence, shard
from tests.spark.lake import Lake
from tests.spark.ungated import ungated

Message = dict[str, object]
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
SHARDS, MINUTES = 3, 8
FEW = 12  # untraced messages that are named
ON_THEIR_WAY = ("verdict", "missing", "pending")
COUNTED = ("verdict", "sent", "landed", "matched", *COUNTS)
NIGHTS = [2, 3, 28]  # hours after the first message; the stream keeps a day
SEEDS = [3, *(pytest.param(n, marks=[pytest.mark.drill]) for n in range(20) if n != 3)]


@contextmanager
def few_named(*modules: object) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        for module in modules:
            patched.setattr(module, "MOST_NAMED", FEW)
        yield


class Nights:
    """A stream in which much lands that was not sent so."""

    def __init__(self, lake: Lake, seed: int) -> None:
        self.lacks_places = seed % 4 == 2
        self.lake, self.chance, self.last = lake, Random(seed), 0  # noqa: S311 - to be repeated
        self.landed, self.late = list[Message](), list[tuple[Message, bool]]()

    def _message(self, prefix: str) -> Message:
        self.last += 1
        minute = self.chance.randrange(MINUTES)
        return {
            "message_id": f"{prefix}{self.last}",
            "shard_id": shard(self.chance.randrange(SHARDS)),
            "sequence_number": sequence(minute * 10_000 + self.last),
            "sent_at": T0 + minute * MINUTE + self.last % 50 * timedelta(seconds=1),
        }

    def _elsewhere(self, line: Message) -> Message:
        """Another attempt: in the same minute, or in another one."""
        other = self._message("")
        if self.chance.random() < 0.5:
            other = other | {"sent_at": line["sent_at"]}
        return other | {"message_id": line["message_id"]}

    def pass_by(self, night: int) -> None:
        """One more night: what came, and what left."""
        at, chance = T0 + NIGHTS[night] * HOUR, self.chance
        traces, rows = list[Message](), list[Message]()
        for line, is_trace in self.late:
            (traces if is_trace else rows).append(line)
        self.late = []
        for _ in range(chance.choice([10, 40])):
            self._sent(traces, rows)
        for _ in range(chance.choice([3, 30, 60]) if night else 30):
            self._other(rows)
        if self.landed:
            rows += chance.sample(self.landed, chance.choice([0, 0, 3]))
        rows = [{"landed_at": at - 2 * MINUTE} | row for row in rows]
        if self.lacks_places:
            rows = [row | self._unplaced() for row in rows]
        self.landed += rows
        self.window = Window(T0 + chance.choice([0, 0, 3]) * MINUTE, T0 + MINUTES * MINUTE)
        self.as_of = at - chance.choice([0, 0, 0, 1]) * HOUR
        self.lake.log(
            f"night-{night}.jsonl",
            [line | {"sent_at": line["sent_at"].isoformat()} for line in traces],  # type: ignore[attr-defined] # a time
        )
        self.lake.land(rows)
        gone = chance.choice([0, 0, 2, len(self.landed) // 2])
        if gone:
            ids = {str(row["message_id"]) for row in chance.sample(self.landed, gone)}
            named = ", ".join(f"'{one}'" for one in sorted(ids))
            self.lake.sql(f"DELETE FROM SINK WHERE message_id IN ({named})")  # noqa: S608 - our own
            self.landed = [row for row in self.landed if row["message_id"] not in ids]

    def _unplaced(self) -> Message:
        names = self.chance.choice([["shard_id"], ["sent_at"], *[[]] * 8])
        return dict.fromkeys(names)

    def _sent(self, traces: list[Message], rows: list[Message]) -> None:
        line = self._message("sent-")
        traces.append(line)
        match self.chance.choice(
            ["sound"] * 4 + ["lost", "lost", "late", "moved", "again", "both"]
        ):
            case "sound":
                rows.append(line)
            case "late":
                self.late.append((line, False))
            case "moved":
                rows.append(self._elsewhere(line) | {"sent_at": line["sent_at"]})
            case "again":
                other = self._elsewhere(line)
                traces.append(other)
                rows.append(self.chance.choice([line, other]))
            case "both":
                other = self._elsewhere(line)
                traces.append(other)
                rows += [line, other]

    def _other(self, rows: list[Message]) -> None:
        """A message that no trace tells of, or not yet."""
        line = self._message("other-")
        rows.append(line)
        match self.chance.choice(["once"] * 7 + ["twice", "elsewhere", "traced later"]):
            case "twice":
                rows.append(line)
            case "elsewhere":
                rows.append(self._elsewhere(line))
            case "traced later":
                self.late.append((line, True))


@dataclass(frozen=True)
class Told:
    """Of one audit: by cell what is counted; how many of the missing findings and gaps tell."""

    cells: dict[tuple[str, datetime], dict[str, object]]
    missing: int


def told(lake: Lake, nights: Nights, night: int, *, in_gaps: bool) -> Told:
    """Of a gap the last message says what all are: then missing and on their way count as one."""
    at = T0 + NIGHTS[night] * HOUR
    lake.ingest(now=at)
    kept = Retention(24 * HOUR)
    request = AuditRequest(lake.name, lake.stream, nights.window, nights.as_of, kept)
    report = audit(lake.warehouse, request, ungated(), now=at)
    names = [name for name in COUNTED if not in_gaps or name not in ON_THEIR_WAY]
    cells = {
        (row.shard_id, row.bucket_start): {name: row[name] for name in names}
        | {"unlanded": row.missing + row.pending}
        for row in lake.rows(CELLS)
        if row.audit_id == report.audit_id
    }
    findings = [row for row in lake.rows(FINDINGS) if row.state in STANDING]
    named = [row for row in findings if row.kind == Kind.MISSING]
    unnamed = [row["count"] for row in lake.rows(GAPS) if row.state in STANDING]
    return Told(cells, 0 if in_gaps else len(named) + sum(unnamed))


@pytest.mark.parametrize("seed", SEEDS)
def test_all_is_counted_as_if_each_were_named(
    lake: Lake, spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    named, counted = (Warehouse(spark, str(tmp_path / name)) for name in ("named", "warehouse"))
    nights, in_gaps = Nights(lake, seed), seed % 2 == 0
    for night in range(len(NIGHTS)):
        nights.pass_by(night)
        lake.warehouse = named
        expected = told(lake, nights, night, in_gaps=in_gaps)
        lake.warehouse = counted
        with few_named(window_ledger, *([gaps] if in_gaps else [])):
            found = told(lake, nights, night, in_gaps=in_gaps)
        unlike = {
            cell: (of, expected.cells[cell])
            for cell, of in found.cells.items()
            if of != expected.cells[cell]
        }
        assert (unlike, found.missing) == ({}, expected.missing), f"night {night}"
    unnamed = [row.unnamed for row in lake.rows(AUDITS)]
    assert len(unnamed) == len(NIGHTS)
    if seed == SEEDS[0]:
        assert max(unnamed) > FEW
