"""Evidence to kinds and causes, ids to the counts of their cells (docs/verdicts.md)."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.audit.rules.patience import is_overdue
from shardaudit.columns.instants import any_of
from shardaudit.columns.ledger_sums import CELL, sequence_key
from shardaudit.model.input_columns import PRODUCER
from shardaudit.model.route.route import SINK
from shardaudit.model.verdict import FILTERED, VANISHED, Cause, ConsumerState, Kind, Verdict

COUNTS = (
    *("missing", "pending", "filtered"),
    *("duplicated", "extra_rows", "untraced", "moved", "vanished"),
)
INTERNAL_COUNTS = ("over_counted", "lost", "stuck", "displaced", "there")


@dataclass(frozen=True, slots=True)
class Damage:
    """Spans `[from, to)` of `bucket_start` that an unreadable file of either side may have fed.

    What a file of the sink holds landed, though nobody sees it. One of the producers' traces hides
    nothing that landed: what has another trace, and no row, is judged as ever.
    """

    traces: tuple[tuple[datetime, datetime], ...] = ()
    sink: tuple[tuple[datetime, datetime], ...] = ()

    def beside(self, places: Collection[str]) -> "Damage":
        """The same where a file of traces may be one of places, which say what landed elsewhere."""
        return replace(self, sink=self.traces + self.sink) if places else self


def is_damaged(
    spans: tuple[tuple[datetime, datetime], ...], bucket_start: Column | None = None
) -> Column:
    """Whether a bucket, that of the row when none is given, lies in one of the spans."""
    start = F.col("bucket_start") if bucket_start is None else bucket_start
    return any_of([(start >= F.lit(since)) & (start < F.lit(until)) for since, until in spans])


def is_missing(name: str) -> Column:
    """Whether a column that says why ids did not land says that they should have."""
    return F.col(name).isin(Cause.LOST.value, Cause.STUCK.value)


def classified_ids(
    ids: DataFrame,
    shard_facts: DataFrame,
    vanished: DataFrame,
    *,
    as_of: datetime,
    damage: Damage,
) -> DataFrame:
    """One row per id with what is wrong with it.

    Input:
        ids: of `drill_down.ids`; shard_facts: of `with_behind_parent`, unique on shard_id;
        vanished: of `vanished_ids`, unique on the id.
    Output:
        the ids' columns; `not_landed` (lost | stuck | pending | vanished, NULL when it is there),
        `duplicated`, `untraced`, `moved` (the cause, NULL when it is not so).
    """
    # shard_facts is unique on shard_id and knows every shard of the ledger.
    facts = F.broadcast(shard_facts)
    # Unique on the id on the right, by its grouping.
    return (
        ids.join(_ahead_elsewhere(ids, facts, as_of), ["message_id"], how="left")
        .join(facts, ["shard_id"], how="left")
        # Unique on the id on the right.
        .join(vanished.withColumn("has_vanished", F.lit(True)), ["message_id"], how="left")
        .withColumn("not_landed", _not_landed(as_of, damage))
        .withColumn("duplicated", _duplicated())
        .withColumn("untraced", _untraced(damage))
        .withColumn("moved", F.when(F.col("is_moved"), Cause.RESHARD.value))
        .drop(*(name for name in shard_facts.columns if name != "shard_id"))
        .drop("cells", "ahead_elsewhere", "has_vanished")
    )


def _ahead_elsewhere(ids: DataFrame, facts: DataFrame, as_of: datetime) -> DataFrame:
    """The ids that did not land, and of which another shard's consumer is before an attempt.

    Output:
        `message_id` (unique), `ahead_elsewhere`: pending, or stuck where all these shards stopped.
    """
    same = ("message_id", "sent_at", "arrived_at")
    attempts = (
        ids.where(F.size("cells") > 1)
        .select(*same, F.col("shard_id").alias("home"), F.explode("cells").alias("cell"))
        .select(*same, "home", F.col("cell.shard_id").alias("shard_id"), "cell.sent_sequences")
        .where(F.col("shard_id") != F.col("home"))
        .select(*same, "shard_id", F.explode("sent_sequences").alias("number"))
    )
    overdue, state = _is_id_overdue(as_of), F.col("consumer_state")
    key = sequence_key(F.col("number"))
    is_behind = _is_passed(key, "settled_frontier") | (
        _is_passed(key, "untimed_frontier") & overdue
    )
    has_not_begun = state == ConsumerState.NOT_STARTED.value
    is_ahead = has_not_begun | (F.col("has_position") & ~is_behind)
    is_stopped = (state != ConsumerState.ADVANCING.value) & F.col("behind_parent").isNull()
    found = F.when(is_stopped & overdue, Cause.STUCK.value).otherwise(Verdict.PENDING.value)
    # facts is unique on shard_id.
    return (
        attempts.join(facts, ["shard_id"], how="inner")
        .where(is_ahead)
        .groupBy("message_id")
        .agg(F.min(found).alias("ahead_elsewhere"))  # pending is before stuck
    )


def _is_id_overdue(as_of: datetime) -> Column:
    # What a producer held back is no older than its arrival.
    return is_overdue(F.coalesce("arrived_at", "sent_at"), as_of)


def _not_landed(as_of: datetime, damage: Damage) -> Column:
    has_no_position = F.col("counted_key").isNull() | ~F.col("has_position")
    # The consumer may still land an attempt that it has not come to.
    last = F.when(F.col("counted_key").isNotNull(), F.col("last_sent_key"))
    verdict = (
        F.when(F.col("has_vanished"), VANISHED)
        .when(is_damaged(damage.sink), Verdict.PENDING.value)
        .otherwise(
            position_says(last, overdue=_is_id_overdue(as_of), has_no_position=has_no_position)
        )
    )
    is_lost = (verdict == Cause.LOST.value) & F.col("ahead_elsewhere").isNotNull()
    said = F.when(is_lost, F.col("ahead_elsewhere")).otherwise(verdict)
    return F.when((F.col("sent_count") > 0) & (F.col("landed_count") == 0), said)


def position_says(last: Column, *, overdue: Column, has_no_position: Column) -> Column:
    """What the shard's consumer makes of what did not land: lost | stuck | pending.

    Stuck is what is overdue before a frontier that rests: by id what the watch calls stalled by
    cells. Of rows with the columns of `with_behind_parent`.

    Input:
        last: the sequence key that it must have passed; NULL: not known.
    """
    is_passed = _is_passed(last, "settled_frontier")
    # Whether what landed beyond it is at rest, nobody can say; another ingest may come too late.
    is_passed_once = _is_passed(last, "untimed_frontier")
    state = F.col("consumer_state")
    not_started, resting, advancing = (
        state == each.value
        for each in (ConsumerState.NOT_STARTED, ConsumerState.RESTING, ConsumerState.ADVANCING)
    )
    return (
        F.when(F.col("behind_parent").isNotNull(), Verdict.PENDING.value)
        .when(not_started & overdue, Cause.STUCK.value)
        .when(not_started, Verdict.PENDING.value)
        .when(is_passed, Cause.LOST.value)
        .when((has_no_position | is_passed_once) & overdue, Cause.LOST.value)
        .when(has_no_position, Verdict.PENDING.value)
        .when(resting & overdue, Cause.STUCK.value)
        .when(resting | advancing, Verdict.PENDING.value)
    )


def _is_passed(key: Column, frontier: str) -> Column:
    """Whether the shard's consumer has left a sequence key behind; of one that is NULL not.

    The messages of an aggregated record share a number: who stopped with more before it may have
    stopped in between.
    """
    is_resting = F.col("consumer_state") == ConsumerState.RESTING.value
    reached, has_stopped = F.col(frontier), is_resting & F.col("has_more")
    is_left = (key < reached) | ((key == reached) & ~has_stopped)
    return F.coalesce(is_left, F.lit(False))


def _duplicated() -> Column:
    cause = (
        F.when(F.col("own_rows") > 0, Cause.BACKFILL.value)
        .when(F.col("landed_pairs") == 1, Cause.CONSUMER_REPLAY.value)
        .when(F.col("landed_pairs") > 1, Cause.PRODUCER_RETRY.value)
        .when(F.col("landed_pairs") == 0, Cause.UNKNOWN.value)
    )
    return F.when(F.col("landed_count") > 1, cause)


def with_put_again(classified: DataFrame, ids: DataFrame, cells: DataFrame) -> DataFrame:
    """The ids; what landed more than once after a backfill put it into a stream is by `backfill`.

    The rows are the consumer's, from records of their own: they look like a producer's retry. After
    a reshard they are on another shard than the trace says: of that nobody has to be told.

    Input:
        classified: of `classified_ids`; ids: `message_id`, unique; cells: of gaps, unique: all that
        was missing in them was put.
    """
    looks = F.col("duplicated").isin(Cause.PRODUCER_RETRY.value, Cause.UNKNOWN.value)
    is_put = F.coalesce("is_put", "is_put_whole", F.lit(False))
    # Unique on the right, both.
    return (
        classified.join(ids.withColumn("is_put", F.lit(True)), ["message_id"], how="left")
        .join(cells.withColumn("is_put_whole", F.lit(True)), CELL, how="left")
        .withColumn(
            "duplicated",
            F.when(looks & is_put, Cause.BACKFILL.value).otherwise(F.col("duplicated")),
        )
        .withColumn("moved", F.when(~is_put, F.col("moved")))
        .drop("is_put", "is_put_whole")
    )


def _untraced(damage: Damage) -> Column:
    cause = F.when(is_damaged(damage.traces), Cause.UNKNOWN.value).otherwise(Cause.TRACE_LOSS.value)
    return F.when((F.col("sent_count") == 0) & (F.col("landed_count") > 0), cause)


def cell_counts(classified: DataFrame, displaced: DataFrame) -> DataFrame:
    """What the ids of a cell add up to: one row per cell in which an id counts.

    Input:
        classified: of `apart.within_window`; displaced: of `apart.displaced_rows`.
    Output:
        `shard_id`, `bucket_start`, `missing, pending, filtered, duplicated, extra_rows, untraced`,
        `moved`, `vanished`, `lost`, `stuck`, `over_counted` (ids that another cell counts too),
        `displaced` (rows), `there` (ids that were sent and are in the sink), all bigint.
    """
    not_landed = F.col("not_landed")
    is_counted = (F.col("sent_count") > 0) & ~F.col("counts_outside")
    per_id = classified.select(
        "told_in.*",
        _one(is_missing("not_landed")).alias("missing"),
        _one(not_landed == "pending").alias("pending"),
        _one(not_landed == FILTERED).alias("filtered"),
        _one(F.col("duplicated").isNotNull()).alias("duplicated"),
        F.greatest(F.col("landed_count") - 1, F.lit(0)).alias("extra_rows"),
        _one(F.col("untraced").isNotNull()).alias("untraced"),
        _one(F.col("moved").isNotNull()).alias("moved"),
        _one(not_landed == VANISHED).alias("vanished"),
        F.lit(0).cast("bigint").alias("over_counted"),
        _one(not_landed == "lost").alias("lost"),
        _one(not_landed == "stuck").alias("stuck"),
        F.lit(0).cast("bigint").alias("displaced"),
        _one(is_counted & (F.col("landed_count") > 0)).alias("there"),
    )
    # An id whose traces disagree on sent_at was counted in several cells: the first one keeps it.
    others = (
        classified.where(F.size("counted_cells") > 1)
        .select(F.explode(F.slice("counted_cells", 2, F.size("counted_cells"))).alias("cell"))
        .select("cell.*", F.lit(1).cast("bigint").alias("over_counted"))
    )
    return (
        per_id.unionByName(_alone(others, "over_counted"))
        .unionByName(_alone(displaced, "displaced"))
        .groupBy(*CELL)
        .agg(*(F.sum(name).alias(name) for name in COUNTS + INTERNAL_COUNTS))
    )


def _alone(rows: DataFrame, name: str) -> DataFrame:
    """Rows of `cell_counts` in which one count alone is not 0."""
    none = F.lit(0).cast("bigint")
    counts = (F.col(n) if n == name else none.alias(n) for n in COUNTS + INTERNAL_COUNTS)
    return rows.select(*CELL, *counts)


def _one(is_so: Column) -> Column:
    return F.when(is_so, 1).otherwise(0).cast("bigint")


def _location(kind: Column) -> Column:
    return (
        F.when(kind == Kind.MISSING.value, SINK)
        .when(kind == Kind.DUPLICATED.value, PRODUCER)
        .otherwise(F.col("location"))
    )


def kinds(classified: DataFrame) -> DataFrame:
    """One row per (id, kind) that is wrong: what becomes a finding.

    Output:
        the ids' columns, `kind`, `cause`. A pending id has none, nor has a vanished one.
        `location`, `hops`: as without a place between producer and sink, see `with_hops`.
    """
    missing = F.when(is_missing("not_landed"), F.col("not_landed"))
    causes = {
        Kind.MISSING: missing,
        Kind.DUPLICATED: F.col("duplicated"),
        Kind.UNTRACED: F.col("untraced"),
        Kind.MOVED: F.col("moved"),
    }
    pairs = F.array(
        *(F.struct(F.lit(k.value).alias("kind"), c.alias("cause")) for k, c in causes.items())
    )
    return (
        classified.withColumn("found", F.explode(F.filter(pairs, lambda p: p["cause"].isNotNull())))
        .withColumn("kind", F.col("found.kind"))
        .withColumn("cause", F.col("found.cause"))
        .withColumn("location", _location(F.col("kind")))
        .withColumn("hops", F.lit(None).cast("string"))
        .drop("found", "not_landed", "duplicated", "untraced", "moved", "is_moved")
        .drop("told_in", "counts_outside", "last_sent_key")
    )
