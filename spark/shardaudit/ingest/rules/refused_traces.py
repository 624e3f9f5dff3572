"""Loose traces, and rows of kept files → judged traces: what each says, or why it is refused.

A line that is no trace at all `model/trace_line.py` refused before.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.columns.faults import (
    MAX_AHEAD,
    cut,
    event_fault,
    fault,
    first_fault,
    foreign_fault,
    location_fault,
    message_id_fault,
    sequence_number_fault,
    shard_id_fault,
    shown_texts,
    time_fault,
)
from shardaudit.columns.in_sample import in_era_sample
from shardaudit.columns.instants import (
    any_of,
    cell_start,
    instant_text,
    parsed_instant,
)
from shardaudit.columns.ledger_sums import id_hash
from shardaudit.model.config.eras import Eras
from shardaudit.model.input_columns import DAY_AHEAD, PRODUCER
from shardaudit.model.tables.audit_tables import TRACES
from shardaudit.model.trace_line import NUMBERS, PASSED_OVER, TEXTS, TIMES

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
    """What a trace is judged by.

    `places`: other locations than the producer's that are known; None: it is not known which.
    """

    stream_names: Sequence[str]
    shape: Eras
    now: datetime
    places: Sequence[str] | None = ()


def judged_traces(loose: DataFrame, rules: TraceRules) -> DataFrame:
    """Every loose trace with its values, or with the reason why it cannot be used.

    Input:
        loose: as the readers give them (`adapters/files/loose_traces.LOOSE`).
    Output:
        `file, line` (NULL: the rest of the file is lost), `raw` (NULL when all is well, else cut),
        `reason` (NULL when all is well), `id_hash` (bigint), GIVEN, and `event` (of a place alone).
        A row with the reason PASSED_OVER is no line: its `raw`, uncut, is for `tells_numbers`.
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
        F.when(F.col("reason") == PASSED_OVER, F.col("raw"))
        .when(~is_good, cut(_shown()))
        .alias("raw"),
        "reason",
        id_hash(),
        "message_id",
        "shard_id",
        "sequence_number",
        "sent_at",
        F.when(is_good, cell_start(F.col("sent_at"), rules.shape)).alias("bucket_start"),
        F.coalesce("location", F.lit(PRODUCER)).alias("location"),
        _number("attempt").alias("attempt"),
        "producer_id",
        "session",
        _number("session_seq").alias("session_seq"),
        _number("sample_rate").alias("sample_rate"),
        "acked_at",
        "attributes",
        "event",
    )


def tells_numbers() -> Column:
    """Whether a judged row is no line: it holds what its file tells of sessions' numbers."""
    return F.col("reason").eqNullSafe(PASSED_OVER)


def is_producers() -> Column:
    """Whether a judged trace is of the producer, or cannot be used."""
    return F.col("reason").isNotNull() | (F.col("location") == PRODUCER)


def sampled(judged: DataFrame, shape: Eras) -> DataFrame:
    """The traces whose id is in the sample, and all that cannot be used.

    Input:
        judged: `judged_traces`.
    """
    is_counted = in_era_sample(F.col("message_id"), F.col("sent_at"), shape)
    return judged if is_counted is None else judged.where(F.col("reason").isNotNull() | is_counted)


def _instant(name: str) -> Column:
    return F.coalesce(parsed_instant(F.col(f"{name}_text")), F.timestamp_micros(f"{name}_us"))


def _shown() -> Column:
    """What a person sees of a bad row: its line, or the fields that a Parquet row has."""
    texts = {
        name: F.coalesce(f"{name}_text", instant_text(F.col(name)))
        if name in TIMES
        else F.col(name)
        for name in (*GIVEN, "event", "stream")
        if name not in {"bucket_start", "attributes"}
    }
    return F.coalesce("raw", F.when(F.col("line").isNotNull(), shown_texts(texts)))


def _reason(rules: TraceRules) -> Column:
    return first_fault(
        F.col("fault"),
        message_id_fault(F.col("message_id")),
        foreign_fault(F.col("stream"), rules.stream_names),
        *_place_faults(rules.places),
        shard_id_fault(F.col("shard_id")),
        sequence_number_fault(F.col("sequence_number")),
        fault(~_is_given("sent_at"), "sent_at is missing"),
        _time_fault("sent_at", rules.now),
        _time_fault("acked_at", rules.now),
        *(_number_fault(name, kind) for name, (kind, _) in _NUMBERS.items()),
        F.col("attributes_fault"),
    )


def _place_faults(places: Sequence[str] | None) -> Sequence[Column]:
    event = event_fault(F.col("location"), F.col("event"))
    location = location_fault(F.col("location"), places or ())
    # What is wrong by all configurations first.
    return (event, location) if places is None else (location, event)


def _number(name: str) -> Column:
    """The number that a text is; NULL when it is none, or has no place in the type."""
    kind, pattern = _NUMBERS[name]
    return F.when(F.col(name).rlike(pattern), F.col(name).try_cast(kind))


def _number_fault(name: str, kind: str) -> Column:
    is_wrong = F.col(name).isNotNull() & _number(name).isNull()
    return fault(is_wrong, f"{name} is not a number ({kind})")


def share_fault() -> Column:
    """Why the `sample_rate` of a loose trace is none. No ingest refuses a trace for it."""
    share = _number("sample_rate")
    return fault(~((share > 0) & (share <= 1)), "sample_rate is not above 0 and at most 1")


def _time_fault(name: str, now: datetime) -> Column:
    return first_fault(
        time_fault(name, F.col(name), is_given=_is_given(name)),
        fault(F.col(name) > F.lit(now + MAX_AHEAD), f"{name} {DAY_AHEAD}"),
    )


def _is_given(name: str) -> Column:
    return F.col(f"{name}_text").isNotNull() | F.col(f"{name}_us").isNotNull()


def loose_traces(rows: DataFrame, *, may_be_torn: bool) -> DataFrame:
    """The rows of Parquet files that an engine reads, as `judged_traces` takes them.

    Input:
        rows: columns under their standard names, those that the files have.
        may_be_torn: whether the engine gives texts that are no UTF-8. Apache Spark does; the
        embedded one refuses the file, and to look at each text again takes a twentieth of an audit.
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
    torn = _is_torn([name for name in TEXTS if name in given and may_be_torn])
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


def kept_traces(rows: DataFrame, *, shape: Eras) -> DataFrame:
    """The same rows as TRACES would have them: GIVEN.

    Input:
        rows: as for `loose_traces`; each of them was judged good, or is, before it is stored.
    """
    sent_at = F.col("sent_at").cast("timestamp")
    made = {
        "bucket_start": cell_start(sent_at, shape),
        "location": F.coalesce("location", F.lit(PRODUCER))
        if "location" in rows.columns
        else F.lit(PRODUCER),
    }
    # As an expression: the embedded engine unites no plain column of a file with one of a table,
    # if both have notes of their own in their schemas.
    given = {name: F.when(F.col(name).isNotNull(), F.col(name)) for name in rows.columns}
    values = given | made
    kinds = {name: kind for name, kind, _ in TRACES.columns}
    is_counted = in_era_sample(F.col("message_id"), sent_at, shape)
    kept = rows if is_counted is None else rows.where(is_counted)
    return kept.select(
        *(values.get(name, F.lit(None)).cast(kinds[name]).alias(name) for name in GIVEN)
    )


def _is_torn(names: Sequence[str]) -> Column:
    """Whether a text is no UTF-8."""
    return any_of(
        [F.coalesce(F.make_valid_utf8(name) != F.col(name), F.lit(False)) for name in names]
    )
