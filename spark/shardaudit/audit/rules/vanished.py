"""Rows that left the sink when the stream had none of their cell any more.

A lake that keeps fewer days than an audit looks at, or somebody who deletes old rows: what landed
and is deleted later was not lost. That a cell was complete the ledger says: added up batch by
batch, the sink held at one time just what was sent. Of others an audit knows, id by id.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from shardaudit.audit.rules.classify import Damage, is_damaged
from shardaudit.audit.rules.deadlines import arrival, may_be_there_until
from shardaudit.columns.ledger_sums import CELL, SUMS, is_whole, sums_digest
from shardaudit.model.config.eras import always
from shardaudit.model.retention import Retention


def last_arrival(bucket: timedelta) -> Column:
    """For `cell_sums`: `arrived_until`, the start of the cell in which its last message arrived."""
    return F.max(arrival("arrived_until", always(bucket))).alias("arrived_until")


def with_vanished(cells: DataFrame, vanished: DataFrame, gaps: DataFrame) -> DataFrame:
    """The cells with the columns of `vanished_cells`, and `was_known`: something is by these.

    Input:
        gaps: the cells of gaps that did not end, unique.
    Output:
        also `has_gap` (boolean).
    """
    # Unique on the cell on the right, both times.
    joined = cells.join(vanished, CELL, how="left").withColumn(
        "was_known", _known_until().isNotNull()
    )
    has_gap = F.broadcast(gaps.select(*CELL, F.lit(True).alias("has_gap")))
    return joined.join(has_gap, CELL, how="left").fillna(False, subset=["has_gap"])


def is_emptied() -> Column:
    """Whether nothing is left of a cell of which all is known: of rows of `with_vanished`.

    Of one with a gap an audit knew how many lack, and not which.
    """
    in_audit = F.when(~F.col("has_gap"), F.col("by_audit"))
    is_all = F.coalesce(F.greatest("by_ledger", in_audit) == F.col("sent_by"), F.lit(False))
    return is_all & (F.col("landed_n") == 0)


def is_emptied_as_seen() -> Column:
    """Whether nothing is left of a cell that an audit alone knows: of rows of `with_vanished`.

    It knows that its messages had landed; one that was sent again perhaps elsewhere.
    """
    is_in_ledger = F.coalesce(F.col("by_ledger") == F.col("sent_by"), F.lit(False))
    return is_emptied() & ~is_in_ledger


def is_known_in_part() -> Column:
    """Whether more was sent to a cell after all was known of it: of rows of `with_vanished`."""
    least = F.least("by_ledger", "by_audit")
    return F.coalesce(least < F.col("sent_by"), F.lit(False))


def _known_until() -> Column:
    return F.greatest("by_ledger", "by_audit")


@dataclass(frozen=True, slots=True)
class Deadlines:
    """What says whether a cell has left the stream. `damage`: cells that nobody can judge."""

    bucket: timedelta
    kept: Retention
    as_of: datetime
    damage: Damage


@dataclass(frozen=True, slots=True)
class Past:
    """What is known of earlier times.

    `ledger`: FINGERPRINTS; `batches`: BATCHES; `audited`: CELLS of the newest audit of each cell,
    and its `as_of`; `missing`: `message_id` of the findings of missing ids that did not end well;
    `read_at`: when the sink was looked at last; None: not after the audit's `as_of`.
    """

    ledger: DataFrame
    batches: DataFrame
    audited: DataFrame
    missing: DataFrame
    read_at: datetime | None = None


def overdue_cells(cells: DataFrame, past: Past, by: Deadlines) -> DataFrame:
    """The cells that `vanished_cells` looks at: those that differ and are past a deadline.

    An audit as of an earlier time sees the rows that are there now: what left the sink meanwhile.

    Input:
        cells: of `compared_cells`, of sums with `last_arrival`.
    Output:
        `shard_id`, `bucket_start`, unique; `landed_n, …`, `digest` of what it is now;
        `digest_then`, `gone_then`, `seen_at` of the audit that saw it last, or NULL.
    """
    first = may_be_there_until(F.col("bucket_start") + F.lit(by.bucket), by.kept)
    now = max(by.as_of, past.read_at or by.as_of)
    is_due = F.col("differs") & (F.col("sent_n") > 0) & (first < F.lit(now))
    is_dark = is_damaged(by.damage.sink)
    seen = past.audited.where(F.col("pending") == 0).select(
        *CELL,
        F.col("sums_digest").alias("digest_then"),
        F.col("vanished").alias("gone_then"),
        F.col("as_of").alias("seen_at"),
    )
    # Unique on the cell on the right.
    return (
        cells.where(is_due & ~is_dark)
        .withColumn("digest", sums_digest())
        .join(seen, CELL, how="left")
        .select(*CELL, *_LANDED, *_SEEN)
    )


def vanished_cells(over: DataFrame, past: Past, by: Deadlines) -> DataFrame:
    """What was known of each cell until after a deadline, or of one that an audit saw as it is.

    Known is what was complete, by the ledger; or what an audit saw just so, when nothing of it was
    on its way. What left the sink while the stream still had a message of it is lost. What came
    with a later batch of traces changes nothing of that, and is judged by itself. What an
    unreadable file may have fed is not judged.

    Input:
        over: of `overdue_cells`, read: it is looked at five times.
    Output:
        `shard_id`, `bucket_start`, unique; `by_ledger`, `by_audit` (bigint: the last batch of
        traces of which all is known by that; NULL: nothing is), `sent_by` (the cell's last batch of
        traces), `seen_at` (as of when an audit saw it so, or saw it as it is; or NULL).
    """
    # Each state beside all that was sent up to each batch of traces: few of both.
    each = _states(over, past).join(_sent(over, past, by), CELL, how="inner")
    deadline = may_be_there_until(F.col("arrived_by"), by.kept)
    # As of an earlier time: what a later audit saw had left the stream by then.
    is_over = deadline < F.greatest(F.lit(by.as_of), F.col("seen_at"))
    is_now = F.col("planned_at").isNull()
    lasted = F.coalesce(F.col("planned_at") > deadline, F.lit(False))
    was_seen = (sums_digest() == F.col("digest_then")) & lasted
    is_same, was_gone = F.col("digest") == F.col("digest_then"), F.col("gone_then") > 0
    is_seen = was_seen | (is_same & is_now & is_over & was_gone)
    known = each.groupBy(*CELL).agg(
        F.max(F.when(is_whole() & lasted, F.col("number"))).alias("by_ledger"),
        F.max(F.when(is_seen, F.col("number"))).alias("by_audit"),
        F.max("sent_by").alias("sent_by"),
        F.max(F.when(was_seen | is_same, F.col("seen_at"))).alias("seen_at"),
    )
    return known.where(_known_until().isNotNull() | F.col("seen_at").isNotNull())


_KNOWN = ("by_ledger", "by_audit", "seen_at")
_SENT = [f"sent_{name}" for name in SUMS]
_LANDED = [f"landed_{name}" for name in SUMS]
_SEEN = ("digest", "digest_then", "gone_then", "seen_at")


def _states(over: DataFrame, past: Past) -> DataFrame:
    """What stood of the cells before each batch of the sink, and now: with the columns of `over`.

    Output:
        also `planned_at` (of the batch; NULL: now). Rows that no batch counted are there now:
        beside each state, they stood until after it.
    """
    # Unique on the cell and on the batch on the right.
    parts = (
        past.ledger.where(F.col("side") == "sink")
        .join(over, CELL, how="inner")
        .join(past.batches.select("batch_id", "number", "planned_at"), ["batch_id"], how="left")
        .withColumn("number", F.coalesce("number", F.lit(0)))
        .groupBy(*CELL, "number")
        .agg(
            *(F.sum(name).alias(name) for name in SUMS),
            *(F.max(name).alias(name) for name in (*_SEEN, "planned_at")),
        )
    )
    so_far = Window.partitionBy(*CELL).orderBy("number")
    before = parts.withColumns(
        {f"landed_{name}": F.sum(name).over(so_far) - F.col(name) for name in SUMS}
    )
    columns = (*CELL, *_LANDED, *_SEEN, "planned_at")
    now = over.withColumn("planned_at", F.lit(None).cast("timestamp"))
    is_batch = F.col("planned_at").isNotNull()
    return before.where(is_batch).select(*columns).unionByName(now.select(*columns))


def _sent(over: DataFrame, past: Past, by: Deadlines) -> DataFrame:
    """What had been sent to the cells up to each batch of traces.

    Output:
        `shard_id`, `bucket_start`, `number` (of the batch), unique together; `sent_n, …`;
        `arrived_by` (when the last of it came into the stream); `sent_by` (the last such batch).
    """
    # Unique on the cell and on the batch on the right.
    parts = (
        past.ledger.where(F.col("side") == "traces")
        .join(over.select(*CELL), CELL, how="inner")
        .join(past.batches.select("batch_id", "number"), ["batch_id"], how="inner")
        .groupBy(*CELL, "number")
        .agg(
            *(F.sum(name).alias(name) for name in SUMS),
            F.max(arrival("arrived_until", always(by.bucket))).alias("arrived"),
        )
    )
    so_far = Window.partitionBy(*CELL).orderBy("number")
    return (
        parts.withColumns({f"sent_{name}": F.sum(name).over(so_far) for name in SUMS})
        .withColumn("arrived_by", F.max("arrived").over(so_far) + F.lit(by.bucket))
        .withColumn("sent_by", F.max("number").over(Window.partitionBy(*CELL)))
        .select(*CELL, "number", *_SENT, "arrived_by", "sent_by")
    )


def unlanded(ids: DataFrame) -> DataFrame:
    """Those of the ids of `drill_down.ids` that were sent, and of which no row is there."""
    return ids.where((F.col("sent_count") > 0) & (F.col("landed_count") == 0))


def vanished_ids(
    ids: DataFrame, cells: DataFrame, missing: DataFrame, brought: DataFrame, kept: Retention
) -> DataFrame:
    """The ids that landed once, and of which no row is there now: `message_id`, unique.

    One of which a retry has another shard or time may have landed there: of it an audit alone
    knows, which looked when the stream had it no more.

    Input:
        ids: of `drill_down.ids`; cells: of `with_vanished`; missing: of `Past`.
        brought: `message_id`, `shard_id`, `bucket_start`, unique together, `number`: of the ids of
        the cells that are known in part, by which batch of traces they came.
    """
    gone = cells.where(F.col("was_known") | F.col("seen_at").isNotNull()).select(*CELL, *_KNOWN)
    # Of the other cells all is known that is known.
    in_ledger, in_audit = (
        F.coalesce(F.col("number") <= F.col(by), F.lit(True)) for by in ("by_ledger", "by_audit")
    )
    was_seen_late = F.coalesce(
        F.col("seen_at") > may_be_there_until(F.col("arrived_at"), kept), F.lit(False)
    )
    was_seen = F.when(F.size("cells") > 1, was_seen_late).otherwise(F.col("by_audit").isNotNull())
    by_ledger = F.col("by_ledger").isNotNull() & in_ledger
    # Unique on the cell, on the id and its cell, and on the id, on the right.
    return (
        unlanded(ids)
        .join(gone, CELL, how="inner")
        .join(brought, ["message_id", *CELL], how="left")
        .join(missing.withColumn("is_missing", F.lit(True)), ["message_id"], how="left")
        .where(by_ledger | (F.col("is_missing").isNull() & was_seen & in_audit))
        .select("message_id")
    )
