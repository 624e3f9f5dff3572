"""The rows of a sink's files, read by Arrow on this thread: no engine."""

from collections import Counter
from collections.abc import Iterable, Mapping

import pyarrow as pa

from shardaudit.adapters.files.files import S3Access, open_file
from shardaudit.adapters.lake.delta_sink_reader import DeltaVersion
from shardaudit.adapters.lake.parquet_file import footer_fault, read_footer, ready_file
from shardaudit.adapters.lake.sink_batches import sink_batches
from shardaudit.adapters.lake.sink_file import SinkFile, placed_schema
from shardaudit.model.source import DeltaFile

ACCESS = S3Access()


def rows_in(file: SinkFile, access: S3Access = ACCESS) -> pa.Table:
    """The rows of a file that count."""
    with open_file(file.path, access) as opened:
        footer = read_footer(opened)
        assert footer_fault(file, footer) is None
        batches = list(sink_batches(opened, ready_file(file, footer).file, access))
    return pa.Table.from_batches(batches, placed_schema(file.kinds))


def delta_rows(
    version: DeltaVersion,
    files: Iterable[DeltaFile],
    columns: Mapping[str, str],
    access: S3Access = ACCESS,
) -> "Counter[tuple[object, ...]]":
    """The rows of files of a Delta table: the columns in their order, times in microseconds."""
    found: Counter[tuple[object, ...]] = Counter()
    for file in files:
        rows = rows_in(version.sink_file(file, columns), access)
        values = [_plain(rows.column(name)) for name in columns]
        found.update(zip(*values, strict=True))
    return found


def _plain(column: pa.ChunkedArray) -> list[object]:
    is_time = pa.types.is_timestamp(column.type)
    return list((column.cast(pa.int64()) if is_time else column.cast(pa.string())).to_pylist())
