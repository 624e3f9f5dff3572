"""The door through which a backfill adds files to a user's Parquet dataset."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_type

from shardaudit.adapters.engine.apache_spark import hadoop_files
from shardaudit.adapters.files.files import S3Access, at_once, list_files, open_file
from shardaudit.adapters.files.lines import DamageError
from shardaudit.adapters.lake.parquet_file import old_times, open_parquet
from shardaudit.adapters.lake.sink_file import partition_columns
from shardaudit.columns.sql_name import quoted
from shardaudit.model.errors import ConfigError, RetryableError
from shardaudit.model.input_columns import SinkField
from shardaudit.model.source import appended_name, is_appended

_OLD = pa.timestamp("us", "UTC")
_UNSIGNED = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20),
}
_NEWEST = 100  # files that are asked for their columns
_STAGED = "_shardaudit"  # readers leave out what begins with an underscore


class FileNotMovedError(RetryableError, OSError):
    """Rows were written aside, and could not be moved to where readers look."""

    def __init__(self, path: str, target: str) -> None:
        super().__init__(f"{path} could not be moved to {target}; run the plan again")


def parquet_fields(path: str, access: S3Access) -> list[SinkField]:
    """The columns of a dataset: those of its newest files together; partitions are texts.

    Where files differ in a column's type, the newest one's. Files of our own say no more than
    others did when they were written.

    Raises:
        ConfigError: there are no files: nothing says what a row looks like; or it cannot be had.
        StorageError: the storage did not answer.
    """
    files = list_files(path, access)
    if not files:
        raise ConfigError("sink.path", path, "a folder with Parquet files: its columns are theirs")
    others = [file for file in files if not is_appended(file.path)] or files
    newest = sorted(others, key=lambda file: (-file.modified_ms, file.path))[:_NEWEST]
    found = at_once(lambda file: _kinds(file.path, access), newest)
    faults = [kinds for kinds in found if isinstance(kinds, DamageError)]
    each = [kinds for kinds in found if not isinstance(kinds, DamageError)]
    if not each:
        wanted = "files that Spark reads"
        raise ConfigError("sink.path", f"{newest[0].path}: {faults[0]}", wanted)
    try:
        kinds = {name: kind for one in reversed(each) for name, kind in one.items()}
        fields = [SinkField(name, _simple(kinds[name])) for name in _in_order(each)]
    except PySparkTypeError as error:
        raise ConfigError(
            "sink.path", f"{newest[0].path}: {error}", "files that Spark reads"
        ) from error
    partitions = partition_columns(path, newest[0].path)
    in_files = [field for field in fields if field.name not in partitions]
    return [*in_files, *(SinkField(name, "string", partitions=True) for name in partitions)]


def _kinds(path: str, access: S3Access) -> dict[str, pa.DataType] | DamageError:
    """The columns of one file, or why it cannot be read."""
    try:
        with open_file(path, access) as file:
            source = open_parquet(file)
            old = old_times(source)
            return {f.name: _OLD if f.name in old else f.type for f in source.schema_arrow}
    except DamageError as damage:
        return damage
    except FileNotFoundError:
        return DamageError("it is gone")


def _in_order(each: Sequence[Mapping[str, object]]) -> list[str]:
    """The names as the first file has them, then what the others have besides."""
    return list(dict.fromkeys(name for names in each for name in names))


def _simple(kind: pa.DataType) -> str:
    """An Arrow type in SQL, as Spark reads it from Parquet.

    Raises:
        PySparkTypeError: Spark does not have it.
    """
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    read_as = _UNSIGNED.get(kind, kind)
    return from_arrow_type(read_as, prefer_timestamp_ntz=True).simpleString()


def dataset_rows(spark: SparkSession, path: str, fields: Sequence[SinkField]) -> DataFrame:
    """All rows of a dataset, with these columns."""
    ddl = ", ".join(f"{quoted(field.name)} {field.kind}" for field in fields)
    return spark.read.schema(ddl).parquet(path)


def stage_files(rows: DataFrame, path: str, *, partitions: Sequence[str], job_id: str) -> str:
    """Writes the rows aside, where readers of the dataset do not look: the folder."""
    staged = f"{path}/{_STAGED}/{job_id}"
    writer = rows.coalesce(1).write.mode("overwrite").partitionBy(*partitions)
    writer.option("compression", "zstd").parquet(staged)
    return staged


def append_files(staged: str, path: str, access: S3Access, *, job_id: str) -> None:
    """Moves what was written aside into the dataset, under the job's id; each appears whole.

    A run that dies leaves nothing half written where readers look. What it had moved by then is
    found by the next run, which adds the rest.

    Raises:
        FileNotMovedError: a file stayed aside; those before it are where they belong.
    """
    hadoop, configuration = hadoop_files()
    root = hadoop.Path(staged)
    store = root.getFileSystem(configuration)
    for file in list_files(staged, access):
        folder, _, name = file.path.removeprefix(staged).strip("/").rpartition("/")
        target = hadoop.Path("/".join(filter(None, (path, folder))))
        store.mkdirs(target)
        # Spark's own part of the name is another one each time: nothing is overwritten.
        moved = hadoop.Path(target, appended_name(job_id, name))
        if not store.rename(hadoop.Path(file.path), moved):  # Hadoop's way to say some failures
            raise FileNotMovedError(file.path, moved.toString())
    store.delete(root, True)
