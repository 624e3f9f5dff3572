"""Which minutes before an audit's window are audited with it: what they are, and what they cost."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from shardaudit.audit.rules.late_windows import (
    cut_off,
    early_holds,
    given_up,
    judged_over,
    late_windows,
    never_audited,
    still_tried,
)
from shardaudit.model.watermark import Held, Hold
from shardaudit.model.window import Window

T0 = datetime(2026, 11, 20, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
DAY = 1440
OWN = (10 * DAY, 11 * DAY)  # the window of the audit, in minutes
Span = tuple[int, int]
TRIED = {"day": (0, DAY), "half": (0, 720), "rest": (720, DAY), "other": (2 * DAY, 3 * DAY)}


def at(minute: int) -> datetime:
    return T0 + minute * MINUTE


def found(
    holds: Sequence[tuple[Held, Span]],
    *,
    own: Span = OWN,
    kept_from: int = 0,
    damage: Sequence[Span] = (),
    tried: Sequence[tuple[Span, int]] = (),
) -> list[Span]:
    window = Window(at(own[0]), at(own[1]))
    windows = late_windows(
        early_holds(
            [Hold(at(start), at(end), why) for why, (start, end) in holds],
            window,
            since=at(-DAY),
            damage=[Window(at(start), at(end)) for start, end in damage],
        ),
        window,
        bucket=MINUTE,
        kept_from=at(kept_from),
        tried=[(Window(at(start), at(end)), at(day * DAY)) for (start, end), day in tried],
    )
    return [((w.start - T0) // MINUTE, (w.end - T0) // MINUTE) for w in windows]


@pytest.mark.parametrize("why", list(Held))
def test_what_an_audit_can_settle_is_looked_at(why: Held) -> None:
    looked_at = {Held.CHANGED, Held.PENDING, Held.UNAUDITED, Held.DAMAGED}
    assert found([(why, (50, 60))]) == ([(50, 60)] if why in looked_at else [])


def test_minutes_of_a_file_that_still_cannot_be_read_are_not_looked_at() -> None:
    damaged = [(Held.DAMAGED, (50, 60))]
    assert found(damaged, damage=[(40, 55)]) == [(55, 60)]
    assert found(damaged, damage=[(0, 45), (45, 60)]) == []


def test_the_window_itself_and_what_follows_is_left_to_the_audit() -> None:
    holds = [(Held.CHANGED, (10 * DAY - 5, 10 * DAY + 5)), (Held.CHANGED, (10 * DAY, 11 * DAY))]
    assert found(holds) == [(10 * DAY - 5, 10 * DAY)]


def test_minutes_of_several_shards_are_one_window() -> None:
    assert found(
        [(Held.CHANGED, (50, 60)), (Held.CHANGED, (55, 70)), (Held.PENDING, (70, 80))]
    ) == [(50, 80)]


def test_at_most_four_windows_are_found_the_nearest_joined() -> None:
    minutes = [(Held.CHANGED, (n, n + 1)) for n in (0, 1000, 1010, 2000, 3000)]
    assert found(minutes) == [(0, 1), (1000, 1011), (2000, 2001), (3000, 3001)]


@pytest.mark.parametrize("why", [Held.CHANGED, Held.UNAUDITED, Held.DAMAGED, Held.PENDING])
def test_what_is_longer_than_the_window_is_looked_at_piece_by_piece(why: Held) -> None:
    end = 0
    nights: list[Span] = []
    while end < 7 * DAY // 2 and len(nights) < 9:
        [(start, end)] = found([(why, (end, 7 * DAY // 2))])
        nights.append((start, end))
    assert nights == [(0, DAY), (DAY, 2 * DAY), (2 * DAY, 3 * DAY), (3 * DAY, 7 * DAY // 2)]


def test_spans_far_apart_are_looked_at_though_one_shard_has_many() -> None:
    scattered = [(Held.CHANGED, (n, n + 1)) for n in range(0, 9 * DAY, 190)]
    windows = found(scattered)
    assert windows[0][0] == 0
    assert DAY - 400 < sum(end - start for start, end in windows) <= DAY


def test_what_changed_on_many_days_is_looked_at_in_one_night() -> None:
    """It may all have come in the hour that the consumer lost, and leave the stream in one."""
    scattered = [(n, n + 46) for n in range(-19 * DAY, 9 * DAY, 2000)]
    assert found([(Held.CHANGED, span) for span in scattered]) == scattered
    others = [(Held.PENDING, (DAY, DAY + 9)), (Held.DAMAGED, (3 * DAY, 3 * DAY + 9))]
    windows = found([*((Held.CHANGED, span) for span in scattered), *others])
    assert {span for _, span in others} <= {*windows}
    assert len(found([(Held.PENDING, span) for span in scattered])) <= 4
    many = [(Held.CHANGED, (n * 120, n * 120 + 5)) for n in range(99)]
    assert len(found(many)) <= 24


def test_of_time_that_nobody_audited_what_the_stream_still_has_comes_first() -> None:
    assert found([(Held.UNAUDITED, (0, 8 * DAY))], kept_from=5 * DAY) == [(5 * DAY, 6 * DAY)]
    assert found([(Held.UNAUDITED, (0, DAY))], kept_from=5 * DAY) == [(0, DAY)]


def test_no_reason_keeps_another_from_being_looked_at() -> None:
    holds = [(Held.CHANGED, (0, 2 * DAY)), (Held.UNAUDITED, (4 * DAY, 5 * DAY))]
    holds += [(Held.PENDING, (7 * DAY, 9 * DAY)), (Held.DAMAGED, (6 * DAY, 6 * DAY + 10))]
    windows = found(holds)
    assert [start for start, _ in windows] == [0, 4 * DAY, 6 * DAY, 7 * DAY]
    assert sum(end - start for start, end in windows) <= DAY


def test_what_nobody_audited_counts_as_far_back_as_is_asked() -> None:
    assert found([(Held.UNAUDITED, (-2 * DAY, 60))], kept_from=-2 * DAY) == [(-DAY, 0)]
    assert found([(Held.UNAUDITED, (-3 * DAY, -2 * DAY))]) == []


def test_what_was_rejected_comes_behind_all_others_the_longest_ago_first() -> None:
    minutes = [(Held.CHANGED, (n, n + 1)) for n in range(0, 6 * DAY, DAY)]
    tried = [((n * DAY, n * DAY + 1), 10) for n in range(4)]
    assert found(minutes, tried=tried)[-2:] == [(4 * DAY, 4 * DAY + 1), (5 * DAY, 5 * DAY + 1)]
    again = [*tried, *(((n * DAY, n * DAY + 1), 11) for n in (0, 1, 4, 5))]
    assert found(minutes, tried=again) == [(n * DAY, n * DAY + 1) for n in range(4)]


def test_what_was_rejected_is_looked_at_alone_and_shuts_no_gate_for_what_is_beside_it() -> None:
    day = [(Held.CHANGED, (0, DAY))]
    assert found(day) == [(0, DAY)]
    quarters = [(n * 360, (n + 1) * 360) for n in range(4)]
    assert found(day, tried=[((0, DAY), 10)]) == quarters
    beside = [(Held.CHANGED, (0, 360)), (Held.CHANGED, (360, 400)), (Held.PENDING, (100, 300))]
    assert found(beside, tried=[((360, 400), 10)]) == [(0, 360), (360, 400)]
    # Of several reasons it is one look; what of them lies beside it is another.
    twice = [(Held.CHANGED, (0, 360)), (Held.PENDING, (0, 360)), (Held.DAMAGED, (200, 500))]
    assert found(twice, tried=[((0, 360), 10)]) == [(0, 360), (360, 500)]
    # Nor is it taken along where those near each other are joined.
    near = [(Held.CHANGED, (n, n + 1)) for n in (0, 10, 20, 1000, 2000, 3000)]
    assert found(near, tried=[((10, 11), 10), ((500, 600), 10)]) == [
        *((0, 1), (20, 21), (1000, 1001), (2000, 2001), (3000, 3001))
    ]


def test_what_was_published_later_was_not_tried_in_vain() -> None:
    spans = {name: Window(at(start), at(end)) for name, (start, end) in TRIED.items()}
    tried = still_tried(
        [(spans["day"], at(10 * DAY)), (spans["other"], at(11 * DAY))],
        [(spans["half"], at(11 * DAY)), (spans["other"], at(11 * DAY)), (spans["day"], at(0))],
    )
    assert tried == [(spans["rest"], at(10 * DAY)), (spans["other"], at(11 * DAY))]


def test_a_window_of_few_minutes_has_late_ones_of_as_many() -> None:
    assert found([(Held.CHANGED, (0, 9))], own=(100, 103)) == [(0, 3)]


@pytest.mark.parametrize(
    ("late", "night"),
    [
        ((9 * DAY, 9 * DAY + 1), (9 * DAY, 10 * DAY)),
        ((10 * DAY - 1, 10 * DAY), (9 * DAY, 10 * DAY)),
        ((9 * DAY - 1, 9 * DAY), (8 * DAY, 9 * DAY)),
        ((60, 70), (0, DAY)),
        ((DAY - 60, DAY + 60), (DAY - 60, 2 * DAY)),  # over an edge: of its end
        ((DAY, 2 * DAY), (DAY, 2 * DAY)),
    ],
)
def test_late_minutes_are_judged_over_a_window_of_which_they_are_a_part(
    late: Span, night: Span
) -> None:
    spans = [Window(at(start), at(end)) for start, end in (late, OWN, night)]
    assert judged_over(*spans[:2]) == spans[2]


@pytest.mark.parametrize(
    ("failed", "published", "again", "left"),
    [
        ([], [], [], []),
        ([(0, DAY)], [], [(0, DAY)], []),
        ([(0, DAY), (0, DAY)], [], [(0, DAY), (0, DAY)], []),
        ([(0, DAY), (60, 120), (0, DAY)], [], [], [(0, DAY)]),
        ([(0, DAY), (0, DAY), (0, DAY)], [(0, 720)], [], [(720, DAY)]),
        ([(0, DAY), (0, DAY), (0, DAY)], [(0, DAY)], [], []),
        ([(0, DAY), (DAY, 2 * DAY), (0, 60)], [(0, 720)], [(720, DAY), (DAY, 2 * DAY)], []),
        ([(0, DAY), (0, 60), (60, 120)], [], [(0, 60), (60, 120)], [(120, DAY)]),
        ([(9 * DAY, 10 * DAY + 1)], [], [], []),
    ],
)
def test_what_was_cut_off_is_looked_at_again_until_three_audits_failed(
    failed: Sequence[Span], published: Sequence[Span], again: Sequence[Span], left: Sequence[Span]
) -> None:
    tried = [(Window(at(start), at(end)), at(10 * DAY)) for start, end in failed]
    done = [(Window(at(start), at(end)), at(11 * DAY)) for start, end in published]
    rest, before = still_tried(tried, done), at(OWN[0])
    found = cut_off(rest, since=at(10 * DAY), before=before)
    assert found == [Window(at(start), at(end)) for start, end in again]
    lost = given_up(rest, since=at(10 * DAY), before=before, held=[])
    assert lost == [(Window(at(start), at(end)), at(10 * DAY)) for start, end in left]


def test_what_failed_too_long_ago_is_given_up_but_for_what_is_held() -> None:
    day, since, before = Window(at(0), at(DAY)), at(9 * DAY), at(OWN[0])
    failed = [(day, at(8 * DAY)), (day, at(7 * DAY))]
    assert cut_off(failed, since=since, before=before) == []
    lost = given_up(failed, since=since, before=before, held=[Hold(at(0), at(60), Held.PENDING)])
    assert lost == [(Window(at(60), at(DAY)), at(8 * DAY))]
    # Of the failures before another one, which is young, each counts.
    young = [(day, since), *failed]
    assert cut_off(young, since=since, before=before) == []
    assert given_up(young, since=since, before=before, held=[]) == [(day, since)]


def test_what_nobody_audited_and_is_too_old_is_given_up_since_it_was_found() -> None:
    gap, old = Hold(at(0), at(3 * DAY), Held.UNAUDITED), Hold(at(0), at(DAY), Held.PENDING)
    young = Hold(at(4 * DAY), at(5 * DAY), Held.UNAUDITED)
    first = never_audited([gap, old, young], before=at(2 * DAY), known=[], as_of=at(6 * DAY))
    assert first == [(Window(at(0), at(2 * DAY)), at(6 * DAY))]
    healed = Hold(at(DAY), at(3 * DAY), Held.UNAUDITED)
    later = never_audited([healed], before=at(3 * DAY), known=first, as_of=at(7 * DAY))
    assert later == [
        (Window(at(DAY), at(2 * DAY)), at(6 * DAY)),
        (Window(at(2 * DAY), at(3 * DAY)), at(7 * DAY)),
    ]
