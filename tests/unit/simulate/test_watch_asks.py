"""What the watch makes of Kinesis' answers: asked again, explained, and the last word kept."""

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from botocore.httpsession import URLLib3Session
from pyspark.sql import SparkSession

from shardaudit.model.config.settings import Settings
from shardaudit.model.exit_code import ExitCode
from shardaudit.simulate.stand_in.server import StandIn
from shardaudit.simulate.stand_in_process import StandInControl
from shardaudit.store.warehouse import Warehouse
from shardaudit.watch.watch_asked import Asked, ask
from shardaudit.watch.watch_history import History
from tests.builders import NOW
from tests.unit.simulate.kinesis import Kinesis, name

TABLES = Warehouse(cast(SparkSession, None), "w")  # it is asked how files are reached, no more
OLD = NOW - timedelta(hours=2)
WEEK = timedelta(days=7)


pytestmark = pytest.mark.usefixtures("_any_credentials")


def asked(url: str, *, stream_name: str = "s", listed: bool = True, **more: object) -> Asked:
    stream = {"stream_name": stream_name, "traces": {"path": "t"}, "sink": {"path": "s"}, **more}
    aws = {"region": "us-east-1", "endpoints": {"kinesis": url}}
    document = {"warehouse": "w", "aws": aws, "streams": {"events": stream}}
    row = {"shard_id": name(0), "opened": True, "parent_shard_ids": []}
    past = History({}, {}, {name(0): row} if listed else {}, OLD if listed else None, ())
    return ask(TABLES, Settings.model_validate(document), "events", past=past, as_of=NOW)


def fail(control: StandInControl, error: str, *, times: int, **more: object) -> None:
    fault = {"operation": "ListShards", "error": error, "status": 400, "times": times, **more}
    control.change({"faults": [fault]})


def test_what_kinesis_says_is_taken_with_lineage_and_closed_shards(
    server: StandIn, kinesis: Kinesis
) -> None:
    kinesis.create(1)
    kinesis.split(0)
    found = asked(server.url)
    assert (found.is_fresh, found.listed_at, found.failures) == (True, NOW, ())
    assert {shard: row["opened"] for shard, row in found.rows.items()} == {
        name(0): False,
        name(1): True,
        name(2): True,
    }
    assert found.rows[name(1)]["parent_shard_ids"] == [name(0)]


def test_a_consumer_whose_files_hold_no_position_is_not_well_known(
    server: StandIn, kinesis: Kinesis, tmp_path: Path
) -> None:
    kinesis.create(1)
    asked_of = {"source": "file", "path": str(tmp_path)}
    (said,) = asked(server.url, positions=asked_of).unsaid
    assert said.startswith(f"no shard has a position in {tmp_path}: ")
    line = {"shard_id": name(0), "sequence_number": "7", "observed_at": OLD.isoformat()}
    (tmp_path / "positions.jsonl").write_text(json.dumps(line))
    assert asked(server.url, positions=asked_of).unsaid == ()
    assert asked(server.url).unsaid == ()


@pytest.mark.parametrize(
    ("error", "more"),
    [
        ("LimitExceededException", {}),
        ("ExpiredNextTokenException", {}),
        ("InternalFailure", {"status": 500}),
        ("InternalFailure", {"lose_answer": True}),
    ],
)
def test_what_may_work_again_is_tried_again_and_ends_with_75(
    server: StandIn,
    kinesis: Kinesis,
    control: StandInControl,
    error: str,
    more: dict[str, object],
) -> None:
    kinesis.create(1)
    fail(control, error, times=1, **more)
    assert asked(server.url).failures == ()
    fail(control, error, times=20, **more)
    found = asked(server.url)
    assert (found.is_fresh, found.listed_at) == (False, OLD)
    assert list(found.rows) == [name(0)]
    failure = found.failure(None)
    assert failure is not None
    assert failure.exit_code is ExitCode.RETRY


def test_what_will_not_work_is_explained_and_ends_with_1(
    server: StandIn, kinesis: Kinesis, control: StandInControl
) -> None:
    kinesis.create(1)
    fail(control, "AccessDeniedException", times=20)
    denied = asked(server.url).failure(WEEK)
    assert denied is not None
    assert "docs/iam.md" in str(denied)
    missing = asked(server.url, stream_name="none").failure(WEEK)
    assert missing is not None
    assert "check stream_name" in str(missing)
    assert {denied.exit_code, missing.exit_code} == {ExitCode.FAILED}


def test_a_stream_that_was_never_listed_is_watched_without_kinesis(server: StandIn) -> None:
    found = asked(server.url, listed=False)
    assert found.failures
    assert found.failure(WEEK) is None
    assert found.failure(None) is not None


@pytest.fixture
def mute() -> Iterator[tuple[str, list[socket.socket]]]:
    """A server that takes every connection and never answers, with those that it took."""
    taken: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def take() -> None:
            with contextlib.suppress(OSError):  # closed: the test is over
                while True:
                    taken.append(server.accept()[0])

        threading.Thread(target=take, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", taken
        server.shutdown(socket.SHUT_RDWR)
    for connection in taken:
        connection.close()


def test_a_kinesis_that_never_answers_is_asked_three_times_and_its_last_word_stays(
    mute: tuple[str, list[socket.socket]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, taken = mute
    patient, timeouts = URLLib3Session.__init__, []

    def impatient(self: URLLib3Session, *args: Any, **given: Any) -> None:  # Any: botocore's own
        timeouts.append(given["timeout"])
        patient(self, *args, **given | {"timeout": 0.2})

    monkeypatch.setattr(URLLib3Session, "__init__", impatient)
    found = asked(url)
    assert timeouts[-1] == (5, 20)  # to connect, to answer, in seconds
    assert len(taken) == 3
    assert (found.is_fresh, found.listed_at, list(found.rows)) == (False, OLD, [name(0)])
    failure = found.failure(None)
    assert failure is not None
    assert "Read timeout" in str(failure)
    assert failure.exit_code is ExitCode.RETRY
