"""The lock, with real processes."""

import json
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from shardaudit.cli.session import WriteLock
from shardaudit.model.config.settings import Settings
from shardaudit.model.errors import LockLostError, WarehouseBusyError
from shardaudit.model.exit_code import ExitCode
from shardaudit.store import lock
from shardaudit.store.lock import process_start, warehouse_lock
from shardaudit.store.lock_files import WATCH, WarehouseAccessError
from tests.contenders import Contender


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(warehouse=str(tmp_path / "lake"), streams={})


def lock_file_names(settings: Settings) -> list[str]:
    return sorted(path.name for path in (Path(settings.warehouse) / "_claims").iterdir())


def edit(settings: Settings, **fields: object) -> None:
    """Changes what the newest lock file says."""
    newest = Path(settings.warehouse) / "_claims" / lock_file_names(settings)[-1]
    draft = Path(settings.warehouse) / "draft"
    draft.write_text(json.dumps(json.loads(newest.read_text()) | fields))
    draft.replace(newest)


@pytest.mark.slow
def test_second_run_is_refused_at_once_when_a_living_process_holds(settings: Settings) -> None:
    with Contender(settings) as other:
        assert other.take() == "held"
        with (
            pytest.raises(WarehouseBusyError, match=f"other .process {other.pid} on") as refused,
            warehouse_lock(settings, owner="me"),
        ):
            pass
    assert refused.value.exit_code is ExitCode.RETRY


@pytest.mark.slow
def test_the_watch_and_the_ledger_are_locked_apart(settings: Settings) -> None:
    with warehouse_lock(settings, owner="watch", name=WATCH), Contender(settings) as other:
        assert other.take() == "held"
        with (
            pytest.raises(WarehouseBusyError, match="held by watch"),
            warehouse_lock(settings, owner="notify", name=WATCH),
        ):
            pass
        other.give()
    with (
        warehouse_lock(settings, owner="watch", name=WATCH),
        warehouse_lock(settings, owner="audit"),
    ):
        pass


def test_warehouse_is_free_again_when_the_holder_ended(settings: Settings) -> None:
    with warehouse_lock(settings, owner="first") as first:
        first.check()
    with warehouse_lock(settings, owner="second") as second:
        second.check()
        assert lock_file_names(settings) == ["000000000002.json"]


@pytest.mark.slow
def test_dead_holder_is_taken_over_when_it_was_killed(settings: Settings) -> None:
    with Contender(settings) as other:
        assert other.take() == "held"
        other.kill()
        with warehouse_lock(settings, owner="me") as mine:
            mine.check()
            assert lock_file_names(settings) == ["000000000002.json"]


@pytest.mark.slow
def test_exactly_one_wins_when_two_race(settings: Settings) -> None:
    with Contender(settings) as one, Contender(settings) as two:
        for _ in range(20):
            assert one.race(two) == ["busy", "held"]


DAY = 24 * 3600


@pytest.fixture
def seconds_for_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A silence of two seconds is one of a minute."""
    monkeypatch.setattr(lock, "DEAD_AFTER", timedelta(seconds=2))


@pytest.mark.usefixtures("seconds_for_minutes")
def test_holder_of_another_machine_keeps_the_warehouse_when_it_spoke_just_now(
    settings: Settings,
) -> None:
    with warehouse_lock(settings, owner="first"):
        edit(settings, machine="elsewhere", heartbeat_at=ago(seconds=1))
        with pytest.raises(WarehouseBusyError), warehouse_lock(settings, owner="second"):
            pass


@pytest.mark.usefixtures("seconds_for_minutes")
@pytest.mark.parametrize("wrong", [-DAY, -61, 61, DAY])
def test_living_holder_keeps_the_warehouse_whatever_its_clock_says(
    settings: Settings, wrong: int
) -> None:
    with warehouse_lock(settings, owner="first") as first:
        ended = threading.Event()

        def speak() -> None:
            n = 0
            while not ended.wait(0.3):
                n += 1
                edit(settings, machine="elsewhere", heartbeat_at=ago(seconds=wrong, micros=n))

        edit(settings, machine="elsewhere", heartbeat_at=ago(seconds=wrong))
        speaker = threading.Thread(target=speak)
        speaker.start()
        with pytest.raises(WarehouseBusyError), warehouse_lock(settings, owner="second"):
            pass
        ended.set()
        speaker.join()
        first.check()


@pytest.mark.usefixtures("seconds_for_minutes")
@pytest.mark.parametrize("wrong", [-DAY, 70, DAY])
def test_holder_of_another_machine_is_taken_over_when_it_was_seen_silent(
    settings: Settings, wrong: int
) -> None:
    with warehouse_lock(settings, owner="first") as first:
        edit(settings, machine="elsewhere", heartbeat_at=ago(seconds=wrong))
        looked_at = time.monotonic()
        with warehouse_lock(settings, owner="second") as second:
            assert time.monotonic() - looked_at > 2
            second.renew()
            with pytest.raises(LockLostError, match="taken over by second"):
                first.check()
            with pytest.raises(LockLostError):
                first.renew()


def test_holder_is_dead_when_its_pid_belongs_to_a_younger_process(settings: Settings) -> None:
    with warehouse_lock(settings, owner="first"):
        edit(settings, process_start="long ago")
        with warehouse_lock(settings, owner="second") as second:
            second.check()


def test_late_release_does_no_harm_when_the_lock_was_lost(settings: Settings) -> None:
    with warehouse_lock(settings, owner="first"):
        edit(settings, process_start="long ago")
        second = warehouse_lock(settings, owner="second")
        held = second.__enter__()
    held.check()
    with pytest.raises(WarehouseBusyError), warehouse_lock(settings, owner="third"):
        pass
    second.__exit__(None, None, None)
    with warehouse_lock(settings, owner="fourth"):
        assert lock_file_names(settings) == ["000000000003.json"]


@pytest.mark.parametrize("is_silent", [True, False])
def test_storage_that_took_no_renewal_is_not_asked_once_more_at_the_end(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, *, is_silent: bool
) -> None:
    monkeypatch.setattr(lock, "RENEW_SECONDS", 0.5)
    claims, away = Path(settings.warehouse) / "_claims", Path(settings.warehouse) / "away"
    with warehouse_lock(settings, owner="me") as held:
        if is_silent:
            claims.rename(away)
            claims.touch()
            until = time.monotonic() + 60
            while held.is_renewed and time.monotonic() < until:
                time.sleep(0.01)
            claims.unlink()
            away.rename(claims)
    (newest,) = claims.iterdir()
    assert json.loads(newest.read_text())["released"] is not is_silent


def test_foreign_lock_file_is_refused_with_the_cure(settings: Settings) -> None:
    folder = Path(settings.warehouse) / "_claims"
    folder.mkdir(parents=True)
    (folder / "000000000007.json").write_text("{}")
    with (
        pytest.raises(WarehouseAccessError, match=r"000000000007\.json"),
        warehouse_lock(settings, owner="me"),
    ):
        pass


def ago(*, seconds: int, micros: int = 0) -> str:
    return (datetime.now(UTC) - timedelta(seconds=seconds, microseconds=micros)).isoformat()


def test_named_lock_keeps_its_like_out_and_leaves_the_warehouse_free(settings: Settings) -> None:
    with warehouse_lock(settings, owner="first", name="backfill-events") as held:
        with (
            pytest.raises(WarehouseBusyError, match=r"\(backfill-events\) is held by first"),
            warehouse_lock(settings, owner="second", name="backfill-events"),
        ):
            pass
        with (
            warehouse_lock(settings, owner="audit"),
            warehouse_lock(settings, owner="x", name="backfill-orders"),
        ):
            held.check()
    with warehouse_lock(settings, owner="second", name="backfill-events"):
        pass


@pytest.mark.slow
def test_who_waits_gets_the_warehouse_when_it_is_given_back(settings: Settings) -> None:
    with Contender(settings) as other:
        assert other.take() == "held"
        started = time.monotonic()
        with (
            pytest.raises(WarehouseBusyError),
            warehouse_lock(settings, owner="me", timeout=timedelta(seconds=0.3)),
        ):
            pass
        assert time.monotonic() - started >= 0.3
        threading.Timer(0.3, other.tell, ["give"]).start()
        with warehouse_lock(settings, owner="me", timeout=timedelta(seconds=30)) as mine:
            mine.check()
        assert other.answer() == "gave"


def test_nothing_is_written_without_the_lock(settings: Settings) -> None:
    lock = WriteLock(settings, "me")
    for _ in range(2):
        with pytest.raises(LockLostError, match="does not write now"):
            lock.check()
        with lock.taken():
            lock.check()
            with pytest.raises(WarehouseBusyError), warehouse_lock(settings, owner="audit"):
                pass
    with warehouse_lock(settings, owner="audit"):
        pass


def test_nothing_is_written_when_the_lock_on_the_work_was_taken_over(settings: Settings) -> None:
    with warehouse_lock(settings, owner="first", name="backfill-events") as work:
        lock = WriteLock(settings, "first", work)
        with lock.taken():
            lock.check()
            [file] = (Path(settings.warehouse) / "_claims" / "backfill-events").iterdir()
            file.with_name("000000000002.json").write_text(file.read_text())
            with pytest.raises(LockLostError, match="taken over by first"):
                lock.check()


# A run that hangs, with a process below it: when it is `deaf`, so that no Ctrl-C reaches it.
_HANGS = """
import signal, subprocess, sys, time
from datetime import timedelta
from shardaudit.adapters import pulse
from shardaudit.model.config.settings import Settings
from shardaudit.store import lock
lock.RENEW_SECONDS, pulse.STILL_AFTER, pulse._POLITE_S = 0.1, timedelta(seconds=1), 1.0
if sys.argv[2] == "deaf":
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
try:
    with lock.warehouse_lock(
        Settings.model_validate_json(sys.argv[1]), owner="hung", pulse=pulse.Pulse()
    ):
        nowhere = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        print(subprocess.Popen(["sleep", "60"], **nowhere).pid, flush=True)
        time.sleep(60)
except pulse.StandstillError as error:
    print(error)
    sys.exit(error.exit_code)
"""


@pytest.mark.parametrize("hearing", ["polite", "deaf"])
@pytest.mark.slow
def test_a_run_that_stands_still_ends_by_itself_and_the_next_one_gets_the_warehouse(
    settings: Settings, hearing: str
) -> None:
    words = [sys.executable, "-c", _HANGS, settings.model_dump_json(exclude_defaults=True), hearing]
    done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == ExitCode.RETRY, done.stderr
    below, _, said = done.stdout.partition("\n")
    assert ("stands still" in said) == (hearing == "polite")
    assert "stands still" in done.stderr
    if hearing == "deaf":
        assert process_start(int(below)) is None
    with warehouse_lock(settings, owner="next") as mine:
        mine.check()
