"""Cells of which (nearly) nothing landed: each is one gap, and its ids are neither read nor named.

By the ledger alone: no row of such a cell is in the sink, but for a few whose ids are looked up,
and for untraced rows that are only counted (`with_unsent`).
Each other id that was sent in it landed nowhere: had it landed elsewhere, the row would make that
cell differ, and be looked up there. What is true of the last of them is said of all.
Gaps live as findings do, by the counts of their cells.
"""

from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.audit.rules.canary.canary_answers import is_canary
from shardaudit.audit.rules.cells import landed_besides
from shardaudit.audit.rules.classify import Damage, is_damaged, is_missing, position_says
from shardaudit.audit.rules.deadlines import until
from shardaudit.audit.rules.findings import (
    AuditFacts,
    as_found,
    because,
    is_found_otherwise,
    life_columns,
    next_state,
    touched_rows,
)
from shardaudit.audit.rules.patience import is_overdue
from shardaudit.audit.rules.vanished import is_emptied
from shardaudit.columns.ledger_sums import CELL, sequence_key, sequence_number
from shardaudit.model.retention import Retention
from shardaudit.model.tables.gap_tables import GAPS
from shardaudit.model.verdict import ENDED, Cause, State, Verdict

LEAST_MISSING = 1_000  # fewer are named one by one,
MOST_NAMED = 100_000  # if not more lack in all such cells together
LEAST_SENT = 100  # to each row that landed: 99 % did not
_PLACE = ("start_sequence_number", "end_sequence_number")
_CARRIED = ("bucket_end", "cause", *_PLACE, "arrived_from", "arrived_until")


def gap_measures(bucket: timedelta) -> tuple[Column, ...]:
    """For `cell_sums`: of the cell's traces the first sequence key, the first and last arrival.

    `first_key`: empty where a number is not known; `first_arrival`, `last_arrival` (timestamps):
    where a batch does not say it, when the cell began or ended.
    """
    is_sent = F.col("side") == "traces"
    least = F.coalesce(sequence_key(F.col("min_sequence_number")), F.lit(""))
    start = F.col("bucket_start")
    first = F.coalesce("arrived_from", start)
    last = F.coalesce("arrived_until", start + F.lit(bucket))
    return (
        F.min(F.when(is_sent, least)).alias("first_key"),
        F.min(F.when(is_sent, first)).alias("first_arrival"),
        F.max(F.when(is_sent, last)).alias("last_arrival"),
    )


def is_bare() -> Column:
    """Whether, by its sums, (nearly) nothing of a cell is there: of rows of `compared_cells`."""
    left = landed_besides()
    is_left = (left >= 0) & (left * LEAST_SENT <= F.col("sent_n"))
    return F.col("differs") & (_lacking() > 0) & is_left


def with_bare(cells: DataFrame, named: DataFrame, standing: DataFrame) -> DataFrame:
    """The cells with `is_bare`, and `was_small`: whether it is a gap of which little lacked before.

    Where findings name most of what lacks, as of an earlier version, they go on doing so: such a
    cell counts as not bare. Nor does one of which something may have been there, and left the sink.

    Input:
        cells: of `with_vanished`.
        named: (message id, cell) of standing findings of missing ids.
        standing: of the gaps that did not end the cell and `count`, unique on the cell.
    """
    counts = named.groupBy(*CELL).agg(F.count("*").alias("named"))
    small = standing.where(F.col("count") < LEAST_MISSING)
    small = small.select(*CELL, F.lit(True).alias("was_small"))
    are_few = F.col("named") * 2 < _lacking()
    # What had landed may have left the sink before other rows, or traces, came.
    was_seen = F.col("by_audit").isNotNull() & (~F.col("has_gap") | (F.col("unsent_n") > 0))
    may_have_left = F.col("by_ledger").isNotNull() | was_seen
    # Unique on the cell on the right, both.
    return (
        cells.join(F.broadcast(counts), CELL, how="left")
        .fillna(0, subset=["named"])
        .join(F.broadcast(small), CELL, how="left")
        .withColumn("is_bare", is_bare() & are_few & ~is_emptied() & ~may_have_left)
        .withColumn("was_small", F.coalesce("was_small", F.lit(False)))
        .drop("named")
    )


def small_lacking() -> Column:
    """How many messages lack in all cells of which each would name its few: of `with_bare`."""
    is_small = F.col("is_bare") & (_lacking() < LEAST_MISSING) & ~is_canary()
    return F.coalesce(F.sum(F.when(is_small, _lacking())), F.lit(0))


def with_gaps(cells: DataFrame, *, lacking: int) -> DataFrame:
    """The cells with `is_gap`: whether their ids are not read; another digest where not all are.

    And `ledger_digest`: that of `with_bucket_digest`.

    Input:
        cells: of `with_bare`, with `bucket_digest`; lacking: of `small_lacking`.
    """
    is_one_of_many = (F.col("was_small") | F.lit(lacking > MOST_NAMED)) & ~is_canary()
    is_gap = F.col("is_bare") & ((_lacking() >= LEAST_MISSING) | is_one_of_many)
    # Of a cell that is not read some ids may be known; when it is to be read, that is not all.
    is_counted = F.col("unsent_n") > 0
    unread = F.when(F.col("is_gap"), "gap").when(is_emptied(), "emptied").when(is_counted, "unsent")
    digest = F.when(unread.isNotNull(), F.xxhash64("bucket_digest", unread))
    return (
        cells.withColumns({"is_gap": is_gap, "ledger_digest": F.col("bucket_digest")})
        .withColumn("bucket_digest", F.coalesce(digest, F.col("bucket_digest")))
        .drop("is_bare", "was_small")
    )


def _lacking() -> Column:
    return F.col("sent_n") - landed_besides()


def unlanded_rest(
    cells: DataFrame, facts: DataFrame, *, as_of: datetime, damage: Damage
) -> DataFrame:
    """What is to be said of the ids of a gap that nothing else tells of: one row per such cell.

    Until it is true of the last of them, they are on their way.

    Input:
        cells: of `with_gaps`; facts: of `with_behind_parent`, unique on shard_id.
    Output:
        `shard_id`, `bucket_start`, `rest_is` (lost | stuck | pending), `first_key`, `sent_key` (of
        the first and last sequence number; NULL: not known of all), `first_arrival`,
        `last_arrival`.
    """
    overdue = is_overdue(F.col("last_arrival"), as_of)
    # Where one has no number, time must tell, too.
    is_numbered = (F.col("first_key") != "") | overdue
    last = F.when(F.coalesce(is_numbered, F.lit(False)), F.col("sent_key"))
    said = position_says(
        last,
        overdue=overdue,
        has_no_position=F.col("sent_key").isNull() | ~F.col("has_position"),
    )
    is_dark = is_damaged(damage.sink)
    rest = F.when(is_dark, Verdict.PENDING.value).otherwise(said)
    gaps = cells.where(F.col("is_gap")).join(F.broadcast(facts), ["shard_id"], how="left")
    keys = (F.when(F.col("first_key") != "", F.col(n)).alias(n) for n in ("first_key", "sent_key"))
    return gaps.select(*CELL, rest.alias("rest_is"), *keys, "first_arrival", "last_arrival")


def less_the_unnamed(classified: DataFrame, rest: DataFrame, named: DataFrame) -> DataFrame:
    """The ids without those of a gap of which nothing else is to be said than of all of it.

    Input:
        classified: of `within_window`; rest: of `unlanded_rest`; named: of `with_gaps`.
    """
    known = named.select("message_id", F.lit(True).alias("is_named")).distinct()
    same = (F.col("not_landed") == F.col("rest_is")) & (F.size("counted_cells") == 1)
    is_unnamed = F.coalesce(same, F.lit(False)) & F.col("is_named").isNull()
    # Unique on the cell, and on the id, on the right.
    return (
        classified.join(F.broadcast(rest.select(*CELL, "rest_is")), CELL, how="left")
        .join(known, ["message_id"], how="left")
        .where(~is_unnamed)
        .drop("rest_is", "is_named")
    )


def with_rest(cells: DataFrame, rest: DataFrame | None) -> DataFrame:
    """The cells, with the ids of gaps in their counts.

    Input:
        cells: with the counts of `cell_counts`, never NULL; rest: of `unlanded_rest`; None: there
        is no gap.
    Output:
        also `gap_count` (bigint), `gap_cause`: of the missing ones; NULL where there are none.
    """
    none = {"gap_count": F.lit(None).cast("bigint"), "gap_cause": F.lit(None).cast("string")}
    if rest is None:
        return cells.withColumns(none)
    told = F.col("there") + F.col("missing") + F.col("pending") + F.col("vanished")
    unread = F.col("sent_n") - F.col("over_counted") - F.col("filtered") - told
    by, is_lacking = F.col("rest_is"), is_missing("rest_is")
    more = {
        "missing": is_lacking,
        "pending": by == Verdict.PENDING.value,
        "lost": by == Cause.LOST.value,
        "stuck": by == Cause.STUCK.value,
    }
    # Unique on the cell on the right.
    return (
        cells.join(F.broadcast(rest.select(*CELL, "rest_is")), CELL, how="left")
        .withColumn("unread", F.when(by.isNotNull(), unread).otherwise(0))
        .withColumns(
            {
                name: F.col(name) + F.when(is_so, F.col("unread")).otherwise(0)
                for name, is_so in more.items()
            }
        )
        .withColumn("gap_count", F.when(is_lacking & (F.col("unread") != 0), F.col("unread")))
        .withColumn("gap_cause", F.when(F.col("gap_count").isNotNull(), by))
        .drop("rest_is", "unread")
    )


def folded_gaps(
    judged: DataFrame, rest: DataFrame, previous: DataFrame, facts: AuditFacts
) -> DataFrame:
    """The gaps that this audit opens, sees again, or closes: one row per cell.

    A gap of which some came is over: it keeps the count of these, and the findings of the same
    audit name the others.

    Input:
        judged: of `judged_cells`; rest: of `unlanded_rest`; previous: GAPS of the stream, with
        `judged_as_of` as of `folded_findings`, and `is_complete` of `with_wholeness`.
    Output:
        GAPS without `updated_at`; `from_state` (NULL for a new one), `is_found`, `is_news`: of
        `touched_rows`. Gaps that the audit has nothing to say of are not in it.
    """
    near = judged.join(F.broadcast(rest), CELL, how="left")  # unique on the cell
    staged = _seen_again(near, previous, facts).select(
        *CELL,
        *(as_found(name).alias(name) for name in _CARRIED),
        _count().alias("count"),
        *life_columns(_why(), facts),
        is_found_otherwise([*_CARRIED, "count"]).alias("is_other"),
    )
    return touched_rows(staged, GAPS, facts)


def _seen_again(cells: DataFrame, previous: DataFrame, facts: AuditFacts) -> DataFrame:
    """What was known (`before`) beside what the cell is now (`now`), with what becomes of it.

    Output:
        `is_found`, `is_known`, `was_in_reach`, `deadline`, `next_state`.
    """
    known = previous.select(*CELL, F.lit(True).alias("has_past"))
    # Unique on the cell on both sides.
    near = cells.join(F.broadcast(known), CELL, how="left").where(
        F.col("gap_count").isNotNull() | F.col("has_past").isNotNull()
    )
    now = near.select(
        *CELL,
        "bucket_end",
        F.col("gap_count").alias("count"),
        F.col("gap_cause").alias("cause"),
        sequence_number(F.col("first_key")).alias("start_sequence_number"),
        sequence_number(F.col("sent_key")).alias("end_sequence_number"),
        F.col("first_arrival").alias("arrived_from"),
        F.col("last_arrival").alias("arrived_until"),
        F.col("missing").alias("left"),
        (F.col("pending") == 0).alias("is_judged"),
    ).alias("now")
    before = previous.withColumn("is_known", F.lit(True)).alias("before")
    is_dark = is_damaged(facts.damage.sink, F.col("bucket_start"))
    is_told = F.coalesce("is_judged", "before.is_complete", F.lit(False))
    return (
        now.join(before, CELL, how="full_outer")
        .withColumn("is_found", F.col("now.count").isNotNull())
        .withColumn("is_known", F.coalesce("is_known", F.lit(False)))
        .withColumn("was_in_reach", is_told & ~is_dark)
        .withColumn("deadline", until(as_found("arrived_from"), facts.retention))
        .withColumn("next_state", _state(facts))
    )


def _count() -> Column:
    """How many lack; of a gap that is over, how many are there that lacked."""
    came = F.greatest(F.col("before.count") - F.coalesce("left", F.lit(0)), F.lit(0))
    is_over = F.col("next_state").isin(*ENDED) & ~F.col("before.state").isin(*ENDED)
    return (
        F.when(F.col("is_found"), F.col("now.count"))
        .when(is_over, came)
        .otherwise(F.col("before.count"))
    )


def _is_out_of_time(kept: Retention, over_by: Column) -> Column:
    """Whether the last of its messages has left the stream."""
    by = F.greatest(over_by, F.col("before.judged_as_of"))
    return F.coalesce(until(as_found("arrived_until"), kept) < by, F.lit(False))


def _state(facts: AuditFacts) -> Column:
    return next_state(
        was_repaired=F.col("before.state") == State.REPLAYED.value,
        is_other=F.col("now.count") != F.col("before.count"),
        is_over=_is_out_of_time(facts.retention, F.lit(facts.over_by)),
        is_timed=F.lit(True),
    )


def _why() -> Column:
    state, left = F.col("next_state"), F.coalesce("left", F.lit(0))
    came = F.when(state == State.RECOVERED.value, "landed after the replay").otherwise(
        "it arrived later"
    )
    named = F.concat(came, F.lit(", but for "), left.cast("string"), F.lit(" that findings name"))
    gone = F.when(left > 0, named).otherwise(came)
    return because(gone)
