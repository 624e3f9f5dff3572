"""Delta tables that Apache Spark wrote, as we read them: versions, and what came between two."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable, Schema

from shardaudit.adapters.files.files import StorageError
from shardaudit.adapters.lake.broken_tables import BrokenTableError
from shardaudit.adapters.lake.delta_log import CommitGoneError
from shardaudit.adapters.lake.delta_schema import TableFeatureError
from shardaudit.adapters.lake.delta_sink_reader import DeltaSink
from shardaudit.ingest.rules.commits import net_change
from shardaudit.model.errors import ConfigError
from tests.sink_reading import ACCESS, delta_rows
from tests.spark_tables import NAMES, SparkTable, spark_table

FIRST = datetime(2026, 11, 20, 12, tzinfo=UTC)


def sink(table: SparkTable | Path) -> DeltaSink:
    return DeltaSink(str(table.path if isinstance(table, SparkTable) else table), ACCESS)


def append_to_log(table: Path, *actions: dict[str, object]) -> None:
    """One more commit."""
    log = table / "_delta_log"
    number = len(list(log.glob("*[0-9].json")))
    (log / f"{number:020d}.json").write_text("".join(f"{json.dumps(one)}\n" for one in actions))


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_apache_sparks_when_a_version_is_read(name: str, tmp_path: Path) -> None:
    table = spark_table(name, tmp_path)
    for number, known in enumerate(table.versions):
        version = sink(table).at(number)
        assert delta_rows(version, version.files(), known.columns) == known.rows, number


@pytest.mark.parametrize("name", NAMES)
def test_rows_come_out_even_when_commits_are_added_up(name: str, tmp_path: Path) -> None:
    table = spark_table(name, tmp_path)
    for before, earlier in enumerate(table.versions):
        for number in range(before + 1, len(table.versions)):
            version, known = sink(table).at(number), table.versions[number]
            change = net_change(version.commits_since(before))
            rows = earlier.rows + delta_rows(version, change.added, known.columns)
            rows.subtract(delta_rows(version, change.removed, known.columns))
            assert rows == known.rows, (before, number)


def test_files_are_left_out_when_the_log_says_that_they_hold_nothing_of_it(tmp_path: Path) -> None:
    table = spark_table("mixed_times", tmp_path)
    version, known = sink(table).at(), table.versions[-1]
    later = FIRST + timedelta(seconds=10)
    for spans, count in (
        ([(FIRST, FIRST + timedelta(seconds=5))], 10),
        ([(later, later + timedelta(days=1))], 10),
        ([(FIRST - timedelta(days=1), FIRST)], 0),
        ([(FIRST, FIRST + timedelta(seconds=1)), (later, later + timedelta(seconds=1))], 20),
        ([], 0),
    ):
        files = version.files(within=("sent_at", spans))
        assert delta_rows(version, files, known.columns).total() == count
    # The log cuts 12:00:09.000009 to the millisecond.
    edge = FIRST + timedelta(seconds=9, microseconds=9)
    [file] = version.files(within=("sent_at", [(edge, edge + timedelta(microseconds=1))]))
    assert delta_rows(version, [file], known.columns).total() == 10
    assert len(version.files(within=("message_id", []))) == 2


def test_fields_say_what_the_table_computes_when_nothing_runs(tmp_path: Path) -> None:
    table = spark_table("mapped_by_name", tmp_path)
    fields = sink(table).at().fields
    assert [(f.name, f.kind, f.partitions) for f in fields] == [
        ("the.id", "string", False),
        ("shard", "string", True),
        ("sent_at", "timestamp", False),
        ("landed_at", "timestamp", False),
        ("message_id", "int", False),
    ]


def test_fields_have_types_of_sql_when_they_are_nested(tmp_path: Path) -> None:
    inner = {"name": "a b", "type": "long", "nullable": True, "metadata": {}}
    tags = {"type": "map", "keyType": "string", "valueType": "short", "valueContainsNull": True}
    parts = [inner, inner | {"name": "c", "type": "decimal(10,2)"}]
    list_of = {"type": "array", "elementType": {"type": "struct", "fields": parts}}
    kinds = {"tags": tags, "list": list_of | {"containsNull": True}, "b": "byte", "i": "integer"}
    fields = [inner | {"name": name, "type": kind} for name, kind in kinds.items()]
    DeltaTable.create(tmp_path, Schema.from_json(json.dumps({"type": "struct", "fields": fields})))
    assert [field.kind for field in sink(tmp_path).at().fields] == [
        "map<string,smallint>",
        "array<struct<a b:bigint,c:decimal(10,2)>>",
        "tinyint",
        "int",
    ]


@pytest.mark.parametrize(
    "feature", ["rowIds", "catalogManaged", "geospatial", "collations-preview"]
)
def test_table_is_refused_by_the_features_name_when_we_cannot_read_it(
    feature: str, tmp_path: Path
) -> None:
    table = spark_table("vectors", tmp_path)
    both = ["deletionVectors", feature]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7}
    append_to_log(
        table.path, {"protocol": protocol | {"readerFeatures": both, "writerFeatures": both}}
    )
    with pytest.raises(TableFeatureError, match=f"asks .*{feature} of its readers.*DROP FEATURE"):
        sink(table).at()
    assert sink(table).at(9).number == 9


def test_table_is_refused_when_its_readers_must_be_newer(tmp_path: Path) -> None:
    table = spark_table("vectors", tmp_path)
    append_to_log(table.path, {"protocol": {"minReaderVersion": 9, "minWriterVersion": 9}})
    with pytest.raises(TableFeatureError, match="reader version 9"):
        sink(table).at()


def test_cure_is_told_when_there_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    for place in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(ConfigError, match='wanted a Delta table, or format = "parquet"'):
            sink(place).at()


def test_log_is_not_read_half_when_its_beginning_is_gone(tmp_path: Path) -> None:
    """delta-rs takes the columns from a `.crc` file, and the files from what is left."""
    table = spark_table("mixed_times", tmp_path)
    log = table.path / "_delta_log"
    actions = [json.loads(line) for line in (log / f"{0:020d}.json").read_text().splitlines()]
    checksum = {"tableSizeBytes": 0, "numFiles": 2, "numMetadata": 1, "numProtocol": 1}
    for action in actions:
        checksum |= {key: value for key, value in action.items() if key in {"metaData", "protocol"}}
    checksum["metadata"] = checksum.pop("metaData")
    (log / f"{2:020d}.crc").write_text(json.dumps(checksum))
    for number in (0, 1):
        (log / f"{number:020d}.json").unlink()
    with pytest.raises(BrokenTableError, match=r"0\.json is not there, of a log up to version 2"):
        sink(table).at().files()


def test_log_is_read_later_when_its_newest_commit_is_empty(tmp_path: Path) -> None:
    table = spark_table("mixed_times", tmp_path)
    append_to_log(table.path)
    with pytest.raises(StorageError, match=r"3\.json could not be read: it is empty"):
        sink(table).at()


def test_commits_are_gone_when_one_of_them_is(tmp_path: Path) -> None:
    table = spark_table("vectors", tmp_path)
    (table.path / "_delta_log" / f"{4:020d}.json").unlink()
    version = sink(table).at()
    with pytest.raises(CommitGoneError):
        version.commits_since(3)
    assert len(version.commits_since(5)) == 4
    (table.path / "_delta_log" / f"{6:020d}.json").write_text("")
    with pytest.raises(CommitGoneError, match=r"6\.json"):
        version.commits_since(5)
    assert version.files()


def test_checkpoint_is_passed_over_when_a_part_of_it_is_missing(tmp_path: Path) -> None:
    table = spark_table("vectors", tmp_path)
    log = table.path / "_delta_log"
    (log / f"{9:020d}.checkpoint.{1:010d}.{2:010d}.parquet").write_bytes(b"half of it")
    version, known = sink(table).at(), table.versions[-1]
    assert delta_rows(version, version.files(), known.columns) == known.rows
