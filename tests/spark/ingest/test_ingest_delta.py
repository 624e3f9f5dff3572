"""The ledger of a Delta sink: after any commits it is the fingerprint of what is there now."""

import json
import random
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from shardaudit.audit.evidence import ingested
from shardaudit.ingest.batches import Batches, BatchResult
from shardaudit.ingest.rules.batch_inputs import sink_inputs
from shardaudit.ingest.rules.deliveries import judged_sink_rows
from shardaudit.ingest.rules.fingerprint import sink_fingerprints
from shardaudit.model.config.eras import CellShape, Eras
from shardaudit.model.config.parts import Sink
from shardaudit.model.errors import ConfigError, SinkSchemaError
from tests.builders import NOW, SINK_DDL, T0, Line, shard, sink_row, spoil
from tests.spark.lake import CELL_TOTALS, Lake, Totals
from tests.spark_tables import spark_table

DAY_DDL = f"{SINK_DDL}, day string"


def rows_of_day(numbers: range, day: int = 0) -> list[Line]:
    sent_at = T0 + timedelta(days=day)
    return [
        sink_row(
            n,
            shard_id=shard(n % 3),
            sent_at=sent_at + timedelta(seconds=n),
            landed_at=sent_at + timedelta(seconds=n + 30),
            day=str(day),
        )
        for n in numbers
    ]


def now_there(lake: Lake) -> Totals:
    """The fingerprints of a fresh scan of the table."""
    rows = lake.spark.read.format("delta").load(str(lake.sink))
    names = [part.split()[0] for part in SINK_DDL.split(", ")]
    judged = judged_sink_rows(rows.select(*names), shape=Eras(CellShape(60, 1.0)))
    cells = sink_fingerprints(judged, None, now=NOW).where("shard_id is not null")
    return {
        (row.shard_id, row.start): (*(row[name] for name in CELL_TOTALS), *row.latency_counts)
        for row in cells.withColumn("start", F.unix_seconds("bucket_start")).collect()
    }


def read_again(lake: Lake) -> int:
    """How many good rows the newest batch says that there are."""
    return lake.landed_now().scan().rows.count()


class Commits:
    """Random commits to a sink."""

    def __init__(self, lake: Lake, seed: int) -> None:
        self._lake, self._next, self._restorable = lake, 100, 0
        self._random = random.Random(seed)  # noqa: S311 - rows, not secrets

    def make(self, names: list[str]) -> None:
        for name in names:
            operation: Callable[[], object] = getattr(self, name)
            operation()

    def append(self) -> None:
        day = self._random.randrange(2)
        self._lake.land(rows_of_day(range(self._next, self._next + 20), day), DAY_DDL)
        self._next += 20

    def append_bad(self) -> None:
        bad = sink_row(self._next, shard_id="", day="0")
        unplaced = [
            sink_row(self._next + 1, sent_at=None, day="0"),
            sink_row(self._next + 2, shard_id=None, day="0"),
        ]
        good = rows_of_day(range(self._next + 3, self._next + 6))
        self._lake.land([bad, *unplaced, *good], DAY_DDL)
        self._next += 6

    def delete(self) -> None:
        self._lake.sql(f"DELETE FROM SINK WHERE {self._one_of(7)}")  # noqa: S608 - our own SQL

    def delete_day(self) -> None:
        self._lake.sql("DELETE FROM SINK WHERE day = '1'")

    def update(self) -> None:
        changes = "shard_id = 'moved', sent_at = sent_at + INTERVAL 90 SECONDS"
        self._lake.sql(f"UPDATE SINK SET {changes} WHERE {self._one_of(9)}")  # noqa: S608 - the same

    def merge(self) -> None:
        fresh = rows_of_day(range(self._next - 10, self._next + 5))
        self._next += 5
        changed = self._lake.frame(fresh, DAY_DDL).withColumn("shard_id", F.lit("merged"))
        changed.createOrReplaceTempView("changed")
        self._lake.sql(
            "MERGE INTO SINK AS t USING changed AS s ON t.message_id = s.message_id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )

    def optimize(self) -> None:
        self._lake.optimize()

    def overwrite(self) -> None:
        rows = self._lake.frame(rows_of_day(range(self._next, self._next + 30)), DAY_DDL)
        rows.write.format("delta").mode("overwrite").save(str(self._lake.sink))
        self._next += 30

    def restore(self) -> None:
        self._lake.restore(self._random.randint(self._restorable, self._lake.version - 1))

    def vacuum(self) -> None:
        self._lake.vacuum()
        self._restorable = self._lake.version

    def _one_of(self, parts: int) -> str:
        return f"cast(substring(message_id, 2) AS INT) % {parts} = {self._random.randrange(parts)}"


@pytest.fixture
def unchecked_vacuum(spark: SparkSession) -> Iterator[None]:
    """Lets Apache Spark's VACUUM take files that are a moment old."""
    setting = "spark.databricks.delta.retentionDurationCheck.enabled"
    spark.conf.set(setting, "false")
    yield
    spark.conf.unset(setting)


@pytest.mark.usefixtures("unchecked_vacuum")
@pytest.mark.parametrize(("has_vectors", "seed"), [(True, 11), (False, 12)])
def test_ledger_is_what_is_there_now_when_anything_was_committed(
    spark_lake: Lake, has_vectors: bool, seed: int
) -> None:
    lake = spark_lake
    options = {"delta.enableDeletionVectors": str(has_vectors).lower()}
    if has_vectors and not lake.is_embedded:  # there delta-rs optimizes, which knows no such names
        options["delta.columnMapping.mode"] = "name"
    rows = lake.frame(rows_of_day(range(60)), DAY_DDL).coalesce(2)
    rows.write.format("delta").partitionBy("day").options(**options).save(str(lake.sink))
    commits = Commits(lake, seed)
    rounds = [
        [],
        ["append", "optimize", "delete"],
        ["delete", "update"],
        ["append_bad", "merge", "optimize", "restore"],
        ["merge", "delete_day", "append"],
        ["overwrite", "vacuum"],
        ["delete", "update", "optimize", "append"],
    ]
    for operations in rounds:
        commits.make(operations)
        lake.ingest()
        assert lake.ledger("sink") == now_there(lake), operations
        assert read_again(lake) == sum(totals[0] for totals in now_there(lake).values())
    inputs = [row.inputs for row in lake.batches()]
    assert ['"from_version":null' in text for text in inputs] == [True] + [False] * 4 + [
        True,
        False,
    ]
    assert lake.ingest().batches == ()


def test_batch_reads_nothing_when_files_were_only_rewritten(lake: Lake) -> None:
    for number in range(3):
        lake.land([sink_row(number)])
    first = lake.ingest()
    assert (first.sink_from_version, first.sink_to_version) == (None, 3)
    assert (first.sink_rows, first.sink_files_added) == (3, 3)
    lake.optimize()
    second = lake.ingest()
    assert (second.sink_from_version, second.sink_to_version) == (3, 4)
    assert (second.sink_rows, second.sink_files_added, second.sink_files_removed) == (0, 0, 0)
    assert lake.ledger("sink") == now_there(lake)


def test_rows_that_were_only_rewritten_neither_came_nor_went(lake: Lake) -> None:
    for number in range(2):
        lake.land([sink_row(number, sent_at=None), sink_row(number + 2)])
    lake.ingest()
    lake.optimize()
    lake.ingest()
    scan = lake.unplaced_now()
    assert sorted((row.message_id, row.is_new) for row in scan.rows.collect()) == [
        ("m0", False),
        ("m1", False),
    ]
    assert not scan.has_left
    lake.sql("DELETE FROM SINK WHERE message_id = 'm0'")
    lake.land([sink_row(4, sent_at=None)])
    lake.ingest()
    later = lake.unplaced_now(since=2)
    # The file from which the row went was written anew: who wrote it may have added to it.
    assert {row.message_id: row.is_new for row in later.rows.collect()}["m4"]
    assert later.has_left


def test_rows_without_a_place_that_were_deleted_count_no_more(lake: Lake) -> None:
    lake.land([sink_row(0, sent_at=None), sink_row(1, shard_id=None), sink_row(2)])
    lake.ingest()
    assert ingested(lake.warehouse, lake.name).unplaced == 2
    lake.sql("DELETE FROM SINK WHERE message_id = 'm0'")
    lake.ingest()
    assert ingested(lake.warehouse, lake.name).unplaced == 1


def test_ledger_is_made_anew_when_commits_were_cleaned_up(lake: Lake) -> None:
    lake.land([sink_row(0), sink_row(1)])
    lake.ingest()
    lake.sql("DELETE FROM SINK WHERE message_id = 'm0'")
    lake.land([sink_row(2)])
    DeltaTable(lake.sink).create_checkpoint()  # as the tenth commit would
    for version in range(3):  # as Delta's own clean-up would, a month later
        (lake.sink / "_delta_log" / f"{version:020d}.json").unlink()
    summary = lake.ingest()
    assert (summary.sink_from_version, summary.sink_to_version) == (None, 3)
    assert lake.ledger("sink") == now_there(lake)
    assert read_again(lake) == 2


@pytest.mark.usefixtures("unchecked_vacuum")
def test_ledger_is_made_anew_when_files_came_and_went_for_good(lake: Lake) -> None:
    lake.land([sink_row(0)])
    lake.ingest()
    lake.land([sink_row(1)])
    lake.optimize()
    lake.vacuum()
    summary = lake.ingest()
    assert (summary.sink_from_version, summary.sink_rows, summary.quarantined) == (None, 2, 0)
    assert lake.ledger("sink") == now_there(lake)


def test_ledger_is_made_anew_when_the_table_was_recreated(lake: Lake) -> None:
    lake.land([sink_row(0), sink_row(1)])
    lake.ingest()
    lake.frame([sink_row(5)]).write.format("delta").mode("overwrite").option(
        "overwriteSchema", "true"
    ).partitionBy("shard_id").save(str(lake.sink))
    assert lake.ingest().sink_from_version is None
    assert lake.ledger("sink") == now_there(lake)


@pytest.mark.apache_spark
def test_column_may_be_renamed_when_the_configuration_follows(lake: Lake) -> None:
    lake.sql("ALTER TABLE SINK SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    lake.land([sink_row(0), sink_row(1)])
    lake.ingest()
    lake.sql("ALTER TABLE SINK ADD COLUMN extra INT")
    lake.sql("ALTER TABLE SINK RENAME COLUMN landed_at TO `in.gested`")
    lake.sql("DELETE FROM SINK WHERE message_id = 'm1'")
    with pytest.raises(SinkSchemaError, match=r"'landed_at'.*version 5 of .*landed_at = "):
        lake.ingest()
    lake.sink_columns = {"landed_at": "in.gested"}
    summary = lake.ingest()
    assert (summary.sink_from_version, summary.sink_to_version) == (2, 5)
    lake.sql("ALTER TABLE SINK RENAME COLUMN `in.gested` TO landed_at")
    assert lake.ledger("sink") == now_there(lake)


def test_column_that_the_sink_lost_is_read_no_more_when_a_person_says_so(lake: Lake) -> None:
    lake.land([sink_row(0), sink_row(1)])
    lake.ingest()
    rows = lake.frame([sink_row(0), sink_row(1)]).drop("sequence_number")
    rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(
        str(lake.sink)
    )
    wanted = (
        "stream events: sink column 'sequence_number' (for sequence_number) is not in ",
        """set columns = { sequence_number = "…" } under [streams."events".sink], its new name; """
        """or without = ["sequence_number"], if the sink has it no more""",
    )
    with pytest.raises(SinkSchemaError) as refused:
        lake.ingest()
    assert all(part in str(refused.value) for part in wanted)
    path = str(lake.sink)
    gone = {"columns": {"sequence_number": "sequence_number"}, "without": ["sequence_number"]}
    lake.settings = {"sink": Sink.model_validate({"path": path} | gone)}
    assert lake.ingest().sink_from_version is None
    assert read_again(lake) == 2


def test_bad_rows_are_set_aside_when_others_are_good(lake: Lake) -> None:
    lake.land([sink_row(0), sink_row(1, shard_id=""), sink_row(2, sequence_number="x")])
    summary = lake.ingest()
    assert (summary.sink_rows, summary.quarantined) == (1, 2)
    assert [(row.source, row.line, row.reason) for row in lake.refused()] == [
        ("sink", 2, "shard_id is not a text of 1 to 128 characters"),
        ("sink", 3, "sequence_number is not a text of 1 to 129 decimal digits"),
    ]
    assert all(Path(row.file).exists() for row in lake.refused())
    lake.sql("DELETE FROM SINK WHERE shard_id = ''")
    lake.ingest()
    assert sum(totals[0] for totals in lake.ledger("sink").values()) == 1


def test_audit_goes_on_when_a_data_file_is_broken(lake: Lake) -> None:
    lake.land([sink_row(0)])
    lake.ingest()
    lake.land([sink_row(number) for number in range(1, 500)])
    broken = max(lake.sink.glob("*.parquet"), key=lambda file: file.stat().st_mtime_ns)
    spoil(broken, at=0.1, length=200)
    (broken.parent / f".{broken.name}.crc").unlink(missing_ok=True)
    lake.land([sink_row(700)])
    summary = lake.ingest()
    assert (summary.sink_from_version, summary.sink_rows, summary.quarantined) == (1, 1, 1)
    [refused] = lake.refused()
    reason = refused.reason.partition(": ")[0]
    assert (refused.file, refused.line, reason) == (broken.name, None, "unreadable Parquet file")
    assert lake.batches()[-1].damaged_from is not None
    assert read_again(lake) == 2

    lake.sql("DELETE FROM SINK WHERE message_id = 'm0'")
    lake.ingest()
    assert sum(totals[0] for totals in lake.ledger("sink").values()) == 1
    assert lake.batches()[-2].damaged_from is not None
    lake.frame([sink_row(0), sink_row(3)]).write.format("delta").mode("overwrite").save(
        str(lake.sink)
    )
    lake.ingest()
    assert lake.ledger("sink") == now_there(lake)
    assert {row.damaged_from for row in lake.batches()} == {None}


# What version 0.1 stored of a batch, but for the table's id and place.
OLD_INPUTS = (
    '{"columns":{"landed_at":"landed_at","message_id":"message_id","sent_at":"sent_at",'
    '"shard_id":"shard_id"},"damaged":[],"excluded":[],"format":"delta","from_version":null,'
    '"meaning":"[\\"ID\\", [\\"BY\\"], {'
    '\\"landed_at\\": [\\"landed_at\\", \\"\\\\\\"timestamp\\\\\\"\\"], '
    '\\"message_id\\": [\\"message_id\\", \\"\\\\\\"string\\\\\\"\\"], '
    '\\"sent_at\\": [\\"sent_at\\", \\"\\\\\\"timestamp\\\\\\"\\"], '
    '\\"shard_id\\": [\\"shard_id\\", \\"\\\\\\"string\\\\\\"\\"]}]",'
    '"path":"PATH","shape":{"bucket_s":60,"sample_rate":1.0},"to_version":VERSION}'
)


@pytest.mark.parametrize(("name", "partition"), [("vectors", "shard_id"), ("mixed_times", "")])
def test_sink_is_not_read_anew_when_version_0_1_read_it_last(
    spark_lake: Lake, name: str, partition: str
) -> None:
    lake = spark_lake
    table = spark_table(name, lake.folder)
    table.path.rename(lake.sink)
    texts = {
        "ID": DeltaTable(lake.sink).metadata().id,
        "BY": partition,
        "PATH": str(lake.sink),
        "VERSION": "1",
    }
    inputs = OLD_INPUTS
    for word, text in texts.items():
        inputs = inputs.replace(word, str(text))
    stored = Batches(lake.warehouse, lake.name, "sink", parse=sink_inputs)
    old = sink_inputs(inputs)
    assert json.loads(old.as_json()) == json.loads(inputs) | {"own_landings": [], "commit": ""}
    batch = stored.plan(old, at=NOW)
    stored.finish(batch, old, result=BatchResult(rows=40, counted=40, quarantined=0), at=NOW)
    assert read_again(lake) == table.versions[1].rows.total()
    summary = lake.ingest(now=NOW)
    assert (summary.sink_from_version, summary.sink_to_version) == (1, len(table.versions) - 1)
    assert read_again(lake) == table.versions[-1].rows.total()


def test_cure_is_told_when_the_sink_is_not_what_is_configured(lake: Lake, tmp_path: Path) -> None:
    lake.sink_format = "parquet"
    with pytest.raises(ConfigError, match='wanted format = "delta"'):
        lake.ingest()
    lake.sink_format, lake.folder = "delta", tmp_path / "elsewhere"
    with pytest.raises(ConfigError, match=r'a Delta table, or format = "parquet"'):
        lake.ingest()
