"""A child reads for its parent: its rows, its errors, and no parent goes on without it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from itertools import count

import pyarrow as pa
import pytest

from shardaudit.adapters.files.files import StorageError
from shardaudit.adapters.files.reader_process import ReaderError, read_by_child

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([("n", pa.int64()), ("of", pa.string())])
OF_A_DEAD_CHILD = """
from tests.unit.adapters.test_reader_process import killed_child
killed_child()
print("went on")
"""
OF_A_CALM_PARENT = """
import signal
from tests.unit.adapters.test_reader_process import SCHEMA, ended, terminated
from shardaudit.adapters.files.reader_process import ReaderError, read_by_child
signal.signal(signal.SIGTERM, lambda *_: None)
for read in (terminated, ended):
    try:
        print(len(list(read_by_child(read, SCHEMA))))
    except ReaderError as error:
        print(error)
"""


def batch(n: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"n": n, "of": str(os.getpid())}, {}], schema=SCHEMA)


def some(number: int) -> Iterator[pa.RecordBatch]:
    yield from map(batch, range(number))


def unreadable() -> Iterator[pa.RecordBatch]:
    yield batch(1)
    raise StorageError("s3://lake/traces", "reset by peer")


def endless() -> Iterator[pa.RecordBatch]:
    yield from map(batch, count())


def deadly() -> Iterator[pa.RecordBatch]:
    yield batch(1)
    os.kill(os.getpid(), signal.SIGSEGV)


def terminated() -> Iterator[pa.RecordBatch]:
    yield batch(1)
    os.kill(os.getpid(), signal.SIGTERM)


def ended() -> Iterator[pa.RecordBatch]:
    yield batch(1)
    os._exit(3)


def killed_child() -> None:
    list(read_by_child(deadly, SCHEMA))


def test_rows_are_those_of_the_reader() -> None:
    found = pa.Table.from_batches(read_by_child(partial(some, 3), SCHEMA)).to_pydict()
    assert found["n"] == [0, None, 1, None, 2, None]
    assert {os.getpid()}.isdisjoint(map(int, filter(None, found["of"])))


def test_error_comes_behind_the_rows_before_it() -> None:
    rows = read_by_child(unreadable, SCHEMA)
    assert next(rows).num_rows == 2
    with pytest.raises(ReaderError, match=r"StorageError: s3://lake/traces could not be read: res"):
        next(rows)


def test_child_ends_with_who_wants_no_more() -> None:
    rows = read_by_child(endless, SCHEMA)
    child = int(next(rows)["of"][0].as_py())
    rows.close()  # type: ignore[attr-defined]
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_parent_dies_as_its_child_died() -> None:
    said = subprocess.run(
        [sys.executable, "-c", OF_A_DEAD_CHILD], check=False, capture_output=True, text=True
    )
    assert (said.returncode, said.stdout) == (-signal.SIGSEGV, "")


def test_what_a_child_did_not_read_to_its_end_is_never_the_whole() -> None:
    said = subprocess.run(
        [sys.executable, "-c", OF_A_CALM_PARENT], check=True, capture_output=True, text=True
    )
    assert said.stdout.splitlines() == [f"the child that read ended with {n}" for n in (-15, 3)]
