"""What a folder's files are: those that lie in it."""

import os
from pathlib import Path

import pytest
from pyarrow import fs

from shardaudit.adapters.files.access_refused import MisplacedError
from shardaudit.adapters.files.files import S3Access, StorageError, links_below, list_files
from shardaudit.model.source import SourceFile


def names(folder: Path) -> list[str]:
    return [file.path.removeprefix(f"{folder}/") for file in list_files(str(folder), S3Access())]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.jsonl", "day=1/b.jsonl", "_col=1/c.jsonl", "_log/d", ".e", "day=1/.f", "_g"):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_text(name)
    return tmp_path / "in"


def test_files_are_found_in_every_folder_but_hidden_ones(folder: Path) -> None:
    assert names(folder) == ["_col=1/c.jsonl", "a.jsonl", "day=1/b.jsonl"]


def test_they_are_as_arrow_sees_them(folder: Path) -> None:
    """A file that seems changed is read again: times are those of every version before."""
    seen = fs.LocalFileSystem().get_file_info(fs.FileSelector(str(folder), recursive=True))
    by_path = {info.path: info for info in seen}
    for file in list_files(str(folder), S3Access()):
        info = by_path[file.path]
        assert file == SourceFile(info.path, info.size, info.mtime_ns // 1_000_000)


def test_links_are_told_and_not_followed(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "secret").write_text("of somebody else")
    wanted = names(folder)
    (folder / "circle").symlink_to(folder)
    (folder / "again.jsonl").symlink_to(folder / "a.jsonl")
    (folder / "out.jsonl").symlink_to(tmp_path / "secret")
    (folder / "nowhere.jsonl").symlink_to("nothing")
    (tmp_path / "linked").symlink_to(folder)
    assert names(folder) == wanted
    assert f"{folder}: 4 links are not followed, as {folder}/again.jsonl" in caplog.text
    assert names(tmp_path / "linked") == wanted  # a link that the configuration names is meant
    linked = [
        f"{folder}/{name}" for name in ("again.jsonl", "circle", "nowhere.jsonl", "out.jsonl")
    ]
    assert links_below(str(folder)) == linked


def test_a_name_that_is_no_text_is_given_in_words(folder: Path) -> None:
    (folder / os.fsdecode(b"caf\xe9.jsonl")).touch()
    assert "caf\\xe9.jsonl" in names(folder)


def test_no_folder_has_no_files_and_a_file_is_no_folder(folder: Path) -> None:
    assert list_files(str(folder / "nothing"), S3Access()) == []
    with pytest.raises(MisplacedError):
        list_files(str(folder / "a.jsonl"), S3Access())


def test_a_bucket_whose_region_nobody_tells_is_a_storage_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def silent(bucket: str) -> str:
        raise OSError(f"{bucket}: no answer")

    monkeypatch.setattr(fs, "resolve_s3_region", silent)
    with pytest.raises(StorageError, match="s3a://lake/traces could not be read: lake: no answer"):
        list_files("s3a://lake/traces", S3Access())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read_is_told(folder: Path) -> None:
    (folder / "day=1").chmod(0)
    with pytest.raises(PermissionError, match="day=1"):
        list_files(str(folder), S3Access())
