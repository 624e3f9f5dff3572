"""Records of the stream → rows of the sink, each column from its source, and what does not fit."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.backfill.rules.column_sources import WHOLE_PAYLOAD
from shardaudit.columns.instants import epoch_ms_instant, has_zone, parsed_instant
from shardaudit.columns.sql_name import quoted
from shardaudit.model.input_columns import Origin, Source

WINDOW, REASON, ID, SENT_AT = "_sa_window_id", "_sa_reason", "_sa_message_id", "_sa_sent_at"
POSITION, RAW, ORDER = "_sa_position", "_sa_raw", "_sa_order"
INTERNAL = (WINDOW, REASON, ID, SENT_AT, POSITION, RAW, ORDER)
MAX_RAW = 4096
_WHOLE_NUMBERS = ("tinyint", "smallint", "int", "bigint")


def decoded(
    records: DataFrame,
    sources: Sequence[Source],
    *,
    ids: tuple[str, str],
    landed_at: datetime,
    checks: Mapping[str, str],
) -> DataFrame:
    """One row per record: the sink's columns but those that the table fills, and INTERNAL ones.

    `_sa_reason` is NULL where the record fits; `_sa_position` names its place in the stream.

    Input:
        records: of the data source, without the rows of outcomes.
        ids: the sink's columns for message_id and sent_at.
        checks: by name what must hold for a row, in SQL: one that fails, or is NULL, would end the
        landing of all others.
    """
    direct = [s for s in sources if s.origin in (Origin.RECORD, Origin.PAYLOAD)]
    staged = _staged(records, landed_at)
    rows = staged.select("*", *(_value(source).alias(source.field.name) for source in direct))
    for source in sources:
        if source.origin is Origin.DERIVED:  # each may use those before it
            value = F.expr(source.text).cast(source.field.kind)
            rows = rows.withColumn(source.field.name, value)
    id_column, sent_column = ids
    return rows.select(
        F.col(quoted(id_column)).cast("string").alias(ID),
        _sent_at(sources, sent_column).alias(SENT_AT),
        _reason(sources, id_column, checks).alias(REASON),
        WINDOW,
        POSITION,
        RAW,
        ORDER,
        *(quoted(s.field.name) for s in sources if s.origin is not Origin.TABLE),
    )


def _staged(records: DataFrame, landed_at: datetime) -> DataFrame:
    """The parts of records that columns are made of."""
    original = F.col("content").cast("string")
    text = F.coalesce("decoded", "content").cast("string")
    is_text = F.is_valid_utf8(text)
    return records.select(
        F.col("window_id").alias(WINDOW),
        position().alias(POSITION),
        F.when(is_text, text).alias("_sa_text"),
        F.when(is_text, F.try_parse_json(text)).alias("_sa_payload"),
        F.coalesce(F.when(F.is_valid_utf8(original), original), F.hex("content"))
        .substr(1, MAX_RAW)
        .alias(RAW),
        (F.length("decoded") == 0).alias("_sa_is_refused"),
        F.struct(
            "arrived_at", F.length("sequence_number"), "sequence_number", "sub_sequence"
        ).alias(ORDER),
        F.col("shard_id").alias("_sa_shard_id"),
        F.col("sequence_number").alias("_sa_sequence_number"),
        F.col("arrived_at").alias("_sa_arrived_at"),
        F.lit(landed_at).alias("_sa_landed_at"),
    )


def position() -> Column:
    """Where a record stands in its stream; of an aggregate, in it too."""
    return F.concat_ws("/", "shard_id", "sequence_number", "sub_sequence")


def unique_rows(rows: DataFrame) -> DataFrame:
    """One row per message id, the one that arrived first: a message may stand in a stream twice."""
    kept = F.struct(*(quoted(name) for name in rows.columns))
    return (
        rows.groupBy(ID)
        .agg(F.min_by(kept, F.struct(ORDER, WINDOW)).alias("_sa_kept"))
        .select("_sa_kept.*")
    )


def _value(source: Source) -> Column:
    kind = source.field.kind
    if source.origin is Origin.RECORD:
        value = F.col(f"_sa_{source.text}")
        return _instant_as(value, kind) if source.text.endswith("_at") else value.cast(kind)
    if source.text == WHOLE_PAYLOAD:
        return F.col("_sa_text").cast(kind)
    if kind == "timestamp":
        return _instant(source)
    value = _field(source, kind)
    if kind == "timestamp_ntz":  # an instant is written as UTC, not in the zone of its text
        in_utc = _instant(source).cast(kind)  # the session is in UTC
        return F.coalesce(in_utc, F.when(~has_zone(_field(source, "string")), value))
    if kind in _WHOLE_NUMBERS:  # a cast would cut 1.7 to 1
        return F.when(value == _field(source, "decimal(38,10)"), value)
    return value


def _field(source: Source, kind: str) -> Column:
    return F.try_variant_get("_sa_payload", source.text, kind)


def _instant(source: Source) -> Column:
    """A text in ISO 8601 with a zone, or a whole number of epoch milliseconds: as in a trace."""
    kind = F.schema_of_variant(_field(source, "variant"))
    return F.when(kind == "STRING", parsed_instant(_field(source, "string"))).when(
        kind == "BIGINT", epoch_ms_instant(_field(source, "bigint"))
    )


def _instant_as(instant: Column, kind: str) -> Column:
    """The instant in one of the three forms that a sink may keep times in."""
    if kind == "bigint":
        return F.unix_millis(instant)
    if kind == "string":
        return F.date_format(instant, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'")  # the session is in UTC
    return instant.cast(kind)


def _sent_at(sources: Sequence[Source], column: str) -> Column:
    """The message's time as a timestamp; NULL when the sink has none."""
    kinds = {source.field.name: source.field.kind for source in sources}
    if column not in kinds:
        return F.lit(None).cast("timestamp")
    value = F.col(quoted(column))
    if kinds[column].startswith("timestamp"):
        return value.cast("timestamp")  # one without a zone is in UTC, as the session
    if kinds[column] == "string":
        return parsed_instant(value)
    return epoch_ms_instant(value.cast("bigint"))


def _reason(sources: Sequence[Source], id_column: str, checks: Mapping[str, str]) -> Column:
    """What does not fit, in words; NULL when all does."""
    is_lacking = {
        source.field.name: F.col(quoted(source.field.name)).isNull()
        for source in sources
        if source.origin is not Origin.TABLE
    }
    misfits = [
        F.when(
            is_lacking[s.field.name] & _is_there(s), f"column {s.field.name} is no {s.field.kind}"
        )
        for s in sources
        if s.origin is Origin.PAYLOAD and s.text != WHOLE_PAYLOAD
    ]
    needed = [
        F.when(is_lacking[s.field.name], f"column {s.field.name} has no value")
        for s in sources
        if s.origin is not Origin.TABLE
        and (not s.field.nullable or s.field.partitions or s.field.name == id_column)
    ]
    failed = [
        F.when(~F.coalesce(F.expr(text), F.lit(False)), f"the sink's {name} does not hold: {text}")
        for name, text in checks.items()
    ]
    said = F.concat_ws("; ", *misfits, *needed, *failed)
    return (
        F.when(F.col("_sa_is_refused"), "the decoder could not read the content")
        .when(F.col("_sa_payload").isNull(), "the content is no JSON in UTF-8")
        .when(said != "", said)
    )


def _is_there(source: Source) -> Column:
    """Whether the payload has the field, with a value that is not JSON's null."""
    field = _field(source, "variant")
    return field.isNotNull() & ~F.coalesce(F.is_variant_null(field), F.lit(True))
