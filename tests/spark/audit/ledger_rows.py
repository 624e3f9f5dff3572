"""Rows of the ledger, in cells of a minute."""

from datetime import UTC, datetime, timedelta

from tests.builders import T0

MINUTE = timedelta(minutes=1)
Row = dict[str, object]
LEDGER_DDL = (
    "batch_id string, shard_id string, bucket_start timestamp, side string, n bigint, "
    "sum_lo bigint, sum_hi bigint, max_sequence_number string, last_at timestamp, "
    "unnumbered_at timestamp, own_n bigint, without_landed_at bigint, planned_at timestamp, "
    "arrived_from timestamp, arrived_until timestamp, min_sequence_number string"
)
CELL_DDL = "shard_id string, bucket_start timestamp"


def minute(value: object) -> int:
    assert isinstance(value, datetime)
    return (value.astimezone(UTC) - T0) // MINUTE


def batch(shard: str, side: str, n: int, *, at: int = 10, of: int = 7) -> Row:
    """Of a cell; the sums are those of an id that counts as `of`."""
    found: Row = {"batch_id": "b", "shard_id": shard, "bucket_start": T0 + at * MINUTE}
    return found | {"side": side, "n": n, "sum_lo": n * of, "sum_hi": 0}


Batches = list[tuple[str, int, int]]
