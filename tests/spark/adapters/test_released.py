"""The embedded engine's checkpoints that nobody uses any more."""

import gc
from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql import SparkSession


def test_a_reader_ends_when_it_collects_the_garbage_that_a_checkpoint_is_in(
    spark: SparkSession,
) -> None:
    """Frames of an audit that failed hang in its traceback, in a ring for the collector to find."""
    gc.disable()
    try:
        for _ in range(20):
            ring: list[object] = [spark.range(3).localCheckpoint()]
            ring.append(ring)

            def reader(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
                gc.collect()
                yield from batches

            rows = spark.range(0, 8, 1, 4).mapInArrow(reader, "id bigint")
            del ring
            assert rows.localCheckpoint().count() == 8
    finally:
        gc.enable()
