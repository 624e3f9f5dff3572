"""Findings and their life: what is new, what came back, what is settled, what can not be saved.

What holds of gaps, too, goes by rows with `before` (what was known) and `now` (what is found),
`is_found` and `is_known`.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.audit.rules.classify import Damage, is_damaged
from shardaudit.audit.rules.deadlines import until
from shardaudit.audit.rules.drill_down import sorted_entries
from shardaudit.columns.instants import bucket_start, cell_start, in_windows
from shardaudit.columns.ledger_sums import CELL, is_whole
from shardaudit.model.config.eras import Eras
from shardaudit.model.retention import Retention
from shardaudit.model.tables.audit_tables import FINDINGS
from shardaudit.model.tables.table import Table
from shardaudit.model.verdict import ENDED, LIVE, STANDING, UNSETTLED, Cause, Kind, State, Verdict
from shardaudit.model.window import Window

KEY = ["message_id", "kind"]
_EVIDENCE = ("sent_count", "landed_count", "sequence_numbers")
_HOLDING = [Kind.MISSING.value, Kind.DUPLICATED.value]


@dataclass(frozen=True, slots=True)
class AuditFacts:
    """What a finding has to know of the audit that touches it."""

    audit_id: str
    stream: str
    window: Window
    as_of: datetime
    over_by: datetime  # by when a deadline must be over; `as_of`, unless that is still to come
    bucket: timedelta
    retention: Retention
    damage: Damage


def life_columns(why: Column, facts: AuditFacts) -> list[Column]:
    """What of its life a finding, or a gap, carries from `before` to what it is now.

    Of rows with `before`, `next_state`, `deadline` and `is_found`. What is over keeps the deadline
    that it had.

    Input:
        why: its state changes, if it does.
    """
    return [
        F.when(F.col("next_state").isin(*ENDED), F.col("before.recoverable_until"))
        .otherwise(F.col("deadline"))
        .alias("recoverable_until"),
        F.col("before.recoverable_until").alias("old_deadline"),
        F.col("before.state").alias("from_state"),
        F.col("next_state").alias("state"),
        why.alias("changed_because"),
        F.col("is_found"),
        F.col("before.state_reason").alias("old_reason"),
        F.coalesce("before.first_audit_id", F.lit(facts.audit_id)).alias("first_audit_id"),
        F.when(F.col("is_found"), F.lit(facts.audit_id))
        .otherwise(F.col("before.last_audit_id"))
        .alias("last_audit_id"),
        F.coalesce("before.opened_at", F.lit(facts.as_of)).alias("opened_at"),
    ]


def as_found(name: str) -> Column:
    """A value of what is found; of what is not, as it was known."""
    found, known = F.col(f"now.{name}"), F.col(f"before.{name}")
    return F.when(F.col("is_found"), found).otherwise(known)


def is_found_otherwise(carried: Collection[str]) -> Column:
    """Whether it is found, and other than it was known to be, by some columns."""

    def value(name: str) -> Column:
        return sorted_entries(name) if name.endswith(".attributes") else F.col(name)

    others = (~value(f"now.{name}").eqNullSafe(value(f"before.{name}")) for name in carried)
    return F.col("is_found") & reduce(or_, others)


def next_state(
    *, was_repaired: Column, is_other: Column, is_over: Column, is_timed: Column
) -> Column:
    """The state that it has from now on.

    Input:
        was_repaired: whether a repair is why it is gone, if it is.
        is_other: whether what is found is other than what was accepted.
        is_over: whether its time has run out; is_timed: whether it has one.
    """
    before = F.col("before.state")
    is_gone = ~F.col("is_found") & F.col("was_in_reach") & before.isin(*STANDING)
    is_more = F.col("is_found") & (is_other | _is_lost_by_now())
    fresh = F.when(is_over, State.EXPIRED.value).otherwise(State.OPEN.value)
    return (
        F.when(~F.col("is_known"), fresh)
        .when(is_gone & was_repaired, State.RECOVERED.value)
        .when(is_gone, State.FALSE_ALARM.value)
        .when(F.col("is_found") & before.isin(*ENDED), fresh)
        .when((before == State.ACCEPTED.value) & is_more, fresh)
        .when(before.isin(*LIVE) & is_over, State.EXPIRED.value)
        .when((before == State.EXPIRED.value) & is_timed & ~is_over, State.OPEN.value)
        .otherwise(before)
    )


def _is_lost_by_now() -> Column:
    """Whether what was stuck before is lost now: who accepted it expected it to land."""
    was_stuck = F.col("before.cause") == Cause.STUCK.value
    return F.coalesce(was_stuck & (F.col("now.cause") == Cause.LOST.value), F.lit(False))


def because(gone: Column) -> Column:
    """Why it is in that state; `gone`: why when it is not there."""
    before, state = F.col("before.state"), F.col("next_state")
    is_back = (before == State.EXPIRED.value) & (state == State.OPEN.value)
    return (
        F.when(state == State.EXPIRED.value, "the stream's retention has run out")
        .when(~F.col("is_known"), "found by the audit")
        .when(is_back, "the stream keeps it for longer than was known")
        .when(~F.col("is_found"), gone)
        .when(before == State.ACCEPTED.value, "new evidence since it was accepted")
        .otherwise("found again after it was closed")
    )


def touched_rows(staged: DataFrame, table: Table, facts: AuditFacts) -> DataFrame:
    """What the audit has something to say of: the table without `updated_at`, and more.

    Input:
        staged: with `life_columns`, and `is_other`: of `is_found_otherwise`.
    Output:
        also `from_state` (NULL for a new one), `is_found`; `is_news`: the table has it otherwise,
        but for `last_audit_id`.
    """
    changed = _is_changed()
    reason = F.when(changed, F.col("changed_because")).otherwise(F.col("old_reason"))
    is_moved = ~F.col("recoverable_until").eqNullSafe(F.col("old_deadline"))
    return (
        staged.where(F.col("is_found") | changed | is_moved)
        .withColumn("stream", F.lit(facts.stream))
        .withColumn("state_reason", reason)
        .withColumn("is_news", F.col("is_other") | changed | is_moved)
        .select(*(n for n in table.names if n != "updated_at"), "from_state", "is_found", "is_news")
    )


def transitions(folded: DataFrame, table: Table, facts: AuditFacts) -> DataFrame:
    """The changes of state among findings or gaps, in the shape of their table of transitions."""
    return (
        folded.where(_is_changed())
        .withColumn("to_state", F.col("state"))
        .withColumn("audit_id", F.lit(facts.audit_id))
        .withColumn("reason", F.col("state_reason"))
        .withColumn("changed_at", F.lit(facts.as_of))
        .select(table.names)
    )


def _is_changed() -> Column:
    return ~F.col("state").eqNullSafe(F.col("from_state"))


def with_wholeness(previous: DataFrame, cells: DataFrame, sums: DataFrame) -> DataFrame:
    """Findings or gaps, and `is_complete`: whether just what was sent landed in their cell.

    Input:
        previous: with the cell; cells: theirs; sums: `LedgerSums.cells`: of a kept day that has no
        missing message with a standing finding, or gap, it lacks the cells that are whole.
    """
    # A ledger has many more cells than these.
    whole = sums.where(is_whole()).join(F.broadcast(cells), CELL, how="left_semi")
    # Unique on the cell, by its grouping.
    complete = whole.select(*CELL, F.lit(True).alias("is_complete"))
    return previous.join(complete, CELL, how="left")


def folded_findings(
    kinds: DataFrame, previous: DataFrame, pending: DataFrame, facts: AuditFacts
) -> DataFrame:
    """The findings that this audit opens, sees again, or closes: one row per (message id, kind).

    Input:
        kinds: of `classify.kinds`, unique on (message_id, kind).
        previous: FINDINGS rows of the stream, unique on the same; `judged_as_of`: the latest
            "now" of the audits so far: what had run out by then stays so for an audit of the past;
            `is_complete`: of `with_completeness`.
        pending: `message_id` of ids that can not be judged yet, unique.
    Output:
        FINDINGS without `updated_at`; `from_state` (NULL for a new one), `is_news`: of
        `touched_rows`. Findings that the audit has nothing to say of are not in it.
    """
    both = _judged_again(kinds, previous, pending, facts)
    staged = both.select(
        *KEY,
        *(as_found(name).alias(name) for name in _CARRIED),
        *life_columns(_reason(), facts),
        is_found_otherwise(_CARRIED).alias("is_other"),
    )
    return touched_rows(staged, FINDINGS, facts).drop("is_found")


def with_completeness(previous: DataFrame, sums: DataFrame, *, shape: Eras) -> DataFrame:
    """Findings, and `is_complete`: whether just what was sent landed in their cell, by the ledger.

    Input:
        previous: FINDINGS; sums: as of `with_wholeness`.
    """
    placed = previous.withColumn("bucket_start", cell_start(F.col("sent_at"), shape))
    return with_wholeness(placed, placed.select(*CELL).distinct(), sums).drop("bucket_start")


def _judged_again(
    kinds: DataFrame, previous: DataFrame, pending: DataFrame, facts: AuditFacts
) -> DataFrame:
    """What was known (`before`) beside what is found now (`now`), with what becomes of it.

    Output:
        `is_found`, `is_known`, `was_in_reach`, `deadline`, `next_state`.
    """
    # Presence comes from the markers, never from a null key.
    now = kinds.select(*KEY, *_CARRIED).withColumn("is_found", F.lit(True)).alias("now")
    before = previous.withColumn("is_known", F.lit(True)).alias("before")
    unjudged = pending.withColumn("is_unjudged", F.lit(True))
    return (
        now.join(before, KEY, how="full_outer")
        .join(unjudged, ["message_id"], how="left")
        .withColumn("is_found", F.coalesce("is_found", F.lit(False)))
        .withColumn("is_known", F.coalesce("is_known", F.lit(False)))
        .withColumn("was_in_reach", _was_in_reach(facts))
        .withColumn("deadline", _deadline(facts.retention))
        .withColumn("next_state", _state(facts))
    )


_CARRIED = (
    "shard_id",
    "cause",
    "location",
    "hops",
    "sent_at",
    "first_landed_at",
    "last_landed_at",
    *_EVIDENCE,
    "arrived_at",
    "attributes",
)


def _deadline(kept: Retention) -> Column:
    """Until when the stream holds a missing message."""
    known_arrival = F.coalesce("before.arrived_at", "before.sent_at")
    arrived_at = F.when(F.col("is_found"), F.col("now.arrived_at")).otherwise(known_arrival)
    return F.when(_is_missing(), until(arrived_at, kept))


def _was_in_reach(facts: AuditFacts) -> Column:
    """Whether the audit looked at the finding's cell, or the ledger tells that its id landed."""
    start = bucket_start(F.col("before.sent_at"), facts.bucket)
    has_landed = F.coalesce("before.is_complete", F.lit(False)) & _is_missing()
    return (
        (in_windows(start, [facts.window]) | has_landed)
        & F.col("is_unjudged").isNull()
        & ~is_damaged(facts.damage.sink, start)
    )


def _is_missing() -> Column:
    return F.col("kind") == Kind.MISSING.value


def _is_out_of_time(facts: AuditFacts) -> Column:
    by = F.greatest(F.lit(facts.over_by), F.col("before.judged_as_of"))  # of those that there are
    return F.coalesce(F.col("deadline") < by, F.lit(False))


def _state(facts: AuditFacts) -> Column:
    before = F.col("before.state")
    was_repaired = (before == State.REPLAYED.value) | (F.col("kind") == Kind.DUPLICATED.value)
    return next_state(
        was_repaired=was_repaired,
        is_other=is_found_otherwise(_EVIDENCE),
        is_over=_is_out_of_time(facts),
        is_timed=F.col("deadline").isNotNull(),
    )


def _reason() -> Column:
    gone = (
        F.when(F.col("before.state") == State.REPLAYED.value, "landed after the replay")
        .when(_is_missing(), "it arrived later")
        .otherwise("a later audit no longer finds it")
    )
    return because(gone)


def pending_ids(classified: DataFrame) -> DataFrame:
    """The ids that no audit can judge yet: `message_id`, unique."""
    return classified.where(F.col("not_landed") == Verdict.PENDING.value).select("message_id")


def unsettled(findings: DataFrame) -> DataFrame:
    """The findings that hold a watermark: missing or doubled, and neither repaired nor accepted."""
    return findings.where(F.col("kind").isin(_HOLDING) & F.col("state").isin(*UNSETTLED))


def _unsettled_gaps(gaps: DataFrame) -> DataFrame:
    """The gaps that do so."""
    return gaps.where(F.col("state").isin(*UNSETTLED))


def first_unsettled(findings: DataFrame, gaps: DataFrame) -> DataFrame:
    """Per shard, when the first of the messages that hold it was sent: `shard_id`, `sent_at`.

    Input:
        gaps: GAPS; of each the start of its cell counts.
    """
    sent_at = F.col("bucket_start").alias("sent_at")
    unnamed = _unsettled_gaps(gaps).select("shard_id", sent_at)
    both = unsettled(findings).select("shard_id", "sent_at").union(unnamed)
    return both.groupBy("shard_id").agg(F.min("sent_at").alias("sent_at"))


def unsettled_counts(
    findings: DataFrame, gaps: DataFrame, shard_id: str, over: Window
) -> DataFrame:
    """The messages of a shard that hold its watermark: by `kind`, and whether they are `gone`.

    Output:
        `kind`, `gone` (boolean: missing for good), `ids` (bigint).
    """
    one, missing = F.lit(1).cast("bigint").alias("count"), F.lit(Kind.MISSING.value).alias("kind")
    named = unsettled(findings).select("shard_id", "sent_at", "kind", "state", one)
    sent_at = F.col("bucket_start").alias("sent_at")
    unnamed = _unsettled_gaps(gaps).select("shard_id", sent_at, missing, "state", "count")
    in_span = named.union(unnamed).where(
        (F.col("shard_id") == shard_id) & in_windows(F.col("sent_at"), [over])
    )
    is_expired = F.col("state") == State.EXPIRED.value
    is_gone = is_expired & (F.col("kind") == Kind.MISSING.value)
    return in_span.groupBy("kind", is_gone.alias("gone")).agg(F.sum("count").alias("ids"))
