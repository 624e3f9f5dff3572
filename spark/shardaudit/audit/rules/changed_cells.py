"""The cells that are not as the audits before saw them: what is to be looked at again."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.audit.rules.classify import position_says
from shardaudit.audit.rules.ledger_hours import LedgerSums
from shardaudit.columns.instants import any_of, cell_start, in_windows
from shardaudit.columns.ledger_sums import CELL, SUMS, cell_sums, differs, is_any
from shardaudit.model.config.eras import Eras
from shardaudit.model.verdict import LIVE, UNSETTLED, Cause, Kind, State
from shardaudit.model.watermark import Held
from shardaudit.model.window import Window as Span


@dataclass(frozen=True, slots=True)
class Changes:
    """What became of the ledger since the audits before.

    `touched`: of `touched_cells`; `buckets`: of `touched_buckets`; `surplus`: of
    `surplus_cells`, as far as audits know.
    """

    touched: DataFrame
    buckets: DataFrame
    surplus: DataFrame


def touched_cells(
    news: DataFrame, uncounted: DataFrame | None, *, looked_at: datetime
) -> DataFrame:
    """The cells that are not as the audits before saw them: one row per cell.

    Input:
        news: fingerprints of batches that no audit knew, with `planned_at` of the batch.
        uncounted: the same columns, not unique: by rows that no batch counts; `is_partial`: the
        sums know only the newest of these.
        looked_at: as of when the last of these audits was.
    Output:
        `shard_id`, `bucket_start`, `is_partial`, `is_cleared` (boolean: rows left the sink, and
        none came), `went_at` (when a batch first missed rows; NULL: none did that is known).
    """
    # Also traces of which none counts there: of messages of other minutes that landed here.
    has_traces = is_any(F.col("side") == "traces").alias("has_traces")
    # More went than came; what was written anew beside them had landed before.
    landed = (F.col("side") == "sink") & (
        (F.col("last_at") > F.lit(looked_at)) | (F.col("own_n") > 0)
    )
    has_landed = is_any(landed).alias("has_landed")
    has_come = F.col("has_traces") | F.col("has_landed") | (F.col("landed_n") >= 0)
    took_rows = (F.col("side") == "sink") & (F.col("n") < 0)
    went_at = F.min(F.when(took_rows, F.col("planned_at"))).alias("went_at")
    counted = (
        cell_sums(news, has_traces, has_landed, went_at)
        .where(any_of([F.col("has_traces"), *(F.col(f"landed_{name}") != 0 for name in SUMS)]))
        .select(*CELL, F.lit(False).alias("is_partial"), (~has_come).alias("is_cleared"), "went_at")
    )
    if uncounted is None:
        return counted
    others = uncounted.withColumn("went_at", F.lit(None).cast("timestamp"))
    return (
        counted.unionByName(others)
        .groupBy(*CELL)
        .agg(
            is_any(F.col("is_partial")).alias("is_partial"),
            (~is_any(~F.col("is_cleared"))).alias("is_cleared"),
            F.min("went_at").alias("went_at"),
        )
    )


def touched_buckets(touched: DataFrame, apart: DataFrame) -> DataFrame:
    """The buckets of touched cells, and those in which a message of them has another trace.

    Input:
        apart: traces that count in another bucket than their own.
    Output:
        `bucket_start`, unique; `is_cleared` (boolean): so are all that lead to it; `is_linked`
        (boolean): to a message of it another trace leads from a bucket to which something came.
    """
    pair = ("bucket_start", "counted_in")
    there = apart.select(*pair)
    links = there.union(there.select(*reversed(pair))).distinct()
    own = touched.select("bucket_start", "is_cleared", F.lit(False).alias("is_linked"))
    # Not unique: a bucket leads to several, and they are grouped below.
    linked = own.join(links, ["bucket_start"], how="inner").select(
        "counted_in", "is_cleared", (~F.col("is_cleared")).alias("is_linked")
    )
    both = own.union(linked).groupBy("bucket_start")
    return both.agg(
        (~is_any(~F.col("is_cleared"))).alias("is_cleared"),
        is_any(F.col("is_linked")).alias("is_linked"),
    )


def changed_cells(
    changes: Changes, sums: DataFrame, *, audited: Span, bucket: timedelta
) -> DataFrame:
    """The audited cells of touched buckets of which the two sides differ now.

    And those with no row too many of which a message was doubled: it may be repaired, or gone with
    all rows that a lake drops; or was untraced, where something came: its trace. What was sent
    before all that was audited, and came into the stream since, was to be audited, too.

    Whichever shard was touched: what a shard lands that stood still makes its own cell whole, and
    the row too many lies where the producer had sent the message again.
    Rows that leave the sink count while the stream still has them: after that a lake may clean up,
    and what lacks there is its doing, whatever comes to other shards in that minute.
    Of rows that no batch counted `sums` may know only the newest: such cells count as they are.

    Input:
        sums: `LedgerSums.cells`, and `had_left` (boolean: whether the stream had none of the cell).
    Output:
        `shard_id`, `bucket_start`, `bucket_end`, `held_by`.
    """
    touched, buckets = changes.touched, F.broadcast(changes.buckets)
    come = touched.where(~F.col("is_cleared")).select(*CELL, F.lit(True).alias("has_come"))
    is_lacking = F.col("sent_n") > F.col("landed_n")
    is_as_known = is_lacking & F.col("has_come").isNull() & ~F.col("is_linked")
    start, first = F.col("bucket_start"), F.lit(audited.start)
    is_of_time = (start >= first) | F.coalesce(F.col("arrived_until") >= first, F.lit(False))
    # Unique on the bucket on the right, by its grouping; and on the cell. Presence only of excess.
    differing = (
        sums.where(differs() & is_of_time)
        .join(buckets, ["bucket_start"], how="inner")
        .join(come, CELL, how="left")
        .where(~(F.col("had_left") & (F.col("is_cleared") | is_as_known)))
    )
    excess = sums.where(F.col("landed_n") > F.col("sent_n")).select(*CELL)
    may_be_repaired = (F.col("kind") == Kind.DUPLICATED.value) | F.col("has_come").isNotNull()
    # Unique on the cell on the right, by its grouping; presence only of buckets and excess.
    repaired = (
        changes.surplus.join(buckets, ["bucket_start"], how="left_semi")
        .join(come, CELL, how="left")
        .where(may_be_repaired)
        .join(excess, CELL, how="left_anti")
    )
    partial = touched.where(F.col("is_partial") & (start >= first))
    cells = differing.select(*CELL).union(repaired.select(*CELL)).union(partial.select(*CELL))
    return as_changed(cells.distinct().where(start < F.lit(audited.end)), bucket)


def with_arrivals(sums: LedgerSums, audited: Span) -> LedgerSums:
    """The cells; what came since the first audit by its number has `arrived_until` so.

    A shard gives its numbers in the order of arrival, whatever a producer's clock says. The least
    of the cells' last numbers tells: a single message there may be of a clock that is ahead.

    Input:
        audited: from the first audit on.
    """
    begin, came_at = F.lit(audited.start), F.col("arrived_until")
    near = sums.near.select("shard_id", "bucket_start", "sent_key")
    known = near.union(sums.kept.select("shard_id", "hour", "least_sent_key"))
    since = known.where(in_windows(F.col("bucket_start"), [audited])).groupBy("shard_id")
    given = F.broadcast(since.agg(F.min("sent_key").alias("given_since")))
    has_come = F.coalesce(F.col("sent_key") > F.col("given_since"), F.lit(False))
    came = F.when(has_come, F.greatest(came_at, begin)).otherwise(came_at)
    # Unique on the shard on the right, by its grouping.
    arrived, unequal = (
        cells.join(given, ["shard_id"], how="left")
        .withColumn("arrived_until", came)
        .drop("given_since")
        for cells in (sums.near, sums.unequal)
    )
    return replace(sums, near=arrived, unequal=unequal)


def held_back_cells(sums: DataFrame, *, first: Span, bucket: timedelta) -> DataFrame:
    """What was sent before the first window, came into the stream since that began, and differs.

    Output:
        as of `changed_cells`, whose sums these are.
    """
    begin = F.lit(first.start)
    came_since = (F.col("bucket_start") < begin) & (F.col("arrived_until") >= begin)
    return as_changed(sums.where(came_since & differs()).select(*CELL), bucket)


def as_changed(cells: DataFrame, bucket: timedelta) -> DataFrame:
    """Some cells, in the shape of `changed_cells`."""
    end, why = F.col("bucket_start") + F.lit(bucket), F.lit(Held.CHANGED.value)
    return cells.withColumns({"bucket_end": end, "held_by": why})


def surplus_cells(findings: DataFrame, *, shape: Eras) -> DataFrame:
    """The cells with a row too many: `shard_id`, `bucket_start`, `kind` (why), unique together.

    Of messages that are doubled, or untraced, and not settled.
    """
    is_surplus = F.col("kind").isin(Kind.DUPLICATED.value, Kind.UNTRACED.value)
    start = cell_start(F.col("sent_at"), shape).alias("bucket_start")
    standing = findings.where(is_surplus & F.col("state").isin(*UNSETTLED))
    return standing.select("shard_id", start, "kind").distinct()


def stuck_cells(findings: DataFrame, gaps: DataFrame, *, shape: Eras) -> DataFrame:
    """The cells of what was stuck and can be recovered: `shard_id`, `bucket_start`, unique."""
    is_there = (F.col("cause") == Cause.STUCK.value) & F.col("state").isin(*LIVE, State.ACCEPTED)
    start = cell_start(F.col("sent_at"), shape).alias("bucket_start")
    named = findings.where(is_there & (F.col("kind") == Kind.MISSING.value)).select(
        "shard_id", start
    )
    return named.union(gaps.where(is_there).select(*CELL)).distinct()


def passed_cells(stuck: DataFrame, sums: DataFrame, facts: DataFrame) -> DataFrame:
    """The cells of what was stuck, and is lost by now: its consumer was set past it.

    Nothing comes to them any more: no batch tells it, and no window of the last days looks at them.

    Input:
        stuck: of `stuck_cells`; sums: `LedgerSums.cells`; facts: of `with_behind_parent`.
    Output:
        `shard_id`, `bucket_start`, unique.
    """
    last = F.col("sent_key")
    says = position_says(
        last, overdue=F.lit(True), has_no_position=last.isNull() | ~F.col("has_position")
    )
    # Unique on the shard on the right, by its grouping; presence only of the cell.
    near = sums.where(differs()).join(F.broadcast(stuck), CELL, how="left_semi")
    known = near.join(F.broadcast(facts), ["shard_id"], how="inner")
    return known.where(says == Cause.LOST.value).select(*CELL)
