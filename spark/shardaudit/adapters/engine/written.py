"""The files of rows that are for one of our Delta tables, where the engine should not write it.

The embedded engine's Delta writer gives the rows of a partition to one task, which sorts them
first; a batch of traces is of one stream and a day or two: one core works, and twice as long. So it
writes plain Parquet files, which delta-rs takes into the table.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pyarrow.parquet as pq
from deltalake.transaction import AddAction
from pyspark.sql import DataFrame

from shardaudit.adapters.engine.embedded import is_embedded
from shardaudit.adapters.files.files import S3Access, at_once, list_files, open_file
from shardaudit.model.source import SourceFile

# Small groups of rows: each day that a batch touches has one in memory while it is written.
_OPTIONS = {"compression": "snappy", "statistics_enabled": "chunk", "max_row_group_size": "250000"}


def write_table_files(
    rows: DataFrame, place: str, *, partitions: Sequence[str], access: S3Access
) -> list[AddAction] | None:
    """Writes rows as files into a table's folder: what its log must say to hold them.

    Input:
        place: the table's folder; partitions: its partition columns, whose values are plain texts
            (names of streams, days).
    Output:
        None where nothing was written: the engine's own Delta writer does it better.
    """
    if not is_embedded(rows.sparkSession):
        return None
    folder = f"{place}/{uuid4()}"
    rows.write.options(**_OPTIONS).partitionBy(*partitions).parquet(folder)
    files = list_files(folder, access)
    return at_once(lambda file: _action(file, place, partitions, access), files)


def _action(file: SourceFile, place: str, partitions: Sequence[str], access: S3Access) -> AddAction:
    path = file.path.removeprefix(f"{place}/")
    of_folders = dict(part.split("=", 1) for part in path.split("/")[1:-1])
    with open_file(file.path, access) as source:
        metadata = pq.read_metadata(source)
    return AddAction(
        path=path,
        size=file.size_bytes,
        partition_values={name: of_folders[name] for name in partitions},
        modification_time=file.modified_ms,
        data_change=True,
        stats=json.dumps(_statistics(metadata)),
    )


def _statistics(metadata: pq.FileMetaData) -> dict[str, object]:
    """How many rows there are, how many lack what, and between what the times and texts lie.

    Source: Delta's protocol, "Per-file Statistics".
    """
    least: dict[str, str] = {}
    greatest: dict[str, str] = {}
    nulls: dict[str, int] = {}
    groups = [metadata.row_group(n) for n in range(metadata.num_row_groups)]
    for i in range(metadata.num_columns):
        name = metadata.schema.column(i).path  # a part of a map has a dot, and no statistics
        said = [group.column(i).statistics for group in groups if "." not in name]
        if said and all(one is not None and one.has_null_count for one in said):
            nulls[name] = sum(one.null_count for one in said)
        found = [one for one in said if one is not None and one.has_min_max]
        if found and len(found) == len(groups):
            with suppress(OverflowError, ValueError):  # where no calendar reaches there is no bound
                low, high = min(one.min for one in found), max(one.max for one in found)
                if isinstance(low, datetime | str):
                    least[name], greatest[name] = _text(low), _text(high, up=True)
    bounds = {"minValues": least, "maxValues": greatest, "nullCount": nulls}
    return {"numRecords": metadata.num_rows, **bounds}


def _text(value: datetime | str, *, up: bool = False) -> str:
    """A time in whole milliseconds, as the protocol writes it; of a bound never past the value."""
    if isinstance(value, str):
        return value
    whole = value.replace(microsecond=value.microsecond // 1000 * 1000)
    if up and whole < value:
        whole += timedelta(milliseconds=1)
    return whole.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
