import io
import json
from datetime import timedelta

from rich.console import Console, RenderableType

from shardaudit.model.rates import audit_rates, wilson_interval
from shardaudit.model.route.lost_hops import HopLine
from shardaudit.model.verdict import Cause, Kind, State, Verdict
from shardaudit.report.rate_lines import between_line
from shardaudit.report.render import audit_view, findings_view, ingest_view
from shardaudit.report.route_lines import hop_rates
from shardaudit.report.summary import AuditedPlace, FindingLine, IngestReport, as_json
from tests.unit.report.reports import NOON, deadline, report, shard


def shown(view: RenderableType, width: int = 140) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(view, crop=False)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_audit_page_says_verdict_counts_shards_and_deadlines() -> None:
    page = shown(audit_view(report()))
    wanted = (
        "Audit of events: LOSS",
        "the stream is complete until 2026-11-20T09:00:00Z",
        "99.9870% of the landed messages",
        "11,520 cells, 12 of them id by id; self-check passed",
        "Apache Spark 4.1.4",
        "shardId-000000000003",
        "1 d 2 h",
        "shardaudit findings list --stream events --kind missing",
    )
    assert [words for words in wanted if words not in page] == []
    assert "3 missing" in " ".join(page.split())


def test_what_to_type_for_the_watermark_is_in_one_line_however_narrow() -> None:
    reason = "to be looked at by `shardaudit audit --stream events --from T --to T`" * 3
    assert reason in shown(audit_view(report(watermark_reason=reason)), 80)


def test_audit_page_is_short_when_nothing_is_wrong() -> None:
    clean = report(verdict=Verdict.OK, counts={"sent": 9}, worst_shards=(), deadlines=())
    page = shown(audit_view(clean))
    assert "Audit of events: OK" in page
    assert "Worst shards" not in page
    assert "Look at next" not in page


def test_audit_page_says_gone_when_the_deadline_is_over() -> None:
    page = shown(audit_view(report(deadlines=(deadline(recoverable_until=NOON),))))
    assert "left the stream, the first at 2026-11-20T12:00:00Z" in page


def test_audit_page_has_a_line_for_each_place_of_the_route() -> None:
    hops = (
        AuditedPlace("router", ("producer",), 1.0, 1000, 990, trace_loss=0.0125, lost=2),
        AuditedPlace("writer", ("eu", "us"), 1.0, 0, 0, doubtful=3),
    )
    lines = shown(audit_view(report(hops=hops))).partition("\nRoute\n")[2].splitlines()
    [router] = [line.split() for line in lines if "router" in line]
    [writer] = [line.split() for line in lines if "writer" in line]
    assert router == ["router", "producer", "1,000", "990", "1.250%", "2", "–"]
    assert writer == ["writer", "eu,", "us", "0", "0", "–", "0,", "3", "inconclusive", "–"]
    assert "hop " not in "".join(lines)
    assert "\nRoute\n" not in shown(audit_view(report()))


def test_what_filters_left_out_has_a_column_where_there_is_any() -> None:
    hops = (
        AuditedPlace("router", ("producer",), 1.0, 1000, 990),
        AuditedPlace("filter", ("router",), None, 990, 700, filtered=290, end_loss=0.0125),
    )
    lines = shown(audit_view(report(hops=hops))).partition("\nRoute\n")[2].splitlines()
    told = {line.split()[0]: line.split()[4:7] for line in lines if line.startswith((" r", " f"))}
    assert told == {"router": ["0", "–", "–"], "filter": ["290", "–", "1.250%"]}


def test_of_a_sample_a_place_of_the_route_has_intervals() -> None:
    ways = (
        HopLine("producer", "router"),
        HopLine("router", "eu", doubled=4),
        HopLine("router", "us", doubled=3),
    )
    router = AuditedPlace(
        "router", ("producer",), 1.0, 1000, 990, trace_loss=0.5, lost=2, doubtful=1, ways=ways
    )
    hops = (router, AuditedPlace("writer", ("eu", "us"), 1.0, 0, 0, doubtful=3))
    assert hop_rates(hops, sample_rate=1.0) == {}
    found = hop_rates(hops, sample_rate=0.1)
    assert {name: (rate.count, rate.of) for name, rate in found.pop("router").items()} == {
        "lost": (2, 2003),
        "doubtful": (1, 2003),
        "doubled": (7, 2000),  # or 4: those may be the same
        "trace_loss": (1000, 2000),
    }
    assert found == {}  # nothing is known of what has no trace
    page = shown(audit_view(report(hops=hops, place_rates=hop_rates(hops, sample_rate=0.1))), 250)
    for told, of in (("2", (2, 2003)), ("1 inconclusive", (1, 2003)), ("50.000%", (1000, 2000))):
        assert f"{told} ({between_line(wilson_interval(*of))})" in page
    between = wilson_interval(4, 2000)[0], wilson_interval(7, 2000)[1]
    assert f"4 to 7 ({between_line(between)})" in page


def test_route_has_its_hops_and_what_was_doubled_after_each_place() -> None:
    ways = {
        "router": (HopLine("producer", "router", lost=2, doubled=1),),
        "eu": (HopLine("router", "eu", doubled=4), HopLine("eu", "sink")),
        "us": (HopLine("router", "us", doubled=3, doubtful=5), HopLine("us", "sink", doubled=8)),
    }
    after = {"router": ("producer",), "eu": ("router",), "us": ("router",)}
    hops = tuple(AuditedPlace(n, after[n], 1.0, 1000, 990, ways=ways[n]) for n in ways)
    lines = shown(audit_view(report(hops=hops))).partition("\nRoute\n")[2].splitlines()
    places = [line for line in lines if "→" not in line]
    # Of several ways nobody knows whether the same messages were doubled on them.
    assert [line.rstrip().endswith("4 to 7") for line in places if "router " in line[:9]] == [True]
    assert [line.split()[-1] for line in places if line.startswith((" eu", " us"))] == ["0", "8"]
    assert {" ".join(line.split()) for line in lines if "→" in line} == {
        "producer → router mixed 2 0 1",
        "router → eu duplication 0 0 4",
        "router → us duplication 0 5 3",
        "eu → sink ok 0 0 0",
        "us → sink duplication 0 0 8",
    }


def test_most_urgent_shard_of_each_cause_is_what_to_look_at() -> None:
    lines = (
        deadline(recoverable_until=NOON + timedelta(hours=9)),
        deadline(shard_id="urgent", cause=Cause.STUCK, recoverable_until=NOON + timedelta(hours=2)),
        deadline(shard_id="later", recoverable_until=NOON + timedelta(hours=20)),
    )
    advice = shown(audit_view(report(deadlines=lines))).partition("Look at next")[2]
    assert advice.index("urgent: its consumer stands still") < advice.index("shardId-000000000003")
    assert "later" not in advice


def test_ids_from_outside_are_harmless_in_every_page() -> None:
    evil = "x\x1b[2J\n[bold]y"
    finding = FindingLine(
        "events", evil, evil, Kind.MISSING, Cause.LOST, State.OPEN, evil, NOON, 0, NOON, None
    )
    pages = shown(findings_view([finding], total=1)) + shown(
        audit_view(report(worst_shards=(shard(shard_id=evil),), notes=(evil,)))
    )
    assert "\x1b" not in pages
    assert pages.count(r"x\x1b[2J\n[bold]y") == 5


def test_findings_page_says_how_many_it_does_not_show() -> None:
    finding = FindingLine(
        *("events", "s", "m", Kind.DUPLICATED, Cause.CONSUMER_REPLAY, State.OPEN, "router"),
        *(None, 2, None, None),
    )
    page = shown(findings_view([finding], total=1200))
    assert "1 of 1,200 findings" in page
    assert "duplicated (2 rows), consumer_replay" in page
    assert "after router" in page
    assert shown(findings_view([], total=0)) == "no findings\n"


def test_ingest_page_says_what_was_read_and_set_aside() -> None:
    line = IngestReport("events", 4, 1200, 7, 9, 3, 1, 1100, 5, ("events/traces/1",))
    page = " ".join(shown(ingest_view([line])).split())
    assert "events 7 → 9 4 1,200 3 1 1,100 5" in page


def test_the_rates_of_a_sample_are_said_with_their_intervals() -> None:
    counts = {"sent": 1000, "matched": 990, "missing": 3, "duplicated": 2, "untraced": 10}
    sampled = report(rates=audit_rates(counts, sample_rate=0.01))
    page = " ".join(shown(audit_view(sampled)).split())
    assert "missing 0.1021% to 0.8783% of what was sent (3 of 1,000)" in page
    assert "untraced 0.5441% to 1.8309% of what landed (10 of 1,000)" in page
    assert "interval" not in shown(audit_view(report()))
    said = json.loads(as_json(sampled))["rates"]["missing"]
    assert said == {"count": 3, "of": 1000, "share": 0.003, "between": [*wilson_interval(3, 1000)]}
