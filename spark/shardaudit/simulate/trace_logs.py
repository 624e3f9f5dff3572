"""The producers' logs: JSON Lines, one file for each producer and hour, mostly compressed."""

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from itertools import groupby

import duckdb
import zstandard

from shardaudit.simulate.folder import Folder
from shardaudit.simulate.scenario import Scenario

# Every few files one is plain and one is zstd, as logs of a grown system are.
PLAIN_EVERY, ZSTD_EVERY = 8, 5
_TIME = "'%Y-%m-%dT%H:%M:%S.%gZ'"

_Row = tuple[str, str, str, str, str, str, int, str, str, int]


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
