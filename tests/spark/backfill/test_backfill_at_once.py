"""Two runs of one plan, a live writer and audits, all at once: processes as people start them."""

import json
import re
import threading
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from shardaudit.model.config.settings import load_settings
from shardaudit.model.errors import WarehouseBusyError
from shardaudit.model.exit_code import ExitCode
from shardaudit.model.source import is_backfill_tag
from shardaudit.store.lock import warehouse_lock
from tests.spark.commands import EMBEDDED, run, started
from tests.spark.repeated import (
    PLAN,
    SCENARIO,
    audited_losses,
    backfill_words,
    landed,
    missing,
)

# Repairs. Three cold drivers take minutes: each day test_merge has two at once in one process.
pytestmark = [pytest.mark.apache_spark, pytest.mark.drill]


class Beside(threading.Thread):
    """Does something again and again until it is told to stop; `times` it was done."""

    pause_s = 0.3

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.times = 0
        self._ended = threading.Event()

    def act(self) -> bool:
        """Does it once; whether it worked."""
        raise NotImplementedError

    def run(self) -> None:
        while not self._ended.wait(self.pause_s):
            self.times += self.act()

    def stop(self) -> None:
        self._ended.set()
        self.join()


class Writer(Beside):
    """The consumer of today's messages.

    A slow machine would read ever more of its commits, and be slower for it.
    """

    pause_s = 1.0

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._sink = str(folder / "sink")

    def act(self) -> bool:
        table = DeltaTable(self._sink)
        at = SCENARIO.as_of + timedelta(seconds=self.times)
        row = {
            "message_id": f"live-{self.times}",
            "shard_id": "shardId-000000000099",
            "sequence_number": str(self.times),
            "sent_at": at,
            "landed_at": at,
            "day": "live",
        }
        rows = pa.Table.from_pylist([row], pa.schema(table.schema().to_arrow()))
        write_deltalake(table, rows, mode="append")
        return True


class Watch(Beside):
    """Wants the warehouse for a moment, and does not wait for it."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._settings = load_settings(folder / "shardaudit.toml")

    def act(self) -> bool:
        try:
            with warehouse_lock(self._settings, owner="watch"):
                return True
        except WarehouseBusyError:
            return False


def commits(folder: Path, *, since: int) -> str:
    """Whose the sink's commits behind a version are: w is the writer, b the backfill."""
    history = DeltaTable(str(folder / "sink")).history()
    is_ours = [is_backfill_tag(one.get("userMetadata")) for one in reversed(history)]
    return "".join("b" if ours else "w" for ours in is_ours[since + 1 :])


def test_each_message_lands_once_when_a_plan_is_run_twice_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    with audited_losses(folder):
        words = backfill_words(json.loads(run(folder, PLAN))["plan_id"])
        before, planted = landed(folder), DeltaTable(str(folder / "sink")).version()
        beside = [Writer(folder), Watch(folder)]
        for thread in beside:
            thread.start()
        both = [started(folder, words) for _ in range(2)]
        said = [process.communicate()[1] for process in both]
        for thread in beside:
            thread.stop()
        codes = sorted(process.returncode for process in both)
        assert codes == [ExitCode.DONE, ExitCode.RETRY], said
        assert any("(backfill-events) is held by backfill run" in text for text in said)
        said_last = run(folder, [EMBEDDED, *words])  # a repair, whatever is asked for
    after = landed(folder)
    assert {after.pop(one) for one in missing(folder)} == {1}
    writer, watch = beside
    assert {after.pop(f"live-{n}") for n in range(writer.times)} == {1}
    assert after == before
    assert "Apache Spark" in said_last
    assert re.search("w{3}.*b.*w{3}", commits(folder, since=planted))
    assert watch.times > 10
