"""The watch of the first hours of another bucket and sample rate, and of the last before."""

from datetime import UTC, datetime, timedelta

import pytest

from shardaudit.model.verdict import ShardState
from shardaudit.producer.sample import is_sampled
from shardaudit.watch.job import WatchRequest, watch
from tests.builders import T0, Line, sequence, shard, sink_row, trace_line
from tests.spark.lake import Lake
from tests.spark.watch.ledger import MINUTE, settings

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
EDGE = datetime(2026, 11, 23, tzinfo=UTC)
NEW = {"bucket": "5m", "sample_rate": 0.5}


def of_shard(number: int, minute: int) -> dict[str, object]:
    """What trace and row of a message say that was sent so many minutes after the edge."""
    numbered = {"message_id": f"{number}-{minute}", "sequence_number": sequence(minute + 1000)}
    return {"shard_id": shard(number), "sent_at": EDGE + minute * MINUTE} | numbered


def filled(lake: Lake, number: int, *, lost: set[str], until: int) -> None:
    """A message each minute from six hours before the edge on; those up to a minute land."""
    fields = [of_shard(number, minute) for minute in range(-360, 240)]
    lines: list[Line] = [
        trace_line(0, **of | {"sent_at": str(of["sent_at"]).replace(" ", "T")}) for of in fields
    ]
    lake.log(f"{number}.jsonl", lines)
    landed = [of for of in fields[: 360 + until] if of["message_id"] not in lost]
    lake.land([sink_row(0, **of | {"landed_at": of["sent_at"]}) for of in landed])


@pytest.mark.usefixtures("_any_credentials")
def test_who_stood_still_over_the_edge_does_and_holes_of_both_sides_are_told(lake: Lake) -> None:
    lake.log("first.jsonl", [trace_line()])
    lake.ingest(now=T0)
    lake.settings |= NEW
    lake.log("second.jsonl", [trace_line(60)])
    lake.ingest(now=T0 + DAY + HOUR)
    before = -31
    after = next(m for m in range(61, 90) if is_sampled(f"0-{m}", 0.5) and m % 5)
    filled(lake, 0, lost={f"0-{before}", f"0-{after}"}, until=239)
    filled(lake, 1, lost=set(), until=-60)
    now = EDGE + 4 * HOUR
    lake.ingest(now=now)
    looks = [
        watch(lake.warehouse, WatchRequest(settings(lake.folder, **NEW), lake.name, at)).report
        for at in (now, now + MINUTE * 15)
    ]
    told = {line.shard_id: line for line in looks[-1].shards}
    holed, stopped = told[shard(0)], told[shard(1)]
    assert (holed.holes, holed.hole_messages) == (2, 2)
    until = EDGE + (after - after % 5 + 5) * MINUTE
    assert (holed.hole_since, holed.hole_until) == (EDGE + before * MINUTE, until)
    assert (stopped.state, stopped.holes) == (ShardState.STALLED, 0)
