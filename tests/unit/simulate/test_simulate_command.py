import argparse
import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from shardaudit.model.errors import ConfigError
from shardaudit.simulate.job import add_arguments, run
from shardaudit.simulate.kinesis_stream import KinesisStream, endpoint_client
from shardaudit.simulate.messages import connect, create_messages, create_puts
from shardaudit.simulate.producer import PutFailedError, produce
from shardaudit.simulate.s3proxy import Installation, S3ProxyFailedError, s3_proxy
from shardaudit.simulate.scenario import FAULTS, Roles, Scenario, roles
from shardaudit.simulate.stand_in.server import StandIn
from shardaudit.simulate.stand_in_process import StandInControl, kinesis_stand_in
from tests.unit.simulate.kinesis import START, Kinesis
from tests.unit.simulate.simulated import Simulated

SOURCES = Path(__file__).parents[3] / "spark"
SMALL = ["--messages", "1e3", "--hours", "1", "--fault", "lost=2"]


def simulate(*args: str) -> Mapping[str, object]:
    """What the command shows."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    shown: list[Mapping[str, object]] = []
    assert run(parser.parse_args(args), show=shown.append) == 0
    [facts] = shown
    return facts


def test_the_facts_are_shown_when_files_are_simulated(tmp_path: Path) -> None:
    facts = simulate("files", "--out", str(tmp_path / "out"), *SMALL)
    assert facts["messages"] == 1000
    assert facts["faults"] == {"lost": 2}
    assert facts["as_of"] == "2026-11-02T00:30:00Z"
    assert json.loads((tmp_path / "out" / "simulation.json").read_text()).items() <= facts.items()


def test_a_stand_in_is_started_and_stopped_when_no_endpoint_is_given(tmp_path: Path) -> None:
    simulate("run", "--out", str(tmp_path / "out"), *SMALL)
    simulated = Simulated(tmp_path / "out")
    assert len(simulated.sink) == 998
    assert len(simulated.traces) == 1000


def test_every_fault_is_planted_when_none_is_named(tmp_path: Path) -> None:
    facts = simulate("files", "--out", str(tmp_path / "out"), "--messages", "20000", "--hours", "6")
    assert dict(facts["faults"]).keys() == FAULTS.keys()  # type: ignore[call-overload] # a mapping
    assert Simulated(tmp_path / "out").counts().keys() == FAULTS.keys() - {"late", "reshard"}


@pytest.mark.parametrize(
    ("args", "wanted"),
    [
        (["--fault", "lots=3"], "NAME=COUNT"),
        (["--fault", "lost"], "NAME=COUNT"),
        (["--fault", "lost=some"], "whole number"),
        (["--fault", "lost=90000"], "at most"),
        (["--fault", "expired=30"], "at most"),
        (["--fault", "retry=20000"], "at most"),
        (["--fault", "late=6"], "at most 5"),
        (["--fault", "moved=1"], "reshard=1"),
        (["--fault", "reshard=2"], "0 or 1"),
        (["--fault", "silent_shard=8"], "at least 9"),
        (["--messages", "12.5"], "whole number"),
        (["--messages", "99"], "100"),
        (["--start", "2026-11-01T00:00:00"], "zone"),
        (["--hours", "9000"], "8760"),
        (["--seed", "-1"], "whole number"),
        (["--stream", "x'y"], "letters"),
    ],
)
def test_a_value_is_refused_when_it_cannot_be_done(
    tmp_path: Path, args: list[str], wanted: str
) -> None:
    # Given last, --messages replaces the small number.
    with pytest.raises(ConfigError, match=wanted):
        simulate("files", "--out", str(tmp_path / "out"), "--messages", "1000", *args)


def test_a_folder_is_refused_when_something_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("")
    with pytest.raises(ConfigError, match="empty"):
        simulate("files", "--out", str(tmp_path), *SMALL)


def test_serving_stops_when_it_is_asked_to() -> None:
    with kinesis_stand_in() as url:
        client = endpoint_client(url)
        client.create_stream(StreamName="s", ShardCount=1)
        assert client.list_streams()["StreamNames"] == ["s"]
        client.close()
    with served() as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0


def test_the_stand_in_ends_when_the_process_that_started_it_is_gone() -> None:
    with served("--until-input-ends") as process:
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(10) == 0


@contextmanager
def served(*args: str) -> "Iterator[subprocess.Popen[str]]":
    """The server as a process of its own, listening."""
    command = [sys.executable, "-m", "shardaudit.simulate.serve", *args]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": str(SOURCES)},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        yield process
        process.kill()


def test_failed_records_are_put_again_until_they_succeed(
    server: StandIn, kinesis: Kinesis, control: StandInControl
) -> None:
    fault = {"operation": "PutRecords", "times": 700, "per_record": True}
    control.change({"faults": [fault]})
    acks = produced(KinesisStream(endpoint_client(server.url), "s", control))
    assert acks == 1000
    assert sum(len(kinesis.contents_of(shard)) for shard in range(2)) == 1000


def test_the_producer_gives_up_when_the_stream_stays_throttled(
    server: StandIn, control: StandInControl
) -> None:
    fault = {"operation": "PutRecords", "times": 10_000, "per_record": True}
    control.change({"faults": [fault]})
    with pytest.raises(PutFailedError, match="refused 500 records"):
        produced(KinesisStream(endpoint_client(server.url), "s", control))


def produced(stream: KinesisStream) -> int:
    """How many puts of a small scenario were answered."""
    small = Scenario("s", 1, 1000, 2, START, 1, {})
    with connect() as engine:
        create_messages(engine, small)
        create_puts(engine, small, roles(small))
        produce(engine, stream, small, roles(small))
        [(count,)] = engine.execute("select count(*) from acks").fetchall()
    return int(count)


def test_parts_are_played_by_different_shards_when_all_faults_are_asked_for() -> None:
    faults = {"silent_shard": 2, "stuck_shard": 2, "reshard": 1}
    parts: Roles = roles(Scenario("s", 3, 1000, 8, START, 1, faults))
    assert parts.merged is not None
    players = [*parts.silent, *parts.stuck, parts.split, *parts.merged]
    assert len(set(players)) == 7
    assert sorted(parts.stuck.values()) == [700, 800]


def test_s3_says_what_is_missing_when_it_cannot_be_started(tmp_path: Path) -> None:
    with (
        pytest.raises(S3ProxyFailedError, match="Java 17"),
        s3_proxy(tmp_path, installation=Installation(java="no-java")),
    ):
        pass
    with (
        pytest.raises(S3ProxyFailedError, match="make setup"),
        s3_proxy(tmp_path, installation=Installation(java=sys.executable, jars=tmp_path)),
    ):
        pass
