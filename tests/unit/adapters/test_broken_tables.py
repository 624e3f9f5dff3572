"""A Delta table that nobody can read any more is told as such; what may pass is not."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from shardaudit.adapters.files.access_refused import MisplacedError
from shardaudit.adapters.files.files import S3Access, StorageError, list_files, open_file
from shardaudit.adapters.lake.broken_tables import BrokenTableError, broken_warehouse
from shardaudit.adapters.lake.delta_rs import DeltaRs
from shardaudit.adapters.lake.delta_sink_reader import DeltaSink
from shardaudit.adapters.lake.table_files import table_files
from shardaudit.model.config.parts import Aws
from shardaudit.model.errors import FinalError
from tests.builders import cut_off
from tests.noted import EVERYTHING, NOTED, row

NOT_FOUND = "Object at location part-1.parquet not found"


def table(folder: Path, *, checkpoint: bool = False) -> Path:
    """A table of versions 0 to 4, its checkpoint, if any, at 2; gives its log's folder."""
    for n in range(5):
        write_deltalake(folder, pa.table({"a": [n]}), mode="append")
        if checkpoint and n == 2:
            DeltaTable(folder).create_checkpoint()
    return folder / "_delta_log"


def without(log: Path, *versions: int) -> None:
    for version in versions:
        (log / f"{version:020d}.json").unlink()


def files_of(place: Path) -> int:
    return len(DeltaSink(str(place), S3Access()).at().files())


def checkpoint_of(log: Path) -> Path:
    return log / f"{2:020d}.checkpoint.parquet"


BROKEN: dict[str, tuple[bool, Callable[[Path], object], str]] = {
    "a version is gone": (False, lambda log: without(log, 2), "2.json is not there"),
    "the first is gone": (False, lambda log: without(log, 0), "0.json is not there"),
    "behind a checkpoint": (True, lambda log: without(log, 3), "3.json is not there"),
    "torn": (
        False,
        lambda log: (log / f"{2:020d}.json").write_text('{"add":{"pa'),
        "2.json cannot be read: ",
    ),
    "an empty version": (
        False,
        lambda log: (log / f"{2:020d}.json").write_text(""),
        "2.json is empty",
    ),
    "an empty one behind a checkpoint": (
        True,
        lambda log: (log / f"{3:020d}.json").write_text(""),
        "3.json is empty",
    ),
    "no checkpoint": (
        True,
        lambda log: checkpoint_of(log).unlink(),
        "_last_checkpoint names a checkpoint of version 2, which is not there",
    ),
    "a cut checkpoint": (True, lambda log: cut_off(checkpoint_of(log)), "unreadable Parquet file"),
    "an empty checkpoint": (
        True,
        lambda log: checkpoint_of(log).write_bytes(b""),
        "unreadable Parquet",
    ),
}


@pytest.mark.parametrize(("has_checkpoint", "harm", "found"), BROKEN.values(), ids=BROKEN)
def test_a_sink_is_broken_for_good_when_its_log_is_not_whole(
    tmp_path: Path, has_checkpoint: bool, harm: Callable[[Path], object], found: str
) -> None:
    log = table(tmp_path / "sink", checkpoint=has_checkpoint)
    harm(log)
    with pytest.raises(BrokenTableError, match=r"is broken, and stays so: .*bring it back") as told:
        files_of(tmp_path / "sink")
    assert found in str(told.value)


@pytest.mark.parametrize("hint", ["", "no json", "{}", None])
def test_a_log_needs_no_hint(tmp_path: Path, hint: str | None) -> None:
    log = table(tmp_path / "sink", checkpoint=True)
    (log / "_last_checkpoint").unlink()
    if hint is not None:
        (log / "_last_checkpoint").write_text(hint)
    assert files_of(tmp_path / "sink") == 5


def test_what_may_pass_is_tried_again(tmp_path: Path) -> None:
    log = table(tmp_path / "sink", checkpoint=True)
    without(log, 0, 1)  # as a table's own clean-up does
    assert files_of(tmp_path / "sink") == 5


@pytest.mark.parametrize("content", [json.dumps({"commitInfo": {}})[:-1], ""])
def test_the_newest_commit_may_still_be_written_for_an_hour(tmp_path: Path, content: str) -> None:
    log = table(tmp_path / "sink", checkpoint=True)
    newest = log / f"{4:020d}.json"
    newest.write_text(content)
    os.utime(newest, (newest.stat().st_atime, newest.stat().st_mtime - 3000))
    with pytest.raises(StorageError):
        files_of(tmp_path / "sink")
    os.utime(newest, (newest.stat().st_atime, newest.stat().st_mtime - 1000))
    with pytest.raises(BrokenTableError, match=r"4\.json (cannot be read|is empty)"):
        files_of(tmp_path / "sink")


@pytest.mark.parametrize("what", ["sink", "sink/_delta_log"])
def test_a_file_in_the_place_of_a_folder_is_final(tmp_path: Path, what: str) -> None:
    table(tmp_path / "sink")
    shutil.rmtree(tmp_path / what)
    (tmp_path / what).write_text("")
    with pytest.raises(FinalError, match=r"file is where its folder should be|is a folder in the"):
        files_of(tmp_path / "sink")


def test_inputs_that_are_of_another_kind_are_final(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("")
    with pytest.raises(MisplacedError, match=r"a\.jsonl is a folder in the place of a file, or"):
        list_files(str(path), S3Access())
    path.unlink()
    path.mkdir()
    with pytest.raises(MisplacedError), open_file(str(path), S3Access()):
        pass


@pytest.fixture
def tables(tmp_path: Path) -> DeltaRs:
    made = DeltaRs(str(tmp_path), Aws())
    made.create(NOTED)
    made.upsert([row("a")], NOTED)
    return made


READS: dict[str, Callable[[DeltaRs], object]] = {
    "rows": lambda tables: tables.rows(NOTED, where=EVERYTHING),
    "parts": lambda tables: list(tables.found(NOTED, where=EVERYTHING)),
    "files": lambda tables: [list(f.batches(["stream"])) for f in table_files(tables, NOTED)],
    "merge": lambda tables: tables.upsert([row("a")], NOTED),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_a_table_of_ours_is_broken_for_good_when_a_data_file_is_gone(
    tables: DeltaRs, tmp_path: Path, read: Callable[[DeltaRs], object]
) -> None:
    [path] = (tmp_path / "noted").glob("*.parquet")
    path.unlink()
    with pytest.raises(BrokenTableError, match=f"gone: .*{path.name}"):
        read(tables)
    path.mkdir()
    with pytest.raises(FinalError):
        read(tables)


@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize("share", [0.9, 0])
def test_a_table_of_ours_is_broken_for_good_when_a_data_file_is_cut_short(
    tables: DeltaRs, tmp_path: Path, share: float, read: Callable[[DeltaRs], object]
) -> None:
    [path] = (tmp_path / "noted").glob("*.parquet")
    cut_off(path, share=share)
    with pytest.raises(BrokenTableError, match=f"of another length: .*{path.name}"):
        read(tables)


def test_a_table_of_ours_may_be_a_file(tmp_path: Path) -> None:
    (tmp_path / "noted").write_text("")
    with pytest.raises(BrokenTableError, match="a file is where its folder should be"):
        DeltaRs(str(tmp_path), Aws()).create(NOTED)


@pytest.mark.usefixtures("tables")
def test_a_whole_table_is_not_broken_whatever_was_said(tmp_path: Path) -> None:
    place = str(tmp_path / "noted")
    assert broken_warehouse([place, f"{place}-never-written"], Aws(), NOT_FOUND) is None
    [path] = (tmp_path / "noted").glob("*.parquet")
    path.unlink()
    assert broken_warehouse([place], Aws(), f"Generic S3 error: {NOT_FOUND}") is None
    assert broken_warehouse([place], Aws(), NOT_FOUND) is not None
