"""A run that lost its lock between asking for it and committing: nothing of it lands."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.transaction import AddAction

from shardaudit.adapters.lake.broken_tables import BrokenTableError, WarehouseUnreadableError
from shardaudit.adapters.lake.delta_rs import DeltaRs
from shardaudit.model.config.settings import Settings
from shardaudit.model.errors import LockLostError
from shardaudit.model.exit_code import ExitCode
from shardaudit.model.tables.backfill_tables import BACKFILL_IDS, BACKFILLS
from shardaudit.model.tables.watch_tables import HOLES
from shardaudit.store.lock import warehouse_lock
from tests.takeover import take_over

EVERYTHING = pc.scalar(True)
OF_P = "plan_id = 'p'"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(warehouse=str(tmp_path / "lake"), streams={})


def planned(*ids: str, window: str = "w") -> list[dict[str, object]]:
    return [{"plan_id": "p", "window_id": window, "message_id": one} for one in ids]


def as_columns(*ids: str) -> pa.Table:
    texts = {
        n: pa.array([r.get(n) for r in planned(*ids, window="late")]) for n in BACKFILL_IDS.names
    }
    return pa.table(texts)


def stored(settings: Settings) -> list[tuple[str, str]]:
    rows = DeltaRs(settings.warehouse, settings.aws).rows(BACKFILL_IDS, where=EVERYTHING)
    return sorted((row["message_id"], row["window_id"]) for row in rows)


def written_file(settings: Settings) -> AddAction:
    """A file of one row that lies in the table's folder."""
    place = Path(settings.warehouse) / BACKFILL_IDS.name / "late.parquet"
    pq.write_table(as_columns("late").drop_columns("plan_id"), place)
    stats = json.dumps({"numRecords": 1})
    return AddAction(place.name, place.stat().st_size, {"plan_id": "p"}, 0, True, stats)


WRITES: dict[str, Callable[[DeltaRs, Settings], object]] = {
    "upsert": lambda tables, _: tables.upsert(planned("a", "late", window="late"), BACKFILL_IDS),
    "merge": lambda tables, _: tables.merge(as_columns("a", "late"), BACKFILL_IDS),
    "append": lambda tables, _: tables.append(as_columns("late"), BACKFILL_IDS),
    "add": lambda tables, settings: tables.add([written_file(settings)], BACKFILL_IDS),
    "replace": lambda tables, _: tables.replace(as_columns("late"), BACKFILL_IDS, where=OF_P),
    "delete": lambda tables, _: tables.delete(BACKFILL_IDS, where="message_id = 'a'"),
    "compact": lambda tables, _: tables.compact(BACKFILL_IDS, above=1),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_nothing_lands_when_the_lock_is_taken_just_before_the_commit(
    settings: Settings, write: Callable[[DeltaRs, Settings], object]
) -> None:
    before = DeltaRs(settings.warehouse, settings.aws)
    before.create(BACKFILL_IDS)
    for one in "ab":
        before.append(as_columns(one), BACKFILL_IDS)
    files = before.files(BACKFILL_IDS)
    with warehouse_lock(settings, owner="first") as first:

        def check() -> None:
            first.check()  # it holds it, and is silent from here on
            take_over(settings)

        with pytest.raises(LockLostError, match="taken over by second") as lost:
            write(DeltaRs(settings.warehouse, settings.aws, check=check), settings)
    assert lost.value.exit_code is ExitCode.RETRY
    assert stored(settings) == [("a", "late"), ("b", "late")]
    assert before.files(BACKFILL_IDS) == files


def test_whoever_took_over_writes_and_is_not_kept_from_it(settings: Settings) -> None:
    tables = DeltaRs(settings.warehouse, settings.aws)
    for table in (BACKFILL_IDS, HOLES):
        tables.create(table)
    versions = [tables.version(table) for table in (BACKFILL_IDS, HOLES, BACKFILLS)]
    with warehouse_lock(settings, owner="first"):
        take_over(settings)
        with warehouse_lock(settings, owner="third") as third:
            DeltaRs(settings.warehouse, settings.aws, check=third.check).upsert(
                planned("c"), BACKFILL_IDS
            )
    assert stored(settings) == [("c", "w")]
    # Nothing was made, and the watch's own tables have a lock of their own.
    assert [tables.version(table) for table in (BACKFILL_IDS, HOLES, BACKFILLS)] == versions


def test_the_next_one_fences_when_who_took_over_could_not(settings: Settings) -> None:
    DeltaRs(settings.warehouse, settings.aws).create(BACKFILL_IDS)
    place = Path(settings.warehouse) / BACKFILL_IDS.name
    broken = place / "_delta_log" / f"{1:020}.json"
    with warehouse_lock(settings, owner="first"):
        broken.write_text("no commit")
        with pytest.raises(WarehouseUnreadableError):
            take_over(settings)
        broken.unlink()
        take_over(settings, "third")
    assert DeltaTable(place).version() == 1
    with warehouse_lock(settings, owner="fourth"):  # the third had fenced, and gave it back
        assert DeltaTable(place).version() == 1


def test_an_empty_commit_is_named_by_who_takes_over(settings: Settings) -> None:
    """As a machine that lost its power leaves it; delta-rs reads it as nothing."""
    tables = DeltaRs(settings.warehouse, settings.aws)
    tables.create(BACKFILL_IDS)
    for one in "ab":
        tables.append(as_columns(one), BACKFILL_IDS)
    place = Path(settings.warehouse) / BACKFILL_IDS.name
    (place / "_delta_log" / f"{1:020}.json").write_text("")
    told = pytest.raises(BrokenTableError, match=r"1\.json is empty")
    with warehouse_lock(settings, owner="first"), told:
        take_over(settings)
    assert DeltaTable(place).version() == 2
