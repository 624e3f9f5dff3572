"""Rows of trace files that are kept as they came, as an engine reads them."""

from collections.abc import Sequence
from datetime import timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.columns.instants import any_of, bucket_start, in_sample
from shardaudit.ingest.rules.judged_traces import DEFAULT_LOCATION, GIVEN
from shardaudit.model.tables.audit_tables import TRACES
from shardaudit.model.trace_line import NUMBERS, TEXTS, TIMES


def loose_traces(rows: DataFrame) -> DataFrame:
    """The rows of Parquet files that an engine reads, as `judged_traces` takes them.

    Input:
        rows: columns under their standard names, those that the files have.
    """
    given = set(rows.columns)
    nothing = F.lit(None).cast("string")
    # Numbers too, though none can be wrong by its type: what cannot be read is found here.
    texts = {n: F.col(n).cast("string") if n in given else nothing for n in (*TEXTS, *NUMBERS)}
    times = {
        name: F.unix_micros(F.col(name).cast("timestamp"))
        if name in given
        else F.lit(None).cast("bigint")
        for name in TIMES
    }
    torn = _is_torn([name for name in TEXTS if name in given])
    return rows.select(
        nothing.alias("file"),
        # Not NULL: that would mean that the rest of a file is lost.
        F.lit(0).cast("bigint").alias("line"),
        nothing.alias("raw"),
        F.when(torn, F.lit("no UTF-8")).alias("fault"),
        *(text.alias(name) for name, text in texts.items()),
        *(nothing.alias(f"{name}_text") for name in TIMES),
        *(time.alias(f"{name}_us") for name, time in times.items()),
        F.lit(None).cast("map<string,string>").alias("attributes"),
        nothing.alias("attributes_fault"),
    )


def kept_traces(rows: DataFrame, *, bucket: timedelta, sample_rate: float) -> DataFrame:
    """The same rows as TRACES would have them: GIVEN.

    Input:
        rows: as for `loose_traces`; each of them was judged good.
    """
    made = {
        "bucket_start": bucket_start(F.col("sent_at").cast("timestamp"), bucket),
        "location": F.coalesce("location", F.lit(DEFAULT_LOCATION))
        if "location" in rows.columns
        else F.lit(DEFAULT_LOCATION),
    }
    # As an expression: the embedded engine unites no plain column of a file with one of a table,
    # if both have notes of their own in their schemas.
    given = {name: F.when(F.col(name).isNotNull(), F.col(name)) for name in rows.columns}
    values = given | made
    kinds = {name: kind for name, kind, _ in TRACES.columns}
    kept = rows if sample_rate == 1 else rows.where(in_sample(F.col("message_id"), sample_rate))
    return kept.select(
        *(values.get(name, F.lit(None)).cast(kinds[name]).alias(name) for name in GIVEN)
    )


def _is_torn(names: Sequence[str]) -> Column:
    """Whether a text is no UTF-8. Apache Spark reads it nevertheless, the embedded engine fails."""
    return any_of(
        [F.coalesce(F.make_valid_utf8(name) != F.col(name), F.lit(False)) for name in names]
    )
