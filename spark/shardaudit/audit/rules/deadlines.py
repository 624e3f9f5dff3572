"""When messages came into the stream, some long after they were sent, and when they leave it."""

from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.columns.instants import cell_start
from shardaudit.columns.ledger_sums import cell_sums, differs, sequence_key
from shardaudit.model.config.eras import Eras
from shardaudit.model.retention import Retention


def arrival(name: str, shape: Eras) -> Column:
    """When the first or last of a batch's traces of a cell came into the stream: a cell's start.

    Input:
        name: `arrived_from` or `arrived_until`, of FINGERPRINTS. Where a batch does not say it:
        when its cell began.
    """
    arrived_at = F.coalesce(name, "bucket_start")
    return F.when(F.col("side") == "traces", cell_start(arrived_at, shape))


def until(arrived_at: Column, kept: Retention) -> Column:
    """`Retention.until` of a column."""
    gone_by = arrived_at + F.lit(kept.length)
    if kept.shorter is None:
        return gone_by
    gone_at = arrived_at + F.lit(kept.shorter.length)
    return F.when(gone_at < F.lit(kept.shorter.seen_at), gone_at).otherwise(gone_by)


def may_be_there_until(arrived_at: Column, kept: Retention) -> Column:
    """Until when the stream may have had it: `until`, or later where it was kept for longer."""
    ends = _longer_ends(arrived_at, kept)
    return F.greatest(until(arrived_at, kept), *ends) if ends else until(arrived_at, kept)


def _longer_ends(arrived_at: Column, kept: Retention) -> list[Column]:
    """`Longer.until` of a column, for each."""
    return [F.least(arrived_at + F.lit(was.length), F.lit(was.ended_by)) for was in kept.longer]


def had_left(kept: Retention, *, bucket: timedelta, as_of: Column, since: datetime) -> Column:
    """Whether the stream had nothing of a cell any more when its rows changed.

    Of sums with `vanished.last_arrival`.

    Input:
        as_of: by when the rows had changed; since: when they had not. Under one retention the
        deadline is asked of the later; one that was longer must have been over before the earlier.
    """
    last = F.coalesce("arrived_until", "bucket_start") + F.lit(bucket)
    left = until(last, kept) < as_of
    for end in _longer_ends(last, kept):
        left &= end <= F.lit(since)
    return left


def ahead_arrivals(fingerprints: DataFrame, standing: DataFrame, *, shape: Eras) -> DataFrame:
    """When what is ahead came into the stream: one row per shard of which cells are ahead.

    A batch of traces of which nothing is beyond the frontier says nothing of what is ahead.

    Input:
        fingerprints: rows of one stream.
        standing: `shard_id` (unique), `frontier` (text or NULL), `ahead_since`, `ahead_last`, as of
        `shard_progress`.
    Output:
        `shard_id`, `arrived_from`, `arrived_until` (starts of cells).
    """
    near = fingerprints.join(F.broadcast(standing), "shard_id", how="inner").where(
        F.col("bucket_start").between(F.col("ahead_since"), F.col("ahead_last"))
    )
    beyond = sequence_key(F.col("max_sequence_number")) > sequence_key(F.col("frontier"))
    is_beyond = F.coalesce(beyond, F.lit(True))
    edges = {"arrived_from": F.min, "arrived_until": F.max}
    cells = cell_sums(
        near,
        *(
            edge(F.when(is_beyond, arrival(name, shape))).alias(name)
            for name, edge in edges.items()
        ),
    )
    ahead = cells.where((F.col("sent_n") > 0) & differs())
    return ahead.groupBy("shard_id").agg(*(edge(n).alias(n) for n, edge in edges.items()))
