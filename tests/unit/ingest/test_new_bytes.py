"""How much an ingest would read: of traces and sinks of either format, with and without batches."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from shardaudit.adapters.files.files import list_files
from shardaudit.adapters.lake.delta_rs import DeltaRs
from shardaudit.ingest.new_bytes import bytes_to_ingest
from shardaudit.ingest.rules.batch_inputs import (
    DeltaInputs,
    ParquetInputs,
    SinkInputs,
    TraceInputs,
)
from shardaudit.model.config.eras import CellShape, Eras
from shardaudit.model.config.parts import Aws
from shardaudit.model.config.settings import Settings, load_settings
from shardaudit.model.errors import ConfigError
from shardaudit.model.source import FileGroup
from shardaudit.model.tables.audit_tables import BATCHES
from tests.sink_reading import ACCESS

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
SHAPE = Eras(CellShape(60, 1.0))
ROWS = pa.table({"message_id": [f"m{n}" for n in range(100)]})


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    for folder in ("traces", "sink"):
        (tmp_path / folder).mkdir()
    return tmp_path


def settings(lake: Path, *, kind: str) -> Settings:
    file = lake / "shardaudit.toml"
    file.write_text(
        f'warehouse = "warehouse"\n[streams.events]\nstream_name = "events"\n'
        f'traces = {{ path = "traces" }}\nsink = {{ path = "sink", format = "{kind}" }}\n'
    )
    return load_settings(file)


def store_batch(of: Settings, inputs: TraceInputs | SinkInputs, *, state: str = "done") -> None:
    side = "traces" if isinstance(inputs, TraceInputs) else "sink"
    tables = DeltaRs(of.warehouse, Aws())
    tables.create(BATCHES)
    number = 1 + tables.counts(BATCHES, by=["side"], having={"side": side}).total()
    row = {"batch_id": f"events/{side}/{number}", "stream": "events", "side": side}
    stored = {"number": number, "state": state, "inputs": inputs.as_json(), "planned_at": NOON}
    tables.upsert([row | stored], BATCHES)


def read_traces(of: Settings, *, state: str = "done") -> None:
    files = tuple(list_files(of.streams["events"].traces.path, ACCESS))
    store_batch(of, TraceInputs(columns={}, shape=SHAPE, files=files), state=state)


def read_folder(of: Settings) -> None:
    files = tuple(list_files(of.streams["events"].sink.path, ACCESS))
    path = of.streams["events"].sink.path
    groups = (FileGroup({}, files),)
    store_batch(of, ParquetInputs(columns={}, shape=SHAPE, path=path, groups=groups))


def read_delta(of: Settings, version: int, *, commit: str = "", elsewhere: str = "") -> None:
    path = of.streams["events"].sink.path + elsewhere
    inputs = DeltaInputs(columns={}, shape=SHAPE, path=path, to_version=version, commit=commit)
    store_batch(of, inputs)


def size_of(table: Path) -> int:
    return sum(file.stat().st_size for file in table.glob("*.parquet"))


def test_traces_count_until_a_finished_batch_has_read_them(lake: Path) -> None:
    of = settings(lake, kind="parquet")
    (lake / "traces" / "a.jsonl").write_bytes(b"1234")
    assert bytes_to_ingest(of, "events") == 4
    read_traces(of, state="planned")
    assert bytes_to_ingest(of, "events") == 4
    read_traces(of)
    assert bytes_to_ingest(of, "events") == 0
    (lake / "traces" / "b.jsonl").write_bytes(b"12")
    (lake / "traces" / "a.jsonl").write_bytes(b"12345")  # another file by now
    assert bytes_to_ingest(of, "events") == 7


def test_new_files_of_a_folder_count_and_all_when_one_that_was_there_is_gone(lake: Path) -> None:
    of = settings(lake, kind="parquet")
    for name, size in (("a", 10), ("b", 20)):
        (lake / "sink" / f"{name}.parquet").write_bytes(b"x" * size)
    assert bytes_to_ingest(of, "events") == 30
    read_folder(of)
    (lake / "sink" / "c.parquet").write_bytes(b"x" * 40)
    assert bytes_to_ingest(of, "events") == 40
    (lake / "sink" / "a.parquet").unlink()
    assert bytes_to_ingest(of, "events") == 60


def test_what_commits_brought_and_took_counts_in_a_delta_table(lake: Path) -> None:
    of = settings(lake, kind="delta")
    write_deltalake(str(lake / "sink"), ROWS)
    first = size_of(lake / "sink")
    assert bytes_to_ingest(of, "events") == first > 0
    read_delta(of, 0)
    assert bytes_to_ingest(of, "events") == 0
    write_deltalake(str(lake / "sink"), ROWS, mode="append")
    assert bytes_to_ingest(of, "events") == size_of(lake / "sink") - first
    write_deltalake(str(lake / "sink"), ROWS.slice(0, 1), mode="overwrite")
    # The first went and the third came; the second, as big as the first, did both.
    assert bytes_to_ingest(of, "events") == size_of(lake / "sink") - first
    read_delta(of, 2)
    assert bytes_to_ingest(of, "events") == 0


@pytest.mark.parametrize(
    "before",
    [
        lambda of: read_delta(of, 7),
        lambda of: read_delta(of, 0, commit="of another table"),
        lambda of: read_delta(of, 0, elsewhere="/below"),
        read_folder,
    ],
    ids=["a version that is no more", "another table's version", "another path", "a folder"],
)
def test_all_of_a_delta_table_counts_when_the_last_batch_read_another_sink(
    lake: Path, before: Callable[[Settings], None]
) -> None:
    of = settings(lake, kind="delta")
    before(of)
    write_deltalake(str(lake / "sink"), ROWS)
    assert bytes_to_ingest(of, "events") == size_of(lake / "sink")


def test_all_of_a_delta_table_counts_when_commits_were_cleaned_up(lake: Path) -> None:
    of = settings(lake, kind="delta")
    for _ in range(3):
        write_deltalake(str(lake / "sink"), ROWS, mode="append")
    read_delta(of, 0)
    DeltaTable(str(lake / "sink")).create_checkpoint()
    (lake / "sink" / "_delta_log" / f"{1:020d}.json").unlink()
    assert bytes_to_ingest(of, "events") == size_of(lake / "sink")


def test_absent_sink_is_named(lake: Path) -> None:
    with pytest.raises(ConfigError, match=r"sink\.path"):
        bytes_to_ingest(settings(lake, kind="delta"), "events")
