"""Warehouses of earlier versions: refused with the command's name, brought here, nothing lost."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from shardaudit.adapters.lake.delta_rs import DeltaRs, Row
from shardaudit.adapters.lake.delta_schema import stamp
from shardaudit.cli.main import main
from shardaudit.model.config.parts import Aws
from shardaudit.model.config.settings import Settings, load_settings
from shardaudit.model.errors import LockLostError, WarehouseVersionError
from shardaudit.model.exit_code import ExitCode
from shardaudit.model.tables.all_tables import OF_LEDGER, OF_WATCH
from shardaudit.model.tables.audit_tables import AUDITS, EVIDENCE, FINDINGS
from shardaudit.model.tables.table import OLDEST_VERSION, WAREHOUSE_VERSION, Table
from shardaudit.store.lock import warehouse_lock
from shardaudit.store.migrations import MIGRATIONS, Migration, check_versions, migrate
from tests.configurations import LEAST
from tests.older_warehouses import DECIDED, VERSIONS, stored, table_versions, unpacked

Capture = pytest.CaptureFixture[str]
EVERYTHING = pc.scalar(True)


def held() -> None:
    """The warehouse is held."""


def dying(after: int) -> Callable[[], None]:
    """A lock that is lost after so many changes, as when the command is killed."""
    left = iter(range(after))

    def check() -> None:
        if next(left, None) is None:
            raise LockLostError("lake", "a killer")

    return check


def old_settings(version: int, folder: Path) -> Settings:
    return load_settings(unpacked(version, folder))


def said(capsys: Capture, config: Path, *words: str) -> tuple[int, str]:
    code = main(["--config", str(config), *words])
    captured = capsys.readouterr()
    return code, captured.out + captured.err


def test_the_last_step_is_to_this_version_and_none_is_left_out() -> None:
    assert [step.version for step in MIGRATIONS] == [
        *range(OLDEST_VERSION + 1, WAREHOUSE_VERSION + 1)
    ]
    assert tuple(range(OLDEST_VERSION, WAREHOUSE_VERSION)) == VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
def test_older_one_is_refused_by_the_name_of_the_cure(
    version: int, tmp_path: Path, capsys: Capture
) -> None:
    config = unpacked(version, tmp_path)
    out = f"--out={tmp_path / 'report.html'}"
    for words in (["findings", "list"], ["report", "--stream=events", out]):
        code, text = said(capsys, config, *words)
        assert code == ExitCode.USAGE
        assert f"found 'version {version}', wanted version {WAREHOUSE_VERSION}" in text
        assert "run `shardaudit migrate`, which keeps what is in it" in text
        assert str(tmp_path) not in text
    with pytest.raises(WarehouseVersionError, match="shardaudit migrate"):
        DeltaRs(str(config.parent / "warehouse"), Aws()).create(AUDITS)
    assert table_versions(config) == {str(version)}


def carried(table: Table, row: Row) -> Row:
    """A row as it is after the migration."""
    came = {"sent_day": row["bucket_start"].date()} if table is EVIDENCE else {}
    return dict.fromkeys(table.names) | row | came


def partitions(config: Path, table: Table) -> list[str]:
    return DeltaTable(config.parent / "warehouse" / table.name).metadata().partition_columns


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.slow
def test_all_rows_stay_and_the_tables_are_those_of_this_version(
    version: int, tmp_path: Path, capsys: Capture
) -> None:
    config = unpacked(version, tmp_path)
    before = {table: stored(config, table.name) for table in (*OF_LEDGER, *OF_WATCH)}
    assert main(["--config", str(config), "migrate", "--json"]) == ExitCode.DONE
    done = json.loads(capsys.readouterr().out)
    assert (done["from_version"], done["to_version"]) == (version, WAREHOUSE_VERSION)
    numbers = [step["version"] for step in done["steps"]]
    assert numbers == [*range(version + 1, WAREHOUSE_VERSION + 1)]
    assert table_versions(config) == {str(WAREHOUSE_VERSION)}
    for table, rows in before.items():
        now = stored(config, table.name)
        assert not rows or list(now[0]) == list(dict.fromkeys([*rows[0], *table.names]))
        assert now == [carried(table, row) for row in rows]
        assert not rows or partitions(config, table) == [*table.partitions]
    assert (
        {"findings", "transitions", "audits", "backfills"}
        <= {table.name for table, rows in before.items() if rows}
        <= {*DECIDED, "traces", "fingerprints", "batches", "evidence", "quarantine", "watermarks"}
    )
    check_versions(load_settings(config))


def test_one_of_this_version_is_left_as_it_is(tmp_path: Path, capsys: Capture) -> None:
    config = unpacked(3, tmp_path)
    assert said(capsys, config, "migrate")[0] == ExitCode.DONE
    logs = {file for file in tmp_path.rglob("*") if "_claims" not in file.parts}
    code, text = said(capsys, config, "migrate")
    assert code == ExitCode.DONE
    assert f"has version {WAREHOUSE_VERSION}" in text
    assert {file for file in tmp_path.rglob("*") if "_claims" not in file.parts} == logs


def test_what_people_decided_is_read_after_it(tmp_path: Path, capsys: Capture) -> None:
    config = unpacked(2, tmp_path)
    said(capsys, config, "migrate")
    code, text = said(capsys, config, "findings", "list", "--state=accepted", "--json")
    [known] = json.loads(text)["findings"]
    assert (code, known["state_reason"]) == (ExitCode.DONE, "test traffic")
    assert known["message_id"] == "e8c6dda5-1a3a-f480-05cc-7278e3994ae2"
    assert {row["state"] for row in stored(config, "dedupes")} == {"verified"}
    assert len(stored(config, "removed_rows")) == 3


def test_step_that_was_cut_off_anywhere_is_done_again(tmp_path: Path) -> None:
    settings = old_settings(3, tmp_path)
    config = tmp_path / "lake" / "shardaudit.toml"
    before = stored(config, FINDINGS)
    for changes in range(1, 200, 7):
        try:
            done = migrate(settings, check=dying(changes))
        except LockLostError:
            continue
        break
    assert done.to_version == WAREHOUSE_VERSION
    assert table_versions(config) == {str(WAREHOUSE_VERSION)}
    check_versions(settings)
    key = "message_id"
    names = [row[key] for row in before]
    assert [row[key] for row in stored(config, FINDINGS)] == names


@pytest.mark.slow
def test_rewrite_finds_all_columns_and_comes_before_every_stamp(tmp_path: Path) -> None:
    settings = old_settings(2, tmp_path)
    config = tmp_path / "lake" / "shardaudit.toml"
    ran = []

    def rewrite(tables: DeltaRs) -> None:
        ran.append(table_versions(config))
        rows = tables.rows(AUDITS, where=EVERYTHING)
        tables.upsert([row | {"engine": "unknown"} for row in rows], AUDITS)

    steps = (replace(MIGRATIONS[0], rewrite=rewrite), Migration(4, "nothing"))
    with pytest.raises(LockLostError):  # after the last column, the rewriting and one stamp
        migrate(settings, check=dying(len(table_names(config)) + 2), migrations=steps)
    assert table_versions(config) == {"2", "3"}
    migrate(settings, check=held, migrations=steps)
    assert ran == [{"2"}, {"2", "3"}]
    assert table_versions(config) == {"4"}
    assert {row["engine"] for row in stored(config, AUDITS)} == {"unknown"}


def table_names(config: Path) -> set[str]:
    return {log.parent.name for log in (config.parent / "warehouse").glob("*/_delta_log")}


def test_later_one_is_refused_by_every_command(tmp_path: Path, capsys: Capture) -> None:
    config = unpacked(3, tmp_path)
    for name in table_names(config):
        table = DeltaTable(config.parent / "warehouse" / name)
        stamp(table, WAREHOUSE_VERSION + 1)
    for words in (["migrate"], ["findings", "list"]):
        code, text = said(capsys, config, *words)
        assert code == ExitCode.USAGE
        assert "install the version of shardaudit that wrote it" in text
    assert table_versions(config) == {str(WAREHOUSE_VERSION + 1)}


def test_one_that_another_run_holds_is_not_migrated(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shardaudit.cli.migrate_command.AN_AUDIT", timedelta(seconds=0.1))
    config = unpacked(3, tmp_path)
    with warehouse_lock(load_settings(config), owner="audit events"):
        code, text = said(capsys, config, "migrate")
    assert code == ExitCode.RETRY
    assert "audit events" in text
    assert table_versions(config) == {"3"}


def test_one_without_a_table_needs_nothing(tmp_path: Path, capsys: Capture) -> None:
    config = tmp_path / "shardaudit.toml"
    config.write_text(LEAST)
    code, text = said(capsys, config, "migrate")
    assert (code, "has no table yet" in text) == (ExitCode.DONE, True)
