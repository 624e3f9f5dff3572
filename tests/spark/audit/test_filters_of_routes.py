"""What a filter of a route leaves out by design is neither missing nor hides what is."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

from shardaudit.model.tables.audit_tables import FINDINGS
from shardaudit.model.verdict import Verdict
from shardaudit.model.window import Window
from shardaudit.store.published import published_audit
from tests.builders import T0, Line, cut_off, shard, sink_row, trace_line
from tests.spark.audit.on_routes import (
    audited_with_late,
    of_filters,
    passed,
    settings_of,
    sighting,
)
from tests.spark.lake import Lake

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
PLACES = ("router", "filter", "writer")
ROUTE = {
    "router": {"after": ["producer"]},
    "filter": {"after": ["router"], "share": 0.7},
    "writer": {"after": ["filter"]},
}
SENT = range(0, 4 * 3600, 20)  # seconds: 180 an hour
LOST = {  # before which place, of those that the filter would pass on
    "router": SENT[3:203:10],
    "filter": SENT[204:404:10],
    "writer": SENT[5:205:10],
    "sink": SENT[206:406:10],
}
IS_LOST = {number: place for place, numbers in LOST.items() for number in numbers}


def is_left_out(number: int) -> bool:
    """Whether the filter leaves a message out by design: three of ten."""
    return SENT.index(number) % 10 < 3


LEFT_OUT = frozenset(filter(is_left_out, SENT))


@dataclass
class Planted:
    """Messages, and what became of them: left out, or lost before a place."""

    left_out: Collection[int] = LEFT_OUT
    lost: Mapping[int, str] | None = None
    home: Mapping[int, str] | None = None

    def traced(self, number: int) -> Iterator[Line]:
        """What the places trace of a message."""
        for place in PLACES:
            if place == (self.lost or {}).get(number):
                return
            if place == "filter" and number in self.left_out:
                yield sighting(number, place, "received")
                return
            yield from passed(number, (place,))

    def fill(self, lake: Lake, *, but: Collection[tuple[str, str]] = ()) -> None:
        """Sends all, and lands what lands; places write but some of their events."""
        lake.settings = {"locations": ROUTE}
        home = self.home or {}
        on = {n: {"shard_id": home[n]} if n in home else {} for n in SENT}
        lines: list[Line] = [trace_line(n, **on[n]) for n in SENT]
        places = [line for n in SENT for line in self.traced(n)]
        lines += [line for line in places if (line["location"], line["event"]) not in but]
        gone = {*self.left_out, *(self.lost or {})}
        lake.log("all.jsonl", lines)
        lake.land([sink_row(n, **on[n]) for n in SENT if n not in gone])
        lake.ingest(now=T0 + 6 * HOUR)


def found(lake: Lake) -> Counter[tuple[str, str | None]]:
    return Counter((row.state, row.location) for row in lake.rows(FINDINGS))


def test_stream_of_which_a_filter_leaves_out_its_share_is_ok(lake: Lake) -> None:
    Planted().fill(lake)
    report = audited_with_late(lake)
    assert (report.verdict, of_filters(report), lake.rows(FINDINGS)) == (Verdict.OK, [], [])
    counts = ("filtered", "missing", "matched")
    assert [report.counts[n] for n in counts] == [len(LEFT_OUT), 0, len(SENT) - len(LEFT_OUT)]
    assert [(hop.location, hop.filtered, hop.trace_loss) for hop in report.hops] == [
        *(("router", 0, 0), ("filter", len(LEFT_OUT), 0), ("writer", 0, 0)),
    ]
    # What is alike but for them is not read, the sample of what is clean aside.
    assert report.cells_compared_by_id <= 12


def test_what_is_lost_before_and_behind_a_filter_is_missing_at_its_hop(lake: Lake) -> None:
    Planted(lost=IS_LOST).fill(lake)
    report = audited_with_late(lake)
    assert report.verdict is Verdict.LOSS
    assert found(lake) == {("open", place): 20 for place in LOST}
    assert {row.message_id for row in lake.rows(FINDINGS)} == {f"m{n}" for n in IS_LOST}
    assert report.counts["filtered"] == len(LEFT_OUT)


def test_hour_in_which_a_filter_breaks_is_lost_and_the_others_are_not(lake: Lake) -> None:
    broken = [n for n in SENT[180:360] if n % 100]  # a fifth is passed on
    Planted(left_out=LEFT_OUT.difference(SENT[180:360]).union(broken)).fill(lake)
    report = audited_with_late(lake)
    assert report.verdict is Verdict.LOSS
    assert found(lake) == {("open", "writer"): len(broken)}
    assert {row.message_id for row in lake.rows(FINDINGS)} == {f"m{n}" for n in broken}
    assert report.counts["filtered"] == len(LEFT_OUT.difference(SENT[180:360]))
    [note] = of_filters(report)
    assert note == (
        "from 2026-11-20T13:00:00Z to 2026-11-20T14:00:00Z filter passed on 36 of 180 messages, "
        "which is less than its share (share 0.7): what it left out counts as missing"
    )
    known = published_audit(settings_of(lake), lake.name, report.audit_id)
    assert (known.hops, known.notes, known.counts) == (report.hops, report.notes, report.counts)
    # A minute of that hour alone is judged by the same hour.
    alone = Window(T0 + HOUR, T0 + HOUR + 2 * lake.stream.bucket)
    assert audited_with_late(lake, window=alone).verdict is Verdict.LOSS
    assert {state for state, _ in found(lake)} == {"open"}


def test_shard_of_which_a_filter_passes_on_nothing_is_lost(lake: Lake) -> None:
    dark = SENT[180:360:9]  # one of nine shards, for an hour
    home = {n: shard(i % 9) for i, n in enumerate(SENT)}
    Planted(left_out=LEFT_OUT.difference(SENT[180:360]).union(dark), home=home).fill(lake)
    report = audited_with_late(lake)
    assert report.verdict is Verdict.LOSS
    assert found(lake) == {("open", "writer"): len(dark)}


def test_filter_that_does_not_trace_what_it_passes_on_explains_nothing(lake: Lake) -> None:
    Planted().fill(lake, but=[("filter", "sent")])
    report = audited_with_late(lake)
    assert (report.counts["missing"], report.counts["filtered"]) == (len(LEFT_OUT), 0)
    assert report.verdict is Verdict.LOSS


def test_late_traces_of_a_filter_close_what_looked_missing(lake: Lake) -> None:
    Planted().fill(lake, but=[("filter", "received"), ("filter", "sent")])
    assert audited_with_late(lake).counts["missing"] == len(LEFT_OUT)
    late = [line for n in SENT for line in Planted().traced(n) if line["location"] == "filter"]
    first, rest = late[: len(late) // 2], late[len(late) // 2 :]
    lake.log("late.jsonl", first)
    lake.ingest(now=T0 + 7 * HOUR)
    again = audited_with_late(lake, as_of=T0 + 7 * HOUR)
    assert again.counts["filtered"] > len(LEFT_OUT) / 3
    # Behind the window that is looked at each night.
    lake.log("later.jsonl", rest)
    lake.ingest(now=T0 + DAY)
    later = audited_with_late(lake, window=Window(T0 + 4 * HOUR, T0 + DAY), as_of=T0 + DAY + HOUR)
    assert [one.missing for one in later.late] == [0] * len(later.late) != []
    states = Counter((row.state, row.state_reason) for row in lake.rows(FINDINGS))
    assert states == {("false_alarm", "a filter left it out"): len(LEFT_OUT)}


def test_late_traces_that_a_filter_sent_a_message_on_make_it_lost(lake: Lake) -> None:
    lost = Planted(lost=dict.fromkeys(LOST["sink"], "sink"))
    lost.fill(lake, but=[("filter", "sent"), ("writer", "received"), ("writer", "sent")])
    told = [line for n in SENT for line in lost.traced(n)]
    sent_on = [line for line in told if (line["location"], line["event"]) != ("filter", "received")]
    late = [line for line in sent_on if line["message_id"] in {f"m{n}" for n in LOST["sink"]}]
    lake.log("soon.jsonl", [line for line in sent_on if line not in late])
    lake.ingest(now=T0 + 6 * HOUR)
    # So far its share explains all that did not land.
    first = audited_with_late(lake)
    assert (first.verdict, first.counts["filtered"]) == (Verdict.OK, len(LEFT_OUT) + 20)
    # Behind the window that is looked at each night.
    lake.log("late.jsonl", late)
    lake.ingest(now=T0 + DAY)
    later = audited_with_late(lake, window=Window(T0 + 4 * HOUR, T0 + DAY), as_of=T0 + DAY + HOUR)
    assert Verdict.LOSS in {one.verdict for one in later.late}
    assert found(lake) == {("open", "sink"): 20}


def test_minutes_that_an_unreadable_log_of_a_filter_may_have_fed_are_inconclusive(
    lake: Lake,
) -> None:
    lost = Planted(lost=dict.fromkeys(LOST["sink"], "sink"))
    told = [line for n in LOST["sink"] for line in lost.traced(n) if line["event"] == "sent"]
    cut_off(lake.log("broken.jsonl.gz", told), share=0.3)
    lost.fill(lake, but=[("writer", "sent")])
    report = audited_with_late(lake)
    assert (report.verdict, report.counts["filtered"]) == (Verdict.INCONCLUSIVE, 0)
