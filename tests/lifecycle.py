"""What becomes of findings from one audit to the next, in plain Python (docs/verdicts.md)."""

from collections.abc import Mapping
from dataclasses import replace

from shardaudit.model.verdict import Cause, Kind, State
from tests.history import Finding, FindingKey, Outcome, Question


def fold(
    existing: Mapping[FindingKey, Finding], outcome: Outcome, question: Question
) -> dict[FindingKey, Finding]:
    """The findings after an audit, given those before it. Nothing is ever removed."""
    after = dict(existing)
    for key, old in existing.items():
        unsure = key[0] in outcome.pending or question.bucket_start(old.sent_at) in outcome.damaged
        if key not in outcome.findings and question.covers(old.sent_at) and not unsure:
            after[key] = replace(old, state=_closed(old.state, key[1]))
    for key, new in outcome.findings.items():
        before = existing.get(key)
        after[key] = new if before is None else replace(new, state=_found_again(before, new))
    return {key: _dated(finding, question) for key, finding in after.items()}


def _closed(state: State, kind: Kind) -> State:
    if state in {State.FALSE_ALARM, State.RECOVERED}:
        return state
    if kind is Kind.DUPLICATED or state is State.REPLAYED:
        return State.RECOVERED
    return State.FALSE_ALARM


def _found_again(old: Finding, new: Finding) -> State:
    if old.state is State.ACCEPTED:
        is_lost_now = (old.cause, new.cause) == (Cause.STUCK, Cause.LOST)
        is_same = _evidence(old) == _evidence(new) and not is_lost_now
        return State.ACCEPTED if is_same else State.OPEN
    if old.state in {State.FALSE_ALARM, State.RECOVERED}:
        return State.OPEN
    return old.state


def _evidence(finding: Finding) -> tuple[int, int, tuple[str, ...]]:
    return finding.sent_count, finding.landed_count, finding.sequence_numbers


def _dated(finding: Finding, question: Question) -> Finding:
    """The deadline as it is known now, and the state that follows from it, both ways."""
    if finding.recoverable_until is None or finding.state in {State.RECOVERED, State.FALSE_ALARM}:
        return finding
    until = question.deadline(finding.arrived_at or finding.sent_at)
    state = finding.state
    if state in {State.OPEN, State.PLANNED, State.REPLAYED} and question.as_of > until:
        state = State.EXPIRED
    elif state is State.EXPIRED and question.as_of <= until:
        state = State.OPEN
    return replace(finding, recoverable_until=until, state=state)
