"""What a simulation leaves: producers' logs, a sink's commits, what was planted."""

import gzip
import json
import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Protocol

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from shardaudit.simulate.scenario import Scenario

# Every few files one is plain and one is zstd, as logs of a grown system are.
PLAIN_EVERY, ZSTD_EVERY = 8, 5
_TIME = "'%Y-%m-%dT%H:%M:%S.%gZ'"

_Row = tuple[str, str, str, str, str, str, int, str, str, int]

COLUMNS = "message_id, shard_id, sequence_number, sent_at, landed_at, arrived_at, day, payload"

log = logging.getLogger(__name__)

_TRACE_COLUMNS = (
    "message_id, stream, shard_id, sequence_number, sent_at, location, attempt, producer_id, "
    "acked_at"
)
# Messages a file: few enough to sort in memory, enough for files of a good size.
CHUNK = 500_000

PLANTED_COLUMNS = (
    "stream, shard_id, message_id, kind, cause, state, sent_at, recoverable_until, fault"
)


class Folder(Protocol):
    """A place for whole files, on disk or on S3."""

    def write(self, name: str, content: bytes) -> None:
        """Writes a file."""


class SinkTable(Protocol):
    """A Delta table or a Parquet folder that grows."""

    def append(self, rows: pa.RecordBatchReader) -> None:
        """Adds rows, in one commit or file."""


def write_trace_logs(engine: duckdb.DuckDBPyConnection, scenario: Scenario, folder: Folder) -> None:
    """Writes `traces`."""
    lines: Counter[str] = Counter()  # by producer
    for nth, (hour, producer, rows) in enumerate(_files(engine)):
        session, first = f"{producer}-{scenario.seed}", lines[producer]
        text = "".join(_line(row, session, number) for number, row in enumerate(rows, first))
        name = f"{scenario.stream}-{hour}-{producer}.jsonl"
        suffix, content = _compressed(nth, text.encode())
        folder.write(name + suffix, content)
        lines[producer] += len(rows)


def _files(engine: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, str, list[_Row]]]:
    cursor = engine.cursor()
    cursor.execute(f"""
        select strftime(acked_at at time zone 'UTC', '%Y-%m-%dT%H') as hour, producer_id,
            message_id, stream, shard_id, sequence_number,
            strftime(sent_at at time zone 'UTC', {_TIME}),
            strftime(acked_at at time zone 'UTC', {_TIME}), attempt, i
        from traces order by hour, producer_id, acked_at, i, attempt
    """)  # noqa: S608 - our own format
    for (hour, producer), rows in groupby(_rows(cursor), key=lambda row: (row[0], row[1])):
        yield hour, producer, list(rows)


def _rows(cursor: duckdb.DuckDBPyConnection) -> Iterator[_Row]:
    while rows := cursor.fetchmany(10_000):
        yield from rows


def _line(row: _Row, session: str, number: int) -> str:
    _, producer, message_id, stream, shard_id, sequence_number, sent_at, acked_at, attempt, i = row
    trace = {
        "message_id": message_id,
        "stream": stream,
        "shard_id": shard_id,
        "sequence_number": sequence_number,
        "sent_at": sent_at,
        "location": "producer",
        "attempt": attempt,
        "producer_id": producer,
        "session": session,
        "session_seq": number,
        "sample_rate": 1.0,
        "acked_at": acked_at,
        "attributes": {"row": str(i)},
    }
    return json.dumps(trace) + "\n"


def _compressed(nth: int, content: bytes) -> tuple[str, bytes]:
    if nth % PLAIN_EVERY == PLAIN_EVERY - 1:
        return "", content
    if nth % ZSTD_EVERY == ZSTD_EVERY - 1:
        return ".zst", zstandard.compress(content)
    return ".gz", gzip.compress(content, 3, mtime=0)  # the same bytes every time


def land_by_hour(engine: duckdb.DuckDBPyConnection, sink: SinkTable) -> None:
    """Appends `sink_rows` in the order of landing, a commit for each hour."""
    hours = engine.execute("""
        select distinct epoch_ms(landed_at) // 3600000 as hour from sink_rows order by hour
    """).fetchall()
    for (hour,) in hours:
        land(engine, sink, where=f"epoch_ms(landed_at) // 3600000 = {hour}")
    log.info("landed in %s commits", len(hours))


def land(engine: duckdb.DuckDBPyConnection, sink: SinkTable, *, where: str) -> None:
    """Appends the sink's rows of a condition in one commit."""
    query = f"select {COLUMNS} from sink_rows where {where} order by landed_at, message_id"  # noqa: S608 - our own conditions
    sink.append(engine.cursor().sql(query).to_arrow_reader(100_000))


def write_files(
    engine: duckdb.DuckDBPyConnection, scenario: Scenario, *, traces: Path, sink: SinkTable
) -> None:
    """Writes `traces` as Parquet files and appends `sink_rows`, both in the order of time."""
    traces.mkdir(parents=True, exist_ok=True)
    for nth, start in enumerate(range(0, scenario.messages, CHUNK)):
        where = f"i >= {start} and i < {start + CHUNK}"
        query = f"select {_TRACE_COLUMNS} from traces where {where} order by sent_at, message_id"  # noqa: S608 - whole numbers
        path = traces / f"{scenario.stream}-{nth:05d}.parquet"
        engine.sql(query).write_parquet(str(path), compression="zstd")
        land(engine, sink, where=where)
        done = min(start + CHUNK, scenario.messages)
        log.info("wrote %s of %s messages", f"{done:,}", f"{scenario.messages:,}")


@dataclass(frozen=True, slots=True)
class Places:
    """Where traces, sink and warehouse are, as the configuration names them."""

    warehouse: str
    traces: str
    trace_format: str
    sink: str
    sink_format: str
    kinesis_url: str | None = None
    s3_url: str | None = None


def write_planted(engine: duckdb.DuckDBPyConnection, path: Path) -> None:
    """One row is a finding that the audit must make; always in the same order."""
    order = "kind, cause, shard_id, sent_at, message_id"
    query = f"select {PLANTED_COLUMNS} from planted order by {order}"  # noqa: S608 - constants
    rows = engine.sql(query).to_arrow_reader(CHUNK)
    with pq.ParquetWriter(path, rows.schema) as writer:
        for batch in rows:
            writer.write_batch(batch)


def simulation_facts(scenario: Scenario) -> str:
    """The simulation as JSON: what is needed to audit it, and to make it again."""
    facts = {
        "stream": scenario.stream,
        "seed": scenario.seed,
        "window_start": _text(scenario.window.start.isoformat()),
        "window_end": _text(scenario.window.end.isoformat()),
        "as_of": _text(scenario.as_of.isoformat()),
        "messages": scenario.messages,
        "shards": scenario.shards,
        "retention_hours": int(scenario.retention.total_seconds()) // 3600,
        "faults": dict(sorted(scenario.faults.items())),
    }
    return json.dumps(facts, indent=2) + "\n"


def configuration(scenario: Scenario, places: Places) -> str:
    """A `shardaudit.toml` for it. Local folders are relative to the file."""
    hours = int(scenario.retention.total_seconds()) // 3600
    return "\n".join(
        [
            f"warehouse = {_toml(places.warehouse)}",
            'engine = "embedded"  # one machine, no JVM; "spark": Apache Spark, the same answers',
            "",
            *_aws(places),
            f"[streams.{_toml(scenario.stream)}]",
            f"stream_name = {_toml(scenario.stream)}",
            f'retention = "{hours}h"',
            "",
            f"[streams.{_toml(scenario.stream)}.traces]",
            f"path = {_toml(places.traces)}",
            f"format = {_toml(places.trace_format)}",
            "",
            f"[streams.{_toml(scenario.stream)}.sink]",
            f"path = {_toml(places.sink)}",
            f"format = {_toml(places.sink_format)}",
            "exclusive = true",
            "derived = { day = \"date_format(sent_at, 'yyyy-MM-dd')\" }",
            "",
            f"[streams.{_toml(scenario.stream)}.backfill]",
            'fields = { payload = "$" }',
            "read_share = 1.0",
            "",
        ]
    )


def _aws(places: Places) -> list[str]:
    endpoints = {"kinesis": places.kinesis_url, "s3": places.s3_url}
    given = [f"{name} = {_toml(url)}" for name, url in endpoints.items() if url is not None]
    if not given:
        return []
    again = [
        "# The simulation's S3 has stopped. To start it again on its port (credentials of your own",
        "# choice in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, here and there):",
        "#   shardaudit simulate serve --s3 s3 --s3-port "
        + (places.s3_url or "").rpartition(":")[2],
    ]
    return [
        *(again if places.s3_url else []),
        "[aws]",
        'region = "us-east-1"',
        f"endpoints = {{ {', '.join(given)} }}",
        "",
    ]


def _toml(text: str) -> str:
    return json.dumps(text)  # a JSON string is a TOML basic string


def _text(instant: str) -> str:
    return instant.replace("+00:00", "Z")
