"""`shardaudit statistics`: what a warehouse knows, in rows that add up, and what it does not."""

import json
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from shardaudit.adapters.clock import now
from shardaudit.cli.main import main
from shardaudit.cli.statistics_command import of_eras
from shardaudit.model.config.eras import CellShape, Eras, midnight
from shardaudit.model.config.settings import load_settings
from shardaudit.model.errors import ConfigError
from shardaudit.model.exit_code import ExitCode
from shardaudit.model.rates import wilson_interval
from shardaudit.model.tables.audit_tables import AUDITS, CELLS, FINDINGS
from shardaudit.model.tables.route_tables import SIGHTING_COUNTS
from shardaudit.model.window import Window
from shardaudit.report.rate_lines import between_line
from shardaudit.store.read_deliveries import DELIVERED
from tests.page_warehouse import STREAM, write_rows, write_warehouse

HOUR = timedelta(hours=1)
CONFIG = """
warehouse = "warehouse"
[streams.events]
stream_name = "events"
bucket = "1h"
sample_rate = 0.1
traces = { path = "traces" }
sink = { path = "sink" }
[streams.events.locations.router]
after = ["producer"]
[streams.orders]
stream_name = "orders"
bucket = "45m"
traces = { path = "traces" }
sink = { path = "sink" }
"""
END = now().replace(minute=0, second=0, microsecond=0)
START = END - 160 * HOUR
SUMS = ("received", "sent", "lost", "doubtful", "doubled", "received_early", "sent_early")


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("statistics")
    (folder / "shardaudit.toml").write_text(CONFIG)
    write_warehouse(folder / "warehouse", now=END, bucket=HOUR)
    lost = {"after": "router", "before": "sink", "probability": 1.0}
    doubt = [{**lost, "probability": 0.6}, {**lost, "before": "router", "probability": 0.4}]
    finding = {"stream": STREAM, "kind": "missing", "state": "open", "sent_at": START}
    found = [
        {**finding, "hops": json.dumps([lost])},
        {**finding, "hops": json.dumps(doubt)},
        {**finding, "hops": json.dumps([{**lost, "before": None}])},
        {**finding, "hops": json.dumps([lost]), "state": "recovered"},
        {**finding, "hops": json.dumps([lost]), "sent_at": START - HOUR},
        {**finding, "kind": "duplicated", "location": "producer"},
    ]
    rows = [{**row, "message_id": f"m{n}"} for n, row in enumerate(found)]
    write_rows(folder / "warehouse", FINDINGS, rows)
    traced = {"stream": STREAM, "location": "router", "bucket_start": START}
    traced |= {"sent_day": START.date()}
    counts = [{**traced, "received": 7000, "sent": 0}, {**traced, "received": 0, "sent": 6500}]
    write_rows(folder / "warehouse", SIGHTING_COUNTS, counts)
    return folder / "shardaudit.toml"


def statistics(config: Path, *options: str) -> int:
    return main(["--config", str(config), "statistics", f"--stream={STREAM}", *options])


def window(start: datetime, end: datetime) -> list[str]:
    return [f"--from={start.isoformat()}", f"--to={end.isoformat()}"]


def document(config: Path, capsys: pytest.CaptureFixture[str], *options: str) -> Any:  # Any: JSON
    assert statistics(config, "--json", *options) == ExitCode.DONE
    return json.loads(capsys.readouterr().out)


def sums_of(rows: Sequence[Any]) -> dict[str, int]:  # Any: JSON
    """What rows add up to; nothing where all of it is unknown."""
    sums = Counter[str]()
    for row in rows:
        counts = row.get("counts") or {name: row[name] for name in SUMS if name in row}
        sums.update({name: count for name, count in counts.items() if count is not None})
        for name in ("latency", "received_latency", "sent_latency"):
            sums[name] += (row.get(name) or {"rows": 0})["rows"]
    return {name: count for name, count in sums.items() if count}


def test_hours_and_shards_of_a_week_add_up_to_it(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {by: document(config, capsys, f"--by={by}") for by in ("stream", "shard", "hour")}
    whole = found["stream"]["whole"]
    assert found["stream"]["rows"] == [whole]
    assert {by: len(of["rows"]) for by, of in found.items()} == {
        **{"stream": 1, "shard": 24, "hour": 168},
    }
    for of in found.values():
        names = (*DELIVERED, "filtered")
        sums = {name: sum(row["counts"][name] for row in of["rows"]) for name in names}
        assert (sums, of["whole"]) == (whole["counts"], whole)
        latencies = [row["latency"] for row in of["rows"] if row["latency"]]  # one shard is silent
        assert sum(one["rows"] for one in latencies) == whole["latency"]["rows"]
    missing, sent = whole["counts"]["missing"], whole["counts"]["sent"]
    assert whole["rates"]["missing"]["between"] == list(wilson_interval(missing, sent))
    assert whole["sent_per_s"] == pytest.approx(sent / (168 * 3600))
    assert (whole["latency"]["p50"], whole["latency"]["max"]) == (2, 512)
    assert (found["hour"]["rows"][0]["audited_s"], found["hour"]["unaudited"]) == (3600, [])


@pytest.mark.parametrize("by", ["shard", "place"])
def test_hours_of_each_shard_and_place_add_up_to_it_and_to_the_hours(
    config: Path, capsys: pytest.CaptureFixture[str], by: str
) -> None:
    # The first hours hold findings, the last ones nobody audited.
    span = window(START - 20 * HOUR, START + 4 * HOUR)
    both = document(config, capsys, "--by", by, "hour", *span)
    assert (both["by"], len({row["hour"] for row in both["rows"]})) == (["hour", by], 24)
    alone = {one: document(config, capsys, f"--by={one}", *span) for one in (by, "hour")}
    assert all(one["whole"] == both["whole"] for one in alone.values())
    name = {"shard": "name", "place": "location"}[by]
    for row in alone[by]["rows"]:
        mine = [of for of in both["rows"] if of[name] == row[name]]
        assert sums_of(mine) == sums_of([row])
    if by == "shard":
        for row in alone["hour"]["rows"]:
            mine = [of for of in both["rows"] if of["hour"] == row["name"]]
            assert sums_of(mine) == sums_of([row])
            assert [of["name"] for of in mine if of["counts"] is None] == [None] * (
                row["counts"] is None
            )


def test_hours_of_places_that_no_audit_saw_are_told(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    span = window(END - HOUR, END + HOUR)
    found = document(config, capsys, "--by", "hour", "place", *span)
    known, unknown = found["rows"][:3], found["rows"][3:]
    assert [row["audited_s"] for row in (*known, *unknown)] == [3600] * 3 + [0] * 3
    assert {row["location"] for row in unknown} == {"producer", "router", "sink"}
    assert {row[name] for row in unknown for name in SUMS} == {None}
    assert statistics(config, "--by", "hour", "place", *span) == ExitCode.DONE
    assert capsys.readouterr().out.count("not audited  ") == 3


def test_hours_that_no_audit_saw_are_told(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    span = window(END - 2 * HOUR, END + 3 * HOUR - timedelta(minutes=1))
    found = document(config, capsys, "--by=hour", *span)
    assert [row["counts"] is None for row in found["rows"]] == [False, False, True, True, True]
    assert [row["sent_per_s"] is None for row in found["rows"]] == [False] * 2 + [True] * 3
    [unknown] = found["unaudited"]
    times = [datetime.fromisoformat(unknown[name]) for name in ("start", "end")]
    assert times == [END, END + 3 * HOUR]  # of whole buckets
    assert statistics(config, "--by=hour", *span) == ExitCode.DONE
    text = capsys.readouterr().out
    assert "• not audited, and unknown: 3 h 0 min (" in text
    assert text.count("not audited  ") == 3
    assert "of a sample of 0.1 of the ids" in text


def test_an_hour_of_which_all_is_inconclusive_is_unknown(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hour = END - 98 * HOUR
    assert statistics(config, "--by=shard", *window(hour, hour + HOUR)) == ExitCode.DONE
    [line] = [line for line in capsys.readouterr().out.split("\n") if "100.0%" in line][:1]
    assert line.split()[:2] == ["shardId-000000000018", "1"]
    assert line.count(" unknown ") == 3


def test_a_place_has_what_it_traced_lost_and_doubled(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = document(config, capsys, "--by=place", *window(START, START + HOUR))
    counts = found["whole"]["counts"]
    names = ("location", "received", "sent", "lost", "doubtful", "doubled")
    assert [tuple(row[name] for name in names) for row in found["rows"]] == [
        ("producer", None, counts["sent"], None, None, 1),
        ("router", 7000, 6500, 0, 1, 0),
        ("sink", counts["matched"] + counts["untraced"], None, 1, 1, None),
    ]
    # A shard is silent: in no minute has all landed, which would tell the router's trace loss.
    assert [row["trace_loss"] for row in found["rows"]] == [0, None, None]
    assert found["unplaced"] == counts["missing"] - 2
    assert [row["received_per_s"] for row in found["rows"][:2]] == [None, 7000 / 3600]
    assert statistics(config, "--by=place", *window(START, START + HOUR)) == ExitCode.DONE
    assert f"• {found['unplaced']:,} missing messages on no hop" in capsys.readouterr().out


def test_of_a_sample_a_place_has_intervals(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = document(config, capsys, "--by=place", *window(START, START + HOUR))
    sent, landed = found["rows"][0]["sent"], found["rows"][2]["received"]
    rates = [{n: (r["count"], r["of"]) for n, r in row["rates"].items()} for row in found["rows"]]
    assert rates == [
        {"doubled": (1, sent), "trace_loss": (0, landed)},
        {"lost": (0, 7001), "doubtful": (1, 7001), "doubled": (0, 7000)},
        {"lost": (1, landed + 2), "doubtful": (1, landed + 2)},
    ]
    assert found["rows"][1]["rates"]["lost"]["between"] == list(wilson_interval(0, 7001))
    assert statistics(config, "--by=place", *window(START, START + HOUR)) == ExitCode.DONE
    assert f"0 ({between_line(wilson_interval(0, 7001))})" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--from=2026-11-01T00:00:00Z"], "both, or neither"),
        (["--from=2026-11-01", "--to=2026-11-02"], "with a zone"),
        (window(END, END - HOUR), "from before to"),
        (window(END - timedelta(days=400), END), "at most 366 days"),
        (["--stream=order"], "did you mean orders?"),
        (["--stream=orders", "--by=hop"], "locations"),
        (["--by", "shard", "place"], "hour with one of shard, place"),
        (["--by", "hour", "hour"], "hour with one of shard, place"),
        (["--stream=orders", "--by=hour"], "divides an hour"),
    ],
)
def test_what_cannot_be_added_up_is_refused_in_words(
    config: Path, options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert statistics(config, *options) == ExitCode.USAGE
    assert said in capsys.readouterr().err


def test_a_stream_that_was_never_audited_is_unknown(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = document(config, capsys, "--stream=orders")
    assert (found["whole"]["counts"], found["whole"]["latency"]) == (None, None)
    assert len(found["unaudited"]) == 1


def test_what_a_filter_left_out_is_told_where_there_is_any(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = tmp_path / "shardaudit.toml"
    asked.write_text(CONFIG)
    audit = {"stream": STREAM, "as_of": END, "status": "published"}
    counts = {"sent": 1000, "landed": 600, "matched": 600, "filtered": 390}
    counts |= {"missing": 10, "pending": 0, "duplicated": 0, "extra_rows": 0}
    cell = {"stream": STREAM, "shard_id": "s", "verdict": "loss", "untraced": 0, "moved": 0}
    # Of before there was such a count, too.
    old = {**counts, "missing": 400, "filtered": None}
    for name, start, of in (("a", START, old), ("b", START + HOUR, counts)):
        times = {"window_start": start, "window_end": start + HOUR}
        write_rows(tmp_path / "warehouse", AUDITS, [{**audit, "audit_id": name, **times}])
        times = {"bucket_start": start, "bucket_end": start + HOUR}
        write_rows(tmp_path / "warehouse", CELLS, [{**cell, "audit_id": name, **times, **of}])
    found = document(asked, capsys, "--by=hour", *window(START, START + 2 * HOUR))
    assert [row["counts"]["filtered"] for row in found["rows"]] == [0, 390]
    assert found["rows"][1]["shares"]["missing"] == pytest.approx(10 / 610)
    for since, is_told in ((START, False), (START + HOUR, True)):
        assert statistics(asked, *window(since, since + HOUR)) == ExitCode.DONE
        out = capsys.readouterr().out
        assert (("filtered" in out), ("390" in out)) == (is_told, is_told)


def test_a_time_over_another_sample_rate_is_refused_and_one_over_another_bucket_is_not(
    config: Path,
) -> None:
    stream, day = load_settings(config).stream("orders"), START.date()
    hours, half = CellShape(3600, 1.0), CellShape(60, 0.5)
    before, over = Window(midnight(day) - HOUR, midnight(day)), Window(START - 24 * HOUR, END)
    wider = of_eras(stream, Eras(hours, ((day, CellShape(60, 1.0)),)), over)
    assert (wider.bucket, wider.sample_rate) == (HOUR, 1.0)
    fewer = Eras(hours, ((day, half),))
    assert of_eras(stream, fewer, before).sample_rate == 1.0
    with pytest.raises(ConfigError, match="several samples of the ids: 1 until"):
        of_eras(stream, fewer, over)
