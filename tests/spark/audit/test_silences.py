"""Silence on both sides through the real path: told, called quiet by a person, or healed."""

import argparse
import re
import shlex
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F

from shardaudit.audit.records import stored_holds
from shardaudit.cli.findings_command import add_arguments
from shardaudit.model.tables.audit_tables import CELLS, QUIET_TIMES, WATERMARKS
from shardaudit.model.tables.watch_tables import SHARDS
from shardaudit.model.verdict import Verdict
from shardaudit.model.window import Window, parse_instant
from shardaudit.report.held_back import quiet_notes
from shardaudit.store.transitions import Said, accept_time
from shardaudit.store.warehouse import Warehouse
from tests.history import Question, SinkRow, Trace
from tests.spark.trial import Trial

STOP = datetime(2026, 11, 20, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
ASK = Question(STOP, STOP + 6 * HOUR, STOP + 6.5 * HOUR, bucket=HOUR / 2)


def messages(shard_id: str, hours: range, *, every: int = 1) -> list[tuple[Trace, SinkRow]]:
    """A message an hour, counted from STOP."""
    found = []
    for hour in hours[::every]:
        at, name, number = STOP + hour * HOUR, f"{shard_id}/{hour}", str(10_000 + hour)
        trace = Trace(name, shard_id, number, at)
        found.append((trace, SinkRow(name, shard_id, number, at, at + timedelta(seconds=20))))
    return found


def feed(trial: Trial, sent: list[tuple[Trace, SinkRow]]) -> None:
    trial.log([trace for trace, _ in sent])
    trial.land([row for _, row in sent])
    trial.ingest()


@pytest.fixture
def trial(warehouse: Warehouse, tmp_path: Path) -> Trial:
    """A stream of a shard that stopped, and of one that goes on."""
    trial = Trial(warehouse, tmp_path, ASK)
    feed(trial, messages("stopped", range(-400, 0)) + messages("running", range(-400, 6)))
    return trial


def test_silence_is_told_until_a_person_says_that_it_was_quiet(trial: Trial) -> None:
    first = trial.audit()
    assert (first.audit.verdict, first.watermark) == ("inconclusive", STOP)
    reasons = trial.warehouse.read(CELLS).select("shard_id", "verdict", "reason").distinct()
    assert {tuple(row) for row in reasons.collect()} == {
        ("running", "ok", None),
        ("stopped", "inconclusive", "no traces where there used to be some"),
    }
    assert first.audit.watermark_reason.startswith("stopped: no traces where there used to be some")

    said = Said("events", Window(STOP - HOUR, STOP + 9 * HOUR), ("stopped",) * 2, "moved house")
    for _ in range(2):
        accept_time(trial.warehouse, said, by="ann", now=STOP)
    [kept] = trial.warehouse.rows(QUIET_TIMES, where=pc.scalar(True))
    assert (kept["accepted_by"], kept["reason"]) == ("ann", "moved house")
    later = replace(ASK, start=STOP + 6 * HOUR, end=STOP + 7 * HOUR, as_of=STOP + 9 * HOUR)
    feed(trial, messages("running", range(6, 8)))
    second = trial.audit(later)
    assert (second.audit.verdict, second.watermark) == ("ok", STOP + 7 * HOUR)


@pytest.mark.drill
def test_silence_in_doubt_holds_from_where_it_began_as_long_as_it_is_in_doubt(trial: Trial) -> None:
    first = replace(ASK, start=STOP - HOUR, end=STOP + HOUR / 2, as_of=STOP + 0.9 * HOUR)
    assert trial.audit(first).watermark == STOP + HOUR / 2
    later = replace(ASK, start=STOP + HOUR / 2, end=STOP + 2 * HOUR, as_of=STOP + 2.2 * HOUR)
    doubted = trial.audit(later)
    assert (doubted.audit.verdict, doubted.watermark) == ("pending", STOP - HOUR / 2)
    reasons = trial.warehouse.read(CELLS).where(F.col("verdict") == "pending").select("reason")
    assert [row.reason for row in reasons.distinct().collect()] == [
        "silent for longer than usual, not yet for so long that it must be told"
    ]
    feed(trial, messages("stopped", range(2, 5)))
    over = replace(ASK, start=STOP + 2 * HOUR, end=STOP + 5 * HOUR, as_of=STOP + 5.5 * HOUR)
    assert trial.audit(over).watermark == STOP + 5 * HOUR


def test_hours_that_may_still_land_are_not_silent(warehouse: Warehouse, tmp_path: Path) -> None:
    """A shard without traces, of which a message lands five hours after it was sent."""
    trial = Trial(warehouse, tmp_path, replace(ASK, retention=timedelta(days=7)))
    sent = [row for _, row in messages("slow", range(-400, 0))]
    trial.land([replace(row, landed_at=row.sent_at + 5 * HOUR) for row in sent])
    trial.log([])
    trial.ingest()
    held = trial.audit(replace(ASK, as_of=STOP + 5 * HOUR)).audit.watermark_reason
    assert "no traces where there used to be some" not in held


def test_a_clock_that_is_off_hides_no_silence(warehouse: Warehouse, tmp_path: Path) -> None:
    """A new shard with a message of nine days ago, an old one with a message of tomorrow.

    And a new one on which a device puts the eight hours that it was offline, two weeks before.
    """
    trial = Trial(warehouse, tmp_path, ASK)
    sent = messages("running", range(-400, 10)) + messages("child", range(-30, 0))
    sent += messages("child", range(-216, -215)) + messages("ahead", range(-400, 0))
    sent += messages("sister", range(-30, 0))
    sent += [
        (replace(trace, acked_at=STOP - 20 * HOUR), replace(row, landed_at=STOP - 20 * HOUR))
        for trace, row in messages("sister", range(-376, -368))
    ]
    feed(trial, sent + messages("ahead", range(20, 21)))
    published = trial.audit(replace(ASK, as_of=STOP + 10 * HOUR))
    assert {shard: cell.verdict for (shard, _), cell in published.cells.items()} == {
        "running": "ok",
        "child": "pending",
        "sister": "pending",
        "ahead": "inconclusive",
    }
    assert published.watermark == STOP


def test_a_child_is_as_busy_as_what_it_took_the_place_of(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    """Split twice within a night: the grandchild dies in its first hours, on both sides."""
    trial = Trial(warehouse, tmp_path, ASK)
    sent = messages("0-parent", range(-400, -5)) + messages("1-child", range(-5, -3))
    sent += messages("2-grandchild", range(-3, -1)) + messages("running", range(-400, 72))
    feed(trial, sent + messages("began", range(-3, -1)))
    parents = {"1-child": ["0-parent"], "2-grandchild": ["1-child"]}
    trial.list_shards({"running", "began", "0-parent", *parents}, at=STOP, parents=parents)
    for hours, verdict in ((6, "pending"), (72, "inconclusive")):
        end = STOP + hours * HOUR
        ask = replace(ASK, start=end - HOUR, end=end, as_of=end + HOUR / 2)
        # Not those that were closed before: nothing can be there.
        others = dict.fromkeys(["running", "began"], "ok")
        cells = trial.audit(ask).cells.items()
        verdicts = {shard: cell.verdict for (shard, _), cell in cells}
        assert verdicts == others | {"2-grandchild": verdict}


def test_note_is_a_command_that_does_what_it_says(trial: Trial) -> None:
    early = replace(ASK, end=STOP + HOUR, as_of=STOP + 1.3 * HOUR)
    trial.audit(early)
    later = replace(ASK, start=STOP + HOUR)
    assert trial.audit(later).audit.verdict == "inconclusive"
    window, holds = Window(later.start, later.end), stored_holds(trial.warehouse, "events")
    [note] = quiet_notes("events", window, holds)
    typed = re.findall("`shardaudit (.*?)`", note)[0]
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    asked = parser.parse_args(shlex.split(typed.removeprefix("findings ")))
    span = Window(parse_instant(asked.start, where="from"), parse_instant(asked.end, where="to"))
    said = Said(asked.stream, span, tuple(asked.shard or ()), asked.reason)
    assert (said.shard_ids, span.start) == (("stopped",), STOP)
    accept_time(trial.warehouse, said, by="ann", now=STOP)
    again = trial.audit(replace(later, as_of=later.as_of + HOUR / 4))
    assert (again.audit.verdict, again.watermark) == ("ok", later.end)


def test_watermark_goes_back_to_where_a_silence_began_before_the_window(trial: Trial) -> None:
    early = replace(ASK, end=STOP + HOUR, as_of=STOP + 1.1 * HOUR)
    assert trial.audit(early).audit.verdict in {Verdict.OK, Verdict.PENDING}
    later = replace(ASK, start=STOP + HOUR)
    told = trial.audit(later)
    # The first audit looked at nothing before STOP: there the record begins.
    assert (told.audit.verdict, told.watermark) == ("inconclusive", STOP)


def test_silence_heals_when_the_traces_come(trial: Trial) -> None:
    assert trial.audit().audit.verdict == "inconclusive"
    feed(trial, messages("stopped", range(6)))
    healed = trial.audit(replace(ASK, as_of=STOP + 7 * HOUR))
    assert (healed.audit.verdict, healed.watermark) == ("ok", STOP + 6 * HOUR)


def test_stream_of_sparse_shards_is_told_as_a_whole(warehouse: Warehouse, tmp_path: Path) -> None:
    trial = Trial(warehouse, tmp_path, ASK)
    sent = [m for i in range(12) for m in messages(f"s{i:02d}", range(-400 + i, 0), every=12)]
    feed(trial, sent)
    published = trial.audit()
    verdicts = {cell.verdict for cell in published.cells.values()}
    assert (published.audit.verdict, verdicts) == ("inconclusive", {Verdict.INCONCLUSIVE})


def test_closed_shard_is_quiet(trial: Trial) -> None:
    trial.list_shards({"stopped"}, at=STOP + HOUR)
    shards = trial.warehouse
    rows = shards.spark.createDataFrame([("events", "stopped")], "stream string, shard_id string")
    for name, kind, _ in SHARDS.columns:
        if name not in rows.columns:
            value = {"observed_at": STOP + 2 * HOUR, "opened": False}.get(name)
            rows = rows.withColumn(name, F.lit(value).cast(kind))
    shards.merge(rows, SHARDS)
    assert trial.audit().audit.verdict == "ok"
    [kept] = shards.rows(WATERMARKS, where=pc.field("shard_id") == "stopped")
    assert kept["held_by"] is None
