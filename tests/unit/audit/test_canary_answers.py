"""What is told of a canary that was not found as it was planted."""

from datetime import timedelta

from shardaudit.audit.rules.canary.canary import MESSAGES
from shardaudit.audit.rules.canary.canary_answers import differences
from tests.unit.audit.canary_plans import NOW, plan


def test_silence_is_no_success() -> None:
    told = differences(plan(), [])
    assert "id 'lost' in holed: planted “running lost - - -”, found nothing" in told
    assert len(told) > 3 * len(MESSAGES)


def test_gaps_that_the_stream_dropped_are_planted_as_such() -> None:
    told = [line for line in differences(plan(bucket_s=7200), []) if line.startswith("gap ")]
    assert any("“lost - expired " in line for line in told)
    assert not any("“lost - open " in line for line in told)
    assert any("“lost - open " in line for line in differences(plan(), []))


def test_gaps_are_planted_as_there_by_the_clock_and_not_by_a_time_to_come() -> None:
    clock = NOW - timedelta(hours=12)
    told = [
        line
        for line in differences(plan(bucket_s=7200, over_by=clock), [])
        if line.startswith("gap ")
    ]
    assert any("“lost - open " in line for line in told)
    assert not any("“lost - expired " in line for line in told)
