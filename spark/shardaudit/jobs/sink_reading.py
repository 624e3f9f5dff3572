"""A sink in one of its formats, as the ingest sees it, and its rows as they were ingested."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from shardaudit.adapters.delta_sink import DeltaSink
from shardaudit.adapters.parquet_sink import file_schema, parquet_rows
from shardaudit.adapters.sink_rows import standard_rows
from shardaudit.ingest.inputs import (
    CellShape,
    DeltaInputs,
    FileGroup,
    SinkInputs,
    sink_inputs,
)
from shardaudit.ingest.sink import DELIVERY_DDL, good_deliveries, judged_sink_rows


@dataclass(frozen=True)
class Reading:
    """The rows that came and that went since the last batch, judged; None when there are none."""

    added: DataFrame | None
    removed: DataFrame | None
    files_added: int
    files_removed: int


class SinkPlan(Protocol):
    """What a batch reads of a sink, and what to do when that fails."""

    @property
    def inputs(self) -> SinkInputs:
        """What is stored of it."""

    def reading(self) -> Reading:
        """The rows, not read yet."""

    def recovered(self) -> "SinkPlan | None":
        """What to read instead after a file could not be read; None when nothing else is left."""


def read_sink_rows(spark: SparkSession, inputs_json: str) -> DataFrame:
    """The good rows of the sink as the batch with these inputs left it: DELIVERY, read lazily.

    A filter on `sent_at` reaches the files' statistics where the sink has it as a timestamp.
    """
    inputs = sink_inputs(inputs_json)
    rows = judged(_all_rows(spark, inputs), inputs.shape)
    if rows is None:
        return spark.createDataFrame([], DELIVERY_DDL)
    return good_deliveries(rows, bucket=inputs.shape.bucket)


def judged(frames: Sequence[DataFrame], shape: CellShape) -> DataFrame | None:
    """The rows of all frames, each judged by its own types."""
    if not frames:
        return None
    each = [judged_sink_rows(f, bucket=shape.bucket, sample_rate=shape.sample_rate) for f in frames]
    return reduce(DataFrame.unionByName, each)


def group_rows(
    spark: SparkSession, path: str, groups: Sequence[FileGroup], *, with_place: bool
) -> list[DataFrame]:
    """The rows of each group of Parquet files, under the standard names."""
    found: list[DataFrame] = []
    for group in groups:
        schema = file_schema(dict(group.columns.values()))
        columns = {standard: column for standard, (column, _) in group.columns.items()}
        frames = parquet_rows(spark, path, schema=schema, files=group.files)
        found += [standard_rows(rows, columns, with_place=with_place) for rows in frames]
    return found


def _all_rows(spark: SparkSession, inputs: SinkInputs) -> list[DataFrame]:
    if isinstance(inputs, DeltaInputs):
        rows = DeltaSink(spark, inputs.path).rows(inputs.to_version, without=inputs.unread)
        return [standard_rows(rows, inputs.columns, with_place=False)]
    return group_rows(spark, inputs.path, inputs.groups, with_place=False)
