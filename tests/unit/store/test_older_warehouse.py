"""A table that lacks columns of today: they are NULL when it is read, there once it is opened."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from shardaudit.adapters.lake.delta_rs import DeltaRs
from shardaudit.adapters.lake.delta_schema import delta_schema
from shardaudit.cli.main import main
from shardaudit.model.config.parts import Aws
from shardaudit.model.config.settings import load_settings
from shardaudit.model.errors import WarehouseVersionError
from shardaudit.model.exit_code import ExitCode
from shardaudit.model.tables.audit_tables import AUDITS, CELLS
from shardaudit.model.tables.table import WAREHOUSE_VERSION, Table
from shardaudit.store.published import published_audit
from tests.configurations import LEAST

# As a program of this version may have had them: a new column makes no new version.
TEXTS = ("audit_id", "stream", "status", "verdict", "self_check", "config_digest", "inputs")
TIMES = ("window_start", "window_end", "as_of", "started_at", "finished_at", "watermark")
COUNTS = (
    *("sent", "landed", "matched", "missing", "pending", "duplicated", "extra_rows"),
    *("untraced", "moved", "cells_total", "cells_compared_by_id"),
)
SHARES = ("trace_coverage", "latency_p50", "latency_p99")
KINDS = {"string": TEXTS, "timestamp": TIMES, "bigint": COUNTS, "double": SHARES}
OLD_AUDITS = Table(
    "audits",
    tuple((name, kind, "") for kind, names in KINDS.items() for name in names),
    ("audit_id",),
)
THIS = str(WAREHOUSE_VERSION)
START = datetime(2026, 11, 1, tzinfo=UTC)
EVERYTHING = pc.scalar(True)
AUDIT = {
    "audit_id": "old",
    "stream": "events",
    "status": "published",
    "verdict": "ok",
    "self_check": "passed",
    "window_start": START,
    "window_end": START + timedelta(days=1),
    "as_of": START + timedelta(days=1),
    **dict.fromkeys(COUNTS, 7),
}


def write_old(folder: Path, table: Table = OLD_AUDITS, *, version: str = THIS) -> DeltaRs:
    """A warehouse with an empty table."""
    DeltaTable.create(
        folder / table.name,
        delta_schema(table),
        partition_by=list(table.partitions),
        configuration={"shardaudit.warehouseVersion": version},
        raise_if_key_not_exists=False,
    )
    return DeltaRs(str(folder), Aws())


def version(folder: Path) -> str | None:
    return DeltaTable(folder).metadata().configuration.get("shardaudit.warehouseVersion")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration whose warehouse has one audit from before `audits.engine`."""
    file = tmp_path / "shardaudit.toml"
    file.write_text(LEAST)
    write_old(tmp_path / "lake").upsert([AUDIT], OLD_AUDITS)
    return file


def test_page_shows_an_audit_without_a_column_and_leaves_it_as_it_is(config: Path) -> None:
    out = config.with_name("report.html")
    words = ["--config", str(config), "report", "--stream=events", f"--out={out}"]
    assert main(words) == ExitCode.DONE
    assert "<dt>Engine</dt><dd>–</dd>" in out.read_text()
    assert published_audit(load_settings(config), "events", "old").engine is None
    assert DeltaTable(config.parent / "lake" / "audits").version() == 1


def test_rows_stay_and_the_column_is_there_when_an_older_table_is_opened(config: Path) -> None:
    place = config.parent / "lake"
    tables = DeltaRs(str(place), Aws())
    for _ in range(2):
        tables.create(AUDITS)
    tables.upsert([AUDIT | {"audit_id": "new", "engine": "Apache Spark 4.1.4"}], AUDITS)
    rows = {row["audit_id"]: row for row in tables.rows(AUDITS, where=EVERYTHING)}
    assert {name: row["engine"] for name, row in rows.items()} == {
        "old": None,
        "new": "Apache Spark 4.1.4",
    }
    unlike = {"audit_id": None, "engine": None}
    assert rows["old"] | unlike == rows["new"] | unlike
    # One commit each: made, written, the columns, written.
    assert DeltaTable(place / "audits").version() == 3


def test_table_that_lacks_nothing_is_left_as_it_is(tmp_path: Path) -> None:
    write_old(tmp_path, CELLS).create(CELLS)
    assert DeltaTable(tmp_path / "cells").version() == 0


def test_column_that_a_table_lacks_is_null_in_every_way_to_read_it(tmp_path: Path) -> None:
    older = replace(CELLS, columns=tuple(c for c in CELLS.columns if c[0] != "compared"))
    tables = write_old(tmp_path, older)
    tables.upsert([{"audit_id": "a", "shard_id": "s", "bucket_start": START}], older)
    is_null, names = pc.field("compared").is_null(), ["shard_id", "compared"]
    found = tables.columns(CELLS, names=names, where=is_null)
    assert found is not None
    assert found.to_pylist() == [{"shard_id": "s", "compared": None}]
    batches = tables.batches(CELLS, columns=names, where=is_null, dictionaries=["shard_id"])
    assert [row for batch in batches for row in batch.to_pylist()] == found.to_pylist()
    assert [row["compared"] for row in tables.found(CELLS, where=is_null)] == [None]


@pytest.mark.parametrize("other", ["0", "1", "3", "4", "5", "7", "none"])
def test_version_that_is_not_this_one_is_refused_when_opened(tmp_path: Path, other: str) -> None:
    tables = write_old(tmp_path, version=other)
    with pytest.raises(WarehouseVersionError, match=f"found 'version {other}', wanted"):
        tables.create(AUDITS)
    assert version(tmp_path / "audits") == other
