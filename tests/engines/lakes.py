"""Random lakes that both engines are to read alike: who writes them is Apache Spark.

A lake is drawn by its number: so many random cases (tests/random_cases.py) in one stream, in the
form that the number says, with lines that cannot be used, ids that are odd, files and rows that
come, change and go between two audits.
"""

import json
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.adapters.engine.door import Engine
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.gates import open_gates
from shardaudit.audit.job import audit
from shardaudit.ingest.job import ingest
from shardaudit.model.config.settings import Stream
from shardaudit.model.errors import GateError
from shardaudit.model.retention import Retention
from shardaudit.model.window import Window
from shardaudit.store.warehouse import Warehouse
from tests.builders import Line, write_lines
from tests.cases import START, Case, Terms
from tests.engines.odd import PLANES
from tests.history import History, SinkRow, Trace
from tests.random_cases import random_cases, random_terms

NAME = "events"
ROUNDS = 2
SEED = 20261122

DELTA_FEATURES = {
    "plain": {},
    "vectors": {"delta.enableDeletionVectors": "true"},
    "mapped": {"delta.columnMapping.mode": "name"},
    "by id": {"delta.columnMapping.mode": "id", "delta.enableDeletionVectors": "true"},
}


@dataclass(frozen=True, slots=True)
class Form:
    """How a lake is written."""

    traces: str  # the ending of trace files
    sink: str  # a key of DELTA_FEATURES, or parquet
    partitioned: bool
    time: str  # the type of the sink's times
    lacks: tuple[str, ...] = ()


FORMS = (
    Form(".jsonl", "plain", partitioned=False, time="timestamp"),
    Form(".jsonl.gz", "vectors", partitioned=True, time="timestamp"),
    Form(".jsonl.zst", "mapped", partitioned=False, time="string"),
    Form(".parquet", "parquet", partitioned=True, time="timestamp"),
    Form(".jsonl", "by id", partitioned=True, time="timestamp_ntz"),
    Form(".parquet", "vectors", partitioned=False, time="bigint"),
    Form(".jsonl", "parquet", partitioned=False, time="bigint"),
    Form(".jsonl.gz", "plain", partitioned=False, time="timestamp", lacks=("shard_id",)),
)

DAILY = (4,)  # of the forms the one that asks most of a reader

# Ids that were sent and landed; and what looks like one of them, on the other side alone.
ODD_IDS = ("", PLANES, "nul\x00", "e\u0301", "\U0001f600" * 200, "12345678901234567890123", " a ")
LIKE_THEM = ("\x00", PLANES[:-1], "nul", "é", "1234567890123456789012", "a")

# Lines that are no traces, or odd ones. `%s` is a time in the window.
ODD_LINES = (
    "", "   ", "{", "[]", "null", '"text"', "{}", '{"message_id": 1e400}', "\ufeff{}",
    '{"message_id": "a", "message_id": "twice", "shard_id": "odd", "sent_at": "%s"}',
    '{"message_id": 12345678901234567890123, "shard_id": "odd", "sent_at": "%s"}',
    '{"message_id": 18446744073709551615, "shard_id": "odd", "sent_at": "%s"}',
    '{"message_id": -9223372036854775808, "shard_id": "odd", "sent_at": "%s"}',
    '{"message_id": 1.5, "shard_id": "odd", "sent_at": "%s"}',
    '{"message_id": true, "shard_id": "odd", "sent_at": "%s"}',
    '{"message_id": "\\ud800", "shard_id": "odd", "sent_at": "%s"}',
    '{"message_id": "nul\\u0000", "shard_id": "odd", "sent_at": "%s"}',
    '{"message_id": "rtl \\u202e", "shard_id": "odd", "sent_at": "%s"}',
    '{"message_id": "attributes", "shard_id": "odd", "sent_at": "%s", "attributes": {"a": 1}}',
    '{"message_id": "attributes?", "shard_id": "odd", "sent_at": "%s", "attributes": [1]}',
    '{"message_id": "number", "shard_id": "odd", "sent_at": "%s", "sequence_number": 12}',
    '{"message_id": "digits", "shard_id": "odd", "sent_at": "%s", "sequence_number": "1\\n"}',
    '{"message_id": "attempt", "shard_id": "odd", "sent_at": "%s", "attempt": "x"}',
    '{"message_id": "old", "shard_id": "odd", "sent_at": "1969-12-31T23:59:59.999999Z"}',
    '{"message_id": "ahead", "shard_id": "odd", "sent_at": "9999-12-31T23:59:59Z"}',
    '{"message_id": "no zone", "shard_id": "odd", "sent_at": "2026-11-20T12:00:00"}',
    '{"message_id": "no day", "shard_id": "odd", "sent_at": "2026-02-30T12:00:00Z"}',
    '{"message_id": "offset", "shard_id": "odd", "sent_at": "2026-11-20T13:30+01:30"}',
    '{"message_id": "foreign", "stream": "other", "shard_id": "odd", "sent_at": "%s"}',
    '{"message_id": "reserved", "_sa_x": 1, "shard_id": "odd", "sent_at": "%s"}',
    '{"message_id": "trailing", "shard_id": "odd", "sent_at": "%s"} x',
    "{'message_id': 'quotes', 'shard_id': 'odd', 'sent_at': '%s'}",
    '{"message_id": "nan", "shard_id": "odd", "sent_at": "%s", "sample_rate": NaN}',
    '{"message_id": "' + "x" * 2**20 + '", "shard_id": "odd", "sent_at": "%s"}',
    '{"message_id": "nested", "shard_id": "odd", "sent_at": "%s", "x": ' + "[" * 600 + "]" * 600
    + "}",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Lake:
    """One lake: its form, its terms, its cases."""

    number: int
    form: Form
    of: Terms
    chosen: tuple[Case, ...]

    @property
    def history(self) -> tuple[History, list[int]]:
        """Everything that is ever logged and landed, and the round of each row."""
        parts = [case.history(number) for number, case in enumerate(self.chosen)]
        traces = tuple(trace for part in parts for trace in part.traces)
        rows = tuple(row for part in parts for row in part.rows)
        return History(traces, rows), [row[5] for case in self.chosen for row in case.rows]

    def stream(self, folder: Path) -> Stream:
        """The configuration."""
        ask, is_parquet = self.of.question, self.form.sink == "parquet"
        return Stream.model_validate(
            {
                "stream_name": NAME,
                "retention": ask.retention,
                "bucket": ask.bucket,
                "settle_grace": ask.settle_grace,
                "tolerance": ask.tolerance,
                "trace_coverage_floor": ask.trace_coverage_floor,
                "sample_rate": 0.5 if self.number % 5 == 0 else 1.0,
                "traces": {
                    "path": str(folder / "traces"),
                    "format": "parquet" if self.form.traces == ".parquet" else "json",
                },
                "sink": {
                    "path": str(folder / "sink"),
                    "format": "parquet" if is_parquet else "delta",
                    "columns": {"message_id": "id-of-message"} if self.number % 2 else {},
                },
            }
        )


@cache
def lake(number: int, *, size: int) -> Lake:
    """The lake of that number: the same each time, of so many cases."""
    of = random_terms(SEED + number)
    chosen = random_cases(of, seed=SEED + number, count=size)
    return Lake(number, FORMS[number % len(FORMS)], of, tuple(chosen))


def feed(engine: Engine, *, folder: str, number: int, size: int, round_: int) -> None:
    """Writes what a round brings, and takes what it takes away. Apache Spark's part."""
    one, place = lake(number, size=size), Path(folder)
    history, rounds = one.history
    traces = [t for t in history.traces if min(t.batch, ROUNDS) == round_]
    rows = [r for r, at in zip(history.rows, rounds, strict=True) if min(at, ROUNDS) == round_]
    _log(one, place / "traces", traces, round_)
    _land(engine, one, place / "sink", rows, round_)
    if round_ > 1:
        _take_away(engine, one, place / "sink")


def take_in(engine: Engine, *, folder: str, number: int, size: int, to: str) -> None:
    """Ingests into a warehouse."""
    one = lake(number, size=size)
    warehouse = Warehouse(engine.session, to, engine=engine.version)
    ingest(warehouse, NAME, one.stream(Path(folder)), now=_now(one))


def judge(engine: Engine, *, folder: str, number: int, size: int, to: str) -> str:
    """Audits what was ingested; gives the audit's status."""
    one = lake(number, size=size)
    stream, ask, now = one.stream(Path(folder)), one.of.question, _now(one)
    warehouse = Warehouse(engine.session, to, engine=engine.version)
    request = AuditRequest(
        name=NAME,
        stream=stream,
        window=Window(ask.start, ask.end),
        as_of=ask.as_of,
        retention=Retention(ask.retention),
    )
    try:
        return audit(warehouse, request, open_gates(None), now=now).status
    except GateError:
        return "rejected"


def _now(one: Lake) -> datetime:
    return max(one.of.question.as_of, datetime(2026, 11, 22, tzinfo=UTC))


def _log(one: Lake, folder: Path, traces: Sequence[Trace], round_: int) -> None:
    at = (START + timedelta(seconds=1)).isoformat()
    odd_traces = [_odd_trace(name) for name in (*ODD_IDS, *LIKE_THEM)] if round_ == 1 else []
    lines: list[Line | str] = [*map(_trace, traces), *odd_traces]
    if one.form.traces == ".parquet":
        folder.mkdir(parents=True, exist_ok=True)
        names = ("message_id", "stream", "shard_id", "sequence_number", "sent_at")
        told = [*map(_trace, traces), *odd_traces]
        table = {n: pa.array([one[n] for one in told], pa.string()) for n in names}
        table["sent_at"] = table["sent_at"].cast(pa.timestamp("us", "UTC"))
        pq.write_table(pa.table(table), folder / f"part-{round_}.parquet")
        return
    odd = [line.replace("%s", at) for line in ODD_LINES[one.number % 3 :: 3]]
    write_lines(folder / f"part-{round_}{one.form.traces}", [*lines, *odd])


def _trace(trace: Trace) -> dict[str, object]:
    return {
        "message_id": trace.message_id,
        "stream": NAME,
        "shard_id": trace.shard_id,
        "sequence_number": trace.sequence_number,
        "sent_at": trace.sent_at.isoformat(),
    }


def _odd_trace(message_id: str) -> dict[str, object]:
    sent_at = (START + timedelta(seconds=2)).isoformat()
    own = {"message_id": message_id, "shard_id": "odd", "sequence_number": "7", "sent_at": sent_at}
    return {"stream": NAME, **own}


def _land(engine: Engine, one: Lake, place: Path, rows: Sequence[SinkRow], round_: int) -> None:
    frame = _sink_rows(engine, one, rows, round_)
    writer = frame.coalesce(1).write.mode("append")
    if one.form.partitioned:
        writer = writer.partitionBy("day")
    if one.form.sink == "parquet":
        writer.parquet(str(place))
        return
    for name, value in DELTA_FEATURES[one.form.sink].items():
        writer = writer.option(name, value)
    writer.format("delta").save(str(place))


def _sink_rows(engine: Engine, one: Lake, rows: Sequence[SinkRow], round_: int) -> DataFrame:
    """The round's rows in the sink's types, and some that cannot be used."""
    values: list[tuple[object, ...]] = [
        (r.message_id, r.shard_id, r.sequence_number, r.sent_at, r.landed_at) for r in rows
    ]
    start = START + timedelta(seconds=2)
    values += [
        (None, "odd", "1", start, start),
        (f"no time {round_}", "odd", "2", None, start),
        (f"no shard {round_}", None, "3", start, start),
        (f"no number {round_}", "odd", "0x1", start, start),
        (f"too old {round_}", "odd", "4", datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), start),
        ("é" * 600, "odd", "5", start, start),
    ]
    if round_ == 1:
        values += [(name, "odd", "7", start, start) for name in ODD_IDS]
    names = ["message_id", "shard_id", "sequence_number", "sent_at", "landed_at"]
    kinds = ["string"] * 3 + ["timestamp"] * 2
    ddl = ", ".join(f"{name} {kind}" for name, kind in zip(names, kinds, strict=True))
    frame = engine.session.createDataFrame(values, ddl)
    frame = frame.withColumn("day", F.date_format("sent_at", "yyyy-MM-dd"))
    for name in ("sent_at", "landed_at"):
        frame = frame.withColumn(name, _as_time(one.form.time, name))
    if one.number % 2:
        frame = frame.withColumnRenamed("message_id", "id-of-message")
    return frame.drop(*one.form.lacks)


def _as_time(kind: str, name: str) -> Column:
    match kind:
        case "string":
            return F.date_format(name, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'")
        case "bigint":
            return F.unix_millis(name)
    return F.col(name).cast(kind)


def _take_away(engine: Engine, one: Lake, place: Path) -> None:
    """Some rows of the first round go."""
    if one.form.sink == "parquet":
        oldest = min(place.rglob("*.parquet"), key=lambda file: (file.stat().st_mtime, file.name))
        oldest.unlink()
        return
    column = "id-of-message" if one.number % 2 else "message_id"
    engine.session.sql(
        f"DELETE FROM delta.`{place}` WHERE pmod(xxhash64(`{column}`), 7) = 3"  # noqa: S608 - our own
    )
    if one.number % 3 == 0:
        engine.session.sql(f"OPTIMIZE delta.`{place}`")


def copied(folder: Path, to: Path) -> Path:
    """The lake as it is now, elsewhere: what one engine reads the other cannot have touched."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(folder, to)
    return to


def shown(rows: Iterable[dict[str, object]]) -> list[str]:
    """Rows as texts, in an order of their own."""
    return sorted(json.dumps(row, default=str, sort_keys=True) for row in rows)
