"""The lock of a warehouse on S3: conditional writes decide."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from shardaudit.adapters.aws.s3 import S3RefusedError, S3UnreachableError, s3_client
from shardaudit.model.config.parts import Aws
from shardaudit.model.config.settings import Settings
from shardaudit.model.errors import LockLostError, WarehouseBusyError
from shardaudit.simulate.s3proxy import s3_proxy
from shardaudit.store import lock
from shardaudit.store.lock import warehouse_lock
from shardaudit.store.lock_files import FOLDER, WATCH, S3LockFiles
from shardaudit.store.probes import probe_warehouse
from tests.contenders import Contender
from tests.faults.stormy_proxy import UNANSWERED, Weather, stormy


@pytest.fixture(scope="module")
def s3_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An S3 server with a bucket `lake`; its credentials are in the environment."""
    folder = tmp_path_factory.mktemp("s3")
    (folder / "lake").mkdir()
    with s3_proxy(folder) as server, pytest.MonkeyPatch.context() as patched:
        for name, value in server.environment().items():
            patched.setenv(name, value)
        yield server.url


@pytest.fixture
def settings(s3_url: str, tmp_path: Path) -> Settings:
    """A warehouse of the test's own."""
    return Settings(
        warehouse=f"s3a://lake/{tmp_path.name}",
        aws=Aws(region="us-east-1", endpoints={"s3": s3_url}),
        streams={},
    )


def store(settings: Settings) -> S3LockFiles:
    return S3LockFiles(s3_client(settings.aws), settings.warehouse, FOLDER)


def test_generation_is_created_by_one_alone(settings: Settings) -> None:
    files = store(settings)
    assert files.generations() == []
    assert files.create(7, "first")
    assert not files.create(7, "second")
    assert (files.generations(), files.read(7), files.read(8)) == ([7], "first", None)
    files.delete(7)
    assert files.generations() == []


def test_the_watch_does_not_wait_for_the_ledger(settings: Settings) -> None:
    with (
        warehouse_lock(settings, owner="watch", name=WATCH) as watch,
        warehouse_lock(settings, owner="audit") as audit,
        pytest.raises(WarehouseBusyError, match="held by watch"),
        warehouse_lock(settings, owner="another", name=WATCH),
    ):
        pass
    watch.check()
    audit.check()


def test_second_run_is_refused_while_a_process_holds_and_takes_over_when_it_was_killed(
    settings: Settings,
) -> None:
    with Contender(settings) as other:
        assert other.take() == "held"
        with pytest.raises(WarehouseBusyError, match="other"), warehouse_lock(settings, owner="me"):
            pass
        other.kill()
        with warehouse_lock(settings, owner="me") as mine:
            mine.renew()
            assert store(settings).generations() == [2]


def test_exactly_one_wins_when_two_race(settings: Settings) -> None:
    with Contender(settings) as one, Contender(settings) as two:
        for _ in range(10):
            assert one.race(two) == ["busy", "held"]


class PutUnanswered(Weather):
    """The answer to the second request, the lock's writing, is lost."""

    def of_request(self, asked: str) -> tuple[str | None, float]:
        """As it says."""
        del asked
        self.requests += 1
        return (UNANSWERED if self.requests == 2 else None), 0.0


def test_a_lock_is_held_when_s3_wrote_it_and_its_answer_was_lost(settings: Settings) -> None:
    with stormy(settings.aws.endpoint("s3") or "", PutUnanswered(seed=0)) as url:
        unsure = settings.model_copy(update={"aws": Aws(endpoints={"s3": url})})
        with warehouse_lock(unsure, owner="me") as mine:
            mine.check()
            assert store(settings).generations() == [1]


def test_holder_notices_when_it_was_taken_over(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "DEAD_AFTER", timedelta(seconds=2))
    with warehouse_lock(settings, owner="first") as first:
        silent = json.loads(store(settings).read(1) or "")
        long_ago = (datetime.now(UTC) - timedelta(minutes=2)).isoformat()
        silent |= {"machine": "elsewhere", "heartbeat_at": long_ago}
        store(settings).rewrite(1, json.dumps(silent))
        with (
            warehouse_lock(settings, owner="second"),
            pytest.raises(LockLostError, match="second"),
        ):
            first.check()


def test_doctor_accepts_an_s3_that_keeps_runs_apart_and_leaves_nothing(settings: Settings) -> None:
    probe_warehouse(settings)
    listed = s3_client(settings.aws).list_objects_v2(
        Bucket="lake", Prefix=settings.warehouse.removeprefix("s3a://lake/")
    )
    assert listed["KeyCount"] == 0


def test_bucket_that_is_not_there_is_final(settings: Settings) -> None:
    absent = settings.model_copy(update={"warehouse": "s3a://nowhere/w"})
    with pytest.raises(S3RefusedError, match="NoSuchBucket"), warehouse_lock(absent, owner="me"):
        pass


def test_s3_that_does_not_answer_is_worth_another_try(settings: Settings) -> None:
    away = settings.model_copy(update={"aws": Aws(endpoints={"s3": "http://127.0.0.1:9"})})
    with pytest.raises(S3UnreachableError), warehouse_lock(away, owner="me"):
        pass
