"""One shard's judgement: state, level, deadline, advice and evidence together."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from shardaudit.ingest.rules.lineage import behind_parents
from shardaudit.model.sequence import START_WORDS
from shardaudit.model.verdict import Level, ShardState, by_rank
from shardaudit.model.words import at, messages
from shardaudit.watch.rules.advice import advice, hole_advice
from shardaudit.watch.rules.deadline import (
    Deadline,
    audit_level,
    deadline,
    hole_deadline,
    hole_level,
    level,
)
from shardaudit.watch.rules.facts import Rules, Span, Witness
from shardaudit.watch.rules.shard_state import condition, is_stopped, shard_state


def evidence(witness: Witness, rules: Rules, *, settle_grace: timedelta) -> tuple[str, ...]:
    """Sentences; empty when no witness contradicts another."""
    said = (_hole(witness, rules, settle_grace), _hung(witness), _start_word(witness))
    return tuple(sentence for sentence in said if sentence is not None)


def _hole(witness: Witness, rules: Rules, settle_grace: timedelta) -> str | None:
    """The consumer says that it is past messages which have not landed."""
    passed, position = witness.progress.passed, witness.position
    if passed is None or position is None:
        return None
    if rules.as_of - rules.cells.end_of(passed.first_arrival) <= settle_grace:
        return None
    return (
        f"a HOLE in the making: {position.consumer} says {position.checkpoint}, which is past "
        f"{messages(passed.messages)} from {at(passed.since)} on that have not landed"
    )


def _hung(witness: Witness) -> str | None:
    """The lease is renewed, the checkpoint stays, and messages wait."""
    now, ahead = witness.position, witness.progress.ahead
    old = witness.before.position if witness.before else None
    if now is None or old is None or ahead is None or now.is_at_end:
        return None
    if now.lease_counter is None or old.lease_counter is None:
        return None
    if now.checkpoint != old.checkpoint or now.lease_counter <= old.lease_counter:
        return None
    return (
        f"its processor hangs or is blocked: {now.lease_owner} renews the lease "
        f"({old.lease_counter} → {now.lease_counter}), the checkpoint stays at {now.checkpoint}"
    )


def _start_word(witness: Witness) -> str | None:
    """A consumer that never stored how far it is: a restart begins at that word."""
    position, ahead = witness.position, witness.progress.ahead
    if position is None or ahead is None or position.checkpoint not in START_WORDS:
        return None
    skips = ": a restart skips what waits" if position.checkpoint == "LATEST" else ""
    return f"{position.consumer} never stored a checkpoint, only {position.checkpoint}{skips}"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the watch says of one shard. `advice` is a sentence, or one per trouble, or None.

    `deadline`: of what is ahead of the consumer, `hole_deadline`: of what is missing behind it.
    `audit_level`: how urgent an audit of the cells is that differ and that none looked at, behind
    the consumer, or before one that is stopped; `unnamed_since`, `unnamed_until`: around them.
    `stands_still`: stalled or silent, be it open or closed; `goes_on`: neither this nor rewound.
    """

    as_of: datetime
    witness: Witness
    state: ShardState
    stands_still: bool
    goes_on: bool
    level: Level
    deadline: Deadline | None
    hole_deadline: Deadline | None
    audit_level: Level
    unnamed_since: datetime | None
    unnamed_until: datetime | None
    advice: str | None
    evidence: tuple[str, ...]

    @property
    def shard_id(self) -> str:
        """The shard."""
        return self.witness.progress.shard_id

    @property
    def first_due(self) -> Deadline | None:
        """The nearer of the two deadlines."""
        both = [due for due in (self.deadline, self.hole_deadline) if due is not None]
        return min(both, key=lambda due: due.start_by, default=None)

    @property
    def words(self) -> str | None:
        """Advice and evidence as one text."""
        return "; ".join(filter(None, (self.advice, *self.evidence))) or None


def judgement_of(witness: Witness, rules: Rules, *, settle_grace: timedelta) -> Judgement:
    """The judgement of one shard."""
    known = rules.when_read
    found = condition(witness, known)
    due = deadline(witness, known)
    grade = level(found, witness, due, rules)
    holes_due = hole_deadline(witness.holes, rules)
    hole_grade = hole_level(witness.holes, holes_due, rules)
    tail = _to_audit(found, witness, grade)
    unnamed = [(witness.holes.unnamed_since, witness.holes.unnamed_until)]
    unnamed += [(tail.since, tail.until)] if tail else []
    advised = (
        advice(found, grade, witness, due, rules),
        hole_advice(witness.holes, holes_due, rules),
    )
    return Judgement(
        as_of=rules.as_of,
        witness=witness,
        state=shard_state(witness, known),
        stands_still=found in {ShardState.SILENT, ShardState.STALLED},
        goes_on=not is_stopped(found),
        level=max(grade, hole_grade, key=by_rank),
        deadline=due,
        hole_deadline=holes_due,
        audit_level=max(
            audit_level(witness.holes, rules), grade if tail else Level.NONE, key=by_rank
        ),
        unnamed_since=min((since for since, _ in unnamed if since), default=None),
        unnamed_until=max((until for _, until in unnamed if until), default=None),
        advice="; ".join(filter(None, advised)) or None,
        evidence=evidence(witness, known, settle_grace=settle_grace),
    )


def _to_audit(found: ShardState, witness: Witness, grade: Level) -> Span | None:
    """What waits before a stopped consumer and must be audited now, to be in a plan at all.

    As soon as it is in alarm what no audit knows of; while it is urgent also what came since. What
    waits before a consumer that goes on is in no plan, whatever an audit says of it.
    """
    tail = witness.unjudged
    is_unknown = tail is not None and tail == witness.progress.ahead
    is_wanted = grade.rank >= Level.URGENT.rank or (grade.is_alarm and is_unknown)
    return tail if is_stopped(found) and is_wanted else None


def waits_for(
    witnesses: Iterable[Witness], parents: Mapping[str, Sequence[str]], rules: Rules
) -> dict[str, str]:
    """The shards of which nothing landed yet, each with its nearest ancestor to be drained.

    Nobody waits for a shard that Kinesis does not list any more (it has no entry in `parents`), nor
    for one of which all that waited has left the stream: nobody can drain it any more.
    """
    begun, undrained = set(), set()
    for witness in witnesses:
        progress, due = witness.progress, deadline(witness, rules)
        if progress.landed_until is not None:
            begun.add(progress.shard_id)
        waits = due is not None and not due.is_over(rules)
        # A consumer that has just drained it begins the children: nothing of them can be there.
        if waits or not witness.rests(rules.as_of):
            undrained.add(progress.shard_id)
    return behind_parents(parents, begun=begun, undrained=undrained & parents.keys())


@dataclass(frozen=True, slots=True)
class Skew:
    """The spread of the shards at work in event time, and the shard that is furthest behind."""

    spread: timedelta
    earliest: datetime
    latest: datetime
    shard_id: str


def produced_skew(judgements: Iterable[Judgement]) -> Skew | None:
    """Between the newest messages sent, of the shards at work."""
    return _skew((j, j.witness.progress.produced_until) for j in judgements)


def landed_skew(judgements: Iterable[Judgement]) -> Skew | None:
    """Between the newest cells landed, of the shards at work."""
    return _skew((j, j.witness.progress.landed_until) for j in judgements)


def _skew(times: Iterable[tuple[Judgement, datetime | None]]) -> Skew | None:
    at_work = [(at, j.shard_id) for j, at in times if at is not None and j.state.is_at_work]
    if not at_work:
        return None
    (earliest, shard_id), (latest, _) = min(at_work), max(at_work)
    return Skew(latest - earliest, earliest, latest, shard_id)
