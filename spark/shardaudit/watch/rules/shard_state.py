"""The state machine of a shard: the first state, in a fixed order, whose condition holds.

Iterator age plays no part: it stays at 0 on a shard that stands still (KCL #185).
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from shardaudit.model.verdict import ShardState
from shardaudit.watch.rules.facts import Rules, Witness


def ancestors(shard_id: str, parents: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The shards of all generations before it, the nearest first.

    One that Kinesis no longer lists is the last of its line: it has expired.
    """
    seen: set[str] = set()
    generation = list(parents.get(shard_id, ()))
    while generation:
        yield from generation
        seen |= set(generation)
        # Each once: what is split and merged again and again has more lines than shards.
        older = dict.fromkeys(p for ancestor in generation for p in parents.get(ancestor, ()))
        generation = [ancestor for ancestor in older if ancestor not in seen]


def shard_state(witness: Witness, rules: Rules) -> ShardState:
    """What the shard is doing; a closed one is only that."""
    return condition(witness, rules) if witness.is_open else ShardState.CLOSED


def condition(witness: Witness, rules: Rules) -> ShardState:
    """What the shard, open or closed, is doing: it decides the level also of a closed one."""
    as_of = rules.as_of
    waits = is_overdue(witness, rules)
    rests = _longer_than_patience(witness, witness.resting_since, as_of)
    if waits and witness.waits_for is not None:
        return ShardState.LAGGING  # its consumer may not begin before the ancestor is drained
    if waits and witness.progress.landed_until is None:
        return ShardState.SILENT
    if witness.went_back or (waits and rests and _lands_behind(witness, as_of)):
        return ShardState.REWOUND
    if waits:
        return ShardState.STALLED if rests else ShardState.LAGGING
    is_quiet = _longer_than_patience(witness, witness.progress.produced_until, as_of)
    return ShardState.IDLE if is_quiet and witness.progress.ahead is None else ShardState.OK


def is_overdue(witness: Witness, rules: Rules) -> bool:
    """Whether a message waits for longer than a landing takes.

    Measured from the END of the oldest waiting cell: nothing in it is younger than that. What its
    producer held back waits since it came into the stream.
    """
    ahead = witness.progress.ahead
    if ahead is None:
        return False
    return rules.as_of - rules.cells.end_of(ahead.first_arrival) > witness.patience


def is_stopped(found: ShardState) -> bool:
    """Whether nobody reads on by himself."""
    return found in {ShardState.SILENT, ShardState.REWOUND, ShardState.STALLED}


def _longer_than_patience(witness: Witness, since: datetime | None, as_of: datetime) -> bool:
    return since is None or as_of - since > witness.patience


def _lands_behind(witness: Witness, as_of: datetime) -> bool:
    """Whether rows still land, but far behind the newest that ever did."""
    progress = witness.progress
    if progress.landed_until is None or progress.relanded_until is None:
        return False
    lands = not _longer_than_patience(witness, progress.last_landed_at, as_of)
    return lands and progress.landed_until - progress.relanded_until > witness.patience
