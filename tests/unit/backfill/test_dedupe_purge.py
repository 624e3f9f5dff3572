"""`dedupe purge`: what a dedupe removed is kept until it is proven, and somebody says so."""

import json
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from shardaudit.cli.main import main
from shardaudit.model.config.settings import load_settings
from shardaudit.model.exit_code import ExitCode
from shardaudit.model.tables.backfill_tables import DEDUPES
from shardaudit.store.lock import warehouse_lock
from tests.configurations import LEAST
from tests.dags.warehouses import arrow

PLAN, OTHER = "events-dedupe-1", "events-dedupe-2"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Two dedupes that removed two rows each; the second is never purged here."""
    file = tmp_path / "shardaudit.toml"
    file.write_text(LEAST)
    kept = [
        {"plan_id": plan_id, "stream": "events", "message_id": one, "copy": 2, "content": "{}"}
        for plan_id in (PLAN, OTHER)
        for one in ("a", "b")
    ]
    write_deltalake(place(file), pa.Table.from_pylist(kept), partition_by=["plan_id"])
    return file


def place(config: Path, table: str = "removed_rows") -> str:
    return f"{load_settings(config).warehouse}/{table}"


def store(config: Path, *, state: str) -> None:
    row = {"plan_id": PLAN, "stream": "events", "state": state}
    write_deltalake(place(config, "dedupes"), arrow(DEDUPES, [row]))


def kept(config: Path) -> Counter[str]:
    """How many rows are kept, by plan."""
    return Counter(DeltaTable(place(config)).to_pyarrow_table().column("plan_id").to_pylist())


def purge(config: Path, plan_id: str = PLAN) -> int:
    return main(["--config", str(config), "--json", "dedupe", "purge", "--plan", plan_id])


def test_rows_of_the_plan_alone_go_and_a_second_purge_finds_none(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store(config, state="verified")
    for rows in (2, 0):
        assert purge(config) == ExitCode.DONE
        told = {"plan_id": PLAN, "stream": "events", "purged_rows": rows}
        assert json.loads(capsys.readouterr().out) == told
        assert kept(config) == {OTHER: 2}
    version = DeltaTable(place(config))
    assert not [file for file in version.file_uris() if PLAN in file]
    # What `maintain` does a week later.
    version.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert [*Path(place(config)).glob(f"plan_id={PLAN}/*.parquet")] == []
    assert kept(config) == {OTHER: 2}


@pytest.mark.parametrize("state", ["planned", "approved", "merged", "incomplete", "cancelled"])
def test_rows_stay_until_an_audit_has_proven_the_dedupe(
    config: Path, capsys: pytest.CaptureFixture[str], state: str
) -> None:
    store(config, state=state)
    assert purge(config) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert f"plan {PLAN}: found '{state}'" in said
    assert "verified" in said
    assert kept(config) == {PLAN: 2, OTHER: 2}


def test_unknown_plan_is_refused(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store(config, state="verified")
    assert purge(config, "events-dedupe-3' OR TRUE --") == ExitCode.USAGE
    assert "dedupe plan" in capsys.readouterr().err
    assert kept(config) == {PLAN: 2, OTHER: 2}


def test_purge_waits_its_turn_when_a_run_holds_the_warehouse(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shardaudit.backfill.dedupe_plan.AN_AUDIT", timedelta(seconds=0.1))
    store(config, state="verified")
    with warehouse_lock(load_settings(config), owner="audit"):
        assert purge(config) == ExitCode.RETRY
    assert kept(config) == {PLAN: 2, OTHER: 2}
    assert purge(config) == ExitCode.DONE


def test_nothing_is_wrong_when_no_row_was_ever_removed(tmp_path: Path) -> None:
    file = tmp_path / "shardaudit.toml"
    file.write_text(LEAST)
    store(file, state="verified")
    assert purge(file) == ExitCode.DONE
    assert not Path(place(file)).exists()
