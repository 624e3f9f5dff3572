"""Traces in plain Parquet files are kept as they came, and count as those of JSON lines do."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from shardaudit.adapters.engine.collected import collected
from shardaudit.ingest import trace_writing
from shardaudit.ingest.stream_traces import LostCopyError, StreamTraces
from shardaudit.model.errors import LockLostError
from shardaudit.model.tables.audit_tables import BATCHES, FINGERPRINTS, TRACES
from shardaudit.model.window import Window
from shardaudit.store.warehouse import Warehouse
from tests.builders import T0, sequence, shard, trace_line
from tests.history import Trace
from tests.spark.ingest.dying import Dying
from tests.spark.lake import Lake

EVER = Window(datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
SCHEMA = pa.schema(
    [
        ("message_id", pa.string()),
        ("shard_id", pa.string()),
        ("sequence_number", pa.string()),
        ("sent_at", pa.timestamp("us", "UTC")),
        ("attempt", pa.int32()),
    ]
)


def trace(number: int, **given: object) -> Trace:
    values: dict[str, object] = {
        "message_id": f"m{number}",
        "shard_id": shard(number % 2),
        "sequence_number": sequence(number),
        "sent_at": T0 + timedelta(seconds=number),
    }
    return Trace(**values | given)  # type: ignore[arg-type]


def in_parquet(lake: Lake, name: str, traces: Sequence[Trace], *, unit: str = "us") -> Path:
    lake.traces_format = "parquet"
    sent_at = pa.timestamp(unit, None if unit == "ms" else "UTC")
    schema = SCHEMA.set(SCHEMA.get_field_index("sent_at"), pa.field("sent_at", sent_at))
    lake.traces.mkdir(parents=True, exist_ok=True)
    rows = [
        (t.message_id, t.shard_id, t.sequence_number, t.sent_at, n % 3)
        for n, t in enumerate(traces)
    ]
    columns = dict(zip(SCHEMA.names, zip(*rows, strict=True), strict=True))
    if unit == "ms":
        columns["sent_at"] = tuple(at.replace(tzinfo=None) for at in columns["sent_at"])
    pq.write_table(pa.table(columns, schema=schema), lake.traces / name, row_group_size=4)
    return lake.traces / name


def place_of(lake: Lake) -> str:
    return str(lake.folder / "warehouse")


def stored(lake: Lake) -> int:
    place = Path(place_of(lake)) / TRACES.name
    return DeltaTable(place).to_pyarrow_table().num_rows if place.exists() else 0


def all_of(lake: Lake) -> list[tuple[object, ...]]:
    found = StreamTraces.of(lake.warehouse, lake.name).within([EVER])
    return sorted(
        (row.message_id, row.shard_id, row.sequence_number or "", row.sent_at, row.counted,
         str(row.counted_in))
        for row in collected(found.drop("attributes"))
    )  # fmt: skip


def copies(lake: Lake) -> list[Path]:
    return sorted((Path(place_of(lake)) / "kept_files").rglob("*.parquet"))


def counted(lake: Lake) -> int:
    return sum(totals[0] for totals in lake.ledger("traces").values())


def test_no_row_is_written_again_when_no_id_comes_again(lake: Lake) -> None:
    in_parquet(lake, "a.parquet", [trace(n) for n in range(50)])
    summary = lake.ingest()
    assert (summary.trace_rows, summary.quarantined, stored(lake)) == (50, 0, 0)
    assert len(all_of(lake)) == 50
    assert counted(lake) == 50
    in_parquet(lake, "b.parquet", [trace(n) for n in range(50)])
    lake.ingest()
    assert len(all_of(lake)) == counted(lake) == 50
    batches = lake.warehouse.read(BATCHES).where("side = 'traces'").orderBy("number")
    assert [row.counted for row in collected(batches)] == [50, 0]


def test_a_copy_that_somebody_deleted_is_named_with_the_file_that_it_was_of(lake: Lake) -> None:
    of_a = in_parquet(lake, "a.parquet", [trace(n) for n in range(50)])
    lake.ingest()
    [copy] = copies(lake)
    copy.unlink()
    with pytest.raises(LostCopyError, match=f"{copy}: the file is gone; it is .* copy of {of_a}"):
        all_of(lake)
    copy.write_bytes(of_a.read_bytes())
    assert len(all_of(lake)) == 50


def test_rows_beside_a_file_without_any_are_not_written_again(lake: Lake) -> None:
    in_parquet(lake, "a.parquet", [trace(n) for n in range(50)])
    of_a = pq.read_table(lake.traces / "a.parquet")
    pq.write_table(of_a.slice(0, 0), lake.traces / "empty.parquet")
    assert lake.ingest().trace_rows == counted(lake) == len(all_of(lake)) == 50
    assert stored(lake) == 0


def test_rows_of_a_clock_that_is_ahead_are_written_with_the_time_of_their_ingest(
    lake: Lake,
) -> None:
    read_at = T0 + timedelta(seconds=9)
    in_parquet(lake, "a.parquet", [trace(n) for n in range(9)])
    lake.ingest(now=read_at)
    assert stored(lake) == 0
    in_parquet(lake, "b.parquet", [trace(n) for n in (8, 9, 10, 11)])
    lake.ingest(now=read_at)
    rows = collected(lake.warehouse.read(TRACES))
    found = {row.message_id: row.ingested_at for row in rows if row.moved is None}
    assert found == {"m10": read_at, "m11": read_at}
    assert counted(lake) == len(all_of(lake)) == 12


def test_rows_of_a_clock_that_is_ahead_count_when_an_older_version_died_over_them(
    lake: Lake,
) -> None:
    read_at = T0 + timedelta(seconds=9)
    in_parquet(lake, "a.parquet", [trace(n) for n in range(9)])
    lake.ingest(now=read_at)
    in_parquet(lake, "b.parquet", [trace(8, shard_id=shard(5)), *map(trace, (9, 10, 11))])
    lake.warehouse = Warehouse(lake.spark, place_of(lake), check=Dying(5))  # FINGERPRINTS
    with pytest.raises(LockLostError):
        lake.ingest(now=read_at)
    # It put the ids alone into the table that came again.
    table = DeltaTable(Path(place_of(lake)) / TRACES.name)
    assert table.delete("message_id in ('m10', 'm11')")["num_deleted_rows"] == 2
    lake.warehouse = Warehouse(lake.spark, place_of(lake))
    lake.ingest(now=read_at)
    assert {row.message_id for row in lake.kept() if row.moved is None} == {"m8"}
    assert counted(lake) == 12
    assert sum(row.counted or 0 for row in lake.batches()) == 12
    assert len(all_of(lake)) == 13


def test_traces_stay_when_their_file_goes(lake: Lake) -> None:
    path = in_parquet(lake, "a.parquet", [trace(n) for n in range(50)])
    lake.ingest()
    path.unlink()
    assert len(all_of(lake)) == 50


def test_all_traces_of_an_id_are_in_the_table_when_it_comes_again(lake: Lake) -> None:
    in_parquet(lake, "a.parquet", [trace(n) for n in range(50)])
    lake.ingest()
    in_parquet(lake, "b.parquet", [trace(7), trace(8, shard_id=shard(5)), trace(60)])
    lake.ingest()
    assert stored(lake) == 3  # the first of both, and the one on another shard
    assert len(all_of(lake)) == 52
    assert counted(lake) == 51


def test_nothing_is_stored_when_very_many_come_again_in_another_file(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a job that makes few files of many, and of one that was not yet seen."""
    monkeypatch.setattr(trace_writing, "MOST_REPEATED", 10)
    in_parquet(lake, "a.parquet", [trace(n) for n in range(50)])
    lake.ingest()
    in_parquet(lake, "compacted.parquet", [trace(n) for n in range(50)])
    summary = lake.ingest()
    assert (summary.trace_rows, stored(lake), len(copies(lake))) == (50, 0, 1)
    in_parquet(lake, "longer.parquet", [trace(n) for n in range(53)])
    lake.ingest()
    assert (stored(lake), len(copies(lake)), len(all_of(lake)), counted(lake)) == (3, 1, 53, 53)


SEEDS = [
    0,
    1,
    *(pytest.param(seed, marks=pytest.mark.drill) for seed in range(2, 8)),
]


@pytest.mark.parametrize("seed", SEEDS)
def test_kept_traces_are_those_of_json_when_ids_come_again_and_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chosen = random.Random(seed)  # noqa: S311 - a choice of cases
    # Of 2 no kept file has more, and a batch has several parts.
    monkeypatch.setattr(trace_writing, "MOST_REPEATED", (1000, 2)[seed % 2])
    lakes = [
        Lake(spark, Warehouse(spark, str(tmp_path / name / "warehouse")), tmp_path / name)
        for name in ("json", "parquet", "mixed")
    ]
    for lake in lakes:
        lake.land()
    for batch in range(3 if seed == 0 else 5):
        traces = [
            trace(
                chosen.randrange(12),
                shard_id=shard(chosen.randrange(2)),
                sequence_number=chosen.choice([None, "5", "10", sequence(3)]),
                sent_at=T0 + timedelta(seconds=chosen.choice([0, 1, 59, 60, 61, 3600, 90_000])),
            )
            for _ in range(chosen.choice([1, 5, 30]))
        ]
        for lake in lakes:
            if lake.folder.name == "parquet" or (lake.folder.name == "mixed" and batch % 2):
                in_parquet(lake, f"{batch}.parquet", traces, unit=chosen.choice(["us", "ms"]))
            else:
                lake.traces_format = "json"
                lake.log(f"{batch}.jsonl", [trace_line(0, **_fields(each)) for each in traces])
            lake.ingest()
            if lake.folder.name == "mixed":  # of the other format, for the next ones
                for file in lake.traces.iterdir():
                    file.unlink()
        of_json, totals = all_of(lakes[0]), lakes[0].ledger("traces")
        for lake in lakes[1:]:
            assert all_of(lake) == of_json
            assert lake.ledger("traces") == totals


def _fields(one: Trace) -> dict[str, object]:
    return {
        "message_id": one.message_id,
        "shard_id": one.shard_id,
        "sequence_number": one.sequence_number,
        "sent_at": one.sent_at.isoformat(),
    }


@pytest.mark.parametrize(
    "given", [{"shard_id": ""}, {"sent_at": datetime(9999, 12, 31, tzinfo=UTC)}]
)
def test_batch_is_put_into_the_table_when_a_row_cannot_be_used(
    lake: Lake, given: dict[str, object]
) -> None:
    path = in_parquet(lake, "a.parquet", [trace(1), trace(2, **given), trace(3)])
    summary = lake.ingest()
    assert (summary.trace_rows, summary.quarantined, stored(lake)) == (2, 1, 2)
    [refused] = lake.refused()
    assert (refused.file, refused.line) == (str(path), 2)
    assert copies(lake) == []


def test_rows_are_judged_from_the_copies_when_one_cannot_be_used(lake: Lake) -> None:
    first = in_parquet(lake, "a.parquet", [trace(1), trace(2, shard_id=""), trace(3)])
    lake.warehouse = Warehouse(lake.spark, place_of(lake), check=Dying(4))  # before QUARANTINE
    with pytest.raises(LockLostError):
        lake.ingest()
    first.unlink()
    lake.warehouse = Warehouse(lake.spark, place_of(lake))
    summary = lake.ingest()
    assert (summary.trace_rows, summary.quarantined, stored(lake)) == (2, 1, 2)
    [refused] = lake.refused()
    assert (refused.file, refused.line, copies(lake)) == (str(first), 2, [])


def test_column_that_no_ledger_needs_is_damage_when_it_cannot_be_read(lake: Lake) -> None:
    path = in_parquet(lake, "a.parquet", [trace(n) for n in range(4)])
    column = pq.ParquetFile(path).metadata.row_group(0).column(4)
    content = bytearray(path.read_bytes())
    at = column.dictionary_page_offset or column.data_page_offset
    content[at : at + column.total_compressed_size] = bytes(column.total_compressed_size)
    path.write_bytes(content)
    assert lake.ingest().quarantined == 1
    assert all_of(lake) == []


def test_traces_are_found_when_the_warehouse_is_moved(
    lake: Lake, spark: SparkSession, tmp_path: Path
) -> None:
    in_parquet(lake, "a.parquet", [trace(n) for n in range(50)])
    lake.ingest()
    Path(place_of(lake)).rename(tmp_path / "elsewhere")
    lake.warehouse = Warehouse(spark, str(tmp_path / "elsewhere"))
    assert len(all_of(lake)) == 50


def test_files_are_put_into_the_table_when_they_are_many_and_small(lake: Lake) -> None:
    for n in range(17):
        in_parquet(lake, f"{n}.parquet", [trace(n)])
    lake.ingest()
    assert (stored(lake), copies(lake)) == (17, [])


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("deaths", [(4, 1, 2, 3), (4, 3)])  # traces, traces, fingerprints, done
def test_tables_are_the_same_when_runs_died_between_all_writes(
    lake: Lake, spark: SparkSession, tmp_path: Path, deaths: tuple[int, ...], is_there: bool
) -> None:
    def contents() -> list[list[str]]:
        states = [row.state for row in lake.rows(BATCHES)]
        tables = [sorted(map(str, lake.rows(table))) for table in (TRACES, FINGERPRINTS)]
        return [*tables, states, list(map(str, all_of(lake)))]

    path = str(tmp_path / "disturbed")
    for place in (place_of(lake), path):
        lake.warehouse = Warehouse(spark, place)
        in_parquet(lake, "a.parquet", [trace(n) for n in range(20)])
        (lake.traces / "b.parquet").unlink(missing_ok=True)
        lake.ingest()
        source = in_parquet(lake, "b.parquet", [trace(n) for n in (*range(15, 40), 20, 21)])
        for before in deaths if place == path else ():
            lake.warehouse = Warehouse(spark, path, check=Dying(before))
            with pytest.raises(LockLostError):
                lake.ingest()
            if not is_there:
                source.unlink(missing_ok=True)
        lake.warehouse = Warehouse(spark, place)
        lake.ingest()
        if place == place_of(lake):
            undisturbed = contents()
    assert contents() == undisturbed


@pytest.mark.parametrize("before", [2, 3])  # copies, planned again
def test_traces_are_the_same_when_a_run_died_before_it_had_copies(
    lake: Lake, spark: SparkSession, before: int
) -> None:
    in_parquet(lake, "a.parquet", [trace(n) for n in (*range(30), 4, 5)])
    lake.warehouse = Warehouse(spark, place_of(lake), check=Dying(before))
    with pytest.raises(LockLostError):
        lake.ingest()
    lake.warehouse = Warehouse(spark, place_of(lake))
    lake.ingest()
    assert (len(all_of(lake)), counted(lake)) == (30, 30)
    assert (stored(lake), len(copies(lake))) == (2, 1)  # in the copy, but for the ids seen twice
