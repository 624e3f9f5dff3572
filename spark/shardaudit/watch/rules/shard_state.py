"""The state machine of a shard: the first state, in a fixed order, whose condition holds.

Stalled is a shard of which messages wait and whose frontier rests, by cells; an audit says the same
by id (`stuck`). Iterator age plays no part: it stays at 0 on a shard that stands still (KCL #185).
"""

from datetime import datetime

from shardaudit.model.verdict import ShardState
from shardaudit.watch.rules.facts import Rules, Witness


def shard_state(witness: Witness, rules: Rules) -> ShardState:
    """What the shard is doing; a closed one is only that."""
    return condition(witness, rules) if witness.is_open else ShardState.CLOSED


def condition(witness: Witness, rules: Rules) -> ShardState:
    """What the shard, open or closed, is doing: it decides the level also of a closed one."""
    as_of = rules.as_of
    waits, rests = _waits(witness, rules), witness.rests(as_of)
    if waits and witness.waits_for is not None:
        return ShardState.LAGGING  # its consumer may not begin before the ancestor is drained
    if waits and witness.progress.landed_until is None:
        return ShardState.SILENT
    if witness.went_back or (waits and rests and _lands_behind(witness, as_of)):
        return ShardState.REWOUND
    if waits:
        return ShardState.STALLED if rests else ShardState.LAGGING
    is_quiet = witness.is_patience_over(witness.progress.produced_until, as_of)
    return ShardState.IDLE if is_quiet and witness.progress.ahead is None else ShardState.OK


def _waits(witness: Witness, rules: Rules) -> bool:
    """Whether a message waits for longer than a landing takes.

    Measured from the END of the oldest waiting cell: nothing in it is younger than that. What its
    producer held back waits since it came into the stream.
    """
    ahead = witness.progress.ahead
    if ahead is None:
        return False
    return witness.is_patience_over(rules.cells.end_of(ahead.first_arrival), rules.as_of)


def is_stopped(found: ShardState) -> bool:
    """Whether nobody reads on by himself."""
    return found in {ShardState.SILENT, ShardState.REWOUND, ShardState.STALLED}


def _lands_behind(witness: Witness, as_of: datetime) -> bool:
    """Whether rows still land, but far behind the newest that ever did."""
    progress = witness.progress
    if progress.landed_until is None or progress.relanded_until is None:
        return False
    lands = not witness.is_patience_over(progress.last_landed_at, as_of)
    return lands and progress.landed_until - progress.relanded_until > witness.patience
