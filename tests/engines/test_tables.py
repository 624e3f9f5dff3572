"""Every table of nasty values comes out the same on both engines, value by value, type by type."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tests.engines import worker
from tests.engines.table import Table

ROOT = Path(__file__).parents[2]
ENGINES = ("spark", "embedded")
pytestmark = pytest.mark.apache_spark

Answers = dict[str, pa.Table | str]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Answers]:
    """What each engine makes of each table: its rows, or the error that came."""
    folders = {engine: tmp_path_factory.mktemp(engine) for engine in ENGINES}
    running = {engine: started(engine, folder) for engine, folder in folders.items()}
    try:
        for engine, process in running.items():
            said, _ = process.communicate(timeout=900)
            assert process.returncode == 0, f"{engine}: {said[-3000:]}"
    finally:
        for process in running.values():
            process.kill()
    return {
        engine: {table.name: read(folder, table) for table in worker.every_table()}
        for engine, folder in folders.items()
    }


def started(engine: str, folder: Path) -> "subprocess.Popen[str]":
    """In a zone with clocks that jump: no answer may hang on the machine's own."""
    zone = {"TZ": "America/New_York", "PYTHONPATH": f"{ROOT / 'spark'}:{ROOT}"}
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-m", worker.__name__, engine, str(folder)],
        env=os.environ | zone,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def read(folder: Path, table: Table) -> pa.Table | str:
    error = folder / f"{table.name}.error"
    if error.exists():
        return error.read_text()
    return pa.ipc.open_file(folder / f"{table.name}.arrow").read_all()


def lines(rows: pa.Table) -> Iterator[tuple[str, str, str]]:
    """(case, column, value) in an order of their own; of a map the order says nothing."""
    columns = {
        name: [shown(value, column.type) for value in column.to_pylist()]
        for name, column in zip(rows.column_names, rows.columns, strict=True)
    }
    every = sorted(zip(*columns.values(), strict=True))
    place = rows.column_names.index("case")
    return ((row[place], name, v) for row in every for name, v in zip(columns, row, strict=True))


def shown(value: object, kind: pa.DataType) -> str:
    if pa.types.is_map(kind) and isinstance(value, list):
        return repr(sorted(value))
    return repr(value)


@pytest.mark.parametrize("table", worker.every_table(), ids=lambda table: table.name)
def test_both_engines_say_the_same(answers: dict[str, Answers], table: Table) -> None:
    spark, embedded = (answers[engine][table.name] for engine in ENGINES)
    assert isinstance(spark, pa.Table), f"Apache Spark: {spark}"
    assert isinstance(embedded, pa.Table), f"embedded: {embedded}"
    assert spark.num_rows
    assert spark.schema.metadata[b"kinds"] == embedded.schema.metadata[b"kinds"]
    pairs = zip(lines(spark), lines(embedded), strict=True)
    differing = [f"{a[0]} {a[1]}: {a[2]} | {b[2]}"[:400] for a, b in pairs if a != b]
    assert differing == []
