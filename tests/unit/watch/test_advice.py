"""What is said of a shard, by what it is doing and how long it is behind."""

from dataclasses import replace
from datetime import timedelta

import pytest

from shardaudit.model.retention import MAX_RETENTION
from shardaudit.model.verdict import Level, ShardState
from shardaudit.watch.rules.advice import advice, hole_advice
from shardaudit.watch.rules.deadline import deadline, hole_deadline
from shardaudit.watch.rules.facts import Holes, Pause, Rules, Span, Witness
from tests.builders import NOW
from tests.unit.watch.witnesses import HOUR, MINUTE, RULES, behind, progress, witness

DAY = timedelta(days=1)
WELL, STOPPED = witness(progress()), witness(behind(2 * HOUR))
PAUSED = witness(progress(pause=Pause(NOW - 2 * HOUR, NOW - HOUR)))
CHILD = witness(behind(2 * HOUR), waits_for="parent")
OVER = witness(behind(8 * DAY, ahead=Span(600, NOW - 8 * DAY, NOW - 7.5 * DAY)))
# The clock of a producer is ahead: by some hours for all of it, or for the newest alone.
AHEAD = witness(behind(2 * HOUR, ahead=Span(600, NOW - 2 * HOUR, NOW + HOUR)))
TO_COME = witness(
    behind(2 * HOUR, ahead=Span(600, NOW + HOUR, NOW + 3 * HOUR, arrived_from=NOW - 2 * HOUR))
)
THIS_MINUTE = witness(behind(2 * HOUR, ahead=Span(600, NOW, NOW + HOUR)))
LONGEST = replace(RULES, retention=MAX_RETENTION)
WITHIN = replace(RULES, as_of=NOW + MINUTE / 2)


@pytest.mark.parametrize(
    ("found", "grade", "seen", "rules", "said"),
    [
        (ShardState.OK, Level.NONE, WELL, RULES, None),
        (ShardState.IDLE, Level.NONE, WELL, RULES, None),
        (ShardState.OK, Level.NOTICE, PAUSED, RULES, "stood still for 1 h 0 min"),
        (ShardState.STALLED, Level.NOTICE, STOPPED, RULES, "stands still since"),
        (ShardState.STALLED, Level.LOST, STOPPED, RULES, "has left the stream; read ["),
        (
            ShardState.STALLED,
            Level.NOTICE,
            AHEAD,
            RULES,
            "reading [2026-11-20T12:00Z, 2026-11-20T14:00Z) again",
        ),
        (
            ShardState.STALLED,
            Level.NOTICE,
            TO_COME,
            RULES,
            "reading what is planned with --include-stuck again",
        ),
        (ShardState.STALLED, Level.NOTICE, THIS_MINUTE, WITHIN, "reading what is planned with"),
        (ShardState.STALLED, Level.NOTICE, STOPPED, LONGEST, "the retention is at its maximum"),
        (ShardState.STALLED, Level.NOTICE, OVER, RULES, "nothing of it can be read again"),
        (ShardState.SILENT, Level.NOTICE, STOPPED, RULES, "nothing of it ever landed"),
        (ShardState.REWOUND, Level.NOTICE, STOPPED, RULES, "reads again what is behind"),
        (ShardState.REWOUND, Level.NOTICE, WELL, RULES, "its position went back"),
        (ShardState.LAGGING, Level.NONE, STOPPED, RULES, "2 h 0 min behind and moving"),
        (ShardState.LAGGING, Level.LOST, STOPPED, RULES, "its oldest messages have left"),
        (ShardState.LAGGING, Level.NONE, CHILD, RULES, "before its parent is drained: parent"),
    ],
)
def test_advice_says_what_the_shard_is_doing(
    found: ShardState, grade: Level, seen: Witness, rules: Rules, said: str | None
) -> None:
    text = advice(found, grade, seen, deadline(seen, rules), rules)
    assert (text is None) if said is None else said in str(text)


HOLE = Holes(cells=2, messages=3, sent=9, since=NOW - HOUR, until=NOW - HOUR + 2 * MINUTE)
OLD = replace(HOLE, since=NOW - 7 * DAY + MINUTE, until=NOW - 7 * DAY + 3 * MINUTE)


@pytest.mark.parametrize(
    ("holes", "said"),
    [
        (Holes(), None),
        (HOLE, "past 2 cells in ["),
        (HOLE, "at least 3 messages have not landed"),
        (HOLE, "start by "),
        (OLD, "start now"),
        (replace(HOLE, cells=1), "past 1 cell in ["),
        (replace(HOLE, even=1), "(in 1 of them as many rows landed as were sent, but others)"),
        (replace(HOLE, gone=1), "at least 1 message of older holes have left the stream"),
        (HOLE, "audit [2026-11-20T13:00Z, 2026-11-20T13:02Z) to name them"),
        # A producer's clock is ahead: no audit takes a time to come.
        (replace(HOLE, until=NOW + DAY), "audit [2026-11-20T13:00Z, 2026-11-20T14:00Z) to name"),
        (replace(HOLE, since=NOW + HOUR, until=NOW + DAY), "14:00Z) once it is over to name them"),
        (replace(HOLE, since=NOW - 900 * DAY), "audit [2024-06-03T14:00Z, 2025-06-04T14:00Z) to"),
        (Holes(gone=4), "`shardaudit findings list` names them"),
    ],
)
def test_advice_of_holes_says_how_much_is_missing_and_until_when(
    holes: Holes, said: str | None
) -> None:
    text = hole_advice(holes, hole_deadline(holes, RULES), RULES)
    assert (text is None) if said is None else said in str(text)
