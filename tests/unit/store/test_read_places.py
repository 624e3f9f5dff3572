"""What places had, lost and did not trace, of the minutes that audits looked at and no others."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from shardaudit.model.config.settings import Settings
from shardaudit.model.tables.audit_tables import AUDITS, FINDINGS
from shardaudit.model.tables.route_tables import SIGHTING_COUNTS
from shardaudit.model.tables.table import LATENCY_BINS
from shardaudit.model.verdict import AuditStatus
from shardaudit.model.window import Window
from shardaudit.report.delivery_view import PlaceLine
from shardaudit.report.route_lines import hops_as_json
from shardaudit.report.summary import AuditedPlace
from shardaudit.store.cell_grid import Bins
from shardaudit.store.read_deliveries import DELIVERED, Deliveries, Delivery
from shardaudit.store.read_places import read_place_grid, read_places
from tests.page_warehouse import Row, write_rows

START, MINUTE = datetime(2026, 11, 1, tzinfo=UTC), timedelta(minutes=1)
HOUR = 60 * MINUTE


def settings(folder: Path, **more: object) -> Settings:
    place = {"path": str(folder)}
    route = {"router": {"after": ["producer"]}}
    events = {"stream_name": "e", "traces": place, "sink": place, "locations": route, **more}
    return Settings.model_validate({"warehouse": str(folder), "streams": {"events": events}})


def at(minute: int) -> dict[str, object]:
    start = START + minute * MINUTE
    return {"stream": "events", "bucket_start": start, "sent_day": start.date()}


def lost(minute: int, before: str = "router") -> Row:
    """A message of the middle of a minute."""
    hops = json.dumps([{"after": "producer", "before": before, "probability": 1.0}])
    key = {"stream": "events", "message_id": f"{minute} {before}", "kind": "missing"}
    sent_at = START + minute * MINUTE + MINUTE / 2
    return {**key, "state": "open", "hops": hops, "sent_at": sent_at}


def minutes(second: int = 2, **counts: tuple[int, ...]) -> Deliveries:
    """The first minute, and another; of those between nobody knows."""
    found = {}
    for nth, minute in enumerate((0, second)):
        own = {name: values[nth] for name, values in counts.items()}
        of = dict.fromkeys(DELIVERED, 0) | {"cells": 1} | own
        found[START + minute * MINUTE] = Delivery(MINUTE, of)
    return Deliveries(Window(START, START + (second + 1) * MINUTE), found, {})


def test_a_minute_that_no_audit_saw_tells_nothing_of_a_place(tmp_path: Path) -> None:
    received = [
        {**at(minute), "location": "router", "received": count, "sent": 0, "left_out": left_out}
        for minute, count, left_out in ((0, 60, None), (0, 30, 2), (1, 1000, 9), (2, 40, 5))
    ]
    write_rows(tmp_path, SIGHTING_COUNTS, received)
    write_rows(tmp_path, FINDINGS, [lost(0, "sink"), lost(1), lost(2), lost(3)])
    known = minutes(sent=(100, 100), matched=(100, 40), missing=(0, 60))
    places, unplaced = read_places(settings(tmp_path), "events", known)
    producer, router, sink = places
    assert (producer.sent, producer.trace_loss, producer.sent_per_s) == (200, 0, 200 / 120)
    # Its trace loss is of the first minute: in the third something lacks.
    assert (router.received, router.sent, router.received_per_s) == (130, 0, 130 / 120)
    assert [place.left_out for place in places] == [None, 7, None]
    assert (router.after, router.lost, router.doubtful, router.doubled) == (("producer",), 1, 0, 0)
    assert router.trace_loss == pytest.approx(0.1)
    assert (sink.received, sink.after, sink.lost, unplaced) == (140, ("router",), 1, 58)
    places, _ = read_places(settings(tmp_path, sample_rate=0.1), "events", known)
    rates = {name: (rate.count, rate.of) for name, rate in places[1].rates.items()}
    assert rates["trace_loss"] == (10, 100)  # of the first minute


def test_a_place_that_was_dead_for_an_hour_has_what_was_lost_before_it(tmp_path: Path) -> None:
    write_rows(tmp_path, FINDINGS, [lost(0), lost(1, "sink")])
    known = minutes(sent=(100, 100), matched=(98, 100), missing=(2, 0))
    (_, router, _), _ = read_places(settings(tmp_path), "events", known)
    assert (router.received, router.lost, router.doubtful, router.doubled) == (0, 1, None, None)


def audit_of(start: int, end: int, since: int | None, received: int = 90) -> Row:
    """An audit of some hours that knew the router."""
    hop = AuditedPlace("router", ("producer",), 1.0, received, 0)
    begin = None if since is None else START + since * MINUTE
    window = {"window_start": START + start * HOUR, "window_end": START + end * HOUR}
    hops = hops_as_json([replace(hop, traces_since=begin)])
    return {"stream": "events", "status": AuditStatus.PUBLISHED, "hops": hops, **window}


@pytest.mark.parametrize(
    ("sighted", "known", "is_new"),
    [
        ((60,), [], True),
        # An audit that began before knew the same, or nothing of it; one within the time says none.
        ((60,), [audit_of(-9, 2, 60), audit_of(-9, 0, None, 0)], True),
        ((60,), [audit_of(0, 2, None)], True),
        # What traced before, and then stopped, is not new.
        ((60,), [audit_of(-9, -8, None)], False),
        ((60,), [audit_of(-9, 2, None)], False),
        ((60,), [audit_of(-9, 2, -60)], False),
        ((60, -24 * 60), [], False),
        ((60, -24 * 60 - 1), [], True),
    ],
)
def test_what_landed_before_a_new_place_traced_anything_is_no_trace_loss_of_it(
    sighted: tuple[int, ...], known: list[Row], is_new: bool, tmp_path: Path
) -> None:
    first, whole, of = (None, 0.1, 100) if is_new else (1, 0.4, 150)
    counts = [{**at(n), "location": "router", "received": 90, "sent": 0} for n in sighted]
    write_rows(tmp_path, SIGHTING_COUNTS, counts)
    write_rows(tmp_path, FINDINGS, [])
    write_rows(tmp_path, AUDITS, [{**row, "audit_id": str(n)} for n, row in enumerate(known)])
    landed, own = (
        minutes(60, sent=(50, 100), matched=(50, 100)),
        settings(tmp_path, sample_rate=0.5),
    )
    places, _ = read_places(own, "events", landed)
    told = places[1].rates["trace_loss"]
    assert [places[1].trace_loss, places[1].received] == pytest.approx([whole, 90])
    assert (told.count, told.of) == (whole * of, of)
    lines, _ = read_places(own, "events", landed, by_hour=True)
    assert [one.trace_loss for one in lines if one.location == "router"] == pytest.approx(
        [first, 0.1]
    )


def test_of_places_nothing_is_told_where_no_audit_looked(tmp_path: Path) -> None:
    window = Window(START, START + MINUTE)
    places, unplaced = read_places(settings(tmp_path), "events", Deliveries(window, {}, {}))
    assert places == [
        *(PlaceLine("producer", ()), PlaceLine("router", ("producer",))),
        PlaceLine("sink", ("router",)),
    ]
    assert unplaced is None


def test_trace_loss_is_of_what_places_beside_each_other_passed_on_and_not_left_to_the_other(
    tmp_path: Path,
) -> None:
    each = {"after": ["producer"], "share": "traced"}
    counts = [
        {**at(0), "location": name, "received": received, "sent": sent, "left_out": left_out}
        for name, received, sent, left_out in (("eu", 80, 30, 60), ("us", 100, 60, 40))
    ]
    write_rows(tmp_path, SIGHTING_COUNTS, counts)
    write_rows(tmp_path, FINDINGS, [])
    known = minutes(sent=(100, 0), matched=(100, 0))
    places, _ = read_places(settings(tmp_path, locations={"eu": each, "us": each}), "events", known)
    assert places[1].trace_loss == pytest.approx(0.1)


def bins(**rows: int) -> list[int]:
    return [rows.get(f"b{number}", 0) for number in range(LATENCY_BINS)]


def test_latency_of_a_place_is_the_sum_of_its_batches_and_minutes(tmp_path: Path) -> None:
    router = {**at(0), "location": "router", "received": 10, "sent": 3}
    times = [
        # An older version kept no times; the second minute nobody audited.
        {**router},
        {**router, "received_latency_counts": bins(b0=4, b3=2), "received_early": 3},
        {**router, **at(1), "received_latency_counts": bins(b9=100), "received_early": 1},
        {**router, **at(2), "received_latency_counts": bins(b3=1, b21=1), "received_early": 0},
    ]
    write_rows(tmp_path, SIGHTING_COUNTS, times)
    write_rows(tmp_path, FINDINGS, [])
    known = minutes(sent=(100, 100), matched=(100, 100))
    for by_hour in (False, True):
        _, place, sink = read_places(settings(tmp_path), "events", known, by_hour=by_hour)[0]
        line = place.received_latency
        assert line is not None
        assert (line.rows, line.p50, line.p90, line.max) == (8, 1, None, None)
        assert (place.received, place.received_early, place.sent_latency) == (30, 3, None)
        assert (place.sent_early, sink.received_latency) == (None, None)
        assert (place.hour, place.audited_s) == ("2026-11-01T00:00:00Z" if by_hour else None, 120)


def test_map_of_places_has_what_they_had_and_what_is_known_to_lack(tmp_path: Path) -> None:
    counts = [
        {**at(minute), "location": place, "received": count, "sent": 1, "left_out": out}
        for minute, place, count, out in (
            *((0, "router", 60, 7), (1, "router", 5, None), (1, "gone", 9, 2)),
        )
    ]
    write_rows(tmp_path, SIGHTING_COUNTS, [*counts, counts[0]])
    double = {**lost(2), "kind": "duplicated", "location": "producer", "hops": None}
    came = {**lost(1), "state": "recovered"}
    write_rows(tmp_path, FINDINGS, [lost(0), lost(0, "sink"), came, double, lost(4)])
    grid = read_place_grid(settings(tmp_path), "events", Bins(START, 2 * MINUTE, 2))
    assert grid.named == [3, 0]
    assert {
        name: [
            (one.received, one.sent, one.left_out, one.lost, one.doubtful, one.doubled)
            for one in lines
        ]
        for name, lines in grid.lines.items()
    } == {
        "producer": [(None, None, None, 0, 0, 0), (None, None, None, 0, 0, 1)],
        "router": [(125, 3, 14, 1, 0, 0), (0, 0, 0, 0, 0, 0)],
        "sink": [(None, None, None, 1, 0, 0), (None, None, None, 0, 0, 0)],
    }
