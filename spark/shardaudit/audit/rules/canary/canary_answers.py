"""What an audit said of its canary, and what it had to say."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.audit.rules.canary.canary import (
    DAMAGED,
    MESSAGES,
    PLANTED_GAPS,
    PLANTED_SHARDS,
    VERDICTS,
    Planted,
)
from shardaudit.audit.rules.canary.canary_plan import GAP_CLOSED, CanaryPlan, numbers
from shardaudit.audit.rules.totals import TOTALS
from shardaudit.model.input_columns import CANARY
from shardaudit.model.verdict import ENDED, LIVE, VANISHED, Kind, State, Verdict
from shardaudit.model.watermark import Held
from shardaudit.model.window import unix_micros

_NONE = "-"


@dataclass(frozen=True, slots=True)
class Answer:
    """One thing that is said of it: of the cell `at` then.

    `what`: cell | gap | id | finding | transition.
    """

    what: str
    name: str
    at: datetime | None
    answer: str


def is_canary(name: str = "shard_id") -> Column:
    """Whether a row is of the canary, by its shard or, as named, its message id."""
    return F.col(name).startswith(CANARY)


def without_canary(rows: DataFrame, name: str = "shard_id") -> DataFrame:
    """The stream's own rows."""
    return rows.where(~is_canary(name))


def answers(
    judged: DataFrame, classified: DataFrame, folded: DataFrame, changes: DataFrame
) -> DataFrame:
    """Everything that an audit says of its canary, to be collected: the fields of Answer.

    Input:
        judged: of `judged_cells`; classified: of `within_window`; folded: of `folded_findings`;
        changes: of `transitions`.
    """
    cells = judged.where(is_canary()).select(
        F.lit("cell").alias("what"),
        F.col("shard_id").alias("name"),
        F.col("bucket_start").alias("at"),
        _text("verdict", "compared", *TOTALS, "held_by"),
    )
    ids = classified.where(is_canary("message_id")).select(
        F.lit("id").alias("what"),
        F.col("message_id").alias("name"),
        F.col("bucket_start").alias("at"),
        _text("shard_id", "not_landed", "duplicated", "untraced", "moved"),
    )
    nowhen = F.lit(None).cast("timestamp").alias("at")
    micros = F.unix_micros("recoverable_until").alias("until")
    evidence = F.concat_ws(",", "sequence_numbers").alias("numbers")
    counts = ("sent_count", "landed_count")
    findings = (
        folded.where(is_canary("message_id"))
        .select("message_id", "shard_id", "kind", "cause", "state", *counts, micros, evidence)
        .select(
            F.lit("finding").alias("what"),
            F.col("message_id").alias("name"),
            nowhen,
            _text("shard_id", "kind", "cause", "state", *counts, "until", "numbers"),
        )
    )
    transitions = changes.where(is_canary("message_id")).select(
        F.lit("transition").alias("what"),
        F.col("message_id").alias("name"),
        nowhen,
        _text("kind", "from_state", "to_state"),
    )
    return cells.unionByName(ids).unionByName(findings).unionByName(transitions)


def gap_answers(folded: DataFrame) -> DataFrame:
    """Everything that it says of the canary's gaps: the fields of Answer.

    Input:
        folded: of `folded_gaps`.
    """
    until = F.unix_micros("recoverable_until").alias("until")
    known = ("from_state", "state", "count", "start_sequence_number", "end_sequence_number")
    return (
        folded.where(is_canary())
        .select("shard_id", "bucket_start", "cause", *known, until)
        .select(
            F.lit("gap").alias("what"),
            F.col("shard_id").alias("name"),
            F.col("bucket_start").alias("at"),
            _text("cause", *known, "until"),
        )
    )


def _text(*names: str) -> Column:
    texts = [F.coalesce(F.col(name).cast("string"), F.lit(_NONE)) for name in names]
    return F.concat_ws(" ", *texts).alias("answer")


def _same_text(*values: object) -> str:
    return " ".join(_NONE if value is None else str(value) for value in values)


def differences(plan: CanaryPlan, found: Iterable[Answer]) -> list[str]:
    """What was planted and not found so, or found and not planted: none when all is well."""
    wanted, given = Counter(_expected(plan)), Counter(found)
    slots = {start: slot for slot, start in plan.starts.items()}
    sides: dict[str, dict[str, list[str]]] = {}
    for side, differing in (("planted", wanted - given), ("found", given - wanted)):
        for answer in differing.elements():
            at = f" in {slots.get(answer.at, answer.at)}" if answer.at else ""
            about = f"{answer.what} {answer.name.removeprefix(CANARY)!r}{at}"
            said = sides.setdefault(about, {"planted": [], "found": []})[side]
            said.append(answer.answer.replace(CANARY, ""))
    return [
        f"{about}: planted {_all(said['planted'])}, found {_all(said['found'])}"
        for about, said in sorted(sides.items())
    ]


def _all(texts: list[str]) -> str:
    return " and ".join(f"“{text}”" for text in sorted(texts)) or "nothing"


def _expected(plan: CanaryPlan) -> Iterator[Answer]:
    for slot, start in plan.starts.items():
        for shard in PLANTED_SHARDS:
            yield Answer("cell", f"{CANARY}{shard}", start, _cell(plan, shard, slot))
    yield from _gaps(plan)
    for message in MESSAGES:
        name, found = f"{CANARY}{message.name}", message.found
        if not _is_clean(message) and not _is_emptied(message):
            other = [found.get(kind) for kind in (Kind.DUPLICATED, Kind.UNTRACED, Kind.MOVED)]
            text = _same_text(f"{CANARY}{message.home}", message.not_landed, *other)
            yield Answer("id", name, plan.starts[message.slot], text)
        yield from _findings(plan, message, name)


def _gaps(plan: CanaryPlan) -> Iterator[Answer]:
    for gap in PLANTED_GAPS:
        start, before = plan.starts[gap.slot], gap.before
        until = plan.retention.until(start)
        state = _by_then(plan, before.after if before and before.after else State.OPEN, until)
        places = ("2", gap.last) if gap.count else (None, None)
        said = (before and before.state, state, gap.count or GAP_CLOSED, *places, _micros(until))
        yield Answer("gap", f"{CANARY}{gap.shard}", start, _same_text(gap.cause, *said))


def _cell(plan: CanaryPlan, shard: str, slot: str) -> str:
    own = [m for m in MESSAGES if m.slot == slot and m.home == shard]
    sent = Counter(message.name for message in own if message.sent)
    rows = Counter(
        m.name for m in MESSAGES for r in m.rows if r[0] == shard and m.slot_of(r) == slot
    )
    unread = sum(gap.count for gap in PLANTED_GAPS if (gap.shard, gap.slot) == (shard, slot))
    missing = sum(Kind.MISSING in m.found for m in own) + unread
    pending = sum(m.not_landed == Verdict.PENDING for m in own)
    vanished = sum(m.not_landed == VANISHED for m in own)
    all_sent = sent.total() + unread
    matched = all_sent - missing - pending
    kinds = Counter(kind for m in own for kind in m.found)
    extra = sum(max(len(m.rows) - 1, 0) for m in own)
    untraced = kinds[Kind.UNTRACED]
    is_thin = matched < plan.trace_coverage_floor * (matched + untraced)
    verdict = VERDICTS.get((shard, slot), Verdict.OK)
    if verdict is Verdict.UNTRACED and is_thin:
        verdict = Verdict.INCONCLUSIVE
    held_by = Held.THIN if is_thin else None
    if slot == DAMAGED or verdict is Verdict.PENDING:
        held_by = Held.DAMAGED if slot == DAMAGED else Held.PENDING
    return _same_text(
        verdict,
        "fingerprint" if sent == rows or (vanished and not rows) else "ids",
        *(all_sent, rows.total(), matched, missing, pending, 0),
        *(kinds[Kind.DUPLICATED], extra, untraced, kinds[Kind.MOVED], vanished, held_by),
    )


def _is_clean(message: Planted) -> bool:
    """Whether nothing of it is a difference, nor was one for an earlier audit."""
    if not message.sent and not message.rows:
        return True
    return not message.later and message.sent[:1] == message.rows


def _is_emptied(message: Planted) -> bool:
    """Whether nothing is left of its cell, which was complete: nobody reads that by id."""
    cell = (message.slot, message.home)
    return message.not_landed == VANISHED and not any(
        other.rows for other in MESSAGES if (other.slot, other.home) == cell
    )


def _findings(plan: CanaryPlan, message: Planted, name: str) -> Iterator[Answer]:
    before = message.before
    deadline = plan.retention.until(plan.arrived_at(message))
    for kind, cause in message.found.items():
        old = before if before and before.kind is kind else None
        until = deadline if kind is Kind.MISSING else None
        state = _by_then(plan, old.after if old and old.after else State.OPEN, until)
        yield _finding(message, name, _same_text(kind, cause, state), until)
        yield from _transition(name, kind, old.state if old else None, state)
    if before is None or before.after is None or before.kind in message.found:
        return
    if before.after in ENDED and plan.judged_bucket is None:
        return
    said = _same_text(before.kind, before.cause, before.after)
    yield _finding(message, name, said, plan.known_until(before))
    yield from _transition(name, before.kind, before.state, before.after)


def _by_then(plan: CanaryPlan, state: State, until: datetime | None) -> State:
    """The state, or that the stream has dropped it by the time of the audit."""
    is_over = until is not None and plan.over_by > until
    return State.EXPIRED if is_over and state in LIVE else state


def _micros(until: datetime | None) -> int | None:
    return None if until is None else unix_micros(until)


def _finding(message: Planted, name: str, said: str, until: datetime | None) -> Answer:
    counts = _same_text(len(message.sent), len(message.rows), _micros(until))
    known = ",".join(numbers(message))
    return Answer("finding", name, None, f"{CANARY}{message.home} {said} {counts} {known}")


def _transition(name: str, kind: Kind, old: State | None, new: State) -> Iterator[Answer]:
    if old is not new:
        yield Answer("transition", name, None, _same_text(kind, old, new))
