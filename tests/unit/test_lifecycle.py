"""The oracle's life of a finding: each rule of docs/verdicts.md about states, once."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from shardaudit.model.retention import Shorter
from shardaudit.model.verdict import ENDED, Cause, Kind, State, Verdict
from tests.history import Finding, FindingKey, Outcome, Question
from tests.lifecycle import fold

T0 = datetime(2026, 11, 20, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
ASK = Question(T0, T0 + HOUR, as_of=T0 + 2 * HOUR)
LATER = replace(ASK, as_of=T0 + 25 * HOUR)
ELSEWHERE = replace(ASK, start=T0 + HOUR, end=T0 + 2 * HOUR)

LIVE = (State.OPEN, State.PLANNED, State.REPLAYED)
CLOSED = (State.ACCEPTED, State.FALSE_ALARM, State.RECOVERED)


def finding(kind: Kind = Kind.MISSING, state: State = State.OPEN) -> Finding:
    missing = kind is Kind.MISSING
    return Finding(
        cause=Cause.LOST,
        state=state,
        shard_id="shardId-000",
        sent_at=T0,
        sent_count=1,
        landed_count=0 if missing else 2,
        sequence_numbers=("1",),
        recoverable_until=T0 + 24 * HOUR if missing else None,
        first_landed_at=None,
        last_landed_at=None,
    )


def answer(
    findings: dict[FindingKey, Finding] | None = None,
    *,
    pending: frozenset[str] = frozenset(),
    damaged: frozenset[datetime] = frozenset(),
) -> Outcome:
    return Outcome({}, findings or {}, Verdict.OK, frozenset(), None, pending, damaged)


def state_after(
    before: Finding, result: Outcome, ask: Question = ASK, kind: Kind = Kind.MISSING
) -> State:
    return fold({("a", kind): before}, result, ask)["a", kind].state


def test_new_findings_are_taken_as_they_are() -> None:
    new = {("a", Kind.MISSING): finding()}
    assert fold({}, answer(new), ASK) == new


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("state", list(State))
def test_state_after_it_is_not_found_again(kind: Kind, state: State) -> None:
    after = state_after(finding(kind, state), answer(), kind=kind)
    if state in ENDED:
        assert after is state
    elif kind is Kind.DUPLICATED or state is State.REPLAYED:
        assert after is State.RECOVERED
    else:
        assert after is State.FALSE_ALARM


@pytest.mark.parametrize("unsure", [{"pending": {"a"}}, {"damaged": {T0}}])
def test_state_stays_when_the_audit_could_not_judge_the_id(unsure: dict[str, set[str]]) -> None:
    blind = answer(**{name: frozenset(value) for name, value in unsure.items()})  # type: ignore[arg-type]  # one of two keywords
    assert state_after(finding(), blind) is State.OPEN
    assert state_after(finding(), blind, LATER) is State.EXPIRED


@pytest.mark.parametrize("state", list(State))
def test_state_stays_when_its_time_is_outside_the_window(state: State) -> None:
    if state is State.EXPIRED:  # it is not outside of its time
        assert (
            state_after(finding(state=state), answer(), replace(ELSEWHERE, as_of=LATER.as_of))
            is state
        )
    else:
        assert state_after(finding(state=state), answer(), ELSEWHERE) is state


@pytest.mark.parametrize("state", list(State))
def test_state_after_it_is_found_again(state: State) -> None:
    after = state_after(finding(state=state), answer({("a", Kind.MISSING): finding()}))
    reopened = state in {State.FALSE_ALARM, State.RECOVERED, State.EXPIRED}
    assert after is (State.OPEN if reopened else state)


@pytest.mark.parametrize(
    "news",
    [{"landed_count": 3}, {"sent_count": 2}, {"sequence_numbers": ("1", "2")}],
)
def test_accepted_is_opened_again_by_new_evidence_alone(news: dict[str, object]) -> None:
    accepted = finding(Kind.DUPLICATED, State.ACCEPTED)
    key = ("a", Kind.DUPLICATED)
    same = answer({key: replace(accepted, state=State.OPEN, cause=Cause.STUCK)})
    assert state_after(accepted, same, kind=key[1]) is State.ACCEPTED
    stuck = replace(finding(state=State.ACCEPTED), cause=Cause.STUCK)
    assert state_after(stuck, answer({("a", Kind.MISSING): finding()})) is State.OPEN
    changed = answer({key: replace(accepted, state=State.OPEN, **news)})  # type: ignore[arg-type]  # names of fields
    assert state_after(accepted, changed, kind=key[1]) is State.OPEN


@pytest.mark.parametrize("state", LIVE)
def test_missing_expires_after_its_deadline_even_outside_the_window(state: State) -> None:
    outside = replace(ELSEWHERE, as_of=T0 + 24 * HOUR)
    assert state_after(finding(state=state), answer(), outside) is state
    past = replace(outside, as_of=outside.as_of + timedelta(milliseconds=1))
    assert state_after(finding(state=state), answer(), past) is State.EXPIRED


def test_closed_and_duplicated_findings_never_expire() -> None:
    past = replace(ELSEWHERE, as_of=T0 + 25 * HOUR)
    for state in CLOSED:
        assert state_after(finding(state=state), answer(), past) is state
    assert state_after(finding(Kind.DUPLICATED), answer(), past, Kind.DUPLICATED) is State.OPEN


def test_found_again_after_the_deadline_is_expired_at_once() -> None:
    again = answer({("a", Kind.MISSING): finding(state=State.EXPIRED)})
    for state in (*LIVE, State.FALSE_ALARM, State.RECOVERED, State.EXPIRED):
        assert state_after(finding(state=state), again, LATER) is State.EXPIRED
    assert state_after(finding(state=State.ACCEPTED), again, LATER) is State.ACCEPTED


@pytest.mark.parametrize("ask", [LATER, replace(ELSEWHERE, as_of=LATER.as_of)])
def test_expired_is_open_again_when_the_stream_keeps_it_for_longer(ask: Question) -> None:
    expired = finding(state=State.EXPIRED)
    found = {("a", Kind.MISSING): expired} if ask.covers(T0) else {}
    longer = replace(ask, retention=48 * HOUR)
    after = fold({("a", Kind.MISSING): expired}, answer(found), longer)["a", Kind.MISSING]
    assert (after.state, after.recoverable_until) == (State.OPEN, T0 + 48 * HOUR)
    # Had it left by the time when the stream was last seen to keep less, it would be gone.
    for seen_at, state in ((T0 + 25 * HOUR, State.EXPIRED), (T0 + 24 * HOUR, State.OPEN)):
        raised = replace(longer, shorter=Shorter(24 * HOUR, seen_at))
        assert state_after(expired, answer(found), raised) is state


def test_expired_is_a_false_alarm_when_it_arrived_after_all() -> None:
    assert state_after(finding(state=State.EXPIRED), answer(), LATER) is State.FALSE_ALARM
