"""Rows of a sink → deliveries in the standard shape, or the reason why a row cannot be used.

What a row is judged by stands in the row alone, not in the clock: the same row is judged the same
when it is added, rewritten and taken away again, else the ledger would not come out even.
"""

from collections.abc import Collection
from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    IntegralType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from shardaudit.columns.faults import (
    ahead_fault,
    cut,
    first_fault,
    message_id_fault,
    sequence_number_fault,
    shard_id_fault,
    shown_texts,
    time_fault,
)
from shardaudit.columns.in_sample import in_era_sample
from shardaudit.columns.instants import (
    cell_start,
    epoch_ms_instant,
    instant_text,
    parsed_instant,
)
from shardaudit.model.config.eras import Eras
from shardaudit.model.errors import FinalError
from shardaudit.model.exit_code import ExitCode

DELIVERY = (
    "message_id",
    "shard_id",
    "sequence_number",
    "sent_at",
    "landed_at",
    "arrived_at",
    "is_own",
    "bucket_start",
)
DELIVERY_DDL = (
    "message_id string, shard_id string, sequence_number string, sent_at timestamp, "
    "landed_at timestamp, arrived_at timestamp, is_own boolean, bucket_start timestamp"
)
REFUSED_DDL = "file string, line bigint, raw string, reason string"
JUDGED_DDL = f"{DELIVERY_DDL}, reason string, file string, line bigint"
_TIMES = ("sent_at", "landed_at", "arrived_at")
# Stands for the bucket of a good row that lacks its time or its shard: no sent_at is that old.
UNPLACED = datetime(1970, 1, 1, tzinfo=UTC)
# Types that the columns may have in a Parquet file, as Spark names them.
READABLE_TYPES = ("string", "byte", "short", "integer", "long", "timestamp", "timestamp_ntz")


class SinkTypeError(FinalError, TypeError):
    """A column of the sink has a type that it cannot have."""

    exit_code = ExitCode.USAGE  # another column is to be named, or the sink another

    def __init__(self, *, column: str, found: str, wanted: str) -> None:
        super().__init__(f"the sink's column for {column} has type {found}; wanted {wanted}")


def judged_sink_rows(
    rows: DataFrame,
    *,
    shape: Eras,
    own_landings: Collection[int] = (),
) -> DataFrame:
    """Every row of the sink in the standard shape, with the reason why it cannot be used.

    Ids outside the sample are left out.

    Input:
        rows: the sink's columns under their standard names, in their own types, those that it has.
        own_landings: the times, in µs since 1970, at which our backfills landed rows.
    Output:
        DELIVERY, `reason` (NULL when all is well), and what `rows` has beside the standard columns.
        A good row without `sent_at` or `shard_id` has the bucket UNPLACED.

    Raises:
        SinkTypeError: a column cannot be what it should be.
    """
    kinds = {field.name: field.dataType for field in rows.schema}
    others = [name for name in rows.columns if name not in DELIVERY]
    standard = rows.select(
        *(_text(name, kinds.get(name)) for name in DELIVERY[:3]),
        *(_instant(name, kinds.get(name)) for name in _TIMES),
        *(_is_given(name, kinds) for name in _TIMES),
        *others,
    )
    standard = standard.withColumn("is_own", _is_own(own_landings))
    judged = standard.withColumn("reason", _reason())
    is_good = F.col("reason").isNull()
    found = F.when(_is_placed(), cell_start(F.col("sent_at"), shape)).otherwise(F.lit(UNPLACED))
    start = F.when(is_good, found).alias("bucket_start")
    is_counted = in_era_sample(F.col("message_id"), F.col("sent_at"), shape)
    kept = judged if is_counted is None else judged.where(~is_good | is_counted)
    return kept.select(*DELIVERY[:-1], start, "reason", *others)


def good_deliveries(judged: DataFrame, *, shape: Eras) -> DataFrame:
    """The rows that can be used and say their shard and time, in the columns of DELIVERY."""
    # The bucket anew: that of `judged` hangs on the reason, which would be found out twice.
    start = cell_start(F.col("sent_at"), shape).alias("bucket_start")
    is_good = F.col("reason").isNull()
    return judged.where(is_good & _is_placed()).select(*DELIVERY[:-1], start)


def unplaced_deliveries(judged: DataFrame) -> DataFrame:
    """The rows that can be used but lack shard or time: DELIVERY, the bucket UNPLACED."""
    is_good = F.col("reason").isNull()
    start = F.lit(UNPLACED).alias("bucket_start")
    return judged.where(is_good & ~_is_placed()).select(*DELIVERY[:-1], start)


def _is_placed() -> Column:
    return F.col("sent_at").isNotNull() & F.col("shard_id").isNotNull()


def refused_rows(judged: DataFrame) -> DataFrame:
    """The rows that cannot be used, for the quarantine: `file, line, raw, reason`.

    Input:
        judged: `judged_sink_rows` of rows with `file` and `line`.
    """
    texts = {name: F.col(name) for name in DELIVERY[:3]}
    texts |= {name: instant_text(F.col(name)) for name in _TIMES}
    return judged.where(F.col("reason").isNotNull()).select(
        "file", "line", cut(shown_texts(texts)).alias("raw"), "reason"
    )


def _text(name: str, kind: DataType | None) -> Column:
    if kind is None:
        return F.lit(None).cast("string").alias(name)
    is_usable = isinstance(kind, StringType) or (
        isinstance(kind, IntegralType) and name == "message_id"
    )
    if not is_usable:
        raise SinkTypeError(column=name, found=kind.simpleString(), wanted="string")
    # Also where it is a string already: a collation of the sink's must not make two ids the same.
    return F.col(name).cast("string").alias(name)


def _instant(name: str, kind: DataType | None) -> Column:
    """A timestamp stays the plain column that it is: filters on it reach the files' statistics."""
    column = F.col(name)
    match kind:
        case None:
            return F.lit(None).cast("timestamp").alias(name)
        case TimestampType():
            return column
        case TimestampNTZType():  # the session's zone is UTC
            return column.cast("timestamp").alias(name)
        case StringType():
            return parsed_instant(column).alias(name)
        case IntegralType():
            return epoch_ms_instant(column.cast("bigint")).alias(name)
    wanted = "timestamp, ISO 8601 string or bigint of epoch milliseconds"
    raise SinkTypeError(column=name, found=kind.simpleString(), wanted=wanted)


def _is_own(landings: Collection[int]) -> Column:
    """All rows of one landing of ours bear the same time, in whatever file they lie by now.

    True or NULL.
    """
    if not landings:
        return F.lit(None).cast("boolean")
    return F.when(F.unix_micros("landed_at").isin(sorted(landings)), True)


def _is_given(name: str, kinds: dict[str, DataType]) -> Column:
    given = F.col(name).isNotNull() if name in kinds else F.lit(False)
    return given.alias(f"has_{name}")


def _reason() -> Column:
    """Where `sent_at` or `shard_id` is NULL, the row landed all the same: its trace places it."""
    return first_fault(
        message_id_fault(F.col("message_id")),
        F.when(F.col("shard_id").isNotNull(), shard_id_fault(F.col("shard_id"))),
        sequence_number_fault(F.col("sequence_number")),
        *(time_fault(name, F.col(name), is_given=F.col(f"has_{name}")) for name in _TIMES),
        ahead_fault("sent_at", F.col("sent_at"), of=F.col("landed_at"), what="landed_at"),
    )
