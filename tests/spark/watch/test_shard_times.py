"""How far a shard is in time, and when what waits came into the stream."""

from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import DataFrame, SparkSession

from shardaudit.audit.rules.deadlines import ahead_arrivals
from shardaudit.audit.rules.gaps import gap_measures
from shardaudit.audit.rules.ledger_hours import shard_hours, time_measures
from shardaudit.columns.ledger_sums import cell_sums
from shardaudit.model.config.eras import always
from shardaudit.watch.rules.differing_cells import differing_cells
from shardaudit.watch.rules.frontiers import shard_times
from tests.builders import T0
from tests.spark.audit.frames import frame

MINUTE = timedelta(minutes=1)
Row = dict[str, object]
LEDGER_DDL = (
    "shard_id string, bucket_start timestamp, side string, n bigint, sum_lo bigint, "
    "sum_hi bigint, max_sequence_number string, last_at timestamp, unnumbered_at timestamp, "
    "own_n bigint, without_landed_at bigint, arrived_from timestamp, arrived_until timestamp, "
    "min_sequence_number string"
)
STANDING_DDL = "shard_id string, frontier string, ahead_since timestamp, ahead_last timestamp"


def at(minute: int) -> datetime:
    return T0 + minute * MINUTE


def minute(value: object) -> int | None:
    if value is None:
        return None
    assert isinstance(value, datetime)
    return (value.astimezone(UTC) - T0) // MINUTE


def batch(side: str, start: int, last: int, *, n: int = 1, **fields: object) -> Row:
    usual: Row = {"shard_id": "s0", "bucket_start": at(start), "side": side, "n": n}
    return usual | {"sum_lo": n, "sum_hi": n, "last_at": at(last)} | fields


def hours(spark: SparkSession, ledger: list[Row]) -> DataFrame:
    """What is kept of a ledger."""
    measures = (*gap_measures(MINUTE), *time_measures())
    cells = cell_sums(frame(spark, LEDGER_DDL, ledger), *measures)
    return shard_hours(cells, as_of=at(100), settle_grace=MINUTE, bucket=MINUTE)


@pytest.mark.parametrize("kept", [[], ["s0"], ["s0", "never landed"]])
def test_a_shard_is_as_far_as_its_last_batch_whichever_came_last(
    spark: SparkSession, kept: list[str]
) -> None:
    ledger = [
        *(batch("traces", 2, 30), batch("traces", 1, 10), batch("traces", 3, 20)),
        *(batch("sink", 2, 40), batch("sink", 3, 45), batch("sink", 1, 42)),
        # What was taken back, or landed by us, says nothing of either.
        *(batch("traces", 0, 50, n=-1), batch("sink", 7, 60, n=-1)),
        batch("sink", 8, 70, own_n=1),
        batch("traces", 5, 55, shard_id="never landed"),
    ]
    far = [row for row in ledger if row["shard_id"] in kept]
    near = [row for row in ledger if row not in far]
    found = {
        row.shard_id: row.asDict()
        for row in shard_times(frame(spark, LEDGER_DDL, near), hours(spark, far)).collect()
    }
    names = ("first_sent_at", "produced_until", "landed_until", "last_landed_at")
    assert {s: [minute(row[name]) for name in names] for s, row in found.items()} == {
        "s0": [1, 30, 3, 45],
        "never landed": [5, 55, None, None],
    }


def arrived(start: int, since: int | None, until: int | None, **fields: object) -> Row:
    found = batch("traces", start, 0) | fields
    for name, when in (("arrived_from", since), ("arrived_until", until)):
        found[name] = None if when is None else at(when)
    return found


def test_a_cell_arrived_from_its_first_batch_until_its_last(spark: SparkSession) -> None:
    ledger = [
        *(arrived(1, 5, 6), arrived(1, 3, 9), arrived(1, 4, 7)),
        arrived(2, None, None),
        batch("sink", 3, 0),
    ]
    hours = [{"shard_id": "s0", "hour": T0}]
    found = differing_cells(
        frame(spark, LEDGER_DDL, ledger),
        frame(spark, "shard_id string, hour timestamp", hours),
        shape=always(MINUTE),
    ).collect()
    assert {
        minute(r.bucket_start): (minute(r.arrived_from), minute(r.arrived_until)) for r in found
    } == {1: (3, 9), 2: (2, 2), 3: (None, None)}


def test_what_is_ahead_came_with_batches_beyond_the_frontier(spark: SparkSession) -> None:
    ledger = [
        arrived(1, 2, 99, max_sequence_number="10"),  # behind
        arrived(3, 5, 6, max_sequence_number="100"),
        arrived(3, 4, 8, max_sequence_number="99"),  # at the frontier
        arrived(4, 6, 7, max_sequence_number=None),
        arrived(5, 5, 5, max_sequence_number="101"),
        *(arrived(6, 9, 9, max_sequence_number="102"), batch("sink", 6, 0)),  # landed
        arrived(8, 1, 99, max_sequence_number="103"),  # after what is ahead
        arrived(3, 4, 4, max_sequence_number="5", shard_id="without frontier"),
        arrived(3, 4, 4, max_sequence_number="5", shard_id="nobody asks"),
    ]
    standing: list[Row] = [
        {"shard_id": "s0", "frontier": "99"},
        {"shard_id": "without frontier"},
    ]
    since_last = {"ahead_since": at(3), "ahead_last": at(7)}
    found = ahead_arrivals(
        frame(spark, LEDGER_DDL, ledger),
        frame(spark, STANDING_DDL, (row | since_last for row in standing)),
        shape=always(MINUTE),
    ).collect()
    assert {r.shard_id: (minute(r.arrived_from), minute(r.arrived_until)) for r in found} == {
        "s0": (5, 7),
        "without frontier": (4, 4),
    }
