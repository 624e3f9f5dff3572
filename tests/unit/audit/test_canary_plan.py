"""When the canary's slots begin, what leaves the stream before, and whose its rows are."""

from datetime import datetime, timedelta

import pytest

from shardaudit.audit.rules.classify import Damage
from shardaudit.model.input_columns import CANARY
from shardaudit.model.retention import Longer, Retention
from tests.unit.audit.canary_plans import NOW, plan

SECOND, TICK = timedelta(seconds=1), timedelta(microseconds=1)
DARK = Damage(traces=((NOW - timedelta(days=9), NOW + SECOND),))


@pytest.mark.parametrize(("ended_h", "length_h"), [(0, 168), (23, 168), (25, 24)])
def test_what_is_old_is_gone_also_by_a_longer_retention_that_is_just_over(
    ended_h: int, length_h: int
) -> None:
    longer = Longer(timedelta(hours=168), NOW - timedelta(hours=ended_h))
    planted = plan(retention=Retention(timedelta(hours=24), longer=(longer,)))
    by = planted.starts["ancient"] + planted.bucket
    assert longer.until(by) < NOW
    assert timedelta(hours=length_h) <= NOW - by < timedelta(hours=length_h) + 2 * planted.bucket


@pytest.mark.parametrize("as_of", [NOW, NOW + TICK, NOW - TICK, NOW + SECOND / 3])
@pytest.mark.parametrize("bucket_s", [1, 7, 60, 3600])
def test_slots_never_begin_with_a_second_and_lie_where_they_should(
    as_of: datetime, bucket_s: int
) -> None:
    planted = plan(as_of=as_of, bucket_s=bucket_s)
    starts = planted.starts
    assert {start.microsecond for start in starts.values()} == {1}
    fresh, ancient, outage = (starts[name] for name in ("fresh", "ancient", "outage"))
    half = min(planted.settle_grace, planted.bucket) / 2
    assert as_of - half - SECOND < fresh <= as_of
    assert as_of - fresh < planted.settle_grace
    assert max(starts[slot] for slot in starts if slot != "fresh") + planted.bucket <= (
        as_of - planted.settle_grace
    )
    assert ancient + planted.bucket <= min(as_of - planted.retention.length, outage)
    # In no hour of any other slot.
    hour = max(timedelta(hours=1), planted.bucket)
    old = {"seen", "ancient", "outage"}
    assert min(starts[slot] for slot in starts.keys() - old) - outage > hour
    assert sum((w.end - w.start) // planted.bucket for w in planted.windows) == len(starts)


def test_damage_of_the_stream_leaves_out_the_canary_alone() -> None:
    planted = plan(damage=DARK)
    judged = planted.judged_damage.traces
    inside = {slot for slot, at in planted.starts.items() if any(a <= at < b for a, b in judged)}
    assert inside == {"damaged"}
    whole = [NOW - i * timedelta(minutes=1) for i in range(5000)]
    assert all(any(a <= start < b for a, b in judged) for start in whole)
    assert planted.judged_bucket is None


def test_rows_bear_reserved_names_and_some_come_in_another_batch() -> None:
    planted = plan()
    rows = [row for _, row in planted.traces()] + [row for _, row in planted.rows()]
    rows += [*planted.evidence(), *planted.findings()]
    assert all(str(row[n]).startswith(CANARY) for row in rows for n in ("shard_id", "message_id"))
    assert {when for when, _ in planted.rows()} == {"kept", "later", "gone"}
