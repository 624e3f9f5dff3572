"""Counts to the verdict of each cell (docs/verdicts.md)."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from shardaudit.audit.rules.classify import COUNTS, INTERNAL_COUNTS, Damage, is_damaged
from shardaudit.audit.rules.gaps import with_rest
from shardaudit.audit.rules.patience import is_cell_due
from shardaudit.audit.rules.vanished import is_emptied
from shardaudit.columns.ledger_sums import CELL
from shardaudit.ingest.rules.lineage import BEHIND_PARENT
from shardaudit.model.verdict import ConsumerState, Verdict
from shardaudit.model.watermark import LEFT_THE_SINK, WHY, Held

MOST_SPANS = 50  # of a shard and reason; so few that a driver can hold all of them
_RANK = Verdict.INCONCLUSIVE.rank
_SAID = (
    *("verdict", "compared", "sums_digest", "reason"),
    *("lost", "is_damaged", "held_by", "is_doubtful", "gap_count", "gap_cause", "unsent_n"),
)


@dataclass(frozen=True, slots=True)
class CellFacts:
    """The values that the verdict of a cell depends on, besides its counts.

    `silences`: `shard_id, silence, since, until`: where nothing was sent and nothing landed, and
    that is not as usual. `silence` is QUIET or DOUBT of `Held`; times in microseconds since 1970.
    `rest`: of `unlanded_rest`; None: there is no gap.
    """

    as_of: datetime
    bucket: timedelta
    settle_grace: timedelta
    trace_coverage_floor: float
    damage: Damage
    silences: DataFrame | None = None
    rest: DataFrame | None = None


def judged_cells(
    cells: DataFrame, counts: DataFrame, drilled: DataFrame, facts: DataFrame, judgement: CellFacts
) -> DataFrame:
    """Every cell with its counts and its verdict: as many rows as `cells`.

    Input:
        cells: of `with_vanished`; counts: of `cell_counts`; drilled: the cells compared by ids;
        facts: of `with_behind_parent`. The last three are unique on their keys.
    Output:
        CELLS without `audit_id` and `stream`, and `lost`, `is_damaged`, `held_by` (a value of
        `Held`: why the cell cannot be called complete, findings aside; NULL when it can),
        `is_doubtful` (no traces where there used to be some, longer than can be usual; or of
        `as_unsent`), `gap_count`, `gap_cause` of `with_rest`, `unsent_n` (of `untraced`, those that
        are only counted).
    """
    numbers = COUNTS + INTERNAL_COUNTS
    joined = (
        cells.join(counts, CELL, how="left")
        .join(F.broadcast(drilled.withColumn("compared", F.lit("ids"))), CELL, how="left")
        .join(F.broadcast(facts), ["shard_id"], how="left")
        .fillna(0, subset=list(numbers))
        .fillna("fingerprint", subset=["compared"])
        .fillna(judgement.settle_grace.total_seconds(), subset=["patience"])
    )
    sent = F.col("sent_n") + F.col("filtered_n") - F.col("over_counted")
    more = {"untraced": "unsent_n", "filtered": "filtered_n"}
    counted = with_rest(joined, judgement.rest).withColumns(
        {name: F.col(name) + F.col(unread) for name, unread in more.items()}
    )
    return (
        _with_silence(counted, judgement.silences)
        .withColumn("bucket_end", F.col("bucket_start") + F.lit(judgement.bucket))
        .withColumn("sent", sent)
        .withColumn("landed", F.col("landed_n") + F.col("displaced"))
        .withColumn("matched", F.col("sent") - _unmatched())
        .withColumn("vanished", _vanished())
        .withColumn("is_damaged", is_damaged(judgement.damage.traces + judgement.damage.sink))
        .withColumn("is_settled", is_settled(judgement.as_of))
        .withColumn("verdict", verdict(judgement))
        .withColumn("held_by", held_by(judgement))
        .withColumn("reason", _reason())
        .withColumn("is_doubtful", F.col("silence").eqNullSafe(F.lit(Held.QUIET.value)))
        .select(
            *CELL,
            "bucket_end",
            "sent",
            "landed",
            "matched",
            *COUNTS,
            *_SAID,
        )
    )


def as_unsent(judged: DataFrame, is_unsent: Column) -> DataFrame:
    """The judged cells, inconclusive where messages are known to be lost that nobody counts.

    What is worse stays; what is on its way is looked at again.

    Input:
        is_unsent: whether places traced messages of the cell's time that no producer traced, and
            that did not land.
    """
    held_by = F.coalesce("held_by", F.lit(Held.THIN.value))
    is_mild = F.col("verdict").isin(*(one.value for one in Verdict if one.rank <= _RANK))
    is_other = held_by.isin(Held.DAMAGED.value, Held.QUIET.value)
    is_told = is_unsent & is_mild & ~is_other
    told = {
        "verdict": F.when(is_told, Verdict.INCONCLUSIVE.value).otherwise(F.col("verdict")),
        "reason": F.when(is_told, WHY[Held.UNSENT]).otherwise(F.col("reason")),
        "held_by": F.when(is_unsent & (held_by == Held.THIN.value), Held.UNSENT.value).otherwise(
            F.col("held_by")
        ),
        "is_doubtful": F.col("is_doubtful") | is_unsent,
    }
    return judged.withColumns(told)


def _with_silence(cells: DataFrame, silences: DataFrame | None) -> DataFrame:
    """The cells with `silence`: that which an empty cell lies in, NULL where there is none."""
    none = F.lit(None).cast("string")
    if silences is None:
        return cells.withColumn("silence", none)
    spans = silences.groupBy("shard_id").agg(
        F.collect_list(F.struct("silence", "since", "until")).alias("silences")
    )
    at = F.unix_micros("bucket_start")
    # Unique on the shard on the right, by its grouping; the spans of a shard do not overlap.
    around = F.filter("silences", lambda span: (span["since"] <= at) & (at < span["until"]))
    is_sent = (F.col("sent_n") > 0) | (F.col("filtered_n") > 0)
    is_empty = ~is_sent & (F.col("landed_n") == 0)
    return (
        cells.join(F.broadcast(spans), ["shard_id"], how="left")
        .withColumn("silence", F.when(is_empty, F.get(around, 0)["silence"]))
        .drop("silences")
    )


def _unmatched() -> Column:
    return F.col("missing") + F.col("pending") + F.col("filtered")


def _vanished() -> Column:
    """Of an emptied cell no id was read but those that another cell, or an old audit, told of."""
    return F.when(is_emptied(), F.col("matched") - F.col("there")).otherwise(F.col("vanished"))


def _reason() -> Column:
    """Why a verdict is what it is, where no message tells."""
    is_inconclusive = F.col("verdict") == Verdict.INCONCLUSIVE.value
    return (
        F.when(is_inconclusive & F.col("is_damaged"), WHY[Held.DAMAGED])
        .when(F.col("silence") == Held.QUIET.value, WHY[Held.QUIET])
        .when(F.col("silence") == Held.DOUBT.value, WHY[Held.DOUBT])
        .when(is_inconclusive, WHY[Held.THIN])
        .when(F.col("vanished") > 0, LEFT_THE_SINK)
        .when(
            F.col("verdict") == Verdict.PENDING.value,
            F.concat(F.lit(BEHIND_PARENT), F.col("behind_parent")),
        )
    )


def is_settled(as_of: datetime) -> Column:
    """Whether a cell is settled: a patience over, or all sent in it behind the settled frontier.

    Of a row with `bucket_end`, `sent`, `sent_key`, and `patience` and `settled_frontier` of its
    shard.
    """
    is_over = is_cell_due(F.col("bucket_end"), as_of)
    is_passed = (F.col("sent") > 0) & (F.col("sent_key") <= F.col("settled_frontier"))
    return is_over | F.coalesce(is_passed, F.lit(False))


def _is_thin(judgement: CellFacts) -> Column:
    """Whether too few of the cell's landed ids have a trace; NULL when none landed."""
    landed_ids = F.col("matched") + F.col("untraced")
    coverage = F.col("matched") / F.nullif(landed_ids, F.lit(0))
    return coverage < judgement.trace_coverage_floor


def held_by(judgement: CellFacts) -> Column:
    """Why a cell is not complete, other than by findings. Untraced messages are no gap in it.

    What is on its way is looked at again though a file of traces stays unreadable.
    """
    is_dark = is_damaged(judgement.damage.sink) | (F.col("pending") == 0)
    return (
        F.when(F.col("is_damaged") & is_dark, Held.DAMAGED.value)
        .when(F.col("silence") == Held.QUIET.value, Held.QUIET.value)
        .when((F.col("pending") > 0) | ~F.col("is_settled"), Held.PENDING.value)
        .when(F.col("silence").isNotNull(), Held.DOUBT.value)
        .when(_is_thin(judgement), Held.THIN.value)
    )


def held_spans(judged: DataFrame, *, bucket: timedelta) -> DataFrame:
    """What of the judged cells cannot be called complete: one row per shard, reason and span.

    Input:
        judged: of `judged_cells` or `as_changed`, `held_by` NULL where a cell is complete but
        for its findings.
    Output:
        `shard_id`, `held_by`, `held_from` (timestamp), `held_until` (timestamp, exclusive). At most
        MOST_SPANS of a shard and reason: of more those are joined that lie nearest.
    """
    reason = ["shard_id", "held_by"]
    nth = F.row_number().over(Window.partitionBy(*reason).orderBy("bucket_start")).cast("bigint")
    index = F.unix_micros("bucket_start") - nth * F.lit(bucket // timedelta(microseconds=1))
    spans = (
        judged.where(F.col("held_by").isNotNull())
        .withColumn("span", index)
        .groupBy(*reason, "span")
        .agg(F.min("bucket_start").alias("start"), F.max("bucket_end").alias("end"))
    )
    in_order = Window.partitionBy(*reason).orderBy("start")
    gap = F.unix_micros("start") - F.unix_micros(F.lag("end").over(in_order))
    widest = Window.partitionBy(*reason).orderBy(F.desc("gap"), "start")
    is_apart = F.row_number().over(widest) < MOST_SPANS
    return (
        spans.withColumn("gap", F.coalesce(gap, F.lit(0)))
        .withColumn("is_apart", is_apart.cast("bigint"))
        .withColumn("place", F.sum("is_apart").over(in_order))
        .groupBy(*reason, "place")
        .agg(F.min("start").alias("held_from"), F.max("end").alias("held_until"))
        .select(*reason, "held_from", "held_until")
    )


def verdict(judgement: CellFacts) -> Column:
    """The verdict of a cell, the first that holds; every cell gets one."""
    has_not_begun = F.col("consumer_state") == ConsumerState.NOT_STARTED.value
    is_silent = has_not_begun & (F.col("missing") > 0)
    return (
        F.when(F.col("is_damaged"), Verdict.INCONCLUSIVE.value)
        .when(F.col("silence") == Held.QUIET.value, Verdict.INCONCLUSIVE.value)
        .when(F.col("silence").isNotNull(), Verdict.PENDING.value)
        .when(is_silent, Verdict.SILENT.value)
        .when(F.col("stuck") > 0, Verdict.STALLED.value)
        .when((F.col("lost") > 0) & (F.col("duplicated") > 0), Verdict.MIXED.value)
        .when(F.col("lost") > 0, Verdict.LOSS.value)
        .when(F.col("duplicated") > 0, Verdict.DUPLICATION.value)
        .when(_is_thin(judgement), Verdict.INCONCLUSIVE.value)
        .when((F.col("untraced") > 0) | (F.col("moved") > 0), Verdict.UNTRACED.value)
        .when((F.col("pending") > 0) | ~F.col("is_settled"), Verdict.PENDING.value)
        .when(F.col("is_settled"), Verdict.OK.value)
    )
