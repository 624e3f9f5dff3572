"""The list of streams: an old audit, none, or one of a part is not a good verdict."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from shardaudit.model.config.eras import CellShape
from shardaudit.page.page_lines import (
    Refused,
    StoredRow,
    StreamLine,
    due_shards,
    place_trends,
    stream_line,
    trend,
)
from shardaudit.page.page_svg import place_curves
from shardaudit.page.page_words import UNKNOWN, Metric
from shardaudit.report.route_lines import hops_as_json
from shardaudit.report.summary import AuditedPlace
from shardaudit.store.read_findings import OpenCount

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
H = timedelta(hours=1)


def audit(audit_id: str, *, end: datetime = NOW - 2 * H, **more: object) -> StoredRow:
    return {
        "audit_id": audit_id,
        "window_start": end - 168 * H,
        "window_end": end,
        "as_of": end + H,
        "started_at": end + H,
        "finished_at": more.get("started_at", end + H),
        "self_check": "passed",
        "status": "published",
        "verdict": "ok",
        "trace_coverage": 1.0,
        "watermark": end,
        "watermark_reason": None,
        "engine": "Apache Spark 4.1.4",
        "sent": 1_000_000,
        "landed": 1_000_000,
        "matched": 1_000_000,
        "missing": 0,
        "duplicated": 0,
        "untraced": 0,
        "extra_rows": 0,
        "latency_p50": 2.0,
        "latency_p99": None,
        **more,
    }


def line(*audits: StoredRow, shards: tuple[StoredRow, ...] = ()) -> StreamLine:
    found = [
        OpenCount("events", "missing", 3, NOW + 5 * H),
        OpenCount("events", "untraced", 2, None),
        OpenCount("orders", "missing", 9, NOW),
    ]
    return stream_line("events", audits=audits, findings=found, shards=shards, now=NOW)


def test_no_audit_is_unknown_and_old() -> None:
    found = line()
    assert (found.verdict, found.badge, found.is_old) == (UNKNOWN, UNKNOWN, True)


def test_an_old_good_verdict_does_not_look_good() -> None:
    found = line(audit("a", end=NOW - 48 * H))
    assert (found.verdict, found.badge) == ("ok", UNKNOWN)


def test_last_nights_verdict_counts() -> None:
    assert line(audit("a")).badge == "ok"


def test_an_audit_of_a_part_does_not_speak_for_the_stream() -> None:
    part = audit("part", end=NOW - 30 * H, window_start=NOW - 40 * H, as_of=NOW, verdict="ok")
    found = line(audit("night", verdict="loss"), part)
    assert (found.verdict, found.looked_again) == ("loss", 1)


def test_the_night_before_did_not_look_again() -> None:
    before = audit("before", end=NOW - 26 * H, as_of=NOW)
    earlier = audit("earlier", end=NOW - 30 * H, window_start=NOW - 40 * H)
    same = audit("same", end=NOW - 2 * H, as_of=NOW - H / 2, status="running")
    assert line(audit("night"), before, earlier, same).looked_again == 0


def test_a_rejected_audit_leaves_the_verdict_which_is_old_then() -> None:
    found = line(audit("a"), audit("b", end=NOW - H, status="rejected", self_check="failed"))
    assert (found.audit_id, found.verdict, found.badge) == ("a", "ok", UNKNOWN)
    assert found.refused == Refused("b", "rejected", NOW, "failed")
    assert found.judged_id == "b"


def test_a_rejected_audit_is_forgotten_when_a_later_one_was_published() -> None:
    found = line(audit("a", status="rejected"), audit("b", end=NOW - H))
    assert (found.badge, found.refused, found.judged_id) == ("ok", None, "b")


def test_a_stream_whose_only_audit_was_rejected_was_never_audited() -> None:
    found = line(audit("a", status="rejected"))
    assert (found.audit_id, found.badge, found.judged_id) == (None, UNKNOWN, "a")


def test_open_findings_are_the_streams_own_with_the_nearest_deadline() -> None:
    found = line(audit("a"))
    assert found.findings == {"missing": 3, "untraced": 2}
    assert found.deadline == NOW + 5 * H


def shard(shard_id: str, level: str, start_by: datetime | None) -> StoredRow:
    of_holes = ("hole_start_by", "hole_recoverable_until", "hole_messages")
    nothing = dict.fromkeys(("recoverable_until", "hours_to_read", "advice", *of_holes))
    return {
        "shard_id": shard_id,
        "state": "stalled",
        "level": level,
        "start_by": start_by,
        "observed_at": NOW - 2 * H,
        **nothing,
    }


def test_no_watch_and_an_old_one_are_said_to_be_old() -> None:
    assert line(audit("a")).is_watch_old
    assert line(audit("a")).level == UNKNOWN
    watched = line(audit("a"), shards=(shard("s", "none", None), shard("t", "urgent", NOW)))
    assert (watched.level, watched.is_watch_old) == ("urgent", True)


def test_shards_are_listed_by_their_start_and_only_those_that_need_something() -> None:
    rows = [
        shard("ok", "none", None),
        shard("notice", "notice", None),
        shard("late", "warn", NOW + 9 * H),
        shard("passed", "lost", NOW - H),
    ]
    found = due_shards(rows, now=NOW)
    assert [(s.shard_id, s.hours_left) for s in found] == [
        ("passed", -1.0),
        ("late", 9.0),
        ("notice", None),
    ]


def test_a_hole_with_an_earlier_deadline_than_the_tail_comes_first() -> None:
    of_hole: dict[str, object] = {"hole_start_by": NOW + H, "hole_messages": 7}
    of_hole["hole_recoverable_until"] = NOW + 2 * H
    both = {**shard("both", "warn", NOW + 9 * H), **of_hole}
    rows = [shard("tail", "warn", NOW + 2 * H), both]
    first, _ = due_shards(rows, now=NOW)
    assert (first.shard_id, first.start_by, first.hole_messages) == ("both", NOW + H, 7)
    assert first.recoverable_until == NOW + 2 * H


def test_a_part_that_was_audited_again_is_no_point_of_the_trend() -> None:
    part = audit("part", end=NOW - 5 * H, window_start=NOW - 9 * H, as_of=NOW, missing=7)
    wider = audit("wider", window_start=NOW - 999 * H)
    points = trend([audit("night", missing=5), part, wider])
    assert [point.audit_id for point in points] == ["night", "wider"]


def test_a_part_that_was_audited_again_as_of_the_same_time_is_no_point_of_the_trend() -> None:
    night = audit("night", as_of=NOW, started_at=NOW)
    part = audit("a part", window_start=NOW - 3 * H, as_of=NOW, started_at=NOW + H, missing=7)
    assert [point.audit_id for point in trend([part, night])] == ["night"]


def test_the_trend_is_per_million_and_of_published_audits_alone() -> None:
    points = trend(
        [
            audit("b", missing=5),
            audit("a", end=NOW - 26 * H, extra_rows=7),
            audit("c", status="failed", missing=None),
        ]
    )
    assert [(p.audit_id, p.lost, p.doubled) for p in points] == [("a", 0.0, 7.0), ("b", 5.0, 0.0)]
    assert points[0].latency == {Metric.P50: 2.0, Metric.P99: None}


def test_an_audit_with_which_a_rate_changed_says_what_was_usual() -> None:
    ends = [NOW - (13 - n) * 24 * H for n in range(13)]
    lost = [40 * (n > 9) for n in range(13)]
    apart = [
        audit(f"{n}", end=end, window_start=end - 24 * H, missing=lost[n])
        for n, end in enumerate(ends)
    ]
    assert {p.audit_id: p.usual for p in trend(apart) if p.usual} == {"10": {"missing": 0.0}}
    # Of a week each: the three nights that lost something have the same loss in them.
    weeks = [audit(f"{n}", end=end, missing=lost[n]) for n, end in enumerate(ends)]
    assert not any(point.usual for point in trend(weeks))


def test_places_have_trends_of_the_audits_that_knew_of_them() -> None:
    apart = []
    for night in range(14):
        router = AuditedPlace("router", ("producer",), 1.0, 9960, 9960, lost=40 * (night > 10))
        router = replace(router, trace_loss=0.0 if night else None)
        new = AuditedPlace("new", ("router",), 1.0, 9960 * (night > 12), 0)
        end = NOW - (13 - night) * 24 * H
        hops = hops_as_json([router, new])
        apart.append(audit(f"{night}", end=end, window_start=end - 24 * H, hops=hops))
    trends = place_trends(apart, usual=CellShape(60, 0.1))
    assert {place: len(points) for place, points in trends.items()} == {"router": 14, "new": 1}
    last = trends["router"][-1]
    assert (last.lost, last.coverage, last.rates["missing"].of) == (4000.0, 1.0, 10_000)
    assert [p.audit_id for p in trends["router"] if p.usual == {"missing": 0.0}] == ["11"]
    lost, untraced = place_curves(trends)
    assert (lost.title, untraced.title) == ("Lost before router", "Trace loss of router")
    assert (len(lost.points), len(untraced.points), len(lost.changed)) == (14, 13, 1)
    assert lost.last.startswith("4,000.0 per million, 2,9")
    assert place_trends([]) == {}


def test_watermark_is_that_of_the_audit_that_ran_last_though_it_looked_at_a_part() -> None:
    loss = "shard-7 has 3 messages missing"
    whole = audit("whole", watermark=NOW - 9 * H, watermark_reason=loss)
    part = audit("part", end=NOW - 5 * H, started_at=NOW, watermark=NOW - 2 * H)
    found = line(part, whole)
    assert (found.audit_id, found.watermark, found.watermark_reason) == ("whole", NOW - 2 * H, None)
    assert line(whole).watermark_reason == loss


def test_watermark_is_that_of_what_came_late_though_both_began_with_one_run() -> None:
    night = audit("night", watermark=NOW - 9 * H, finished_at=NOW - H)
    late = audit("late", end=NOW - 99 * H, started_at=night["started_at"], finished_at=NOW)
    assert {line(*rows).watermark for rows in ([night, late], [late, night])} == {NOW - 99 * H}
