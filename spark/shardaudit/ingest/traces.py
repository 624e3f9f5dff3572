"""Loose traces → judged traces → the new ones, each told whether its cell counts it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from shardaudit.ingest.faults import (
    AHEAD,
    MAX_AHEAD,
    cut,
    fault,
    first_fault,
    foreign_fault,
    message_id_fault,
    sequence_number_fault,
    shard_id_fault,
    shown_texts,
    time_fault,
)
from shardaudit.ingest.instants import bucket_start, in_sample, instant_text, parsed_instant
from shardaudit.model.trace_line import TIMES

DEFAULT_LOCATION = "producer"

# The columns of TRACES that an input gives, in table order.
GIVEN = (
    "message_id",
    "shard_id",
    "sequence_number",
    "sent_at",
    "bucket_start",
    "location",
    "attempt",
    "producer_id",
    "session",
    "session_seq",
    "sample_rate",
    "acked_at",
    "attributes",
)
# Type, and the texts that are numbers of it: on others the engines' casts do not agree.
_WHOLE = r"^[ \t\r\n]*[+-]?[0-9]+[ \t\r\n]*\z"
_DIGITS = r"([0-9]+([.][0-9]*)?|[.][0-9]+)(e[+-]?[0-9]+)?"
_FRACTION = rf"(?i)^[ \t\r\n]*(nan|[+-]?(inf(inity)?|{_DIGITS}))[ \t\r\n]*\z"
_NUMBERS = {
    "attempt": ("int", _WHOLE),
    "session_seq": ("bigint", _WHOLE),
    "sample_rate": ("double", _FRACTION),
}
TRACE_KEY = ("bucket_start", "message_id", "shard_id", "sequence_number")


@dataclass(frozen=True, slots=True)
class TraceRules:
    """What a trace is judged by."""

    stream_names: Sequence[str]
    bucket: timedelta
    now: datetime


def judged_traces(loose: DataFrame, rules: TraceRules) -> DataFrame:
    """Every loose trace with its values, or with the reason why it cannot be used.

    Input:
        loose: as the readers give them (`adapters/loose_traces.LOOSE`).
    Output:
        `file, line` (NULL: the rest of the file is lost), `raw` (NULL when all is well, else cut),
        `reason` (NULL when all is well), `id_hash` (bigint), and GIVEN.
    """
    valued = (
        loose.withColumn("sent_at", _instant("sent_at"))
        .withColumn("acked_at", _instant("acked_at"))
        .withColumn("reason", _reason(rules))
    )
    is_good = F.col("reason").isNull()
    return valued.select(
        "file",
        "line",
        F.when(~is_good, cut(_shown())).alias("raw"),
        "reason",
        _id_hash(),
        "message_id",
        "shard_id",
        "sequence_number",
        "sent_at",
        F.when(is_good, bucket_start(F.col("sent_at"), rules.bucket)).alias("bucket_start"),
        F.coalesce("location", F.lit(DEFAULT_LOCATION)).alias("location"),
        _number("attempt").alias("attempt"),
        "producer_id",
        "session",
        _number("session_seq").alias("session_seq"),
        _number("sample_rate").alias("sample_rate"),
        "acked_at",
        "attributes",
    )


def sampled(judged: DataFrame, sample_rate: float) -> DataFrame:
    """The traces whose id is in the sample, and all that cannot be used.

    Input:
        judged: `judged_traces`.
    """
    if sample_rate == 1:
        return judged
    is_bad = F.col("reason").isNotNull()
    return judged.where(is_bad | in_sample(F.col("message_id"), sample_rate))


def repeated_ids(judged: DataFrame, known: DataFrame) -> DataFrame:
    """The ids of which a bucket has more than one trace, one of them new: mostly few, or none.

    Narrow, as it is the one thing that compares all traces: by the hash of an id.

    Input:
        judged, known: as for `new_traces`.
    Output:
        `bucket_start`, `id_hash` (bigint), unique. Two ids with one hash are both among them.
    """
    good = judged.where(F.col("reason").isNull())
    fresh = good.select(*_HASHED, F.lit(1).alias("fresh"))
    old = known.select("bucket_start", _id_hash(), F.lit(0).alias("fresh"))
    return (
        fresh.unionByName(old)
        .groupBy(*_HASHED)
        .agg(F.count("*").alias("traces"), F.sum("fresh").alias("fresh"))
        .where((F.col("traces") > 1) & (F.col("fresh") > 0))
        .select(*_HASHED)
    )


def new_traces(judged: DataFrame, known: DataFrame, repeated: DataFrame) -> DataFrame:
    """The good traces that no batch brought before: unique on TRACE_KEY, `counted` told.

    Of the traces of an id in one bucket, over all shards, one counts: the one that was known first;
    within a batch the least (shard, sequence number).

    Input:
        judged: `judged_traces`.
        known: TRACES of the stream in the buckets that `judged` touches, without this batch's own.
        repeated: of `repeated_ids`; only these are compared with one another.
    Output:
        GIVEN, `counted`.
    """
    # Presence only: `repeated` is unique on its columns.
    several = F.broadcast(repeated)
    good = judged.where(F.col("reason").isNull())
    known = known.withColumn("id_hash", _id_hash())
    single = good.join(several, _HASHED, how="left_anti").withColumn("counted", F.lit(True))
    told = _told(
        good.join(several, _HASHED, how="left_semi"), known.join(several, _HASHED, how="left_semi")
    )
    return single.select(*GIVEN, "counted").unionByName(told)


def _told(fresh: DataFrame, known: DataFrame) -> DataFrame:
    """GIVEN and `counted` of the fresh traces that are no repetitions."""
    columns = (*GIVEN, "file", "line")
    new = fresh.select(*columns, F.lit(False).alias("is_old"))
    nowhere = {"file": F.lit(None).cast("string"), "line": F.lit(None).cast("bigint")}
    old = known.withColumns(nowhere).select(*columns, F.lit(True).alias("is_old"))
    # One shuffle serves both windows: whatever shares an id and a bucket lies together.
    of_id = Window.partitionBy("bucket_start", "message_id")
    in_order = of_id.orderBy(
        "shard_id",
        F.length("sequence_number"),
        "sequence_number",
        F.desc("is_old"),
        "sent_at",
        "file",
        "line",
    )
    place = ("shard_id", "sequence_number")
    is_repeated = [F.col(name).eqNullSafe(F.lag(name).over(in_order)) for name in place]
    return (
        new.unionByName(old)
        .withColumn("is_repeated", is_repeated[0] & is_repeated[1])
        .withColumn("rank", F.row_number().over(in_order))
        .withColumn("is_known_id", F.max("is_old").over(of_id))
        .where(~F.col("is_old") & ~F.col("is_repeated"))
        .select(*GIVEN, ((F.col("rank") == 1) & ~F.col("is_known_id")).alias("counted"))
    )


_HASHED = ["bucket_start", "id_hash"]


def _id_hash() -> Column:
    return F.xxhash64("message_id").alias("id_hash")


def _instant(name: str) -> Column:
    return F.coalesce(parsed_instant(F.col(f"{name}_text")), F.timestamp_micros(f"{name}_us"))


def _shown() -> Column:
    """What a person sees of a bad row: its line, or the fields that a Parquet row has."""
    texts = {
        name: F.coalesce(f"{name}_text", instant_text(F.col(name)))
        if name in TIMES
        else F.col(name)
        for name in (*GIVEN, "stream")
        if name not in {"bucket_start", "attributes"}
    }
    return F.coalesce("raw", F.when(F.col("line").isNotNull(), shown_texts(texts)))


def _reason(rules: TraceRules) -> Column:
    return first_fault(
        F.col("fault"),
        message_id_fault(F.col("message_id")),
        foreign_fault(F.col("stream"), rules.stream_names),
        shard_id_fault(F.col("shard_id")),
        sequence_number_fault(F.col("sequence_number")),
        fault(~_is_given("sent_at"), "sent_at is missing"),
        _time_fault("sent_at", rules.now),
        _time_fault("acked_at", rules.now),
        *(_number_fault(name, kind) for name, (kind, _) in _NUMBERS.items()),
        F.col("attributes_fault"),
    )


def _number(name: str) -> Column:
    """The number that a text is; NULL when it is none, or has no place in the type."""
    kind, pattern = _NUMBERS[name]
    return F.when(F.col(name).rlike(pattern), F.col(name).try_cast(kind))


def _number_fault(name: str, kind: str) -> Column:
    is_wrong = F.col(name).isNotNull() & _number(name).isNull()
    return fault(is_wrong, f"{name} is not a number ({kind})")


def _time_fault(name: str, now: datetime) -> Column:
    return first_fault(
        time_fault(name, F.col(name), is_given=_is_given(name)),
        fault(F.col(name) > F.lit(now + MAX_AHEAD), f"{name} {AHEAD}"),
    )


def _is_given(name: str) -> Column:
    return F.col(f"{name}_text").isNotNull() | F.col(f"{name}_us").isNotNull()
