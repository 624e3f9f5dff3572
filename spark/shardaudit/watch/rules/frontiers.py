"""What the watch needs of the ledger: one small row per shard, without any ids.

In two looks, because a week of 1,800 shards has 36 million rows: numbers and times of all of them
first, then the sequence numbers of the last hours of each shard and of what is ahead of it alone.
Of the days of which the sums are kept, these do.
"""

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from shardaudit.audit.rules.ledger_hours import unequal_cells
from shardaudit.audit.rules.shard_facts import settled_frontier
from shardaudit.columns.instants import cell_width
from shardaudit.columns.ledger_sums import (
    CELL,
    SUMS,
    adds_landed,
    adds_traces,
    cell_sums,
    differs,
    is_any,
    reached_at,
    sequence_key,
    sequence_number,
)
from shardaudit.model.config.eras import Eras
from shardaudit.watch.rules.filtered_holes import left_out_for_good

_SPAN = ("n", "since", "last")
_OF_CELL = [
    *CELL,
    *(f"{side}_{name}" for side in ("sent", "landed") for name in SUMS),
    *("sent_key", "landed_key", "reached", "last_landed_at", "unnumbered_at"),
]


def shard_times(fingerprints: DataFrame, kept: DataFrame) -> DataFrame:
    """How far each shard's producers and its sink are in time: one row per shard of the ledger.

    Input:
        fingerprints: of some days; kept: LEDGER_HOURS of the others.
    Output:
        `shard_id`, `first_sent_at`, `produced_until`, `landed_until` (starts of cells, but
        `produced_until`: a message's time), `last_landed_at`; timestamps, NULL when there is none.
    """
    sent, landed = adds_traces(), adds_landed()
    near = fingerprints.select(
        "shard_id",
        F.when(sent, F.col("bucket_start")).alias("first_sent_at"),
        F.when(sent, F.col("last_at")).alias("produced_until"),
        F.when(landed, F.col("bucket_start")).alias("landed_until"),
        F.when(landed, F.col("last_at")).alias("last_landed_at"),
    )
    known = kept.select(
        *("shard_id", "first_sent_at", "produced_until", "landed_until"),
        F.col("consumed_until").alias("last_landed_at"),
    )
    latest = ("produced_until", "landed_until", "last_landed_at")
    return (
        near.union(known)
        .groupBy("shard_id")
        .agg(
            F.min("first_sent_at").alias("first_sent_at"),
            *(F.max(name).alias(name) for name in latest),
        )
    )


@dataclass(frozen=True, slots=True)
class LedgerView:
    """What is known of the cells of a stream.

    `near`: FINGERPRINTS of some days; `kept`: LEDGER_HOURS of others, so old that nobody asks for
    the pauses within an hour; `left_out`: of `told_left_out`; None: the route has no filter.
    """

    near: DataFrame
    kept: DataFrame
    left_out: DataFrame | None = None


def shard_progress(
    ledger: LedgerView, horizons: DataFrame, *, shape: Eras, rested_since: datetime
) -> DataFrame:
    """Where each shard stands: one row per shard of `horizons` that has cells since its horizon.

    Input:
        horizons: `shard_id` (unique), `since` (cells from here on are looked at), `landed_until`,
        `known_frontier` (text: of an earlier look; NULL), `position` (text: a sequence number;
        NULL), `is_at_end` (boolean), `seen_at` (pauses that ended before were told; NULL),
        `rested_at` (when the known frontier landed; NULL).
        rested_since: by when the greatest number of a cell has landed for it to be settled.
    Output:
        `shard_id`, `frontier` (text; NULL: the rows that landed last have no sequence number),
        `settled_frontier` (text), `frontier_at`, `relanded_until`, and of the cells ahead
        `ahead_n`, `ahead_since`, `ahead_last`, of those behind the position `passed_n`,
        `passed_since`, `passed_last` (starts of cells), `paused_from`, `paused_until`, `is_by_time`
        (boolean: something of the shard landed, and times alone say that more is ahead).
    """
    cells = _recent_cells(ledger, horizons)
    stands = cells.withColumns(_frontiers()).withColumns(_positions())
    stands = stands.withColumns(_standing(shape))
    is_at_frontier = F.col("landed_key") == F.col("frontier")
    is_landed = F.col("last_landed_at").isNotNull()
    has_no_order = F.col("sent_key").isNull() | F.col("frontier").isNull()
    is_by_time = F.col("landed_until").isNotNull() & has_no_order
    return (
        stands.groupBy("shard_id")
        .agg(
            sequence_number(F.max("frontier")).alias("frontier"),
            sequence_number(settled_frontier(rested_since)).alias("settled_frontier"),
            reached_at(F.max(F.when(is_at_frontier, F.col("reached")))).alias("frontier_at"),
            F.max(F.when(is_landed, F.struct("last_landed_at", "bucket_start"))).alias("newest"),
            *_span("ahead", F.col("is_ahead")),
            *_span("passed", F.col("is_ahead") & F.col("is_passed")),
            F.max(F.col("pause")).alias("pause"),
            is_any(F.col("is_ahead") & is_by_time).alias("is_by_time"),
        )
        .select(
            "shard_id",
            "frontier",
            "settled_frontier",
            "frontier_at",
            F.col("newest.bucket_start").alias("relanded_until"),
            *(f"{name}_{part}" for name in ("ahead", "passed") for part in _SPAN),
            F.col("pause.waits_from").alias("paused_from"),
            F.col("pause.last_landed_at").alias("paused_until"),
            "is_by_time",
        )
    )


def _recent_cells(ledger: LedgerView, horizons: DataFrame) -> DataFrame:
    """The cells from each shard's horizon on, with the columns of the horizon, and `waiting`.

    `waiting`: so many of its messages neither landed nor were left out by a filter.
    """
    # horizons is unique on shard_id by its making: one row per shard.
    since = F.broadcast(horizons.select("shard_id", "since"))

    def recent(rows: DataFrame) -> DataFrame:
        near = rows.join(since, "shard_id", how="inner")
        return near.where(F.col("bucket_start") >= F.col("since")).drop("since")

    cells = cell_sums(recent(ledger.near)).select(*_OF_CELL)
    for old in (unequal_cells(ledger.kept), *_landed(ledger.kept)):
        cells = cells.unionByName(recent(old.select(*_OF_CELL)))
    lacking = F.col("sent_n") - F.col("landed_n")
    # A cell at the frontier has landed in part; one of only moved ids has more rows than it sent.
    waiting = F.when((F.col("sent_n") > 0) & differs(), F.greatest(lacking, F.lit(1))).otherwise(0)
    cells = cells.withColumn("waiting", waiting)
    if ledger.left_out is not None:
        # Unique on the cell on the right, by its grouping.
        cells = cells.join(ledger.left_out, CELL, how="left")
        left = F.when(lacking > 0, left_out_for_good()).otherwise(0)
        cells = cells.withColumn("waiting", F.greatest(F.col("waiting") - left, F.lit(0)))
    return cells.join(F.broadcast(horizons), "shard_id", how="inner")


def _landed(kept: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Of each hour the cell with its greatest number that landed, and the one that landed last.

    As far as the hour says it: both as if they were its last cell of which something landed.
    """
    hours = kept.where(F.col("landed_until").isNotNull()).withColumn(
        "bucket_start", F.col("landed_until")
    )
    nothing = {
        f"{side}_{name}": F.lit(0).cast("bigint") for side in ("sent", "landed") for name in SUMS
    }
    unsent = hours.withColumns(nothing | {"sent_key": F.lit(None).cast("string")})
    furthest = unsent.withColumn("last_landed_at", F.col("frontier_at"))
    empty = {name: F.lit(None).cast("string") for name in ("landed_key", "reached")}
    latest = {"last_landed_at": F.col("consumed_until")}
    return furthest.where(F.col("landed_key").isNotNull()), unsent.withColumns(empty | latest)


def _frontiers() -> dict[str, Column]:
    """The shard's frontier beside each of its cells, and the cell that landed before this one."""
    of_shard = Window.partitionBy("shard_id")
    by_landing = of_shard.orderBy("last_landed_at", "bucket_start")
    seen = F.max("landed_key").over(of_shard)
    is_landed = F.col("last_landed_at").isNotNull()
    before = F.lag("last_landed_at").over(by_landing)
    return {
        "frontier": F.greatest(seen, sequence_key(F.col("known_frontier"))),
        "landed_before": F.when(is_landed, F.coalesce(before, F.col("rested_at"))),
    }


def _positions() -> dict[str, Column]:
    """The frontier, unless rows landed without a number since: then it is not where they are."""
    of_shard = Window.partitionBy("shard_id")
    at_frontier = F.when(F.col("landed_key") == F.col("frontier"), F.col("last_landed_at"))
    reached = F.coalesce(F.max(at_frontier).over(of_shard), F.col("rested_at"))
    unnumbered = F.max("unnumbered_at").over(of_shard)
    is_newest = unnumbered.isNull() | F.coalesce(unnumbered <= reached, F.lit(False))
    return {"frontier": F.when(is_newest, F.col("frontier"))}


def _standing(shape: Eras) -> dict[str, Column]:
    """Whether a cell is ahead of the frontier and behind the position, and how long it waited."""
    beyond = F.col("sent_key") > F.col("frontier")
    # Without sequence numbers on either side the cells' times have to do.
    later = F.col("landed_until").isNull() | (F.col("bucket_start") > F.col("landed_until"))
    end = F.col("bucket_start") + cell_width(F.col("bucket_start"), shape)
    waits_from = F.greatest("landed_before", end)
    length_us = F.unix_micros("last_landed_at") - F.unix_micros(waits_from)
    is_new = F.col("seen_at").isNull() | (F.col("last_landed_at") > F.col("seen_at"))
    pause = F.struct(length_us.alias("us"), waits_from.alias("waits_from"), "last_landed_at")
    behind = F.coalesce(F.col("sent_key") <= sequence_key(F.col("position")), F.lit(False))
    return {
        # Where both sides agree nothing waits, even beyond the frontier: a backfill landed it.
        "is_ahead": (F.col("waiting") > 0) & F.coalesce(beyond, later),
        "is_passed": F.col("is_at_end") | behind,
        "pause": F.when(F.col("landed_before").isNotNull() & is_new, pause),
    }


def _span(name: str, mine: Column) -> list[Column]:
    """Messages, first and last cell of the cells that are meant."""
    return [
        F.sum(F.when(mine, F.col("waiting"))).alias(f"{name}_n"),
        F.min(F.when(mine, F.col("bucket_start"))).alias(f"{name}_since"),
        F.max(F.when(mine, F.col("bucket_start"))).alias(f"{name}_last"),
    ]
