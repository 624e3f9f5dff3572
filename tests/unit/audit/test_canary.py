"""The canary's data: every word of the closed lists is in it, and its rows are nobody else's."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from shardaudit.audit.rules.canary.canary import MESSAGES, VERDICTS, Planted
from shardaudit.audit.rules.canary.canary_answers import differences
from shardaudit.audit.rules.canary.canary_plan import CanaryPlan
from shardaudit.audit.rules.classify import Damage
from shardaudit.model.input_columns import CANARY
from shardaudit.model.retention import Longer, Retention
from shardaudit.model.verdict import VANISHED, Cause, Kind, State, Verdict
from shardaudit.model.window import Window

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
SECOND, TICK = timedelta(seconds=1), timedelta(microseconds=1)
DARK = Damage(traces=((NOW - timedelta(days=9), NOW + SECOND),))


def plan(
    *,
    as_of: datetime = NOW,
    bucket_s: int = 60,
    damage: Damage | None = None,
    retention: Retention | None = None,
) -> CanaryPlan:
    return CanaryPlan(
        window=Window(NOW - timedelta(hours=1), NOW),
        as_of=as_of,
        bucket=timedelta(seconds=bucket_s),
        settle_grace=timedelta(minutes=10),
        retention=retention or Retention(timedelta(hours=24)),
        trace_coverage_floor=0.99,
        damage=damage or Damage(),
    )


def test_every_verdict_kind_cause_and_state_is_planted() -> None:
    found = [(kind, cause) for message in MESSAGES for kind, cause in message.found.items()]
    after = [message.before.after for message in MESSAGES if message.before]
    assert {*VERDICTS.values()} == set(Verdict)
    assert {kind for kind, _ in found} == set(Kind)
    assert {cause for _, cause in found} == set(Cause) - {Cause.EXPIRED}  # a state, by now
    assert {*after, State.OPEN, State.REPLAYED} - {None} == set(State)


def test_names_are_unique_and_a_cell_has_one_verdict() -> None:
    assert max(Counter(message.name for message in MESSAGES).values()) == 1
    not_ok = {(m.home, m.slot) for m in MESSAGES if m.found or m.not_landed not in {None, VANISHED}}
    assert not_ok <= VERDICTS.keys()


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


def test_silence_is_no_success() -> None:
    told = differences(plan(), [])
    assert "id 'lost' in holed: planted “running lost - - -”, found nothing" in told
    assert len(told) > 3 * len(MESSAGES)


def test_gaps_that_the_stream_dropped_are_planted_as_such() -> None:
    told = [line for line in differences(plan(bucket_s=7200), []) if line.startswith("gap ")]
    assert any("“lost - expired " in line for line in told)
    assert not any("“lost - open " in line for line in told)
    assert any("“lost - open " in line for line in differences(plan(), []))


def test_message_that_is_read_again_has_one_trace() -> None:
    def is_read(message: Planted) -> bool:
        return message.in_evidence or message.was_read or bool(message.later)

    assert all(len(message.sent) == 1 for message in MESSAGES if is_read(message))
