"""Both ways to simulate, judged by what they left in their folders."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from shardaudit.model.config.choices import EngineName
from shardaudit.model.config.settings import load_settings
from shardaudit.simulate.job import Endpoints, simulate_files, simulate_stream
from shardaudit.simulate.stand_in_process import StandInControl, kinesis_stand_in
from tests.oracle import reconcile
from tests.scenarios import FAULTS, MESSAGES, scenario
from tests.unit.simulate.simulated import Simulated

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with kinesis_stand_in() as url:
        yield url


@pytest.fixture(scope="module", params=["stream", "files"])
def simulated(
    request: pytest.FixtureRequest, endpoint: str, tmp_path_factory: pytest.TempPathFactory
) -> Simulated:
    out = tmp_path_factory.mktemp(str(request.param)) / "out"
    if request.param == "stream":  # the audit looks half an hour after the window's end
        simulate_stream(scenario(hours=24), out, endpoints=Endpoints(endpoint))
    else:  # the audit looks a day after
        simulate_files(scenario(), out)
    return Simulated(out)


def test_an_audit_by_the_book_finds_what_was_planted_and_nothing_else(
    simulated: Simulated,
) -> None:
    outcome = reconcile(simulated.history(), simulated.question())
    found = {
        (message_id, str(kind), str(f.cause), str(f.state), f.shard_id, f.recoverable_until)
        for (message_id, kind), f in outcome.findings.items()
    }
    keys = ("message_id", "kind", "cause", "state", "shard_id", "recoverable_until")
    assert found == {tuple(row[key] for key in keys) for row in simulated.planted}
    assert not outcome.pending


def test_as_many_faults_are_planted_as_were_asked_for(simulated: Simulated) -> None:
    counts = simulated.counts()
    for fault in ("lost", "expired", "replay", "retry", "untraced", "moved"):
        assert counts[fault] == FAULTS[fault]
    assert counts["cancel"] == 2 * FAULTS["cancel"]
    assert counts["silent_shard"] > MESSAGES / 9 * 0.8
    assert counts["stuck_shard"] > MESSAGES / 9 * 0.4
    assert len({row["shard_id"] for row in simulated.planted if row["fault"] == "stuck_shard"}) == 2


def test_every_message_is_traced_when_its_trace_was_not_to_be_lost(simulated: Simulated) -> None:
    untraced = simulated.planted_ids("untraced")
    assert len(simulated.traces_of) == MESSAGES - len(untraced)
    assert untraced <= simulated.rows_of.keys() - simulated.traces_of.keys()


def test_missing_messages_have_traces_and_no_rows(simulated: Simulated) -> None:
    missing = {row["message_id"] for row in simulated.planted if row["kind"] == "missing"}
    assert missing <= simulated.traces_of.keys()
    assert missing.isdisjoint(simulated.rows_of)
    assert len(simulated.rows_of) == MESSAGES - len(missing)


def test_doubled_messages_have_two_rows_and_others_one(simulated: Simulated) -> None:
    doubled = {row["message_id"]: row for row in simulated.planted if row["kind"] == "duplicated"}
    for message_id, rows in simulated.rows_of.items():
        places = {(row["shard_id"], row["sequence_number"]) for row in rows}
        row = doubled.get(message_id)
        assert len(rows) == (1 if row is None else 2)
        assert len(places) == (2 if row is not None and row["cause"] == "producer_retry" else 1)


def test_a_pair_leaves_the_count_of_its_cell_as_it_was(simulated: Simulated) -> None:
    pairs = [row for row in simulated.planted if row["fault"] == "cancel"]
    cells: dict[object, list[object]] = {}
    for row in pairs:
        minute = row["sent_at"].replace(second=0, microsecond=0)  # type: ignore[attr-defined] # a datetime
        cells.setdefault((row["shard_id"], minute), []).append(row["kind"])
    assert len(cells) == 3
    assert all(sorted(map(str, kinds)) == ["duplicated", "missing"] for kinds in cells.values())


def test_moved_messages_landed_under_a_child_of_their_shard(simulated: Simulated) -> None:
    children = {6: {9, 10}, 7: {11}, 8: {11}}
    for message_id in simulated.planted_ids("moved"):
        [trace], [row] = simulated.traces_of[message_id], simulated.rows_of[message_id]
        assert int(str(row["shard_id"])[-4:]) in children[int(str(trace["shard_id"])[-4:])]


def test_messages_land_within_seconds_but_for_the_late_and_the_doubled(
    simulated: Simulated,
) -> None:
    retried = simulated.planted_ids("retry")
    latencies = [
        row["landed_at"] - row["sent_at"]  # type: ignore[operator] # two datetimes
        for row in simulated.sink
        if row["message_id"] not in retried
    ]
    slow = [latency for latency in latencies if latency > timedelta(seconds=21)]
    assert min(latencies) > timedelta(milliseconds=400)
    assert len([latency for latency in slow if latency > timedelta(minutes=10)]) == FAULTS["late"]
    assert len(slow) == FAULTS["late"] + FAULTS["replay"] + FAULTS["cancel"]


def test_both_sides_agree_on_when_a_message_was_sent(simulated: Simulated) -> None:
    start, end = simulated.instant("window_start"), simulated.instant("window_end")
    for trace in simulated.history().traces:
        assert start <= trace.sent_at < end
        for row in simulated.rows_of.get(trace.message_id, []):
            assert row["sent_at"] == trace.sent_at
            assert row["day"] == "2026-11-01"


def test_the_configuration_can_be_loaded(simulated: Simulated) -> None:
    settings = load_settings(simulated.folder / "shardaudit.toml")
    assert settings.engine is EngineName.EMBEDDED
    stream = settings.stream("events")
    assert stream.retention == timedelta(hours=24)
    assert Path(stream.traces.path) == simulated.folder / "traces"
    assert Path(stream.sink.path) == simulated.folder / "sink"


def test_the_planted_list_has_the_same_bytes_when_the_seed_is_the_same(
    endpoint: str, tmp_path: Path
) -> None:
    small = {"messages": 2000, "faults": {"lost": 3, "retry": 2, "reshard": 1, "stuck_shard": 1}}
    lists = []
    for number, seed in enumerate((1, 1, 2)):
        out = tmp_path / str(number)
        named = scenario(stream=f"again-{seed}", seed=seed, **small)
        if number == 0:
            simulate_stream(named, out, endpoints=Endpoints(endpoint))
            # Whoever asks the stream now is where the audit is.
            assert "2026-11-02T00:30" in str(StandInControl(endpoint).change({})["now"])
        else:
            simulate_files(named, out)
        lists.append((out / "planted.parquet").read_bytes())
    assert lists[0] == lists[1]
    assert lists[1] != lists[2]


def test_a_parquet_sink_holds_the_rows_of_the_delta_sink(tmp_path: Path) -> None:
    sinks = []
    for sink_format in ("delta", "parquet"):
        out = tmp_path / sink_format
        simulate_files(scenario(), out, sink_format=sink_format)
        sinks.append(sorted(repr(sorted(row.items())) for row in Simulated(out).sink))
        assert load_settings(out / "shardaudit.toml").stream("events").sink.format == sink_format
    assert len(sinks[0]) > 1000
    assert set(sinks[0]) ^ set(sinks[1]) == set()


def test_nothing_is_found_when_nothing_was_planted(tmp_path: Path) -> None:
    simulate_files(scenario(faults={}, messages=3000, hours=2), tmp_path / "out")
    clean = Simulated(tmp_path / "out")
    outcome = reconcile(clean.history(), clean.question())
    assert clean.planted == []
    assert outcome.findings == {}
    assert outcome.verdict == "ok"
