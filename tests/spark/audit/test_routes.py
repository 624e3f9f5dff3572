"""Routes of several places: the hop of each loss and double, whatever else the places trace."""

import os
from collections import Counter
from datetime import datetime

import pytest

from shardaudit.model.route.lost_hops import lost_hops_from_json
from shardaudit.model.tables.audit_tables import FINDINGS, FINGERPRINTS
from shardaudit.model.tables.route_tables import SIGHTINGS
from shardaudit.model.verdict import Verdict
from shardaudit.page.page_report import stream_report
from shardaudit.page.page_state import PageState
from shardaudit.report.route_lines import lost_told
from shardaudit.store.published import published_audit
from tests.builders import NOW, Line, sink_row, trace_line, write_parquet
from tests.spark.audit.on_routes import EACH, audited, passed, settings_of, told
from tests.spark.lake import Lake

BRANCHES = ("eu", "us")
ROUTE = {
    "router": {"after": ["producer"]},
    "enricher": {"after": ["router"]},
    "eu": {"after": ["enricher"], "share": 0.4},
    "us": {"after": ["enricher"], "share": 0.6},
}


def places_of(number: int) -> tuple[str, ...]:
    return ("router", "enricher", BRANCHES[number % 2])


def timed(line: Line) -> Line:
    """The line with times of their own type, as files that are kept have them."""
    times = {name: datetime.fromisoformat(str(line[name])) for name in line if name[-3:] == "_at"}
    return {**line, **times}


def test_each_hop_that_lost_or_doubled_messages_is_named(lake: Lake) -> None:
    lake.settings = {"locations": ROUTE}
    lines: list[Line] = []
    rows: list[Line] = []
    for fault in range(9):
        for number in range(fault * EACH, (fault + 1) * EACH):
            places, reached = places_of(number), fault % 4
            lines.append(trace_line(number))
            if fault < 4:  # lost before the place of that number, or the sink
                lines += passed(number, places[:reached])
                continue
            doubled = fault < 8
            lines += passed(number, places[:reached] if doubled else places)
            lines += passed(number, places[reached:], copies=2) if doubled else ()
            rows += [sink_row(number)] * (2 if doubled else 1)
    lake.log("all.jsonl", [*lines, trace_line(1, location="strange"), "no line"])
    lake.land(rows)
    read = lake.ingest()
    report = audited(lake)
    assert told(lake) == {
        ("missing", "router"): EACH,
        ("missing", "enricher"): EACH,
        ("missing", None): EACH,  # one of the branches, nobody knows which
        ("missing", "sink"): EACH,
        ("duplicated", "producer"): EACH,
        ("duplicated", "router"): EACH,
        ("duplicated", "enricher"): EACH,
        ("duplicated", "eu"): EACH // 2,
        ("duplicated", "us"): EACH // 2,
    }
    assert (read.trace_rows, read.quarantined) == (len(lines), 2)
    assert len(lake.rows(SIGHTINGS)) == len(lines) - len(lake.kept())
    assert {row.location for row in lake.kept()} == {"producer"}
    assert {row.location for row in lake.rows(FINGERPRINTS)} == {"producer", "sink"}
    assert [(hop.location, hop.received, hop.sent) for hop in report.hops] == [
        ("router", 8 * EACH, 8 * EACH),
        ("enricher", 7 * EACH, 7 * EACH),
        ("eu", 3 * EACH, 3 * EACH),
        ("us", 3 * EACH, 3 * EACH),
    ]
    ways = [way for hop in report.hops for way in hop.ways]
    assert [(f"{way.after} {way.before}", way.lost, way.doubtful, way.doubled) for way in ways] == [
        ("producer router", EACH, 0, EACH),
        ("router enricher", EACH, 0, EACH),
        ("enricher eu", 0, EACH, EACH // 2),
        ("eu sink", EACH // 2, 0, EACH // 2),
        ("enricher us", 0, EACH, EACH // 2),
        ("us sink", EACH // 2, 0, EACH // 2),
    ]


def test_each_hop_of_branches_that_meet_again_is_named_message_by_message(lake: Lake) -> None:
    lake.settings = {
        "locations": {
            "router": {"after": ["producer"]},
            "eu": {"after": ["router"], "share": 0.5},
            "us": {"after": ["router"], "share": 0.5},
            "writer": {"after": ["eu", "us"]},
        }
    }
    ways = [("router", branch, "writer") for branch in BRANCHES]
    lines: list[Line] = []
    rows: list[Line] = []
    hops: dict[tuple[str, str], str | None] = {}  # by (message, kind): the hop that is planted
    for number in range(2 * 2 * 4 * EACH):
        way, (is_doubled, fault) = ways[number % 2], divmod(number // (2 * EACH), 4)
        places = ("producer", *way, "sink")
        message = f"m{number}"
        lines += [trace_line(number), *passed(number, way[:fault])]
        if not is_doubled:
            branch = "either branch" if fault == 1 else f"{places[fault]} → {places[fault + 1]}"
            hops[message, "missing"] = branch
            continue
        lines += passed(number, way[fault:], copies=2)
        rows += [sink_row(number)] * 2
        hops[message, "duplicated"] = places[fault]
    lake.log("all.jsonl", lines)
    lake.land(rows)
    lake.ingest()
    audited(lake)
    found = {
        (row.message_id, row.kind): lost_told(row.hops) or row.location
        for row in lake.rows(FINDINGS)
    }
    either = "inconclusive: router → eu 50%, router → us 50%"
    wanted = {key: either if hop == "either branch" else hop for key, hop in hops.items()}
    assert found == wanted
    each = Counter((kind, hop) for (_, kind), hop in found.items())
    assert each == {
        ("missing", "producer → router"): 2 * EACH,
        ("missing", either): 2 * EACH,
        ("missing", "eu → writer"): EACH,
        ("missing", "us → writer"): EACH,
        ("missing", "writer → sink"): 2 * EACH,
        ("duplicated", "producer"): 2 * EACH,
        ("duplicated", "router"): 2 * EACH,
        ("duplicated", "eu"): EACH,
        ("duplicated", "us"): EACH,
        ("duplicated", "writer"): 2 * EACH,
    }


def test_lost_traces_of_places_make_no_loss_and_later_evidence_beats_them(lake: Lake) -> None:
    silent = {"archive": {"after": ["us"]}, "store": {"after": ["eu"]}}
    lake.settings = {"locations": ROUTE | silent}
    lake.traces_format = "parquet"
    sent = [timed(trace_line(number)) for number in range(100)]
    write_parquet(lake.traces / "sent.parquet", sent)
    lake.land([sink_row(number) for number in range(100) if number != 13])
    lake.ingest()
    seen = [
        timed(line)
        for number in range(100)
        for line in passed(number, places_of(number))
        if line["location"] != "router" or number % 10 not in {3, 6, 9}
    ]
    path = write_parquet(lake.traces / "router" / "seen.parquet", [*seen, timed(trace_line(99))])
    lake.ingest()
    os.utime(path, (0, 0))  # delivered again
    lake.ingest()
    report = audited(lake)
    assert (report.verdict, report.counts["sent"], report.trace_coverage) == (Verdict.LOSS, 100, 1)
    assert told(lake) == {("missing", "sink"): 1}
    assert [(hop.location, hop.received) for hop in report.hops] == [
        *(("router", 70), ("enricher", 100), ("eu", 50), ("us", 50), ("archive", 0), ("store", 0)),
    ]
    assert [note for note in report.notes if "archive, store" in note]
    kept = ['"kept":null' in row.inputs for row in lake.batches() if row.side == "traces"]
    assert (len(lake.rows(SIGHTINGS)), kept) == (len(seen), [False, True, True])
    settings = settings_of(lake)
    published = published_audit(settings, lake.name, report.audit_id)
    assert (published.hops, published.notes) == (report.hops, report.notes)
    page = stream_report(settings, PageState(stream=lake.name), audit_id=None, now=NOW).html
    wanted = (
        "<dt>never reached</dt><dd>sink</dd>",
        "70 in, 70 on",
        "no trace of archive, store in this window",
        "<td>enricher → eu</td>",
        *(f"<td>{hop.location}</td>" for hop in report.hops),
    )
    assert [words for words in wanted if words not in page] == []
    # Before or behind the archive, which traced nothing.
    assert (page.count('class="way-inconclusive"'), page.count('class="way-ok"')) == (2, 6)


def lossy(lake: Lake, *, count: int) -> dict[str, str]:
    """A router that loses a trace in twenty, and all of the last minute; where which was lost."""
    lines: list[Line] = []
    rows: list[Line] = []
    lost: dict[str, str] = {}
    for number in range(count):
        places: tuple[str, ...] = ("router", "enricher")
        lines.append(trace_line(number))
        if number % 60 == 1:  # one a minute
            lost[f"m{number}"], places = "router", ()
        elif number % 3 == 0:  # twenty a minute, one of which lacks the router's trace
            lost[f"m{number}"], places = "enricher", ("router",)
        else:
            rows.append(sink_row(number))
        is_traced = number % 20 and number < count - 60
        lines += passed(number, tuple(p for p in places if is_traced or p != "router"))
    lake.settings = {"locations": {place: ROUTE[place] for place in ("router", "enricher")}}
    lake.log("all.jsonl", lines)
    lake.land(rows)
    lake.ingest()
    return lost


def test_hop_that_trace_loss_alone_explains_is_inconclusive_and_the_loss_is_told(
    lake: Lake,
) -> None:
    lost = lossy(lake, count=480)
    report = audited(lake)
    missing = {row.message_id: row for row in lake.rows(FINDINGS) if row.kind == "missing"}
    sure = {message: row.location for message, row in missing.items() if row.location}
    unseen = {f"m{number}" for number in (*range(0, 420, 60), *range(1, 420, 60))}
    darkened = {f"m{number}" for number in range(420, 480)}
    assert (report.verdict, set(missing)) == (Verdict.LOSS, set(lost))
    assert sure == {message: lost[message] for message in sure}
    assert unseen <= missing.keys() - sure.keys() <= unseen | darkened
    told = lost_hops_from_json(missing["m1"].hops)
    assert [(hop.after, hop.before) for hop in told] == [
        *(("producer", "router"), ("router", "enricher")),
    ]
    assert 0.2 < told[0].probability < 0.8
    # Of 312 that landed the router lacks 2 a minute, and the 39 of the last one.
    assert [hop.trace_loss for hop in report.hops] == pytest.approx([(7 * 2 + 39) / 312, 0])
    assert [(hop.lost, hop.doubtful) for hop in report.hops] == [
        (0, len(lost) - len(sure)),
        (len(sure), len(lost) - len(sure)),
    ]
    assert [note for note in report.notes if "lost before router or enricher" in note]
