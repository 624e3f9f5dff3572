"""The door to a sink that is a folder of Parquet files, with hive partition folders or without."""

import json
from collections.abc import Iterable, Mapping
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from shardaudit.model.source import SourceFile


def partition_columns(folder: str, path: str) -> list[str]:
    """The columns that the folders between the sink and a file name, as in `day=2026-11-20`."""
    folders = path.removeprefix(folder).strip("/").split("/")[:-1]
    return [unquote(name.partition("=")[0]) for name in folders if "=" in name]


def file_schema(columns: Mapping[str, str]) -> str:
    """The Spark schema (JSON) by which files are read: column -> Spark type."""
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in sorted(columns.items())
    ]
    return json.dumps({"type": "struct", "fields": fields})


def parquet_rows(
    spark: SparkSession, folder: str, *, schema: str, files: Iterable[SourceFile]
) -> list[DataFrame]:
    """The rows of files that share a schema (JSON), in as many frames as Spark needs for them.

    Partition folders are columns of text: Spark's guess would make a number of `000000000001`.
    """
    together: dict[tuple[str, ...], list[str]] = {}
    for file in files:
        together.setdefault(_readable_with(folder, file.path), []).append(file.path)
    reader = (
        spark.read.schema(StructType.fromJson(json.loads(schema)))
        .option("basePath", folder)
        .option("__globPaths__", "false")  # a path is a path, whatever characters it has
    )
    return [reader.parquet(*paths) for _, paths in sorted(together.items())]


def _readable_with(folder: str, path: str) -> tuple[str, ...]:
    """What files must have in common to be read in one frame.

    Spark wants the same partition folders, and reads other files twice beside one whose name looks
    like a pattern.
    """
    is_pattern = any(character in path for character in "*?[]{}\\")
    return (*partition_columns(folder, path), f"/{path}" if is_pattern else "")
