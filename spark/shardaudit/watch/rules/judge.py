"""One shard's judgement: state, level, deadline, advice and evidence together."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from shardaudit.model.verdict import Level, ShardState
from shardaudit.watch.rules.advice import advice, hole_advice
from shardaudit.watch.rules.contradictions import evidence
from shardaudit.watch.rules.deadline import (
    Deadline,
    audit_level,
    deadline,
    hole_deadline,
    hole_level,
    level,
)
from shardaudit.watch.rules.facts import Progress, Rules, Witness
from shardaudit.watch.rules.lineage import undrained_ancestor
from shardaudit.watch.rules.state import condition, shard_state


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the watch says of one shard. `advice` is a sentence, or one per trouble, or None.

    `deadline`: of what is ahead of the consumer, `hole_deadline`: of what is missing behind it.
    `audit_level`: how urgent an audit of the cells is that differ and that none looked at.
    `stands_still`: stalled or silent, be it open or closed.
    """

    as_of: datetime
    witness: Witness
    state: ShardState
    stands_still: bool
    level: Level
    deadline: Deadline | None
    hole_deadline: Deadline | None
    audit_level: Level
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


def judged(witness: Witness, rules: Rules, *, settle_grace: timedelta) -> Judgement:
    """The judgement of one shard."""
    known = rules.when_read
    found = condition(witness, known)
    due = deadline(witness, known)
    grade = level(found, witness, due, rules)
    holes_due = hole_deadline(witness.holes, rules)
    hole_grade = hole_level(witness.holes, holes_due, rules)
    advised = (
        advice(found, grade, witness, due, rules),
        hole_advice(witness.holes, holes_due, rules),
    )
    return Judgement(
        as_of=rules.as_of,
        witness=witness,
        state=shard_state(witness, known),
        stands_still=found in {ShardState.SILENT, ShardState.STALLED},
        level=max(grade, hole_grade, key=lambda one: one.rank),
        deadline=due,
        hole_deadline=holes_due,
        audit_level=audit_level(witness.holes, rules),
        advice="; ".join(filter(None, advised)) or None,
        evidence=evidence(witness, known, settle_grace=settle_grace),
    )


def waits_for(shards: Iterable[Progress], parents: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The shards of which nothing landed yet, each with the ancestor that is not drained.

    Nobody waits for a shard that Kinesis does not list any more (it has no entry in `parents`),
    and a shard of which something landed has evidently not waited.
    """
    shards = list(shards)
    undrained = {p.shard_id for p in shards if p.ahead is not None and p.shard_id in parents}
    found = {
        p.shard_id: undrained_ancestor(p.shard_id, parents, undrained=undrained)
        for p in shards
        if p.landed_until is None
    }
    return {shard: ancestor for shard, ancestor in found.items() if ancestor is not None}
