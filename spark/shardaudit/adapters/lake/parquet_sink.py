"""The door to a sink that is a folder of Parquet files, with hive partition folders or without."""

from collections.abc import Mapping
from urllib.parse import unquote

from shardaudit.adapters.lake.sink_file import Constant, SinkFile, Wanted
from shardaudit.model.source import SourceFile

_NULL = "__HIVE_DEFAULT_PARTITION__"


def partition_columns(folder: str, path: str) -> list[str]:
    """The columns that the folders between the sink and a file name, as in `day=2026-11-20`."""
    return list(_partition_values(folder, path))


def parquet_file(folder: str, file: SourceFile, columns: Mapping[str, tuple[str, str]]) -> SinkFile:
    """A file of the sink. What its folders' names say is text: `000000000001` is no number.

    Input:
        columns: standard name -> (column, Spark type).
    """
    values = _partition_values(folder, file.path)
    return SinkFile(
        known=file,
        path=file.path,
        folder=folder,
        columns={
            standard: Wanted(column, kind)
            for standard, (column, kind) in columns.items()
            if column not in values
        },
        constants={
            standard: Constant(values[column], kind)
            for standard, (column, kind) in columns.items()
            if column in values
        },
        is_listed=True,
    )


def _partition_values(folder: str, path: str) -> dict[str, str | None]:
    folders = path.removeprefix(folder).strip("/").split("/")[:-1]
    named = [name.partition("=") for name in folders if "=" in name]
    return {
        unquote(column): None if value == _NULL else _unescaped(value) for column, _, value in named
    }


def _unescaped(text: str) -> str:
    """UTF-8, as Python writers escape it, or else a character for each `%`, as Spark does."""
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        return unquote(text, encoding="latin-1")
