"""Loose traces → judged traces: what each says, or why it cannot be used."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.columns.faults import (
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
from shardaudit.columns.instants import bucket_start, in_sample, instant_text, parsed_instant
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
        id_hash(),
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


def id_hash() -> Column:
    """What ids are compared by where they are many: `id_hash` (bigint)."""
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
