"""The rows that a deletion vector names, wherever it is stored, and what is wrong with one."""

from dataclasses import replace
from pathlib import Path

import pytest

from shardaudit.adapters.files.lines import DamageError
from shardaudit.adapters.lake.sink_batches import deleted_rows, located
from shardaudit.model.source import DeletionVector
from tests.sink_reading import ACCESS
from tests.vectors import inline, packed, stored, z85

ROWS = [0, 3, 4, 65_536, 2**31, 2**32 + 7]


def rows_of(vector: DeletionVector, folder: Path) -> list[int]:
    return list(deleted_rows(vector, str(folder), ACCESS))


@pytest.mark.parametrize("rows", [[], [0], ROWS, list(range(1000)), list(range(0, 99_999, 7))])
def test_rows_are_the_same_wherever_the_vector_is_stored(rows: list[int], tmp_path: Path) -> None:
    elsewhere = tmp_path / "with a space, 50%"
    for vector in (
        inline(rows),
        stored(tmp_path, rows),
        stored(tmp_path, rows, prefix="ab"),
        stored(elsewhere, rows, is_absolute=True),
    ):
        assert rows_of(vector, tmp_path) == rows, vector.storage


@pytest.mark.parametrize(
    ("at", "reason"), [(12, "not what was"), (20, "not what was"), (-1, "not")]
)
def test_vector_is_damaged_when_a_byte_of_its_file_is_another(
    at: int, reason: str, tmp_path: Path
) -> None:
    vector = stored(tmp_path, ROWS)
    [file] = tmp_path.glob("*.bin")
    content = bytearray(file.read_bytes())
    content[at] ^= 1
    file.write_bytes(bytes(content))
    with pytest.raises(DamageError, match=reason):
        rows_of(vector, tmp_path)


def test_vector_is_damaged_when_its_file_is_gone_or_cut_off(tmp_path: Path) -> None:
    vector = stored(tmp_path, ROWS)
    [file] = tmp_path.glob("*.bin")
    file.write_bytes(file.read_bytes()[:-6])
    with pytest.raises(DamageError, match="not what was written"):
        rows_of(vector, tmp_path)
    file.unlink()
    with pytest.raises(DamageError, match=f"is gone: {file}"):
        rows_of(vector, tmp_path)


@pytest.mark.parametrize(
    ("vector", "reason"),
    [
        (replace(inline(ROWS), cardinality=5), "has 6 rows, the log says 5"),
        (replace(inline(ROWS), place="no base 85"), "not base 85"),
        (replace(inline(ROWS), place=z85(packed(ROWS, magic=1681511376))), "d0d33964: an unknown"),
        (replace(inline(ROWS), size_bytes=30), "cannot be decoded"),
        (replace(inline(ROWS), storage="x"), "an unknown way: 'x'"),
        (DeletionVector("u", "short", 1, 4, 1), "an unknown way: 'u'"),
    ],
)
def test_vector_is_damaged_when_it_is_not_what_the_log_says(
    vector: DeletionVector, reason: str, tmp_path: Path
) -> None:
    with pytest.raises(DamageError, match=reason):
        rows_of(vector, tmp_path)


@pytest.mark.parametrize(
    ("path", "opened"),
    [
        ("part-0.parquet", "/lake/t/part-0.parquet"),
        ("day=2026-11-20/part%200.parquet", "/lake/t/day=2026-11-20/part 0.parquet"),
        ("a=b%252Fc/x", "/lake/t/a=b%2Fc/x"),
        ("a=%C3%A9+%2B/x", "/lake/t/a=é++/x"),
        ("file:/other/a%20b", "/other/a b"),
        ("file:///other/a%25b", "/other/a%b"),
        ("/other/x", "/other/x"),
        ("s3a://bucket/a%20b", "s3a://bucket/a b"),
        ("s3://bucket/x", "s3a://bucket/x"),
        ("gs://bucket/x", "gs://bucket/x"),
    ],
)
def test_path_is_decoded_once_as_the_log_writes_it(path: str, opened: str) -> None:
    assert located("/lake/t", path) == opened
