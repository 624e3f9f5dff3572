"""Makes the Delta tables beside this file anew, by Apache Spark: `make delta-tables`.

Each is a folder of what Delta wrote, and `versions.json`: the names of its first four columns and
the rows, as Apache Spark reads them, of each version. Absolute paths in a log begin with PLACE.
"""

import json
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from shardaudit.adapters.engine.apache_spark import spark_session
from shardaudit.columns.sql_name import quoted
from shardaudit.model.config.settings import Settings

HERE = Path(__file__).parent
PLACE = "/place-of-the-tables"
_TUNING = {
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
}
_OLD_TIMES = "SET spark.sql.parquet.outputTimestampType = INT96"
_NEW_TIMES = "SET spark.sql.parquet.outputTimestampType = TIMESTAMP_MICROS"
_DDL = "message_id STRING, shard_id STRING, sent_at TIMESTAMP, landed_at TIMESTAMP"
_VECTORS = "'delta.enableDeletionVectors' = 'true'"
_PLAIN = "'delta.enableDeletionVectors' = 'false'"


def created(ddl: str, properties: str, *, by: str = "") -> str:
    """The statement that makes a table T."""
    partitioned = f"PARTITIONED BY ({by})" if by else ""
    return f"CREATE TABLE T ({ddl}) USING delta {partitioned} TBLPROPERTIES ({properties})"


def inserted(first: int, last: int, *, message_id: str = "concat('m', id)") -> str:
    """The statement that appends rows, a second apart, to a table of these columns."""
    sent_at = "timestamp_micros(1795176000000000 + id * 1000001)"
    times = f"{sent_at}, {sent_at} + INTERVAL 30 SECONDS"
    rows = f"range({first}, {last}, 1, 1)"
    return f"INSERT INTO T SELECT {message_id}, concat('shard-', id % 2), {times} FROM {rows}"  # noqa: S608 - our own words


def deleted(parts: int, part: int) -> str:
    """The statement that deletes a part of the rows."""
    return f"DELETE FROM T WHERE unix_micros(sent_at) % {parts} = {part}"  # noqa: S608 - our own words


TABLES = {
    "vectors": [
        created(_DDL, _VECTORS, by="shard_id"),
        inserted(0, 40),
        deleted(7, 3),
        inserted(40, 60),
        deleted(5, 1),
        "UPDATE T SET shard_id = 'moved' WHERE message_id IN ('m2', 'm44')",
        "OPTIMIZE T",
        deleted(3, 1),
        "RESTORE TABLE T TO VERSION AS OF 4",
        "DELETE FROM T WHERE shard_id = 'shard-1'",
    ],
    "mapped_by_name": [
        created(_DDL, f"{_VECTORS}, 'delta.columnMapping.mode' = 'name'", by="shard_id"),
        inserted(0, 20),
        "ALTER TABLE T RENAME COLUMN message_id TO `the.id`",
        inserted(20, 40),
        deleted(4, 1),
        "ALTER TABLE T ADD COLUMN message_id INT",
        "ALTER TABLE T RENAME COLUMN shard_id TO shard",
    ],
    "mapped_by_id": [
        created(_DDL, f"{_PLAIN}, 'delta.columnMapping.mode' = 'id'"),
        inserted(0, 10),
        "ALTER TABLE T RENAME COLUMN sent_at TO produced_at",
        inserted(10, 20),
        "DELETE FROM T WHERE message_id = 'm3'",
    ],
    "widened": [
        created(_DDL.replace("STRING", "INT", 1), f"{_PLAIN}, 'delta.enableTypeWidening' = 'true'"),
        inserted(0, 10, message_id="cast(id AS INT)"),
        "ALTER TABLE T ALTER COLUMN message_id TYPE BIGINT",
        inserted(10, 20, message_id="id + 10000000000"),
        "DELETE FROM T WHERE message_id = 3",
    ],
    "checkpointed": [
        created(
            _DDL,
            f"{_VECTORS}, 'delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '3'",
        ),
        inserted(0, 10),
        deleted(3, 1),
        inserted(10, 20),
        deleted(4, 1),
        inserted(20, 30),
        "DELETE FROM T WHERE message_id = 'm25'",
    ],
    "mixed_times": [
        created(_DDL, _PLAIN),
        _OLD_TIMES,
        inserted(0, 10),
        _NEW_TIMES,
        inserted(10, 20),
    ],
    "old_times": [
        created(_DDL, _PLAIN),
        _OLD_TIMES,
        "INSERT INTO T VALUES ('m0', 's', TIMESTAMP '1500-01-01', TIMESTAMP '9999-12-31'), "
        "('m1', 's', TIMESTAMP '2262-04-12', NULL)",
        _NEW_TIMES,
    ],
    "local_times": [
        created(_DDL.replace("sent_at TIMESTAMP", "sent_at TIMESTAMP_NTZ"), _VECTORS),
        inserted(0, 10),
        "DELETE FROM T WHERE message_id = 'm3'",
    ],
    "clone": [
        "CREATE TABLE T SHALLOW CLONE delta.`PLACE/checkpointed`",
        inserted(60, 70),
        deleted(6, 2),
    ],
}

# Text can be given another place, Parquet cannot.
_WITH_PLACES = {"clone": ("*.checkpoint.*", "_sidecars", "_last_checkpoint")}


def make(spark: SparkSession, folder: Path, name: str) -> None:
    """Makes a table in a folder."""
    table = folder / name
    for statement in TABLES[name]:
        text = f"{statement} ".replace("PLACE", str(folder))
        spark.sql(text.replace(" T ", f" delta.`{table}` ")).collect()
    versions = {str(v): read(spark, table, v) for v in range(DeltaTable(table).version() + 1)}
    lines = ",\n".join(f"{json.dumps(v)}: {json.dumps(found)}" for v, found in versions.items())
    (table / "versions.json").write_text(f"{{\n{lines}\n}}\n")


def read(spark: SparkSession, table: Path, version: int) -> dict[str, object]:
    """What Apache Spark reads of a version."""
    rows = spark.read.format("delta").option("versionAsOf", version).load(str(table))
    columns = rows.columns[:4]
    message_id, shard_id, *times = (F.col(quoted(name)) for name in columns)
    micros = (F.unix_micros(time.cast("timestamp")).alias(f"t{n}") for n, time in enumerate(times))
    found = rows.select(message_id.cast("string").alias("id"), shard_id.alias("shard"), *micros)
    return {"columns": columns, "rows": [list(row) for row in found.orderBy("id").collect()]}


def keep(folder: Path, name: str) -> None:
    """Moves a table to where the tests look, without what no test needs."""
    shutil.rmtree(HERE / name, ignore_errors=True)
    useless = shutil.ignore_patterns("*.crc", "_staged_commits", *_WITH_PLACES.get(name, ()))
    shutil.copytree(folder / name, HERE / name, ignore=useless)
    for commit in (HERE / name / "_delta_log").glob("*.json"):
        commit.write_text(commit.read_text().replace(str(folder), PLACE))


def main() -> None:
    """Makes all of them."""
    settings = Settings.model_validate({"warehouse": "unused", "spark": _TUNING, "streams": {}})
    with TemporaryDirectory() as place, spark_session(settings, app="delta tables") as spark:
        folder = Path(place).resolve()
        for name in TABLES:
            make(spark, folder, name)
        for name in TABLES:
            keep(folder, name)
            sys.stdout.write(f"{name}\n")


if __name__ == "__main__":
    main()
