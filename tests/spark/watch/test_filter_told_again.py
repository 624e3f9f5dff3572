"""What a filter tells again in a later ingest, as when it is started anew, hides no standstill."""

from datetime import timedelta

from shardaudit.watch.job import WatchRequest, watch
from tests.builders import T0, Line, sink_row, trace_line
from tests.spark.audit.on_routes import settings_of, sighting
from tests.spark.lake import Lake

MINUTE = timedelta(minutes=1)
SENT = range(0, 40 * 60, 10)  # seconds
STOP = 10 * 60


def told(number: int, copy: int) -> list[Line]:
    """Each second message is left out."""
    events = ("received", "left_out" if number % 20 else "sent")
    return [sighting(number, "valid", event, copy) for event in events]


def test_shard_stands_still_though_its_filter_tells_all_again(lake: Lake) -> None:
    route = {"valid": {"after": ["producer"], "share": "traced"}}
    lake.settings = {"retention": timedelta(hours=24), "locations": route}
    lake.log("sent.jsonl", map(trace_line, SENT))
    lake.land(sink_row(n) for n in SENT if n < STOP and n % 20 == 0)
    now = T0 + 43 * MINUTE
    for copy in range(2):
        lake.log(f"{copy}.jsonl", [line for n in SENT for line in told(n, copy)])
        lake.ingest(now=now)
    report = watch(lake.warehouse, WatchRequest(settings_of(lake), lake.name, now)).report
    found = [(one.state, one.messages_ahead) for one in report.shards]
    assert found == [("stalled", sum(n >= STOP and n % 20 == 0 for n in SENT))]
