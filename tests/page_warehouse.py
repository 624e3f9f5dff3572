"""A warehouse as audits and watches leave it, of any size, written without Spark in seconds.

Every night of the last days was audited; shard by shard most is well. What is not well is planted
where `TROUBLE` says, so that a test knows what a map must show.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from deltalake import write_deltalake

from shardaudit.adapters.lake.delta_rs import DeltaRs
from shardaudit.adapters.lake.table_files import table_files
from shardaudit.model.config.parts import Aws
from shardaudit.model.tables.audit_tables import (
    AUDITS,
    CELLS,
    FINDINGS,
    FINGERPRINTS,
    GATES,
    TRANSITIONS,
)
from shardaudit.model.tables.ledger_tables import FINDING_COUNTS
from shardaudit.model.tables.table import LATENCY_BINS, Table
from shardaudit.model.tables.watch_tables import SHARDS
from shardaudit.store.found.finding_counts import count_file

STREAM = "events"
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
HOSTILE = ("<script>alert(1)</script>", '=cmd()|"/C calc"!A0', "\N{PILE OF POO}" * 256)

_TYPES = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "array<string>": pa.list_(pa.string()),
    "array<bigint>": pa.list_(pa.int64()),
    "map<string,string>": pa.map_(pa.string(), pa.string()),
}
_COUNTS = (
    *("sent", "landed", "matched", "missing", "pending"),
    *("duplicated", "extra_rows", "untraced", "moved"),
)
Row = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Trouble:
    """A shard's cells from the hour `start` to `end` (counted from the first) with that verdict."""

    shard: int
    start: float
    end: float
    verdict: str


TROUBLE = (
    Trouble(5, 20, 45, "loss"),
    Trouble(9, 60, 61, "duplication"),
    Trouble(9, 90, 96, "mixed"),
    Trouble(13, 100, 168, "stalled"),
    Trouble(17, 30, 34, "untraced"),
    Trouble(18, 70, 75, "inconclusive"),
    Trouble(21, 0, 168, "silent"),
)


def shard_name(number: int) -> str:
    """As Kinesis names its shards."""
    return f"shardId-{number:012d}"


def spread(number: int, shards: int) -> int:
    """A shard's number among 24, as it is among more."""
    return number * max(1, shards // 24)


def write_warehouse(
    folder: Path,
    *,
    now: datetime,
    shards: int = 24,
    days: int = 7,
    bucket: timedelta = timedelta(minutes=5),
    messages: Sequence[str] = HOSTILE,
) -> None:
    """Writes all tables that the page reads; the newest audit ends at the last full hour."""
    end = now.replace(minute=0, second=0, microsecond=0)
    start = end - days * DAY
    cells = _cells(start, end, shards=shards, bucket=bucket)
    audit_id = cells["audit_id"][0].as_py()
    _write(folder, CELLS, cells)
    _write(folder, FINGERPRINTS, _fingerprints(cells))
    newest = _audit(audit_id, start, end, cells)
    write_rows(folder, GATES, _judged(newest, messages))
    earlier = [_earlier(newest, nights, shards) for nights in range(1, 15)]
    write_rows(folder, AUDITS, [newest, *earlier])
    findings = [
        finding | {"shard_id": shard_name(spread(int(str(finding["shard_id"])[-4:]), shards))}
        for finding in _findings(audit_id, start, end, messages)
    ]
    write_rows(folder, FINDINGS, findings)
    write_rows(folder, TRANSITIONS, [_opening(finding) for finding in findings])
    _write(folder, SHARDS, _watches(start, end, shards=shards))
    write_rows(folder, SHARDS, _watched(now, end, shards))


def write_rejected(folder: Path, *, now: datetime, said: str) -> str:
    """Adds an audit after all others that two gates and its self-check rejected; gives its id."""
    audit_id = f"{STREAM}-rejected"
    later = now.replace(minute=20, second=0, microsecond=0)  # than the newest of the others
    times = dict.fromkeys(("window_end", "as_of", "started_at"), later)
    row = {
        "audit_id": audit_id,
        "stream": STREAM,
        "window_start": now - DAY,
        **times,
        "finished_at": later + timedelta(minutes=15),
        "status": "rejected",
        "verdict": "ok",
        "self_check": "failed",
    }
    write_rows(folder, AUDITS, [row])
    broken = [_check("error", "broken", f"sink: cannot be judged: {said}")]
    failed = [
        _check("error", "failed", f"traces: too many refused lines: {said}"),
        _check("warn", "failed", "traces: some lines are of another stream"),
    ]
    write_rows(folder, GATES, [_gate(row, "sink", broken), _gate(row, "traces", failed)])
    return audit_id


def write_many_findings(
    folder: Path, *, now: datetime, shards: int, findings: int, files: int = 10
) -> None:
    """Adds that many findings, each with what opened it, most of them recovered since."""
    rows = findings // files
    for number in range(files):
        found = _many_findings(number, rows, now, shards)
        _write(folder, FINDINGS, found)
        opened = {
            "to_state": pa.repeat("open", rows),
            "audit_id": found["first_audit_id"],
            "changed_at": found["opened_at"],
            **{name: found[name] for name in ("stream", "message_id", "kind")},
        }
        _write(folder, TRANSITIONS, _with_nulls(TRANSITIONS, opened, rows))
    keep_counts(folder)


def keep_counts(folder: Path) -> None:
    """What an audit keeps of its findings' files."""
    for file in table_files(DeltaRs(str(folder), Aws()), FINDINGS):
        counts = count_file(file)
        named = counts.add_column(0, "file", pa.repeat(file.path, counts.num_rows))
        _write(folder, FINDING_COUNTS, named)


def _many_findings(number: int, rows: int, now: datetime, shards: int) -> pa.Table:
    """Of one night: a file as an audit leaves it, in the order of no column."""
    random, times = np.random.default_rng(number), pa.timestamp("us", tz="UTC")
    names = pa.array([shard_name(shard) for shard in range(shards)])
    night = np.datetime64((now - (number + 1) * DAY).replace(tzinfo=None), "us")
    sent = night + random.integers(0, DAY // timedelta(microseconds=1), rows)
    ids = [f"{low:016x}-{number:08x}" for low in random.integers(0, 2**62, rows)]
    made = {
        "stream": pa.repeat(STREAM, rows),
        "shard_id": names.take(pa.array(random.integers(0, shards, rows))),
        "message_id": pa.array(ids),
        "kind": pa.repeat("missing", rows),
        "cause": pa.repeat("lost", rows),
        "state": pa.array(np.where(random.random(rows) < 0.9, "recovered", "open")),
        "sent_at": pa.array(sent, times),
        "sent_count": pa.repeat(1, rows),
        "landed_count": pa.repeat(0, rows),
        "sequence_numbers": pa.array([[f"4965{n:052d}"] for n in range(rows)]),
        "recoverable_until": pa.array(sent + np.timedelta64(7 * DAY), times),
        "attributes": pa.array([[("table", "orders")]] * rows, _TYPES["map<string,string>"]),
        "first_audit_id": pa.repeat(f"{STREAM}-night-{number}", rows),
        "opened_at": pa.repeat(pa.scalar(now - number * DAY, times), rows),
        "updated_at": pa.repeat(pa.scalar(now - number * DAY, times), rows),
    }
    return _with_nulls(FINDINGS, made, rows)


def _with_nulls(table: Table, made: Mapping[str, Any], rows: int) -> pa.Table:
    """What is made, in the table's columns; the others are NULL."""
    nulls = {name: pa.nulls(rows, _TYPES[kind]) for name, kind, _ in table.columns}
    return pa.table({**nulls, **made}).select(table.names)


def write_rows(folder: Path, table: Table, rows: Sequence[Row]) -> None:
    """Adds rows to a table; what a row does not name is NULL."""
    schema = pa.schema([(name, _TYPES[kind]) for name, kind, _ in table.columns])
    _write(folder, table, pa.Table.from_pylist([dict(row) for row in rows], schema=schema))


def _write(folder: Path, table: Table, rows: pa.Table) -> None:
    write_deltalake(
        str(folder / table.name),
        rows,
        mode="append",
        partition_by=list(table.partitions) or None,
    )


def _cells(start: datetime, end: datetime, *, shards: int, bucket: timedelta) -> pa.Table:
    buckets = (end - start) // bucket
    shard, index = np.divmod(np.arange(shards * buckets), buckets)
    random = np.random.default_rng(7)
    wave = 1 + 0.4 * np.sin(index * bucket.total_seconds() / 86400 * 2 * np.pi)
    counts = {name: np.zeros(shard.size, np.int64) for name in _COUNTS}
    counts["sent"] = (random.integers(900, 1100, shard.size) * wave).astype(np.int64)
    verdict = np.full(shard.size, "ok", dtype=object)
    hours = index * bucket / HOUR
    for trouble in TROUBLE:
        at = (
            (shard == spread(trouble.shard, shards))
            & (hours >= trouble.start)
            & (hours < trouble.end)
        )
        verdict[at] = trouble.verdict
        _spoil(counts, at, trouble.verdict)
    late = (hours >= buckets * bucket / HOUR - 0.2) & (verdict == "ok")
    verdict[late], counts["pending"][late] = "pending", 7
    gone = counts["missing"] + counts["pending"]
    counts["matched"] = counts["sent"] - gone
    counts["landed"] = counts["matched"] + counts["extra_rows"] + counts["untraced"]
    micros = np.datetime64(start.replace(tzinfo=None), "us") + index * np.timedelta64(bucket)
    stamp = f"{start:%Y%m%dT%H%M%SZ}-{end:%Y%m%dT%H%M%SZ}"
    names = pa.array([shard_name(number) for number in range(shards)])
    times = pa.timestamp("us", tz="UTC")
    return pa.table(
        {
            "audit_id": pa.repeat(f"{STREAM}-{stamp}-0a1b2c3d", shard.size),
            "stream": pa.repeat(STREAM, shard.size),
            "shard_id": names.take(pa.array(shard)),
            "bucket_start": pa.array(micros, times),
            "bucket_end": pa.array(micros + np.timedelta64(bucket), times),
            **{name: pa.array(values) for name, values in counts.items()},
            "verdict": pa.array(verdict, pa.string()),
            "compared": pa.array(np.where(verdict == "ok", "fingerprint", "ids"), pa.string()),
            "sums_digest": pa.nulls(len(verdict), pa.int64()),
            "reason": pa.nulls(len(verdict), pa.string()),
            "vanished": pa.nulls(len(verdict), pa.int64()),
            "filtered": pa.nulls(len(verdict), pa.int64()),
        }
    ).select(CELLS.names)


def _spoil(counts: dict[str, np.ndarray], at: np.ndarray, verdict: str) -> None:
    sent = counts["sent"][at]
    if verdict in {"silent", "stalled"}:
        counts["missing"][at] = sent
    if verdict in {"loss", "mixed"}:
        counts["missing"][at] = sent // 50
    if verdict in {"duplication", "mixed"}:
        counts["duplicated"][at] = counts["extra_rows"][at] = sent // 20
    if verdict in {"untraced", "inconclusive"}:
        counts["untraced"][at] = sent // 30


def _fingerprints(cells: pa.Table) -> pa.Table:
    rows = cells.num_rows
    counts = np.zeros((rows, LATENCY_BINS), np.int64)
    landed = cells["landed"].to_numpy()
    slow = np.array([name.endswith("3") for name in cells["shard_id"].to_pylist()])
    counts[:, 1], counts[:, 3] = landed * 98 // 100, landed - landed * 98 // 100
    counts[slow, 9], counts[slow, 3] = counts[slow, 3], 0
    offsets = pa.array(np.arange(rows + 1) * LATENCY_BINS, pa.int32())
    day = cells["bucket_start"].cast(pa.date32())
    made = {
        "batch_id": pa.repeat(f"{STREAM}/sink/1", rows),
        "stream": cells["stream"],
        "side": pa.repeat("sink", rows),
        "shard_id": cells["shard_id"],
        "bucket_start": cells["bucket_start"],
        "n": cells["landed"],
        "latency_counts": pa.ListArray.from_arrays(offsets, pa.array(counts.ravel())),
        "sent_day": day,
    }
    return _with_nulls(FINGERPRINTS, made, rows)


def _audit(audit_id: str, start: datetime, end: datetime, cells: pa.Table) -> dict[str, object]:
    sums = {name: int(cells[name].to_numpy().sum()) for name in _COUNTS}
    return {
        "audit_id": audit_id,
        "stream": STREAM,
        "window_start": start,
        "window_end": end,
        "as_of": end + timedelta(minutes=10),
        "started_at": end + timedelta(minutes=10),
        "finished_at": end + timedelta(minutes=25),
        "status": "published",
        "verdict": "silent",
        **sums,
        "trace_coverage": 0.9993,
        "cells_total": cells.num_rows,
        "cells_compared_by_id": cells.num_rows // 200,
        "latency_p50": 8.0,
        "latency_p99": 256.0,
        "self_check": "passed",
        "watermark": start + 20 * HOUR,
        "engine": "Apache Spark 4.1.4",
        "config_digest": "0",
        "inputs": "{}",
    }


def _judged(audit: Row, messages: Sequence[str]) -> list[Row]:
    """All gates are open; one notes what messages are called."""
    note = [_check("warn", "failed", f"sink: rows of no trace, as {one}") for one in messages]
    fine = _check("error", "passed", "as it must be")
    checks = {"traces": [fine], "sink": [fine, *note], "ledger": [fine], "audit_result": [fine]}
    return [_gate(audit, suite, found) for suite, found in checks.items()]


def _gate(audit: Row, suite: str, checks: Sequence[Row]) -> Row:
    states = {check["state"] for check in checks if check["severity"] == "error"}
    return {
        "audit_id": audit["audit_id"],
        "stream": STREAM,
        "suite": suite,
        "state": next((state for state in ("failed", "broken") if state in states), "passed"),
        "rows": 24,
        "results": json.dumps(checks),
        "judged_at": audit["as_of"],
    }


def _check(severity: str, state: str, sentence: str) -> Row:
    return {
        "kind": "expect_something",
        "severity": severity,
        "state": state,
        "sentence": sentence,
        "details": {},
    }


def _earlier(newest: Row, nights: int, shards: int) -> Row:
    """A night's audit before: the loss is younger than a week."""
    moved = {
        name: value - nights * DAY for name, value in newest.items() if isinstance(value, datetime)
    }
    lost = {"missing": max(0, 9 - nights) * 40 * shards, "extra_rows": (nights % 3) * 15 * shards}
    verdict = "loss" if lost["missing"] else "duplication" if lost["extra_rows"] else "ok"
    return {
        **newest,
        **moved,
        **lost,
        "audit_id": f"{newest['audit_id']}-{nights:02d}",
        "verdict": verdict,
        "trace_coverage": 0.9993 - nights * 1e-5,
        "latency_p99": 64.0 if nights % 4 else 128.0,
    }


def _findings(
    audit_id: str, start: datetime, end: datetime, messages: Sequence[str]
) -> list[dict[str, object]]:
    lost = [*messages, *(f"message-{number:04d}" for number in range(180))]
    missing = [
        _finding(audit_id, message, 5, start + 20 * HOUR + index * timedelta(minutes=7))
        for index, message in enumerate(lost)
    ]
    stuck = [
        _finding(audit_id, f"stuck-{n:04d}", 13, start + 100 * HOUR + n * timedelta(minutes=20))
        | {"cause": "stuck"}
        for n in range(120)
    ]
    doubled = [
        _finding(audit_id, f"twice-{n:04d}", 9, start + 60 * HOUR + n * timedelta(seconds=20))
        | {
            "kind": "duplicated",
            "cause": "consumer_replay",
            "landed_count": 2,
            "recoverable_until": None,
            "first_landed_at": start + 61 * HOUR,
            "last_landed_at": start + 62 * HOUR,
        }
        for n in range(60)
    ]
    back = [
        finding | {"state": "recovered", "state_reason": f"landed before {end:%Y-%m-%d}"}
        for finding in missing[-20:]
    ]
    return [*missing[:-20], *back, *stuck, *doubled]


def _finding(audit_id: str, message_id: str, shard: int, sent_at: datetime) -> dict[str, object]:
    return {
        "stream": STREAM,
        "shard_id": shard_name(shard),
        "message_id": message_id,
        "kind": "missing",
        "cause": "lost",
        "state": "open",
        "location": "producer",
        "sent_at": sent_at,
        "sent_count": 1,
        "landed_count": 0,
        "sequence_numbers": [f"4959033827149025660855969{int(sent_at.timestamp() * 1000)}"],
        "recoverable_until": sent_at + 7 * DAY,
        "attributes": [("table", "orders")],
        "first_audit_id": audit_id,
        "last_audit_id": audit_id,
        "opened_at": sent_at + DAY,
        "updated_at": sent_at + DAY,
        "state_reason": None,
        "hops": None,
    }


def _opening(finding: Row) -> Row:
    names = ("stream", "message_id", "kind")
    opened = {"to_state": finding["state"], "changed_at": finding["opened_at"], "reason": "found"}
    return {name: finding[name] for name in names} | opened


def _watches(start: datetime, end: datetime, *, shards: int) -> pa.Table:
    """A watch each 15 minutes: of all shards one or the other's producers were late for a while."""
    every = timedelta(minutes=15)
    index, shard = np.divmod(np.arange((end - start) // every * shards), shards)
    minute = np.timedelta64(60, "s").astype("timedelta64[us]")
    observed = np.datetime64(start.replace(tzinfo=None), "us") + index * np.timedelta64(every)
    behind = 1 + shard * 7 % 3  # minutes
    for number, first, last, minutes in ((9, 88, 97, 40), (17, 28, 36, 180), (5, 120, 121, 12)):
        at = (shard == spread(number, shards)) & (index >= first * 4) & (index < last * 4)
        behind[at] = minutes
    closed = shard == spread(2, shards)
    names = pa.array([shard_name(number) for number in range(shards)])
    times = pa.timestamp("us", tz="UTC")
    made = {
        "stream": pa.repeat(STREAM, shard.size),
        "shard_id": names.take(pa.array(shard)),
        "observed_at": pa.array(observed, times),
        "produced_until": pa.array(observed - (behind + closed * 9999) * minute, times),
        "state": pa.array(np.where(closed, "closed", "ok"), pa.string()),
        "level": pa.repeat("none", shard.size),
    }
    return pa.table(
        {
            name: made.get(name, pa.nulls(shard.size, _TYPES[kind]))
            for name, kind, _ in SHARDS.columns
        }
    )


def _watched(now: datetime, end: datetime, shards: int) -> list[Row]:
    at = (now - timedelta(minutes=4)).astimezone(UTC)
    ends = {
        13: ("stalled", "warn", at + 22.5 * HOUR, 3.4, "restart its consumer, or backfill"),
        21: ("silent", "urgent", at + 4.2 * HOUR, 11.0, "backfill from the start of the window"),
        5: ("lagging", "notice", at + 71 * HOUR, 1.2, "its consumer is slower than real time"),
    }
    rows: list[Row] = []
    numbers = {spread(number, shards): number for number in range(24)}
    for number in range(shards):
        state, level, start_by, hours, advice = ends.get(
            numbers.get(number, -1), ("ok", "none", None, None, None)
        )
        rows.append(
            {
                "stream": STREAM,
                "shard_id": shard_name(number),
                "opened": True,
                "retention_hours": 168,
                "observed_at": at,
                "produced_until": end,
                "state": state,
                "level": level,
                "start_by": start_by,
                "recoverable_until": start_by + hours * HOUR if start_by and hours else None,
                "hours_to_read": hours,
                "advice": advice,
            }
        )
    return rows
