"""The door through which a backfill adds files to a user's Parquet dataset."""

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from shardaudit.adapters.files import S3Access, list_files
from shardaudit.adapters.parquet_sink import partition_columns
from shardaudit.model.errors import ConfigError, RetryableError
from shardaudit.model.sink_field import SinkField

_INFERRED = "spark.sql.sources.partitionColumnTypeInference.enabled"
_STAGED = "_shardaudit"  # readers leave out what begins with an underscore


class FileNotMovedError(RetryableError, OSError):
    """Rows were written aside, and could not be moved to where readers look."""

    def __init__(self, path: str, target: str) -> None:
        super().__init__(f"{path} could not be moved to {target}; run the plan again")


def parquet_fields(spark: SparkSession, path: str, access: S3Access) -> list[SinkField]:
    """The columns of a dataset, as the files that are there have them; partitions are texts.

    Raises:
        ConfigError: there are no files: nothing says what a row looks like.
    """
    files = list_files(path, access)
    if not files:
        raise ConfigError("sink.path", path, "a folder with Parquet files: its columns are theirs")
    partitions = partition_columns(path, files[0].path)
    spark.conf.set(_INFERRED, "false")  # or a number would be made of `000000000001`
    try:
        schema = spark.read.parquet(path).schema
    finally:
        spark.conf.unset(_INFERRED)
    return [
        SinkField(field.name, field.dataType.simpleString(), partitions=field.name in partitions)
        for field in schema
    ]


def dataset_rows(spark: SparkSession, path: str, fields: Sequence[SinkField]) -> DataFrame:
    """All rows of a dataset, with these columns."""
    schema = StructType()
    for field in fields:
        schema.add(field.name, field.kind)
    return spark.read.schema(schema).parquet(path)


def append_files(
    rows: DataFrame, path: str, access: S3Access, *, partitions: Sequence[str], job_id: str
) -> None:
    """Adds the rows in files that bear the job's id; each appears whole.

    They are written aside first, then moved: a run that dies leaves nothing half written where
    readers look. What it had moved by then is found by the next run, which adds the rest.

    Raises:
        FileNotMovedError: a file stayed aside; those before it are where they belong.
    """
    staged = f"{path}/{_STAGED}/{job_id}"
    writer = rows.coalesce(1).write.mode("overwrite").partitionBy(*partitions)
    writer.option("compression", "zstd").parquet(staged)
    spark = rows.sparkSession
    hadoop = spark._jvm.org.apache.hadoop.fs  # type: ignore[union-attr] # noqa: SLF001 - the way to Hadoop
    root = hadoop.Path(staged)
    store = root.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())  # noqa: SLF001
    for file in list_files(staged, access):
        folder, _, name = file.path.removeprefix(staged).strip("/").rpartition("/")
        target = hadoop.Path("/".join(filter(None, (path, folder))))
        store.mkdirs(target)
        # Spark's own part of the name is another one each time: nothing is overwritten.
        moved = hadoop.Path(target, f"shardaudit-{job_id}-{name}")
        if not store.rename(hadoop.Path(file.path), moved):  # Hadoop's way to say some failures
            raise FileNotMovedError(file.path, moved.toString())
    store.delete(root, True)
