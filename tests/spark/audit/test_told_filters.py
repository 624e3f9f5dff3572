"""What a filter of a route says that it left out, message by message."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from datetime import timedelta

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from shardaudit.adapters.engine.held import own_rows
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.route.hops import _lacking
from shardaudit.audit.route.left_out import places_passed, without_told
from shardaudit.model.retention import Retention
from shardaudit.model.route.filters import filters
from shardaudit.model.route.route import Route as Routes
from shardaudit.model.route.route import RoutePlace
from shardaudit.model.tables.audit_tables import FINDINGS
from shardaudit.model.verdict import Verdict
from shardaudit.model.window import Window
from tests.builders import T0, Line, shard, sink_row, trace_line
from tests.spark.audit.on_routes import audited_with_late, of_filters, passed, sighting
from tests.spark.lake import Lake

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
Route = Mapping[str, Mapping[str, object]]
LINE: Route = {
    "router": {"after": ["producer"]},
    "filter": {"after": ["router"], "share": "traced"},
    "writer": {"after": ["filter"]},
}
SENT = range(0, 4 * 3600, 60)
LEFT_OUT = frozenset(SENT[::3])


def told_out(number: int, place: str = "filter") -> Iterator[Line]:
    """What a filter traces of a message that it leaves out."""
    return (sighting(number, place, event) for event in ("received", "left_out"))


def traced(number: int) -> Iterator[Line]:
    """What the places trace of a message of which nothing is lost."""
    yield from passed(number, ("router",))
    yield from told_out(number) if number in LEFT_OUT else passed(number, ("filter", "writer"))


def fill(lake: Lake, lines: list[Line], *, landed: Collection[int], route: Route = LINE) -> None:
    lake.settings = {"locations": route}
    lake.log("all.jsonl", [*(trace_line(n) for n in SENT), *lines])
    lake.land([sink_row(n) for n in SENT if n in landed])
    lake.ingest(now=T0 + 6 * HOUR)


def found(lake: Lake) -> dict[str, tuple[str, str | None]]:
    return {row.message_id: (row.state, row.location) for row in lake.rows(FINDINGS)}


def test_what_a_filter_says_it_left_out_is_not_missing(lake: Lake) -> None:
    fill(lake, [line for n in SENT for line in traced(n)], landed={*SENT} - LEFT_OUT)
    report = audited_with_late(lake)
    assert (report.verdict, found(lake), of_filters(report)) == (Verdict.OK, {}, [])
    assert (report.counts["filtered"], report.counts["missing"]) == (len(LEFT_OUT), 0)
    told = [(hop.location, hop.filtered, hop.trace_loss, hop.end_loss) for hop in report.hops]
    assert told == [
        *(("router", 0, 0, None), ("filter", len(LEFT_OUT), 0, 0), ("writer", 0, 0, None)),
    ]
    # What is alike but for them is not read, the sample of what is clean aside.
    assert report.cells_compared_by_id <= 12


def test_one_message_that_got_lost_in_a_filter_is_missing_there(lake: Lake) -> None:
    lost = SENT[4]
    lines = [line for n in SENT if n != lost for line in traced(n)]
    lines += [*passed(lost, ("router",)), sighting(lost, "filter", "received")]
    fill(lake, lines, landed={*SENT} - LEFT_OUT - {lost})
    report = audited_with_late(lake)
    assert (report.verdict, report.counts["filtered"]) == (Verdict.LOSS, len(LEFT_OUT))
    assert found(lake) == {f"m{lost}": ("open", "writer")}


def test_what_landed_though_it_was_left_out_is_matched(lake: Lake) -> None:
    landed = {*SENT} - LEFT_OUT | {SENT[0], SENT[3]}
    fill(lake, [line for n in SENT for line in traced(n)], landed=landed)
    report = audited_with_late(lake)
    assert (report.verdict, found(lake)) == (Verdict.OK, {})
    assert (report.counts["matched"], report.counts["filtered"]) == (
        len(landed),
        len(LEFT_OUT) - 2,
    )


BRANCHES: Route = {
    "eu": {"after": ["producer"], "share": "traced"},
    "us": {"after": ["producer"], "share": "traced"},
    "writer": {"after": ["eu", "us"]},
}
AT: dict[str, tuple[tuple[str, str], ...]] = {
    "filtered": (("eu", "received"), ("eu", "left_out")),
    "by both": (("eu", "left_out"), ("us", "left_out")),
    "sent by it": (("eu", "left_out"), ("eu", "sent")),
    "seen behind": (("eu", "left_out"), ("writer", "received")),
    "at the other": (("eu", "left_out"), ("us", "received")),
    "sent by the other": (("us", "left_out"), ("eu", "sent")),
}
FOUND = {  # what is missing, before which place
    "sent by it": "writer",
    "seen behind": "sink",
    "at the other": "writer",
    "sent by the other": "writer",
}


def test_what_went_on_all_the_same_is_missing(lake: Lake) -> None:
    numbers = dict(zip(AT, SENT[1::7], strict=False))
    lines = [sighting(numbers[what], *told) for what, each in AT.items() for told in each]
    rest = [n for n in SENT if n not in numbers.values()]
    lines += [line for n in rest for line in passed(n, ("eu" if n % 7 else "us", "writer"))]
    fill(lake, lines, landed=rest, route=BRANCHES)
    report = audited_with_late(lake)
    assert (report.verdict, report.counts["filtered"]) == (Verdict.LOSS, 2)
    assert found(lake) == {f"m{numbers[what]}": ("open", FOUND[what]) for what in FOUND}


def test_what_went_on_all_the_same_is_to_be_read_again(spark: SparkSession) -> None:
    beside = {name: RoutePlace(("producer",), tells=True) for name in ("eu", "us")}
    route = Routes.of({**beside, "writer": RoutePlace(("eu", "us"))})
    lines = [(name, *each, T0) for name, each_of in AT.items() for each in each_of]
    of_places = "message_id string, location string, event string, bucket_start timestamp"
    ddl = "message_id string, shard_id string, bucket_start timestamp"
    sent = own_rows(spark, [(name, "s", T0) for name in AT], ddl)
    found = without_told(sent, own_rows(spark, lines, of_places), route)
    assert {row.message_id for row in found.collect()} == FOUND.keys()


BEHIND_US = {"us": (("us", "left_out"),), "wanted": (("us", "sent"), ("wanted", "left_out"))}


@pytest.mark.parametrize("tells", BEHIND_US)
def test_what_a_place_beside_a_filter_received_it_was_to_pass_on(
    spark: SparkSession, tells: str
) -> None:
    us = RoutePlace(("producer",), 0.4, tells=tells == "us")
    wanted = RoutePlace(("us",), tells=tells == "wanted")
    others = {"eu": RoutePlace(("producer",), 0.6), "writer": RoutePlace(("eu", "wanted"))}
    route = Routes.of({"us": us, "wanted": wanted, **others})
    seen = {"m1": BEHIND_US[tells], "m2": (*BEHIND_US[tells], ("eu", "received"))}
    told = [(name, *each, T0) for name, lines in seen.items() for each in lines]
    of_places = "message_id string, location string, event string, bucket_start timestamp"
    sightings = own_rows(spark, told, of_places)
    sent = [(name, "s", T0) for name in seen]
    traces = own_rows(spark, sent, "message_id string, shard_id string, bucket_start timestamp")
    found = places_passed(traces, sightings, route, filters(route))
    # What another place had it may have left to that one, where each of them reads all.
    left_out = {"us": 1, "wanted": 2}
    assert found.where(F.col("is_told")).count() == left_out[tells]


def test_traces_that_one_of_places_lost_that_each_read_everything_are_told(lake: Lake) -> None:
    lines: list[Line] = []
    for minute, n in enumerate(SENT):
        own, other = ("eu", "us") if minute % 2 else ("us", "eu")
        each = [*passed(n, (own, "writer")), *told_out(n, other)]
        lines += [line for line in each if line["location"] != "eu" or minute % 4 > 1]
    fill(lake, lines, landed=SENT, route=BRANCHES)
    report = audited_with_late(lake)
    # A half of those of `eu`, which passed on a half: of both together.
    assert [hop.trace_loss for hop in report.hops] == pytest.approx([0.25, 0.25, 0])


def test_what_a_filter_behind_places_beside_each_other_left_out_hides_no_trace_that_they_lost(
    lake: Lake,
) -> None:
    route: Route = {**BRANCHES, "writer": {"after": ["eu", "us"], "share": "traced"}}
    lines: list[Line] = []
    for minute, n in enumerate(SENT):
        own, other = ("eu", "us") if minute % 2 else ("us", "eu")
        each = [*passed(n, (own,)), *told_out(n, other)]
        lines += [line for line in each if line["location"] != "eu" or minute % 4 > 1]
        lines += told_out(n, "writer") if n in LEFT_OUT else passed(n, ("writer",))
    fill(lake, lines, landed={*SENT} - LEFT_OUT, route=route)
    report = audited_with_late(lake)
    assert [hop.trace_loss for hop in report.hops] == pytest.approx([0.25, 0.25, 0])


def test_late_word_that_it_was_left_out_closes_what_looked_missing(lake: Lake) -> None:
    lines = [line for n in SENT for line in traced(n)]
    late = [line for line in lines if line["event"] == "left_out"]
    fill(lake, [line for line in lines if line not in late], landed={*SENT} - LEFT_OUT)
    first = audited_with_late(lake)
    assert first.verdict is Verdict.LOSS
    assert first.counts["missing"] == len(LEFT_OUT)
    [note] = of_filters(first)
    assert note.startswith("filter traced no message as left out, though its share is")
    lake.log("late.jsonl", late)
    lake.ingest(now=T0 + DAY)
    # Behind the window that is looked at each night.
    later = audited_with_late(lake, window=Window(T0 + 4 * HOUR, T0 + DAY), as_of=T0 + DAY + HOUR)
    assert [one.missing for one in later.late] == [0] * len(later.late) != []
    states = Counter((row.state, row.state_reason) for row in lake.rows(FINDINGS))
    assert states == {("false_alarm", "a filter left it out"): len(LEFT_OUT)}


def test_losses_that_lost_traces_of_a_filter_explain_are_doubtful(lake: Lake) -> None:
    # Of what the filter ended it did not say how of each tenth: so of four that it left out.
    silent = {*SENT[::10]}
    lines = [
        line
        for n in SENT
        for line in traced(n)
        if line["location"] != "filter" or line["event"] == "received" or n not in silent
    ]
    fill(lake, lines, landed={*SENT} - LEFT_OUT)
    report = audited_with_late(lake)
    untold = LEFT_OUT & silent
    assert (report.verdict, report.counts["missing"]) == (Verdict.LOSS, len(untold))
    assert {*found(lake).values()} == {("open", None)}
    [hops] = {row.hops for row in lake.rows(FINDINGS)}
    assert '"after": "filter", "before": null' in hops
    assert '"after": "filter", "before": "writer"' in hops
    by_place = {hop.location: hop for hop in report.hops}
    assert (by_place["writer"].lost, by_place["writer"].doubtful) == (0, len(untold))
    assert by_place["filter"].end_loss == pytest.approx(0.1)


@pytest.mark.parametrize("never_came", [True, False])
def test_loss_that_numbers_of_a_filters_log_explain_is_doubtful(
    lake: Lake, never_came: bool
) -> None:
    """It loses traces of what it left out alone: of what it sent on it lacks none."""
    untold = sorted(LEFT_OUT)[10:15]
    ids = {f"m{n}" for n in untold}
    lines = [dict(line) for n in SENT for line in traced(n)]
    lost = [line for line in lines if line["event"] == "left_out" and line["message_id"] in ids]
    own = [line for line in lines if line["location"] == "filter"]
    numbered = own if never_came else [line for line in own if line not in lost]
    for number, line in enumerate(numbered):
        line |= {"session": "9b1d", "session_seq": number}
    fill(lake, [line for line in lines if line not in lost], landed={*SENT} - LEFT_OUT)
    report = audited_with_late(lake)
    assert (report.verdict, report.counts["missing"]) == (Verdict.LOSS, len(untold))
    place = None if never_came else "writer"
    assert {*found(lake).values()} == {("open", place)}
    [hops] = {row.hops for row in lake.rows(FINDINGS)}
    assert ('"before": null' in hops) is never_came
    by_place = {hop.location: hop for hop in report.hops}
    told = (by_place["writer"].lost, by_place["writer"].doubtful, by_place["filter"].end_loss)
    assert told == ((0, 5, 0) if never_came else (5, 0, 0))


@pytest.mark.parametrize(("sample_rate", "lacking"), [(1.0, 5), (0.5, 2), (0.01, 0)])
def test_of_a_sample_as_many_numbers_lack_as_its_share_of_all(
    lake: Lake, sample_rate: float, lacking: int
) -> None:
    lake.settings = {"locations": LINE, "sample_rate": sample_rate}
    numbers = [n for n in range(30) if n not in range(10, 15)]
    lines = [dict(line) for n in numbers for line in told_out(n) if line["event"] == "received"]
    for number, line in zip(numbers, lines, strict=True):
        line |= {"session": "9b1d", "session_seq": number}
    other = {"location": "router", "session": "7", "session_seq": 90}  # tells nothing of left out
    lake.log("all.jsonl", [*lines, {**sighting(0, "router", "sent"), **other}])
    lake.ingest()
    window, kept = Window(T0, T0 + HOUR), Retention(DAY)
    request = AuditRequest(lake.name, lake.stream, window, T0 + 6 * HOUR, kept)
    assert _lacking(lake.warehouse, request) == {"filter": lacking}


def test_word_of_a_filter_with_a_number_is_certain_and_the_rest_is_judged_by_counts(
    lake: Lake,
) -> None:
    route = {**LINE, "filter": {"after": ["router"], "share": 0.9}}
    untold = SENT[4]
    lines = [line for n in SENT if n != untold for line in traced(n)]
    lines += [*passed(untold, ("router",)), sighting(untold, "filter", "received")]
    fill(lake, lines, landed={*SENT} - LEFT_OUT - {untold}, route=route)
    report = audited_with_late(lake)
    # A third less than all of what came passed: its share explains nothing of what it did not tell.
    assert (report.verdict, report.counts["filtered"]) == (Verdict.LOSS, len(LEFT_OUT))
    assert found(lake) == {f"m{untold}": ("open", "writer")}
    assert len(of_filters(report)) > 0


def test_place_that_passes_all_on_cannot_leave_a_message_out(lake: Lake) -> None:
    route = {**LINE, "filter": {"after": ["router"]}}
    fill(lake, [line for n in SENT for line in traced(n)], landed={*SENT} - LEFT_OUT, route=route)
    report = audited_with_late(lake)
    assert (report.verdict, report.counts["filtered"]) == (Verdict.LOSS, 0)
    assert found(lake) == {f"m{n}": ("open", "writer") for n in LEFT_OUT}
    [note] = of_filters(report)
    assert note.startswith("filter traced 80 messages as left out, but by its share it passes on")


SIEVES: Route = {
    "one": {"after": ["producer"], "share": "traced"},
    "two": {"after": ["one"], "share": "traced"},
}


def test_end_loss_is_of_what_a_filter_sent_on_whoever_left_it_out_behind_it(lake: Lake) -> None:
    # Of what came to it each third was left out by the second one, of which no producer's trace is
    # there; of each tenth message it did not say how that ended.
    silent = {*SENT[::10]}
    lines = [
        line
        for n in SENT
        for line in (
            *passed(n, ("one",)),
            *(told_out(n, "two") if n in LEFT_OUT else passed(n, ("two",))),
        )
        if (line["location"], line["event"]) != ("one", "sent") or n not in silent
    ]
    lake.settings = {"locations": SIEVES}
    lake.log("all.jsonl", [*(trace_line(n) for n in SENT if n % 7 or n not in LEFT_OUT), *lines])
    lake.land([sink_row(n) for n in SENT if n not in LEFT_OUT])
    lake.ingest(now=T0 + 6 * HOUR)
    report = audited_with_late(lake)
    assert (report.verdict, found(lake)) == (Verdict.OK, {})
    told = [(hop.end_loss, hop.trace_loss, hop.unsent) for hop in report.hops]
    assert told == [(pytest.approx(0.1), 0, 0), (0, 0, 0)]


def test_what_a_filter_left_out_as_it_came_again_next_day_and_had_passed_on_is_missing(
    lake: Lake,
) -> None:
    """By the second of its times it counts, as that shard is the least."""
    lake.settings = {"locations": {"filter": {"after": ["producer"], "share": "traced"}}}
    midnight, lines, rows, again = T0 + 12 * HOUR, list[Line](), list[Line](), 10**6
    for number in range(11 * 3600, 13 * 3600, 60):
        for other in range(2):
            of = {"message_id": f"{other}-{number}", "shard_id": shard(other)}
            lines += [{**line, **of} for line in (trace_line(number), *passed(number, ("filter",)))]
            rows.append(sink_row(number, **of))
    for second, other, seen in (
        (11.5 * 3600, 1, passed(again, ("filter",))),
        (12.5 * 3600, 0, told_out(again)),
    ):
        stamp = {**trace_line(int(second), shard_id=shard(other)), "message_id": "again"}
        lines += [
            stamp,
            *({**line, **stamp, "session": f"{other} {line['session']}"} for line in seen),
        ]
    lake.log("all.jsonl", lines)
    lake.land(rows)
    lake.ingest(now=midnight + 6 * HOUR)
    of_day = Window(midnight, midnight + HOUR)
    report = audited_with_late(lake, window=of_day, as_of=midnight + 6 * HOUR)
    assert (report.verdict, report.counts["filtered"]) == (Verdict.LOSS, 0)
    assert found(lake) == {"again": ("open", "sink")}
