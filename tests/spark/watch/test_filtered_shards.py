"""A shard of which a filter of the route leaves all out does not stand still."""

from pathlib import Path

from shardaudit.model.tables.route_tables import SIGHTING_COUNTS
from shardaudit.model.verdict import ShardState
from shardaudit.store.ledger_days import ledger_days
from shardaudit.store.warehouse import Warehouse
from shardaudit.watch.job import WatchRequest, watch
from shardaudit.watch.watch_ledger import Known, ledger_progress
from tests.builders import NOW
from tests.spark.watch.holed import LAST, QUARTER, Shard, at, filled
from tests.spark.watch.ledger import MINUTE, START, cell, fill, settings

STOP = 300
# By shard how many of three messages of a minute each place of the route had and left out.
TOLD = {
    "all": {"valid": (3, 3)},
    "all but one": {"valid": (3, 2)},
    "none": {},
    "all by two": {"valid": (2, 2), "valid2": (1, 1)},
    "all but one by two": {"valid": (2, 1), "valid2": (1, 1)},
    "by a place that passes on all": {"plain": (3, 3)},
    # Each of the two reads everything, and leaves a part to the other.
    "all by both": {"valid": (3, 3), "valid2": (3, 3)},
    "all by one or the other": {"valid": (3, 1), "valid2": (3, 2)},
    "one by both": {"valid": (3, 2), "valid2": (3, 2)},
}


def test_what_a_filter_says_it_left_out_is_not_waited_for(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    filled(warehouse, *(Shard(name, stops_at=STOP) for name in TOLD))
    whose = {"batch_id": "b", "stream": "events", "sent": 0}
    rows: list[dict[str, object]] = [
        whose
        | {"location": place, "shard_id": name, "received": received, "left_out": left_out}
        | {"bucket_start": at(minute), "sent_day": at(minute).date()}
        for name, places in TOLD.items()
        for place, (received, left_out) in places.items()
        for minute in range(STOP, LAST + 1)
    ]
    warehouse.upsert(rows, SIGHTING_COUNTS)
    beside = {name: {"after": ["producer"], "share": "traced"} for name in ("valid", "valid2")}
    route = {"plain": {"after": ["valid", "valid2"]}} | beside
    watched = WatchRequest(settings(tmp_path, locations=route), "events", NOW - QUARTER)
    watch(warehouse, watched)
    report = watch(warehouse, WatchRequest(watched.settings, "events", NOW)).report
    stalled = {s.shard_id: s.messages_ahead for s in report.shards if s.state == "stalled"}
    minutes = LAST + 1 - STOP
    assert stalled == {
        "all but one": minutes,
        "none": 3 * minutes,
        "all but one by two": minutes,
        "by a place that passes on all": 3 * minutes,
        "all by one or the other": 3 * minutes,
        "one by both": 2 * minutes,
    }
    assert report.states[ShardState.OK] == len(TOLD) - len(stalled)


def test_clock_of_the_first_producer_is_ahead_when_the_route_has_a_filter(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    fill(warehouse, [cell("shard", 0), cell("left out", 0)])
    row: dict[str, object] = {"batch_id": "b", "stream": "events", "location": "valid"}
    row |= {"shard_id": "left out", "bucket_start": START, "sent_day": START.date()}
    warehouse.upsert([row | {"received": 3, "sent": 0, "left_out": 3}], SIGHTING_COUNTS)
    route = {"valid": {"after": ["producer"], "share": "traced"}}
    stream = settings(tmp_path, locations=route).stream("events")
    as_of = START - MINUTE
    of = ledger_progress(ledger_days(warehouse, "events"), stream, as_of=as_of, known=Known({}, {}))
    assert of["shard"].ahead is not None
    assert of["left out"].ahead is None
