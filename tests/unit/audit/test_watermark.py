"""What holds a shard's watermark, against a list of every cell that was ever audited."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardaudit.audit.rules.cell_verdicts import MOST_SPANS
from shardaudit.audit.rules.watermark import (
    ShardRecord,
    first_hold,
    recorded,
    touched_doubts,
    unknown_before,
    without_accepted_doubts,
)
from shardaudit.model.config.eras import always
from shardaudit.model.verdict import Verdict
from shardaudit.model.watermark import Held, Hold
from shardaudit.model.window import Window
from tests.history import CellResult, History, Outcome, Question
from tests.oracle_watermark import Record

T0 = datetime(2026, 11, 20, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
SHARD = "shardId-000000000000"
NOTHING = CellResult(0, 0, 0, 0, 0, 0, 0, 0, 0, Verdict.OK)


def window(start: int, end: int) -> Window:
    return Window(T0 + start * MINUTE, T0 + end * MINUTE)


def hold(start: int, end: int, why: Held = Held.PENDING) -> Hold:
    return Hold(T0 + start * MINUTE, T0 + end * MINUTE, why)


def at(minute: int) -> datetime:
    return T0 + timedelta(hours=9, minutes=minute)


def record(*audits: tuple[Window, int, tuple[Hold, ...]]) -> ShardRecord:
    known: ShardRecord | None = None
    for span, as_of, found in audits:
        known = recorded(known, window=span, as_of=at(as_of), found=found)
    assert known is not None
    return known


def test_record_begins_with_the_first_audit() -> None:
    known = record((window(60, 70), 0, ()))
    assert (known.audited_from, known.audited_until) == (T0 + 60 * MINUTE, T0 + 70 * MINUTE)
    assert known.holds == ()


def test_what_a_file_hid_is_looked_at_while_the_stream_may_have_it_though_it_was_accepted() -> None:
    hidden = [hold(start, start + 2, Held.DAMAGED) for start in (0, 5, 10)]
    known = record((window(0, 12), 0, (*hidden, hold(5, 7, Held.THIN))))
    said = [window(0, 3), window(5, 8)]
    left = without_accepted_doubts(known, said, left_at=T0 + 3 * MINUTE)
    assert left.holds == tuple(hidden[1:])


def test_gap_between_windows_holds_until_somebody_looks() -> None:
    gap = ((window(0, 5), 0, ()), (window(7, 10), 1, ()))
    assert record(*gap).holds == (hold(5, 7, Held.UNAUDITED),)
    assert record(*gap, (window(6, 7), 2, ())).holds == (hold(5, 6, Held.UNAUDITED),)
    assert record(*gap, (window(4, 8), 2, ())).holds == ()


def test_what_none_could_judge_is_not_judged_though_the_audit_reaches_further() -> None:
    held = (hold(3, 4, Held.DAMAGED), hold(5, 6), hold(9, 10))
    known = record((window(0, 10), 0, held))
    first, last, end = known.audited_from, T0 + 6 * MINUTE, known.audited_until
    found = [known.judged_until(since) for since in (first, last, end)]
    assert found == [T0 + 5 * MINUTE, T0 + 9 * MINUTE, end]


def test_older_window_tells_of_itself_and_makes_no_gap_before_the_beginning() -> None:
    first = (window(60, 70), 1, ())
    assert record(first, (window(0, 10), 2, ())).holds == ()
    damaged = hold(3, 4, Held.DAMAGED)
    assert record(first, (window(0, 10), 2, (damaged,))).holds == (damaged,)


def test_newest_audit_of_a_cell_counts_and_may_take_the_watermark_back() -> None:
    well = (window(0, 10), 0, ())
    bad = (window(2, 4), 1, (hold(3, 4, Held.DAMAGED),))
    assert record(well, bad).holds == (hold(3, 4, Held.DAMAGED),)
    assert record(well, bad, (window(3, 5), 2, ())).holds == ()


def test_audit_as_of_an_earlier_time_speaks_only_of_what_nobody_saw() -> None:
    later = (window(5, 10), 5, (hold(9, 10),))
    early = (window(0, 10), 1, (hold(0, 10),))
    assert record(later, early).holds == (hold(0, 5), hold(9, 10))
    gap = ((window(0, 2), 4, ()), later, (window(0, 12), 1, (hold(0, 12),)))
    assert record(*gap).holds == (hold(2, 5), hold(9, 12))


def test_counting_an_audit_again_changes_nothing() -> None:
    audits = ((window(0, 5), 0, (hold(1, 2),)), (window(7, 10), 1, (hold(8, 10),)))
    assert record(*audits, audits[-1]) == record(*audits)


def test_findings_are_told_first_when_they_hold_the_same_cell() -> None:
    known = record((window(0, 5), 0, (hold(3, 4, Held.DAMAGED),)))
    assert first_hold(known, T0 + 3.5 * MINUTE, cells=always(MINUTE)) == hold(3, 4, Held.FINDINGS)
    assert first_hold(known, T0 + 2.5 * MINUTE, cells=always(MINUTE)) == hold(2, 3, Held.FINDINGS)
    assert first_hold(known, None, cells=always(MINUTE)) == hold(3, 4, Held.DAMAGED)
    assert first_hold(None, T0, cells=always(MINUTE)) == hold(0, 1, Held.FINDINGS)
    assert first_hold(record((window(0, 5), 0, ())), None, cells=always(MINUTE)) is None


Audit = tuple[int, int, int, frozenset[int]]


@st.composite
def audits(draw: st.DrawFn) -> Audit:
    start = draw(st.integers(0, 20))
    length = draw(st.integers(1, 8))
    held = draw(st.frozensets(st.integers(start, start + length - 1), max_size=3))
    return start, length, draw(st.integers(0, 4)), held


@given(st.lists(audits(), min_size=1, max_size=7))
def test_watermark_is_that_of_a_list_of_all_cells(found: list[Audit]) -> None:
    known: ShardRecord | None = None
    cells = Record(MINUTE, is_traced=True)
    for start, length, as_of, held in found:
        span = window(start, start + length)
        question = Question(span.start, span.end, at(as_of))
        holds = [hold(minute, minute + 1) for minute in held]
        known = recorded(known, window=span, as_of=question.as_of, found=holds)
        grid = {(SHARD, T0 + m * MINUTE): NOTHING for m in range(start, start + length)}
        bad = frozenset((SHARD, T0 + m * MINUTE) for m in held)
        outcome = Outcome(grid, {}, Verdict.OK, bad, None, frozenset(), frozenset())
        cells.count(outcome, question, History())
        expected = cells.watermark({}, question)
        holding = first_hold(known, None, cells=always(MINUTE))
        assert (holding.start if holding else known.audited_until) == expected


@pytest.mark.parametrize("why", [why for why in Held if why is not Held.FINDINGS])
def test_each_reason_holds(why: Held) -> None:
    known = record((window(0, 5), 0, (hold(2, 3, why),)))
    assert first_hold(known, None, cells=always(MINUTE)) == hold(2, 3, why)


def test_what_changed_since_the_audit_holds_until_somebody_looks_whatever_the_time_asked() -> None:
    known = record((window(0, 10), 5, ()))
    changed = [hold(3, 5, Held.CHANGED)]
    later = recorded(known, window=window(10, 12), as_of=at(6), found=(), changed=changed)
    assert later.holds == (hold(3, 5, Held.CHANGED),)
    looked = recorded(later, window=window(4, 12), as_of=at(2), found=[hold(0, 12)])
    assert looked.holds == (hold(3, 4, Held.CHANGED), hold(4, 5))
    at_once = recorded(known, window=window(2, 6), as_of=at(6), found=(), changed=changed)
    assert at_once.holds == ()


def test_minutes_without_traces_count_as_changed_where_they_were_touched() -> None:
    holds = [hold(0, 10, Held.THIN), hold(20, 30), hold(40, 50, Held.THIN)]
    holds += [hold(60, 99, Held.QUIET)]
    assert touched_doubts(
        holds, [window(5, 25), window(42, 43), window(65, 66), window(85, 86)]
    ) == [
        hold(5, 10, Held.CHANGED),
        hold(42, 43, Held.CHANGED),
        hold(60, 99, Held.CHANGED),  # the rest may be a shorter silence, or none
    ]
    assert touched_doubts(holds, [window(10, 40)]) == []
    assert touched_doubts(holds, [window(70, 71)]) == []


def test_shard_of_which_no_audit_knew_was_looked_at_with_the_others() -> None:
    known = record((window(0, 5), 0, ()), (window(7, 10), 1, ()))
    base = unknown_before([known], as_of=at(2))
    new = recorded(base, window=window(10, 12), as_of=at(2), found=(), changed=[hold(1, 2)])
    assert (new.audited_from, new.audited_until) == (T0, T0 + 12 * MINUTE)
    assert new.holds == (hold(1, 2),)
    assert unknown_before([], as_of=at(2)) is None


def test_record_of_many_gaps_stays_short_and_holds_where_it_held() -> None:
    gaps = record(*((window(3 * i, 3 * i + 2), i % 50, ()) for i in range(400)))
    assert len(gaps.holds) == MOST_SPANS
    assert gaps.holds[0] == hold(2, 3, Held.UNAUDITED)
    assert gaps.holds[-1].end == T0 + 399 * 3 * MINUTE


def test_record_of_many_spans_joins_those_that_lie_nearest() -> None:
    spans = [hold(10 * n, 10 * n + 1) for n in range(MOST_SPANS)] + [hold(103, 104)]
    known = record((window(0, 1000), 0, tuple(spans)))
    assert [h.end - h.start for h in known.holds].count(MINUTE) == MOST_SPANS - 1
    assert hold(100, 104) in known.holds
