"""Until when a shard can be repaired: what is ahead, how long it reads, by when to begin."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from shardaudit.model.retention import MAX_RETENTION, bytes_at_most, start_by, time_to_read
from shardaudit.model.verdict import URGENT_WITHIN, Level, ShardState
from shardaudit.watch.rules.facts import EarlierWatch, Holes, Rules, Span, Witness
from shardaudit.watch.rules.shard_state import is_stopped

WARN_WITHIN = timedelta(hours=24)
WARN_SHARE = 0.5  # of the retention; also AWS's own rule for iterator age
TREND_SHARE = 0.1  # a shorter lag is a burst: its trend says nothing about the retention


@dataclass(frozen=True, slots=True)
class Deadline:
    """The numbers of the messages ahead. Bytes and hours are upper bounds.

    `crosses_at`: when a lagging shard, going on like this, loses its oldest message.
    """

    ahead: Span
    bytes_at_most: int
    hours_to_read: float
    recoverable_until: datetime
    start_by: datetime
    crosses_at: datetime | None = None

    def is_over(self, rules: Rules) -> bool:
        """Whether all of it has left the stream: there is nothing left to save."""
        return rules.kept.until(self.ahead.last_arrival) <= rules.as_of

    def used(self, rules: Rules) -> float:
        """Which share of the retention the oldest message has used up."""
        return (rules.as_of - self.ahead.first_arrival) / rules.retention


def deadline(witness: Witness, rules: Rules) -> Deadline | None:
    """The deadline of the oldest message ahead; None when nothing is ahead."""
    ahead = witness.progress.ahead
    if ahead is None:
        return None
    # Nothing came after now, or is older than what the stream keeps, whatever a clock stamped.
    since = max(ahead.first_arrival, rules.kept.held_since(rules.as_of))
    length = max(min(ahead.last_arrival, rules.as_of) - since, rules.bucket)
    due = _deadline(ahead, rules, length=length, messages=ahead.messages)
    return replace(due, crosses_at=_crosses_at(due.recoverable_until, witness.earlier, rules))


def hole_deadline(holes: Holes, rules: Rules) -> Deadline | None:
    """The deadline of the oldest hole, and what it takes to read these minutes again."""
    if holes.since is None or holes.until is None:
        return None
    missing = Span(holes.messages, holes.since, holes.until, arrived_from=holes.arrived_from)
    return _deadline(missing, rules, length=holes.cells * rules.bucket, messages=holes.sent)


def _deadline(ahead: Span, rules: Rules, *, length: timedelta, messages: int) -> Deadline:
    """The deadline of messages; `length`, `messages`: of what must be read for them."""
    until = rules.kept.until(ahead.first_arrival)
    size = bytes_at_most(length, messages / rules.cells.least_rate)
    return Deadline(
        ahead=ahead,
        bytes_at_most=size,
        hours_to_read=time_to_read(size, share=rules.read_share) / timedelta(hours=1),
        recoverable_until=until,
        start_by=start_by(until, size, share=rules.read_share),
    )


def hole_level(holes: Holes, due: Deadline | None, rules: Rules) -> Level:
    """How urgent the holes are, as if the shard had stopped there; `due`: of `hole_deadline`."""
    if due is not None:
        return _of_stopped(due, rules)
    return Level.NOTICE if holes.gone else Level.NONE


def audit_level(holes: Holes, rules: Rules) -> Level:
    """How urgent it is that an audit names what nobody looked at by id, as if it were missing.

    Where there are doubts alone nothing need be missing: half of the retention is theirs, and the
    nightly audit mostly comes before.
    """
    since, until = holes.unnamed_since, holes.unnamed_until
    if since is None:
        return Level.NONE
    first = holes.unnamed_arrived_from
    unnamed = replace(holes, since=since, until=until, cells=1, arrived_from=first)
    due = hole_deadline(unnamed, rules)
    found = hole_level(unnamed, due, rules)
    if due is None or holes.unnamed or found is not Level.WARN:
        return found
    return found if due.start_by - rules.as_of <= rules.retention / 2 else Level.NOTICE


def level(found: ShardState, witness: Witness, due: Deadline | None, rules: Rules) -> Level:
    """How urgent the shard is. `found`: its condition, be it open or closed."""
    if is_stopped(found):
        return Level.NOTICE if due is None else _of_stopped(due, rules)
    is_lagging = found is ShardState.LAGGING and witness.waits_for is None
    worst = _of_lagging(due, rules.when_read) if is_lagging and due is not None else Level.NONE
    if worst is Level.NONE and had_pause(witness):
        return Level.NOTICE
    return worst


def had_pause(witness: Witness) -> bool:
    """Whether it stood still since the last watch, for longer than its patience, and goes on."""
    pause = witness.progress.pause
    return pause is not None and pause.length > witness.patience


def _of_stopped(due: Deadline, rules: Rules) -> Level:
    if due.is_over(rules):
        return Level.NOTICE
    if due.recoverable_until <= rules.as_of:
        return Level.LOST
    if due.start_by - rules.as_of <= URGENT_WITHIN:
        return Level.URGENT
    if due.start_by - rules.as_of <= WARN_WITHIN or due.used(rules) >= WARN_SHARE:
        return Level.WARN
    return Level.NOTICE


def _of_lagging(due: Deadline, rules: Rules) -> Level:
    if due.recoverable_until <= rules.as_of:
        return Level.LOST
    left = None if due.crosses_at is None else due.crosses_at - rules.as_of
    if left is not None and left <= URGENT_WITHIN and due.used(rules) >= TREND_SHARE:
        return Level.URGENT
    if due.used(rules) >= WARN_SHARE:
        return Level.WARN
    if left is not None and left <= WARN_WITHIN and due.used(rules) >= TREND_SHARE:
        return Level.WARN
    return Level.NONE


def _crosses_at(until: datetime, earlier: EarlierWatch | None, rules: Rules) -> datetime | None:
    """When the oldest message's time is up, as fast as the lag grew since the earlier watch."""
    if earlier is None or earlier.recoverable_until is None or until <= rules.as_of:
        return None
    passed = rules.as_of - earlier.observed_at
    caught_up = until - earlier.recoverable_until
    if passed <= timedelta(0) or caught_up >= passed:
        return None
    growth = 1 - caught_up / passed
    left = (until - rules.as_of) / growth
    return rules.as_of + min(left, MAX_RETENTION * 10)
