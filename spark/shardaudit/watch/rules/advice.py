"""What to do about a shard, in a sentence: which window, how long it reads, until when."""

from datetime import datetime

from shardaudit.ingest.rules.lineage import BEHIND_PARENT
from shardaudit.model.retention import MAX_RETENTION
from shardaudit.model.verdict import Level, ShardState
from shardaudit.model.window import LONGEST
from shardaudit.model.words import at, byte_size, length, messages
from shardaudit.watch.rules.deadline import Deadline, had_pause
from shardaudit.watch.rules.facts import Holes, Rules, Witness
from shardaudit.watch.rules.shard_state import is_stopped


def advice(
    found: ShardState, grade: Level, witness: Witness, due: Deadline | None, rules: Rules
) -> str | None:
    """The sentence for a shard in that condition; None when there is nothing to do."""
    if is_stopped(found):
        return _of_stopped(found, grade, witness, due, rules)
    if witness.waits_for is not None and due is not None:
        return f"{BEHIND_PARENT}{witness.waits_for}"
    if found is ShardState.LAGGING and due is not None:
        return _lag(due, rules.when_read, grade)
    if had_pause(witness) and witness.progress.pause is not None:
        pause = witness.progress.pause
        return (
            f"stood still for {length(pause.length)} from {at(pause.since)} to {at(pause.until)} "
            "while messages waited, and goes on"
        )
    return None


def hole_advice(holes: Holes, due: Deadline | None, rules: Rules) -> str | None:
    """The sentence for the holes behind the consumer; None when there are none."""
    if due is None:
        return None if not holes.gone else f"{_gone(holes)}: `shardaudit findings list` names them"
    minutes = f"{holes.cells:,} {'cell' if holes.cells == 1 else 'cells'}"
    window = f"[{at(due.ahead.since)}, {at(due.ahead.until)})"
    even = (
        f" (in {holes.even:,} of them as many rows landed as were sent, but others)"
        if holes.even
        else ""
    )
    begin = "start now" if due.start_by <= rules.as_of else f"start by {at(due.start_by)}"
    sentences = (
        f"a HOLE: its consumer is past {minutes} in {window}{even} of which at least "
        f"{messages(due.ahead.messages)} have not landed",
        f"{_naming(due, rules)} to name them, then read them again: their cells take at most "
        f"{due.hours_to_read:.1f} h, {begin}",
        _extension(due, rules),
        _gone(holes) if holes.gone else None,
    )
    return "; ".join(filter(None, sentences))


def _naming(due: Deadline, rules: Rules) -> str:
    """The audit that can be asked for: of no time to come, which a clock ahead stamped."""
    window = _over(due.ahead.since, due.ahead.until, rules)
    if window is not None:
        return f"audit {window}"
    span = f"[{at(due.ahead.since)}, {at(due.ahead.until)})"
    return f"a producer's clock is ahead: audit {span} once it is over"


def _over(since: datetime, until: datetime, rules: Rules) -> str | None:
    """The part of a time that is over, as a command takes it; None when nothing of it is."""
    minute = rules.as_of.replace(second=0, microsecond=0)  # as a time is told
    until = min(until, minute, since + LONGEST)
    return f"[{at(since)}, {at(until)})" if since < until else None


def _gone(holes: Holes) -> str:
    return f"at least {messages(holes.gone)} of older holes have left the stream"


def _of_stopped(
    found: ShardState, grade: Level, witness: Witness, due: Deadline | None, rules: Rules
) -> str:
    if due is None:
        return "its position went back: it will deliver again what it delivered before"
    if due.is_over(rules):
        return (
            f"at most {messages(due.ahead.messages)} from {at(due.ahead.since)} on have left the "
            "stream, nothing of it can be read again: `shardaudit findings list` names what is lost"
        )
    said = (_standstill(found, witness, due), _unordered(witness), _repair(due, rules, grade))
    return "; ".join(filter(None, said))


def _standstill(found: ShardState, witness: Witness, due: Deadline) -> str:
    waiting = f"at most {messages(due.ahead.messages)} from {at(due.ahead.since)} on wait"
    closed = "" if witness.is_open else "closed and not drained, "
    resting = witness.resting_since
    if found is ShardState.SILENT or resting is None:
        return f"{closed}nothing of it ever landed, {waiting}"
    if found is ShardState.REWOUND:
        return f"{closed}its consumer reads again what is behind {at(resting)}, {waiting}"
    return f"{closed}stands still since {at(resting)}, {waiting}"


def _unordered(witness: Witness) -> str | None:
    """Where an audit calls lost what waits here."""
    if not witness.progress.is_by_time:
        return None
    return (
        "without sequence numbers nobody knows whether its consumer has passed them, so an audit "
        "calls them lost: either restart it, or read them again, as both would land them twice"
    )


def _repair(due: Deadline, rules: Rules, grade: Level) -> str:
    since = max(due.ahead.since, rules.kept.held_since(rules.as_of))
    # Of a time to come, which a clock ahead stamped, no range can be asked for.
    window = _over(since, due.ahead.until, rules) or "what is planned with --include-stuck"
    reads = (
        f"reading {window} again takes at most {due.hours_to_read:.1f} h "
        f"({byte_size(due.bytes_at_most)} at most)"
    )
    if grade is Level.LOST:
        return (
            f"what was sent before {at(since)} has left the stream; read {window} now: it takes at "
            f"most {due.hours_to_read:.1f} h, and its oldest are leaving; {_extension(due, rules)}"
        )
    begin = "start now" if due.start_by <= rules.as_of else f"start by {at(due.start_by)}"
    return f"restart its consumer, or {reads}: {begin}; {_extension(due, rules)}"


def _extension(due: Deadline, rules: Rules) -> str:
    """Whether a longer retention helps: it keeps what is still there, and brings nothing back."""
    if rules.retention >= MAX_RETENTION:
        return "the retention is at its maximum"
    if due.recoverable_until <= rules.as_of:
        return "extending the retention brings nothing back, but at once it keeps the rest"
    return (
        f"extending the retention before {at(due.recoverable_until)} keeps all of it, later only "
        "what is still there"
    )


def _lag(due: Deadline, rules: Rules, grade: Level) -> str:
    behind = f"{length(rules.as_of - due.ahead.first_arrival)} behind and moving"
    if grade is Level.LOST:
        return f"{behind}; its oldest messages have left the stream; {_extension(due, rules)}"
    if due.crosses_at is None:
        return f"{behind}; it is catching up, or nothing says yet that it is not"
    crossing = (
        f"{behind}, slower than its producers: at this pace it loses messages from "
        f"{at(due.crosses_at)} on"
    )
    return f"{crossing}; {_extension(due, rules)}" if grade.is_alarm else crossing
