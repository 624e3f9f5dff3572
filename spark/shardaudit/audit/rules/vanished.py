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
from shardaudit.audit.rules.deadlines import arrival, until
from shardaudit.audit.rules.drill_down import CELL
from shardaudit.model.retention import Retention


def last_arrival(bucket: timedelta) -> Column:
    """For `cell_sums`: `arrived_until`, the start of the cell in which its last message arrived."""
    return F.max(arrival("arrived_until", bucket)).alias("arrived_until")


def with_vanished(cells: DataFrame, vanished: DataFrame) -> DataFrame:
    """The cells with `was_known` and `by_audit`, of `vanished_cells`; never NULL."""
    marked = vanished.withColumn("was_known", F.lit(True))
    # Unique on the cell on the right.
    joined = cells.join(marked, CELL, how="left")
    return joined.fillna(False, subset=["was_known", "by_audit"])


def is_emptied() -> Column:
    """Whether nothing is left of a cell of which all is known: of rows of `with_vanished`."""
    return F.col("was_known") & (F.col("landed_n") == 0)


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

    `ledger`: FINGERPRINTS; `batches`: BATCHES of the sink; `audited`: CELLS of the newest audit of
    each cell; `missing`: `message_id` of the findings of missing ids that did not end well.
    """

    ledger: DataFrame
    batches: DataFrame
    audited: DataFrame
    missing: DataFrame


def vanished_cells(cells: DataFrame, past: Past, by: Deadlines) -> DataFrame:
    """The cells of which rows are gone, and of which all was known until after their last deadline.

    Known is what was complete, by the ledger; or what an audit saw just so, when nothing of it was
    on its way. What left the sink while the stream still had a message of the cell is lost,
    whatever came later. What an unreadable file may have fed is not judged.

    Input:
        cells: of `compared_cells`, of sums with `last_arrival`.
    Output:
        `shard_id`, `bucket_start`, unique; `by_audit` (boolean: it was never complete).
    """
    deadline = until(F.col("arrived_until") + F.lit(by.bucket), by.kept)
    is_over = F.col("differs") & (F.col("sent_n") > 0) & (deadline < F.lit(by.as_of))
    is_dark = is_damaged(by.damage.traces + by.damage.sink)
    seen = past.audited.where(F.col("pending") == 0).select(
        *CELL, F.col("sums_digest").alias("digest_then"), F.col("vanished").alias("gone_then")
    )
    # Unique on the cell on the right.
    over = (
        cells.where(is_over & ~is_dark)
        .withColumns({"deadline": deadline, "digest": sums_digest()})
        .join(seen, CELL, how="left")
        .select(*CELL, *_SENT, "deadline", "digest", "digest_then", "gone_then")
    )
    still = over.where((F.col("digest") == F.col("digest_then")) & (F.col("gone_then") > 0))
    found = _known_states(over, past).unionByName(
        still.select(*CELL, F.lit(True).alias("by_audit"))
    )
    # The ledger's word goes before an audit's.
    return found.groupBy(*CELL).agg(F.min("by_audit").alias("by_audit"))


_SENT = [f"sent_{name}" for name in SUMS]


def _known_states(over: DataFrame, past: Past) -> DataFrame:
    """The states of the cells' rows that lasted beyond the deadline, and of which all was known."""
    # Unique on the cell and on the batch on the right.
    parts = (
        past.ledger.where(F.col("side") == "sink")
        .join(over, CELL, how="inner")
        .join(past.batches.select("batch_id", "number", "planned_at"), ["batch_id"], how="inner")
        .groupBy(*CELL, "number")
        .agg(
            *(F.sum(name).alias(name) for name in SUMS),
            *(F.max(n).alias(n) for n in (*_SENT, "deadline", "digest_then", "planned_at")),
        )
    )
    so_far = Window.partitionBy(*CELL).orderBy("number")
    before = parts.withColumns(
        {f"landed_{name}": F.sum(name).over(so_far) - F.col(name) for name in SUMS}
    )
    was_seen = F.coalesce(sums_digest() == F.col("digest_then"), F.lit(False))
    is_late = F.col("planned_at") > F.col("deadline")
    known = before.where(is_late & (~differs() | was_seen))
    return known.select(*CELL, differs().alias("by_audit"))


def vanished_ids(ids: DataFrame, cells: DataFrame, missing: DataFrame) -> DataFrame:
    """The ids that landed once, and of which no row is there now: `message_id`, unique.

    Input:
        ids: of `drill_down.ids`; cells: of `with_vanished`; missing: of `Past`.
    """
    gone = cells.where(F.col("was_known")).select(*CELL, "by_audit")
    # Unique on the cell, and on the id, on the right.
    return (
        ids.where((F.col("sent_count") > 0) & (F.col("landed_count") == 0))
        .join(gone, CELL, how="inner")
        .join(missing.withColumn("is_missing", F.lit(True)), ["message_id"], how="left")
        .where(~F.col("by_audit") | F.col("is_missing").isNull())
        .select("message_id")
    )
