"""Rows that left the sink when the stream had none of their cell any more.

A lake that keeps fewer days than an audit looks at, or somebody who deletes old rows: what landed
and is deleted later was not lost. That a cell was complete the ledger says: added up batch by
batch, the sink held at one time just what was sent. Of others an audit knows, id by id.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from shardaudit.audit.rules.cells import SUMS, differs, sums_digest
from shardaudit.audit.rules.classify import Damage, is_damaged
from shardaudit.audit.rules.deadlines import arrival, may_be_there_until
from shardaudit.audit.rules.drill_down import CELL
from shardaudit.model.retention import Retention


def last_arrival(bucket: timedelta) -> Column:
    """For `cell_sums`: `arrived_until`, the start of the cell in which its last message arrived."""
    return F.max(arrival("arrived_until", bucket)).alias("arrived_until")


def with_vanished(cells: DataFrame, vanished: DataFrame) -> DataFrame:
    """The cells with the columns of `vanished_cells`, and `was_known`: all was once known of it."""
    # Unique on the cell on the right.
    joined = cells.join(vanished, CELL, how="left").fillna(False, subset=["by_ledger", "by_audit"])
    return joined.withColumn("was_known", F.col("by_ledger") | F.col("by_audit"))


def is_emptied() -> Column:
    """Whether nothing is left of a cell of which all is known: of rows of `with_vanished`."""
    return F.col("was_known") & (F.col("landed_n") == 0) & F.col("late_from").isNull()


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
    and its `as_of`; `missing`: `message_id` of the findings of missing ids that did not end well.
    """

    ledger: DataFrame
    batches: DataFrame
    audited: DataFrame
    missing: DataFrame


def overdue_cells(cells: DataFrame, past: Past, by: Deadlines) -> DataFrame:
    """The cells that `vanished_cells` looks at: those that differ and are past a deadline.

    Input:
        cells: of `compared_cells`, of sums with `last_arrival`.
    Output:
        `shard_id`, `bucket_start`, unique; `sent_n, …`, `deadline`, `digest` of what it is now;
        `digest_then`, `gone_then`, `seen_at` of the audit that saw it last, or NULL.
    """
    first, last = (may_be_there_until(F.col(n) + F.lit(by.bucket), by.kept) for n in _EDGES)
    is_due = F.col("differs") & (F.col("sent_n") > 0) & (first < F.lit(by.as_of))
    is_dark = is_damaged(by.damage.traces + by.damage.sink)
    seen = past.audited.where(F.col("pending") == 0).select(
        *CELL,
        F.col("sums_digest").alias("digest_then"),
        F.col("vanished").alias("gone_then"),
        F.col("as_of").alias("seen_at"),
    )
    # Unique on the cell on the right.
    return (
        cells.where(is_due & ~is_dark)
        .withColumns({"deadline": last, "digest": sums_digest()})
        .join(seen, CELL, how="left")
        .select(*CELL, *_SENT, *_SEEN, "digest", "gone_then")
    )


def vanished_cells(over: DataFrame, past: Past, by: Deadlines) -> DataFrame:
    """The cells of which all was known until after a deadline, or that an audit saw as they are.

    Known is what was complete, by the ledger; or what an audit saw just so, when nothing of it was
    on its way. What left the sink while the stream still had a message of the cell is lost,
    whatever came later. What an unreadable file may have fed is not judged.

    Input:
        over: of `overdue_cells`, read: it is looked at five times.
    Output:
        `shard_id`, `bucket_start`, unique; `by_ledger`, `by_audit` (boolean: by what all is known);
        `late_from` (when the stream took the first of what was sent later, and was not known to the
        ledger then; NULL: nothing); `seen_at` (as of when an audit saw it as it is, or NULL).
    """
    states = _states(over, past)
    is_over = F.col("deadline") < F.lit(by.as_of)
    is_same = F.col("digest") == F.col("digest_then")
    lasted = is_over & (F.col("planned_at") > F.col("deadline"))
    was_seen = sums_digest() == F.col("digest_then")
    found = (
        _complete(over, states, past, by)
        .unionByName(_seen(states.where(lasted & was_seen), F.lit(True)))
        .unionByName(_seen(over.where(is_same), is_over & (F.col("gone_then") > 0)))
    )
    return found.groupBy(*CELL).agg(*(F.max(name).alias(name) for name in _KNOWN))


_EDGES = ("bucket_start", "arrived_until")
_KNOWN = ("by_ledger", "by_audit", "late_from", "seen_at")
_SENT = [f"sent_{name}" for name in SUMS]
_SEEN = ("deadline", "digest_then", "seen_at")


def _states(over: DataFrame, past: Past) -> DataFrame:
    """What stood of the cells before each batch of the sink: `landed_n, …`, `planned_at`.

    Rows that no batch counted are there now: beside each state, they stood until after it.
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
            *(F.max(n).alias(n) for n in (*_SENT, *_SEEN, "planned_at")),
        )
    )
    so_far = Window.partitionBy(*CELL).orderBy("number")
    return parts.withColumns(
        {f"landed_{name}": F.sum(name).over(so_far) - F.col(name) for name in SUMS}
    )


def _seen(cells: DataFrame, is_known: Column) -> DataFrame:
    """Cells as an audit saw them, and whether all is known of them by that: of `vanished_cells`."""
    return cells.select(
        *CELL,
        F.lit(False).alias("by_ledger"),
        is_known.alias("by_audit"),
        F.lit(None).cast("timestamp").alias("late_from"),
        "seen_at",
    )


def _complete(over: DataFrame, states: DataFrame, past: Past, by: Deadlines) -> DataFrame:
    """Those that were complete beyond the deadline of all that was sent: of `vanished_cells`.

    Also where more was sent later: its arrival tells it apart, so only where all of it came later.
    """
    # Unique on the cell and on the batch on the right.
    parts = (
        past.ledger.where(F.col("side") == "traces")
        .join(over.select(*CELL), CELL, how="inner")
        .join(past.batches.select("batch_id", "number"), ["batch_id"], how="inner")
        .groupBy(*CELL, "number")
        .agg(
            *(F.sum(name).alias(name) for name in SUMS),
            F.max(arrival("arrived_until", by.bucket)).alias("arrived"),
            F.min(F.coalesce("arrived_from", "bucket_start")).alias("since"),
        )
    )
    so_far = Window.partitionBy(*CELL).orderBy("number")
    onward = Window.partitionBy(*CELL).orderBy(F.desc("number"))
    sent = (
        parts.withColumns({f"sent_{name}": F.sum(name).over(so_far) for name in SUMS})
        .withColumn("arrived_by", F.max("arrived").over(so_far) + F.lit(by.bucket))
        .withColumn("since", F.min("since").over(onward))
        .withColumn("late_from", F.lag("since").over(onward))
        .select(*CELL, *_SENT, "arrived_by", "late_from")
    )
    is_told_apart = F.coalesce(F.col("late_from") >= F.col("arrived_by"), F.lit(True))
    deadline = may_be_there_until(F.col("arrived_by"), by.kept)
    lasted = (F.col("planned_at") > deadline) & (deadline < F.lit(by.as_of))
    # Each state beside all that was sent up to each batch of traces: few of both.
    known = states.drop(*_SENT).join(sent, CELL, how="inner")
    known = known.where((F.col("sent_n") > 0) & ~differs() & lasted & is_told_apart)
    is_all = F.max(F.col("late_from").isNull())
    return known.groupBy(*CELL).agg(
        F.lit(True).alias("by_ledger"),
        F.lit(False).alias("by_audit"),
        F.when(~is_all, F.max("late_from")).alias("late_from"),
        F.lit(None).cast("timestamp").alias("seen_at"),
    )


def vanished_ids(
    ids: DataFrame, cells: DataFrame, missing: DataFrame, kept: Retention
) -> DataFrame:
    """The ids that landed once, and of which no row is there now: `message_id`, unique.

    One of which a retry has another shard or time may have landed there: of it an audit alone
    knows, which looked when the stream had it no more.

    Input:
        ids: of `drill_down.ids`; cells: of `with_vanished`; missing: of `Past`.
    """
    gone = cells.where(F.col("was_known") | F.col("seen_at").isNotNull()).select(*CELL, *_KNOWN)
    is_early = F.coalesce(F.col("arrived_at") < F.col("late_from"), F.lit(True))
    was_seen_late = F.coalesce(
        F.col("seen_at") > may_be_there_until(F.col("arrived_at"), kept), F.lit(False)
    )
    was_seen = F.when(F.size("cells") > 1, was_seen_late).otherwise(F.col("by_audit"))
    # Unique on the cell, and on the id, on the right.
    return (
        ids.where((F.col("sent_count") > 0) & (F.col("landed_count") == 0))
        .join(gone, CELL, how="inner")
        .join(missing.withColumn("is_missing", F.lit(True)), ["message_id"], how="left")
        .where((F.col("by_ledger") & is_early) | (F.col("is_missing").isNull() & was_seen))
        .select("message_id")
    )
