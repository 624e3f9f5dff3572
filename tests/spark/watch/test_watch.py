"""The watch over a small ledger: the aggregation, what is stored, and the next watch on top."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from shardaudit.adapters.notifiers import OutgoingMessage
from shardaudit.ingest.rules.batch_inputs import DeltaInputs
from shardaudit.model.config.eras import CellShape, Eras
from shardaudit.model.errors import WarehouseBusyError
from shardaudit.model.exit_code import ExitCode
from shardaudit.model.tables.audit_tables import BATCHES
from shardaudit.model.tables.watch_tables import NOTIFICATIONS, POSITIONS, SHARDS
from shardaudit.model.verdict import Level, ShardState
from shardaudit.store.warehouse import Warehouse
from shardaudit.watch.job import Watched, WatchRequest, watch
from shardaudit.watch.notify import alarms, notify_stream
from shardaudit.watch.rules.facts import EarlierWatch
from shardaudit.watch.watch_history import history
from shardaudit.watch.watch_ledger import Known
from tests.builders import NOW, sequence
from tests.spark.watch.ledger import MINUTE, START, cell, facts, fill, settings

HOUR = 60 * MINUTE


pytestmark = pytest.mark.usefixtures("_any_credentials")


LAST = 20 * 60  # minutes from START to NOW


def healthy(shard: str, until: int = LAST) -> list[dict[str, object]]:
    minutes = range(until - 90, until)
    return [cell(shard, m, side) for m in minutes for side in ("traces", "sink")]


@pytest.fixture
def ledger(warehouse: Warehouse) -> Warehouse:
    """Four shards: one well, one that stopped 10 h ago, one of which nothing landed, one idle."""
    stopped = healthy("stopped", LAST - 600)
    stopped += [cell("stopped", m, n=100) for m in range(LAST - 600, LAST)]
    silent = [cell("silent", m) for m in range(LAST - 60, LAST)]
    fill(warehouse, [*healthy("well"), *stopped, *silent, *healthy("idle", LAST - 300)])
    return warehouse


def test_each_shard_has_its_frontier_and_what_is_ahead_of_it(ledger: Warehouse) -> None:
    found = facts(ledger)
    well, stopped, silent = found["well"], found["stopped"], found["silent"]
    since = START + (LAST - 600) * MINUTE
    assert (well.frontier, well.frontier_at) == (sequence(LAST - 1), NOW)
    assert (well.ahead, well.pause) == (None, None)
    assert (stopped.frontier, stopped.frontier_at) == (sequence(LAST - 601), since)
    assert stopped.produced_until == NOW - MINUTE / 2
    ahead = stopped.ahead
    assert ahead is not None
    assert (ahead.messages, ahead.since, ahead.until) == (60_000, since, NOW)
    assert silent.ahead is not None
    assert (silent.ahead.messages, silent.landed_until) == (180, None)


def test_what_a_backfill_landed_moves_no_frontier_and_waits_no_more(warehouse: Warehouse) -> None:
    sent = [cell("shard", m) for m in range(LAST - 90, LAST)]
    consumed = [cell("shard", m, "sink") for m in range(LAST - 90, LAST - 60)]
    nothing = {"max_sequence_number": None, "last_at": None, "latency_counts": None, "own_n": 3}
    own = [cell("shard", m, "sink") | nothing for m in range(LAST - 60, LAST - 20)]
    fill(warehouse, [*sent, *consumed, *own])
    found = facts(warehouse)
    shard = found["shard"]
    assert (shard.frontier, shard.frontier_at) == (sequence(LAST - 61), NOW - 60 * MINUTE)
    assert (shard.landed_until, shard.last_landed_at) == (NOW - 61 * MINUTE, NOW - 60 * MINUTE)
    assert shard.ahead is not None
    assert (shard.ahead.since, shard.ahead.until) == (NOW - 20 * MINUTE, NOW)
    assert shard.ahead.messages == 60


def test_a_shard_that_lands_rows_without_numbers_does_not_stand_still(warehouse: Warehouse) -> None:
    """Its writer gave numbers until an hour ago: the frontier of then is not where it is now."""
    minutes = range(LAST - 90, LAST)
    sent = [cell("shard", m) for m in minutes]
    numbered = [cell("shard", m, "sink") for m in range(LAST - 90, LAST - 60)]
    without = [
        cell("shard", m, "sink")
        | {"max_sequence_number": None, "unnumbered_at": START + (m + 1) * MINUTE}
        for m in range(LAST - 60, LAST)
    ]
    fill(warehouse, [*sent, *numbered, *without])
    then = EarlierWatch(NOW - HOUR, Level.NONE, sequence(LAST - 61), NOW - HOUR)
    shard = facts(warehouse, Known({"shard": then}, {}))["shard"]
    assert (shard.frontier, shard.frontier_at, shard.ahead) == (None, NOW, None)


def test_a_pause_that_is_over_is_seen(warehouse: Warehouse) -> None:
    waited = [
        cell("shard", m, "sink", after=(LAST - 20 - m) * MINUTE)
        for m in range(LAST - 40, LAST - 20)
    ]
    sent = [cell("shard", m) for m in range(LAST - 40, LAST)]
    on_time = [cell("shard", m, "sink") for m in range(LAST - 20, LAST)]
    fill(warehouse, [*healthy("shard", LAST - 40), *waited, *sent, *on_time])
    pause = facts(warehouse)["shard"].pause
    assert pause is not None
    assert pause.until == START + (LAST - 20) * MINUTE
    assert pause.length == 19 * MINUTE


def test_a_sink_without_sequence_numbers_is_judged_by_its_cells_times(
    warehouse: Warehouse,
) -> None:
    landed = [cell("shard", m, "sink") | {"max_sequence_number": None} for m in range(10)]
    fill(warehouse, [*landed, *(cell("shard", m) for m in range(30))])
    found = facts(warehouse)["shard"]
    assert (found.frontier, found.is_by_time) == (None, True)
    assert found.ahead is not None
    assert found.ahead.since == START + 10 * MINUTE


def test_what_waits_without_sequence_numbers_is_told_apart(ledger: Warehouse) -> None:
    bare = [cell("bare", m) | {"max_sequence_number": None} for m in range(30)]
    fill(ledger, [*bare, *(cell("bare", m, "sink") for m in range(10))])
    found = facts(ledger)
    assert found["bare"].ahead is not None
    assert {shard for shard, one in found.items() if one.is_by_time} == {"bare"}


def run(
    warehouse: Warehouse,
    folder: Path,
    as_of: datetime = NOW,
    *,
    busy: WarehouseBusyError | None = None,
) -> Watched:
    return watch(warehouse, WatchRequest(settings(folder), "events", as_of, busy))


def test_states_levels_and_deadlines_are_stored(ledger: Warehouse, tmp_path: Path) -> None:
    watched = run(ledger, tmp_path)
    rows = {row.shard_id: row for row in ledger.read(SHARDS).collect()}
    states = {shard: (row.state, row.level) for shard, row in rows.items()}
    assert states == {
        "well": (ShardState.OK, Level.NONE),
        "idle": (ShardState.IDLE, Level.NONE),
        "silent": (ShardState.SILENT, Level.WARN),
        "stopped": (ShardState.STALLED, Level.URGENT),
    }
    assert [line.shard_id for line in watched.report.shards] == ["stopped", "silent"]
    assert "start by 2026-11-20" in rows["stopped"].advice
    # Configured retention, and Kinesis never listed the stream: watched without it.
    assert (watched.exit_code, watched.checked) == (ExitCode.DONE, ExitCode.BAD_VERDICT)
    assert "known from the traces and the sink alone" in watched.report.notes[-1]
    assert ledger.read(POSITIONS).count() == 3


def test_nobody_is_told_twice_and_a_mark_that_was_lost_is_made_good(
    ledger: Warehouse, tmp_path: Path
) -> None:
    run(ledger, tmp_path)
    run(ledger, tmp_path)
    run(ledger, tmp_path, NOW + 15 * MINUTE)
    assert ledger.read(NOTIFICATIONS).count() == 2
    config = settings(tmp_path)
    sent: list[str] = []

    def crash(message: OutgoingMessage) -> None:
        sent.append(message.message_id)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        notify_stream(config, "events", sender=crash)
    again: list[str] = []
    assert notify_stream(config, "events", sender=lambda x: again.append(x.message_id)) == 2
    assert again[0] == sent[0]
    assert notify_stream(config, "events", sender=lambda x: again.append(x.message_id)) == 0
    assert [news.level for news in alarms(config, "events", now=NOW)] == [Level.URGENT, Level.WARN]


def test_the_last_listing_stays_visible_with_its_age_when_kinesis_is_silent(
    ledger: Warehouse, tmp_path: Path
) -> None:
    listed = {
        "stream": "events",
        "parent_shard_ids": [],
        "opened": True,
        "retention_hours": 24,
        "observed_at": NOW - timedelta(hours=2),
    }
    shards = ["well", "stopped", "silent", "idle"]
    rows = {shard: listed | {"shard_id": shard} for shard in shards}
    rows["silent"]["parent_shard_ids"] = ["stopped"]
    ledger.upsert([*rows.values()], SHARDS)
    watched = run(ledger, tmp_path)
    assert watched.exit_code is ExitCode.RETRY
    assert watched.report.listed_at == NOW - timedelta(hours=2)
    assert "2 h 0 min old" in watched.report.notes[-1]
    assert watched.report.worst is Level.URGENT
    well = ledger.read(SHARDS).where("level = 'none'").collect()
    said = {row.shard_id: row.advice for row in well}
    assert said["silent"] == "not judged before its parent is drained: stopped"


BUSY = WarehouseBusyError("w", "audit events (process 7 on host)", "2026-11-20T13:59:00Z")


def test_while_an_audit_holds_the_ledger_states_stay_and_deadlines_run_on(
    ledger: Warehouse, tmp_path: Path
) -> None:
    run(ledger, tmp_path)
    later = NOW + timedelta(hours=15)
    report = run(ledger, tmp_path, later, busy=BUSY).report
    assert (report.as_of, report.read_at) == (later, NOW)
    # Nothing of `well` was read for 15 hours: that says nothing about it.
    levels = {line.shard_id: line.level for line in report.shards}
    assert levels == {"stopped": Level.LOST, "silent": Level.WARN}
    assert "held by audit events" in report.notes[-2]
    assert "the traces and the sink are of 2026-11-20T14:00:00Z, 15 h 0 min old" in report.notes[-1]
    assert report.told == 1
    newest = {row.observed_at for row in ledger.read(SHARDS).collect()}
    assert len(newest) == 1


def test_who_could_not_look_for_over_four_hours_has_not_watched(
    ledger: Warehouse, tmp_path: Path
) -> None:
    run(ledger, tmp_path)
    within, over = NOW + timedelta(hours=4), NOW + timedelta(hours=4, minutes=15)
    assert run(ledger, tmp_path, within, busy=BUSY).exit_code is ExitCode.DONE
    watched = run(ledger, tmp_path, over, busy=BUSY)
    assert watched.exit_code is ExitCode.RETRY
    assert watched.report.told == 0  # as in each watch meanwhile; what is new is told


def test_one_hold_is_one_failure_not_one_each_quarter_of_an_hour(
    ledger: Warehouse, tmp_path: Path
) -> None:
    run(ledger, tmp_path)

    def failed(*minutes: int) -> list[int]:
        ended = {at: run(ledger, tmp_path, NOW + at * MINUTE, busy=BUSY) for at in minutes}
        return [at for at, watched in ended.items() if watched.exit_code is ExitCode.RETRY]

    assert failed(90, 255, 257, 270) == [255, 257]  # 257: Airflow's second try
    assert failed(601, 616) == [601]  # it goes on: told once more, as is what is urgent


def test_a_watch_of_a_past_time_takes_nothing_back_that_a_later_one_told(
    ledger: Warehouse, tmp_path: Path
) -> None:
    run(ledger, tmp_path)
    told = ledger.read(NOTIFICATIONS).count()
    config, then = settings(tmp_path), NOW - timedelta(minutes=50)
    news = ledger.read(NOTIFICATIONS).collect()
    assert {row.shard_id for row in news} == {"stopped", "silent"}
    watch(ledger, WatchRequest(config, "events", then, now=NOW))
    assert ledger.read(NOTIFICATIONS).count() == told
    assert [one.level for one in alarms(config, "events", now=NOW)] == [Level.URGENT, Level.WARN]


def test_what_the_consumer_said_at_the_last_watch_is_known_after_a_long_audit(
    ledger: Warehouse, tmp_path: Path
) -> None:
    said = {
        "stream": "events",
        "source": "kcl",
        "consumer": "leases",
        "shard_id": "well",
        "checkpoint": "4965",
    }
    run(ledger, tmp_path)
    after = NOW + timedelta(hours=3)
    ledger.upsert([said | {"observed_at": at} for at in (NOW, after)], POSITIONS)
    run(ledger, tmp_path, after, busy=BUSY)
    before = history(ledger, "events", as_of=after + 15 * MINUTE).before["well"]
    assert before.observed_at == NOW
    assert before.position is not None
    assert before.position.checkpoint == "4965"


def held(owner: str = "audit events", **ago: float) -> WarehouseBusyError:
    since = (NOW - timedelta(**ago)).isoformat()
    return WarehouseBusyError("w", f"{owner} (process 7 on host)", since)


def test_a_first_watch_judges_nothing_while_the_ledger_is_filled(
    ledger: Warehouse, tmp_path: Path
) -> None:
    watched = run(ledger, tmp_path, busy=held(hours=4))
    report = watched.report
    assert watched.exit_code is ExitCode.DONE
    assert watched.checked is ExitCode.RETRY
    assert (report.read_at, report.worst, report.states, report.shards) == (None, None, {}, ())
    assert "held by audit events" in report.notes[-2]
    assert "nothing is known yet of what landed" in report.notes[-1]
    assert [ledger.read(table).count() for table in (SHARDS, POSITIONS, NOTIFICATIONS)] == [0] * 3


@pytest.mark.parametrize(
    "busy",
    [
        held(hours=4, minutes=1),
        held("ingest events", hours=4, minutes=1),
        held("backfill run p", hours=1),
        held(hours=-2),  # its clock or ours is wrong: nobody knows since when
        WarehouseBusyError("w", "another run", "this moment"),
    ],
)
def test_a_first_watch_waits_for_no_run_but_an_early_audit(
    ledger: Warehouse, tmp_path: Path, busy: WarehouseBusyError
) -> None:
    with pytest.raises(WarehouseBusyError):
        run(ledger, tmp_path, busy=busy)


def sink_batch(warehouse: Warehouse, **fields: object) -> None:
    batch = {"batch_id": "events/sink/1", "stream": "events", "side": "sink", "number": 1}
    warehouse.upsert([batch | {"state": "done", "done_at": NOW} | fields], BATCHES)


SETTLED = 79 * 3  # of 90 minutes of 3 messages those sent longer ago than a landing may take


@pytest.mark.parametrize(("unplaced", "waits"), [(0, True), (SETTLED - 1, True), (SETTLED, False)])
def test_shards_of_a_sink_that_says_of_no_row_where_it_belongs_are_not_silent(
    warehouse: Warehouse, unplaced: int, *, waits: bool
) -> None:
    fill(warehouse, [cell("any", m) for m in range(LAST - 90, LAST)])
    sink_batch(warehouse, unplaced=unplaced)
    assert (facts(warehouse)["any"].ahead is not None) is waits


def test_one_row_without_a_time_does_not_hide_a_consumer_that_never_started(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    fill(warehouse, [cell("any", m, n=10_000) for m in range(LAST - 90, LAST)])
    sink_batch(warehouse, unplaced=1)
    run(warehouse, tmp_path)
    assert [row.state for row in warehouse.read(SHARDS).collect()] == [ShardState.SILENT]


@pytest.mark.parametrize("lacking", ["shard_id", "sent_at"])
def test_shards_of_a_sink_without_columns_for_places_are_not_silent(
    warehouse: Warehouse, lacking: str
) -> None:
    fill(warehouse, [cell("any", m) for m in range(LAST - 90, LAST)])
    names = {"message_id", "landed_at", "shard_id", "sent_at"} - {lacking}
    inputs = DeltaInputs({name: name for name in names}, Eras(CellShape(60, 1.0)))
    sink_batch(warehouse, unplaced=1, inputs=inputs.as_json())
    assert facts(warehouse)["any"].ahead is None


def test_consumer_that_lands_the_same_rows_again_rests_since_the_first_time(
    warehouse: Warehouse,
) -> None:
    again = [
        cell("looping", m, "sink", after=(LAST - m) * MINUTE) | {"batch_id": f"events/sink/{n}"}
        for n in (2, 3)
        for m in (LAST - 302, LAST - 301)
    ]
    waiting = [cell("looping", m) for m in range(LAST - 300, LAST)]
    fill(warehouse, [*healthy("looping", LAST - 300), *again, *waiting])
    found = facts(warehouse)["looping"]
    assert (found.frontier, found.last_landed_at) == (sequence(LAST - 301), NOW)
    assert found.frontier_at == NOW - 300 * MINUTE
