"""A ledger for the watch, cell by cell."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from shardaudit.model.config.settings import Settings
from shardaudit.model.tables.audit_tables import FINGERPRINTS
from shardaudit.store.ledger_days import ledger_days
from shardaudit.store.warehouse import Warehouse
from shardaudit.watch.rules.facts import LedgerProgress
from shardaudit.watch.watch_ledger import Known, ledger_progress
from tests.builders import NOW, sequence

MINUTE = timedelta(minutes=1)
START = NOW - timedelta(hours=20)
NOBODY = "http://127.0.0.1:1"  # where no Kinesis answers

# What holes by sums are found by: columns of the ledger, and what is known of a shard.
LEDGER_DDL = (
    "shard_id string, bucket_start timestamp, side string, n bigint, sum_lo bigint, "
    "sum_hi bigint, max_sequence_number string, last_at timestamp, unnumbered_at timestamp, "
    "own_n bigint, without_landed_at bigint, arrived_from timestamp, arrived_until timestamp"
)
FACTS_DDL = (
    "shard_id string, has_position boolean, settled_until string, landed_until timestamp, "
    "patience double, hole_since timestamp, hole_until timestamp"
)


def settings(folder: Path, **more: object) -> Settings:
    stream = {
        "stream_name": "events",
        "retention": timedelta(hours=24),
        "traces": {"path": "t"},
        "sink": {"path": "sink"},
        **more,
    }
    aws = {"region": "us-east-1", "endpoints": {"kinesis": NOBODY, "dynamodb": NOBODY}}
    document = {"warehouse": str(folder / "warehouse"), "aws": aws, "streams": {"events": stream}}
    return Settings.model_validate(document)


def cell(
    shard: str, minute: int, side: str = "traces", *, n: int = 3, after: timedelta = MINUTE
) -> dict[str, object]:
    """A fingerprint: sent in that minute of START, or landed so long after the minute's begin."""
    start = START + minute * MINUTE
    bins = [0] * 22
    bins[5] = n
    return {
        "batch_id": f"events/{side}/1",
        "stream": "events",
        "side": side,
        "location": "producer" if side == "traces" else "sink",
        "shard_id": shard,
        "bucket_start": start,
        "n": n,
        "sum_lo": 0,
        "sum_hi": 0,
        "max_sequence_number": sequence(minute),
        "last_at": start + after / 2 if side == "traces" else start + after,
        "latency_counts": bins if side == "sink" else None,
        "sent_day": start.date(),
        "own_n": 0,
        "without_landed_at": 0,
        "unnumbered_at": None,
    }


def fill(warehouse: Warehouse, cells: Sequence[dict[str, object]]) -> None:
    rows = [tuple(row.get(name) for name in FINGERPRINTS.names) for row in cells]
    frame = warehouse.spark.createDataFrame(rows, FINGERPRINTS.ddl)
    warehouse.append(frame, FINGERPRINTS)


def facts(warehouse: Warehouse, known: Known | None = None) -> dict[str, LedgerProgress]:
    stream = settings(Path("any")).stream("events")
    known = known or Known({}, {})
    return ledger_progress(ledger_days(warehouse, "events"), stream, as_of=NOW, known=known)
