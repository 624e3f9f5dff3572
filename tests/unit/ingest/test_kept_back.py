"""One file that storage does not give ends no ingest; a storage that gives nothing does."""

import os
from pathlib import Path

import pytest

from shardaudit.adapters.files.access_refused import AccessRefusedError
from shardaudit.adapters.files.files import S3Access, StorageError
from shardaudit.ingest.kept_back import given_again, gives_any, going_on, still_kept_back
from shardaudit.ingest.rules.batch_inputs import DamagedFile, TraceInputs
from shardaudit.model.config.eras import CellShape, Eras
from shardaudit.model.source import KEPT_BACK, SourceFile

SHAPE = Eras(CellShape(60, 1.0))
REFUSED = AccessRefusedError("a.jsonl", "Permission denied")
SILENT = StorageError("a.jsonl", "no answer")


def inputs(*names: str, kept_back: str = "", broken: str = "") -> TraceInputs:
    reasons = {kept_back: f"{KEPT_BACK}no", broken: "the gzip file breaks off"}
    damaged = [DamagedFile(file(name), why) for name, why in reasons.items() if name]
    files = tuple(file(name) for name in names)
    return TraceInputs(columns={}, shape=SHAPE, files=files).with_damage(damaged)


def file(name: str) -> SourceFile:
    return SourceFile(name, 1, 1)


def test_a_file_is_kept_back_until_a_batch_has_read_it() -> None:
    first = inputs("a", "b", "c", kept_back="a", broken="b")
    assert still_kept_back([first]) == [file("a")]
    assert still_kept_back([TraceInputs.from_json(first.as_json())]) == [file("a")]
    assert still_kept_back([first, inputs("a", kept_back="a")]) == [file("a")]
    assert still_kept_back([first, inputs("a", "d")]) == []
    assert first.heals(file("a")) is False
    assert inputs("a").heals(file("a")) is True


@pytest.mark.parametrize(
    ("error", "is_tried_before", "gives_others", "goes_on"),
    [
        (REFUSED, False, True, True),
        (REFUSED, False, False, False),
        (SILENT, False, True, False),
        (SILENT, True, True, True),
        (SILENT, True, False, False),
    ],
)
def test_a_batch_goes_on_without_a_file_while_storage_gives_others(
    error: StorageError | AccessRefusedError,
    is_tried_before: bool,
    gives_others: bool,
    goes_on: bool,
) -> None:
    def read(without: bool) -> str:
        if not without:
            raise error
        return "the others"

    def read_on() -> str:
        return going_on(read, is_tried_before=is_tried_before, gives_others=lambda: gives_others)

    if goes_on:
        assert read_on() == "the others"
    else:
        with pytest.raises(type(error)):
            read_on()


def test_what_cannot_be_opened_is_not_given(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    (tmp_path / "empty").write_text("")
    (tmp_path / "folder").mkdir()
    listed = [SourceFile(str(tmp_path / n), 1, 1) for n in ("a", "empty", "folder", "gone")]
    assert given_again(listed, S3Access()) == set(listed[:2])
    assert gives_any(str(tmp_path), S3Access())
    assert not gives_any(str(tmp_path / "folder"), S3Access())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_not_given(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    (tmp_path / "a").chmod(0)
    assert not gives_any(str(tmp_path), S3Access())
