"""Trace files in Parquet that are kept as they came: which may be, and what their rows are read by.

Both engines read them by themselves, and alike. Whatever is not plain in a file's columns is judged
row by row instead and put into a table (`adapters/files/parquet_traces.py`).
"""

from collections.abc import Mapping
from dataclasses import replace

from shardaudit.adapters.lake.parquet_file import Column, Footer, ready_file
from shardaudit.adapters.lake.sink_file import SinkFile, Wanted
from shardaudit.model.source import KeptFiles, SourceFile
from shardaudit.model.tables.table import INTERNAL_PREFIX
from shardaudit.model.trace_line import TEXTS, TIMES

_INT = frozenset(["byte", "short", "integer"])
_KINDS = (
    dict.fromkeys(TEXTS, frozenset(["string"]))
    | dict.fromkeys(TIMES, frozenset(["timestamp", "timestamp_ntz"]))
    | {"attempt": _INT, "session_seq": _INT | {"long"}}
)
_NEEDED = ("message_id", "shard_id", "sent_at")


def kept_files(
    footers: Mapping[SourceFile, Footer], columns: Mapping[str, str], folder: str
) -> KeptFiles | None:
    """How the files are read as they are; None when one of them cannot be.

    Input:
        footers: by the files' paths below `folder`, in which they are or will be.
        columns: standard name -> column in the files, for every standard name.
    """
    read: dict[str, tuple[str, str]] = {}
    spans = []
    for footer in footers.values():
        found = _plain_columns(footer, columns)
        span = found["sent_at"].span if found else None
        if span is None:
            return None
        spans.append(span)
        for standard, column in found.items():
            if read.setdefault(standard, (column.name, column.kind)) != (column.name, column.kind):
                return None
    kept = KeptFiles(read, tuple(footers), tuple(spans))
    ready = map(ready_file, readable(kept, folder), footers.values())
    return kept if all(each.is_plain for each in ready) else None


def readable(kept: KeptFiles, folder: str) -> list[SinkFile]:
    """The files as the reader of files takes them; folder: the one that they are below."""
    wanted = {standard: Wanted(name, kind) for standard, (name, kind) in kept.columns.items()}
    files = (replace(file, path=f"{folder}/{file.path}") for file in kept.files)
    return [SinkFile(file, file.path, folder, wanted) for file in files]


def _plain_columns(footer: Footer, columns: Mapping[str, str]) -> dict[str, Column]:
    """The columns that are read, by their standard names; none when the file is not plain."""
    in_file = {column.name: column for column in footer.columns}
    given = {std: in_file[name] for std, name in columns.items() if name in in_file}
    is_plain = (
        footer.fault is None
        and all(standard in given for standard in _NEEDED)
        and not any(name.startswith(INTERNAL_PREFIX) for name in in_file)
        and all(column.kind in _KINDS.get(standard, ()) for standard, column in given.items())
    )
    return given if is_plain else {}
