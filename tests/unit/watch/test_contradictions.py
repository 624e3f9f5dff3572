from shardaudit.watch.rules.facts import Span
from tests.builders import NOW, sequence
from tests.unit.watch.witnesses import GRACE, HOUR, MINUTE, before, behind, judge, position


def test_a_checkpoint_beyond_the_frontier_is_a_hole_in_the_making() -> None:
    seen = behind(HOUR, passed=Span(7, NOW - HOUR, NOW))
    (said,) = judge(seen, position=position(sequence(200))).evidence
    assert said.startswith("a HOLE in the making: leases says 4965")
    assert "past 7 messages from 2026-11-20T13:00Z on that have not landed" in said


def test_a_checkpoint_within_the_flush_grace_is_no_hole() -> None:
    seen = behind(GRACE, passed=Span(7, NOW - GRACE, NOW))
    assert judge(seen, position=position(sequence(200))).evidence == ()


def test_a_renewed_lease_whose_checkpoint_stays_is_a_hung_processor() -> None:
    last = before(15 * MINUTE, position=position(sequence(100), lease_counter=26))
    now = position(sequence(100), lease_counter=51)
    (said,) = judge(behind(HOUR), position=now, before=last).evidence
    assert "worker-1 renews the lease (26 → 51), the checkpoint stays at 4965" in said


def test_a_lease_is_not_hung_when_it_moves_or_when_nothing_waits() -> None:
    last = before(15 * MINUTE, position=position(sequence(99), lease_counter=26))
    moved = position(sequence(100), lease_counter=51)
    assert judge(behind(HOUR), position=moved, before=last).evidence == ()
    same = before(15 * MINUTE, position=position(sequence(100), lease_counter=26))
    idle = behind(HOUR, ahead=None)
    assert judge(idle, position=moved, before=same).evidence == ()


def test_a_consumer_that_never_stored_a_checkpoint_is_told() -> None:
    (said,) = judge(behind(HOUR), position=position("LATEST")).evidence
    assert said == "leases never stored a checkpoint, only LATEST: a restart skips what waits"
