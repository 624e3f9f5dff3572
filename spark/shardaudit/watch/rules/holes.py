"""Minutes that the consumer is past and in which something did not land: holes, seen without ids.

Sums alone prove that nothing is missing: where those of both sides agree over some cells, each id
that was sent in one of them landed once in one of them.
"""

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from shardaudit.audit.rules.cell_verdicts import is_settled
from shardaudit.audit.rules.classify import Damage, is_damaged
from shardaudit.columns.instants import cell_width
from shardaudit.columns.ledger_sums import (
    ARRIVALS,
    CELL,
    SUMS,
    sequence_key,
    sums_digest,
)
from shardaudit.model.config.eras import Eras


@dataclass(frozen=True, slots=True)
class HoleTerms:
    """What cells are judged by. `settled_by`: until when they must have been settled."""

    settled_by: datetime
    shape: Eras
    damage: Damage


def hole_cells(standing: DataFrame, differing: DataFrame) -> DataFrame:
    """The cells that the consumer was past at a time, and that differ: one row per cell.

    What is ahead of the consumer waits, and is no hole. What is found in the one cell that has just
    those ids too many moved, and what an unreadable file of the sink may have fed cannot be judged.

    Input:
        standing: of `standing_cells`; differing: of `differing_cells`, settled or not.
    Output:
        `shard_id`, `bucket_start`, `sent_n`, `landed_n`, `arrived_from`, `arrived_until` (never
        NULL), `missing` (at least so many ids of the cell did not land in it), `is_sure` (false:
        more rows landed than ids were sent; nothing need be missing), `sums_digest`.
    """
    judged = standing.where(F.col("is_judged"))
    missing = F.when(F.col("is_sure"), F.greatest("lacking_n", F.lit(1))).otherwise(0)
    return _as_holes(_less_the_moved(judged, differing), missing)


def standing_cells(differing: DataFrame, facts: DataFrame, terms: HoleTerms) -> DataFrame:
    """The cells that no unreadable file of the sink may have fed, beside the facts of their shard.

    Input:
        differing: of `differing_cells`, settled or not.
        facts: unique on shard_id: `has_position` (whether it has a frontier), `settled_until`
        (sequence number or NULL: up to where it was settled by that time), `landed_until`
        (timestamp: start of the newest cell that landed), `patience` (seconds), `hole_since`,
        `hole_until` (around the holes of the last watch; NULL when there were none).
    Output:
        the columns of both, `is_sure`, and `is_judged`: they were settled, and behind the consumer.
    """
    # What its producer held back could not land before it came.
    last = F.coalesce("arrived_until", "bucket_start")
    standing = differing.join(F.broadcast(facts), ["shard_id"], how="inner").withColumns(
        {
            "bucket_end": last + cell_width(last, terms.shape),
            "sent": F.col("sent_n"),
            "settled_frontier": sequence_key(F.col("settled_until")),
            "is_sure": F.col("sent_n") >= F.col("landed_n"),
        }
    )
    has_no_position = F.col("sent_key").isNull() | ~F.col("has_position")
    is_behind = F.when(has_no_position, F.col("bucket_start") <= F.col("landed_until")).otherwise(
        F.coalesce(F.col("sent_key") <= F.col("settled_frontier"), F.lit(False))
    )
    is_judged = is_settled(terms.settled_by) & F.coalesce(is_behind, F.lit(False))
    return standing.withColumn("is_judged", is_judged).where(~is_damaged(terms.damage.sink))


def still_told(standing: DataFrame, told: DataFrame, fed: DataFrame) -> DataFrame:
    """The holes of the last watch whose cell is not settled now, as something else came to it.

    Input:
        standing: of `standing_cells`; told: HOLES of the stream.
        fed: of `fed_cells`, with `looked_at`, `live` and `given_up` of an audit: what it knows is
        believed there once it looked after all was told, or knows of all that was.
    Output:
        the columns of `hole_cells`.
    """
    most = told.groupBy(*CELL).agg(
        F.max("missing").alias("told"), F.max("told_at").alias("told_at")
    )
    stood = (F.col("bucket_start") >= F.col("hole_since")) & (
        F.col("bucket_start") < F.col("hole_until")
    )
    waits = standing.where(~F.col("is_judged") & F.col("is_sure") & stood)
    # Unique on the cell on the right, both times.
    seen = fed.select(*CELL, "looked_at", (F.col("live") + F.col("given_up")).alias("known"))
    stay = waits.join(most, CELL, how="inner").join(seen, CELL, how="left")
    is_believed = F.coalesce(F.col("looked_at") >= F.col("told_at"), F.lit(False)) | F.coalesce(
        F.col("known") >= F.col("told"), F.lit(False)
    )
    missing = F.greatest(F.least("told", "lacking_n"), F.lit(1))
    return _as_holes(stay.where(~is_believed), missing)


def _as_holes(cells: DataFrame, missing: Column) -> DataFrame:
    return cells.select(
        *CELL,
        "sent_n",
        "landed_n",
        *(F.coalesce(name, "bucket_start").alias(name) for name in ARRIVALS),
        missing.alias("missing"),
        "is_sure",
        sums_digest().alias("sums_digest"),
    )


def _less_the_moved(cells: DataFrame, differing: DataFrame) -> DataFrame:
    """The cells but those whose ids sit in another one, or on other shards in the same minute.

    Or in a row of cells of their shard: those that moved one after the other by a minute.
    """
    lacking = [f"lacking_{name}" for name in SUMS]
    opposite = differing.select(*((-F.col(name)).alias(name) for name in lacking)).distinct()
    return (
        cells.join(opposite, lacking, how="left_anti")
        .join(_even_minutes(differing), CELL, how="left_anti")
        .join(_even_rows(differing, lacking), CELL, how="left_anti")
    )


def _even_minutes(differing: DataFrame) -> DataFrame:
    """The cells of which nothing lacks, as other shards have it in the same minute: CELL.

    Added up over all of a minute's shards nothing lacks, or just what one other shard lacks by
    itself; or over a cell and all, or all but one, that have rows too many.
    """
    is_extra = F.col("lacking_n") < 0
    sums = differing.groupBy("bucket_start").agg(
        *(F.sum(f"lacking_{name}").alias(f"all_{name}") for name in SUMS),
        *(
            F.sum(F.when(is_extra, F.col(f"lacking_{name}")).otherwise(0)).alias(name)
            for name in SUMS
        ),
    )
    # Unique on the minute on the right, by its grouping.
    near = differing.join(sums, ["bucket_start"], how="inner").withColumns(
        {f"own_{name}": F.col(f"lacking_{name}") + F.col(name) for name in SUMS}
    )
    lacks = near.where(F.col("lacking_n") > 0)
    extra = differing.where(is_extra)
    return _evened_by(near, differing, "all").unionByName(_evened_by(lacks, extra, "own"))


def _evened_by(cells: DataFrame, others: DataFrame, kind: str) -> DataFrame:
    """The cells of which some sums are 0, or what another of these lacks in that minute: CELL."""
    names = [f"{kind}_{name}" for name in SUMS]
    lacking = others.select(
        "bucket_start",
        F.col("shard_id").alias("other"),
        *(F.col(f"lacking_{name}").alias(f"{kind}_{name}") for name in SUMS),
    )
    nothing = [F.col(name) == 0 for name in names]
    # Several on the right may be alike: whoever asks wants to know whether there is one.
    found = cells.join(lacking, ["bucket_start", *names], how="left")
    is_another = F.coalesce(F.col("other") != F.col("shard_id"), F.lit(False))
    return found.where((nothing[0] & nothing[1] & nothing[2]) | is_another).select(*CELL)


def _even_rows(differing: DataFrame, lacking: list[str]) -> DataFrame:
    """The cells in a row of differing cells, of one shard, that lack nothing together: CELL.

    What cells lack is added up in the order of time. Where the sum is what it was before, nothing
    of what was sent in between lacks.
    """
    in_order = Window.partitionBy("shard_id").orderBy("bucket_start")
    after = {f"after_{name}": F.sum(name).over(in_order) for name in lacking}
    placed = differing.withColumns(after | {"place": F.row_number().over(in_order)}).select(
        *CELL,
        "place",
        *after,
        *((F.col(f"after_{name}") - F.col(name)).alias(f"before_{name}") for name in lacking),
    )
    ends = placed.groupBy(
        "shard_id", *(F.col(f"after_{name}").alias(f"before_{name}") for name in lacking)
    ).agg(F.max("place").alias("end"))
    # Unique on the sum on the right, by its grouping.
    begun = placed.join(ends, ["shard_id", *(f"before_{name}" for name in lacking)], how="left")
    reached = F.max(F.when(F.col("end") > F.col("place"), F.col("end"))).over(in_order)
    return (
        begun.withColumn("reached", reached).where(F.col("reached") >= F.col("place")).select(*CELL)
    )


def explained(cells: DataFrame, audited: DataFrame, live: DataFrame) -> DataFrame:
    """The cells, but those of which an audit knows by id that nothing that lacks can be had back.

    Input:
        cells: of `hole_cells`.
        audited: CELLS of the newest published audits, unique on the cell: `shard_id`,
        `bucket_start`, `pending`, `sums_digest`.
        live: `shard_id`, `bucket_start` (unique), `live` (findings of missing ids that are not
        ended), `given_up` (those that a person accepted, or that expired).
    Output:
        the columns of `cells`; `missing` and `is_sure` as the audit has them, where the cell is
        still what the audit saw: there `is_named`. Where it is not, what was given up counts as
        lacking still; a cell that lacks no more is a doubt. And `given_up`.
    """
    then = audited.select(*CELL, "pending", F.col("sums_digest").alias("digest_then"))
    # Unique on the cell on the right, both times.
    seen = cells.join(then, CELL, how="left").join(live, CELL, how="left")
    is_known = (F.col("digest_then") == F.col("sums_digest")) & (F.col("pending") == 0)
    known = seen.withColumn("is_known", F.coalesce(is_known, F.lit(False))).fillna(
        0, subset=["live", "given_up"]
    )
    besides = F.greatest(F.col("missing") - F.col("given_up"), F.lit(0))
    missing = F.when(F.col("is_known"), F.col("live")).otherwise(besides)
    return known.where(~F.col("is_known") | (F.col("live") > 0)).select(
        *CELL,
        "sent_n",
        "landed_n",
        *ARRIVALS,
        missing.alias("missing"),
        (F.col("is_known") | (F.col("is_sure") & (besides > 0))).alias("is_sure"),
        F.col("is_known").alias("is_named"),
        "sums_digest",
        "given_up",
    )


def with_news(cells: DataFrame, told: DataFrame, *, gone_before: datetime) -> DataFrame:
    """The cells with what somebody has to be told of, and what is too late for it.

    Input:
        cells: of `explained`; told: HOLES of the stream, several per cell as more went missing.
        gone_before: what came into the stream earlier has left it.
    Output:
        the columns of `cells`, `due_from` (when the first message of the cell that may still be in
        the stream came into it, at the earliest), `is_gone`, `is_new` (a hole that can be read
        again, and of which less, or nothing, was told; what was given up since counts on both
        sides).
    """
    most = told.groupBy(*CELL).agg(F.max("missing").alias("told"))
    is_gone = F.col("arrived_until") < F.lit(gone_before)
    is_here = F.col("arrived_from") >= F.lit(gone_before)
    due_from = F.when(is_here, F.col("arrived_from")).otherwise(F.col("arrived_until"))
    is_more = F.col("told").isNull() | (F.col("missing") + F.col("given_up") > F.col("told"))
    # Unique on the cell on the right, by its grouping.
    return (
        cells.join(most, CELL, how="left")
        .withColumn("due_from", due_from)
        .withColumn("is_gone", is_gone)
        .withColumn("is_new", F.col("is_sure") & ~F.col("is_gone") & is_more)
        .drop("told")
    )


def shard_holes(cells: DataFrame) -> DataFrame:
    """One row per shard with a hole or a doubt.

    Input:
        cells: of `with_news`.
    Output:
        `shard_id`; of the holes `cells`, `missing`, `sent`, `even` (cells of which as many rows
        landed as ids were sent), `news` (bigint), `since`, `last` (starts of cells, NULL when there
        is none); `gone` (ids that have left the stream); of the cells with more rows than ids
        `doubts` (bigint), `doubted_since`; of the holes and doubts that no audit has named
        `unnamed` (bigint: the holes alone), `unnamed_since`, `unnamed_last`; `arrived_from`,
        `unnamed_arrived_from` (the first `due_from` of the holes, and of what is unnamed).
    """
    is_here = F.col("is_sure") & ~F.col("is_gone")
    is_doubt = ~F.col("is_sure") & ~F.col("is_gone")
    is_unnamed = ~F.col("is_named") & ~F.col("is_gone")
    is_even = is_here & (F.col("sent_n") == F.col("landed_n"))
    return cells.groupBy("shard_id").agg(
        F.count_if(is_here).alias("cells"),
        F.sum(F.when(is_here, F.col("missing")).otherwise(0)).alias("missing"),
        F.sum(F.when(is_here, F.col("sent_n")).otherwise(0)).alias("sent"),
        F.count_if(is_even).alias("even"),
        F.count_if(F.col("is_new")).alias("news"),
        F.min(F.when(is_here, F.col("bucket_start"))).alias("since"),
        F.max(F.when(is_here, F.col("bucket_start"))).alias("last"),
        F.sum(F.when(F.col("is_sure") & F.col("is_gone"), F.col("missing")).otherwise(0)).alias(
            "gone"
        ),
        F.count_if(is_doubt).alias("doubts"),
        F.min(F.when(is_doubt, F.col("bucket_start"))).alias("doubted_since"),
        F.count_if(is_here & is_unnamed).alias("unnamed"),
        F.min(F.when(is_unnamed, F.col("bucket_start"))).alias("unnamed_since"),
        F.max(F.when(is_unnamed, F.col("bucket_start"))).alias("unnamed_last"),
        F.min(F.when(is_here, F.col("due_from"))).alias("arrived_from"),
        F.min(F.when(is_unnamed, F.col("due_from"))).alias("unnamed_arrived_from"),
    )
