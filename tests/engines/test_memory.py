"""The embedded engine stays within its memory, whatever the night brought."""

import json
import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from tests.engines.commands import AS_OF, STREAM, WINDOW, of, run, without_java

MESSAGES = 300_000
STUCK = ["--include-stuck", "--json"]
SMALL = """
[embedded]
memory = "1536MiB"
"""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nothing is wrong with it."""
    folder = tmp_path_factory.mktemp("lake") / "events"
    made = ["simulate", "files", "--out", str(folder), f"--messages={MESSAGES}", "--no-faults"]
    assert run(made, without_java(folder.parent)).returncode == 0
    with (folder / "shardaudit.toml").open("a") as config:
        config.write(SMALL)
    return folder


def counts(lake: Path) -> dict[str, int]:
    done = run(of(lake, "audit", *STREAM, *WINDOW, *AS_OF, "--json"), without_java(lake.parent))
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, int] = json.loads(done.stdout)["counts"]
    return found


def recoverable(lake: Path) -> tuple[int, int]:
    """How many missing messages are open: by gaps, and by findings."""
    tables = (DeltaTable(str(lake / "warehouse" / name)) for name in ("gaps", "findings"))
    gaps, findings = (table.to_pyarrow_table().to_pylist() for table in tables)
    in_gaps = sum(row["count"] for row in gaps if row["state"] == "open")
    return in_gaps, sum(row["state"] == "open" for row in findings)


@pytest.mark.parametrize("lost", ["true", "message_id like '%0'"])
def test_many_messages_are_missing(lake: Path, tmp_path: Path, lost: str) -> None:
    """All of each cell, which gaps tell, and some of each, which findings name."""
    folder = tmp_path / "events"
    shutil.copytree(lake, folder)
    missing = DeltaTable(str(folder / "sink")).delete(lost)["num_deleted_rows"]
    assert missing > MESSAGES / 20
    assert counts(folder)["missing"] == missing
    done = run(of(folder, "backfill", "plan", *STREAM, *AS_OF, *STUCK), without_java(tmp_path))
    assert done.returncode == 0, done.stderr[-2000:]
    planned = sum(window["expected_ids"] for window in json.loads(done.stdout)["windows"])
    in_gaps, named = recoverable(folder)
    assert planned == in_gaps + named > missing * 0.9
    assert (in_gaps == 0) == (missing < MESSAGES)


def test_every_message_landed_twice(lake: Path, tmp_path: Path) -> None:
    folder = tmp_path / "events"
    shutil.copytree(lake, folder)
    sink = DeltaTable(str(folder / "sink"))
    write_deltalake(sink, sink.to_pyarrow_table(), mode="append")
    assert counts(folder)["duplicated"] == MESSAGES
