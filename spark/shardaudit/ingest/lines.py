"""Lines of JSON → traces in the loose shape: every field as the text that was written.

A line must be one JSON object and nothing beside it. Spark's parsers stop at the end of the first
value and overlook what follows, so the line is parsed as a part of a larger text, with its own hash
as the end mark: only a line that is complete in itself leaves the mark in its place.

Of a key that occurs twice the last value counts, as in most parsers.
"""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType, StructField, StructType, VariantType

from shardaudit.ingest.faults import fault, first_fault
from shardaudit.model.table import INTERNAL_PREFIX

TEXTS = ("stream", "shard_id", "location", "producer_id", "session")
NUMBERS = ("attempt", "session_seq", "sample_rate")
TIMES = ("sent_at", "acked_at")
# Whether these are written as text or as numbers makes a difference.
TYPED = ("message_id", "sequence_number", *TIMES)

_PARSED = "_sa_parsed"
_BEYOND_US = 2**63 - 1  # what overflows is over a day ahead in any case
_OPTIONS = {
    "columnNameOfCorruptRecord": "corrupt",
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
}
# Half of a surrogate pair would become a question mark, and different ids the same.
_LONE_SURROGATE = (
    r"(?<!\\)(?:\\\\)*+\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    r"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F]"
)


def loose_traces(lines: DataFrame, columns: Mapping[str, str]) -> DataFrame:
    """The fields of each line, not judged yet: as many rows as `lines`.

    Input:
        lines: `file, line, raw, fault` of the reader.
        columns: standard name -> key in the object, for every standard name.
    Output:
        as `adapters/parquet_traces.LOOSE`; `fault` is set where a line is no trace at all.
    """
    fields = _fields(columns)
    parsed = lines.withColumn(_PARSED, _parsed(fields))
    value = {name: F.col(_PARSED)["trace"][key] for name, key in columns.items()}
    return parsed.select(
        "file",
        "line",
        "raw",
        first_fault(F.col("fault"), _line_fault(), _type_fault(value)).alias("fault"),
        _text(value["message_id"]).alias("message_id"),
        *(_text(value[name]).alias(name) for name in TEXTS[:2]),
        _text(value["sequence_number"]).alias("sequence_number"),
        *(_text(value[name]).alias(name) for name in TEXTS[2:] + NUMBERS),
        *(_time_text(value[name]).alias(f"{name}_text") for name in TIMES),
        *(_time_us(value[name]).alias(f"{name}_us") for name in TIMES),
        F.lit(None).cast("map<string,string>").alias("attributes"),
        _text(value["attributes"]).alias("attributes_text"),
    )


def _fields(columns: Mapping[str, str]) -> StructType:
    """What is read of an object. Two standard names may stand for one key."""
    kinds: dict[str, DataType] = {key: StringType() for key in columns.values()}
    kinds |= {columns[name]: VariantType() for name in TYPED}
    return StructType([StructField(key, kind) for key, kind in kinds.items()])


def _parsed(fields: StructType) -> Column:
    shape = StructType(
        [
            StructField("trace", fields),
            StructField("end", StringType()),
            StructField("corrupt", StringType()),
        ]
    )
    begin, middle, end = F.lit('{"trace":'), F.lit(',"end":"'), F.lit('"}')
    # A line that the reader refuses already may be anything: it is not parsed.
    raw = F.when(F.col("fault").isNull(), F.col("raw"))
    return F.from_json(F.concat(begin, raw, middle, _end_mark(), end), shape, _OPTIONS)


def _end_mark() -> Column:
    return F.xxhash64("raw").cast("string")


def _line_fault() -> Column:
    is_whole = F.col(_PARSED)["end"] == _end_mark()
    is_object = F.coalesce(is_whole & F.col(_PARSED)["trace"].isNotNull(), F.lit(False))
    begins_as_object = F.ltrim("raw").startswith("{")
    is_other_json = ~begins_as_object & F.try_parse_json("raw").isNotNull()
    reserved = F.exists(F.json_object_keys("raw"), lambda key: key.startswith(INTERNAL_PREFIX))
    return first_fault(
        F.when(
            ~is_object,
            F.when(is_other_json, "the line is not a JSON object").otherwise(
                "the line is not JSON"
            ),
        ),
        fault(
            F.col("raw").contains(f'"{INTERNAL_PREFIX}') & reserved,
            f"a key begins with {INTERNAL_PREFIX}, which is reserved",
        ),
        fault(
            F.lower("raw").contains(r"\ud") & F.col("raw").rlike(_LONE_SURROGATE),
            "the line holds half of a surrogate pair",
        ),
    )


def _type_fault(value: Mapping[str, Column]) -> Column:
    id_kind, number_kind = (_kind(value[name]) for name in ("message_id", "sequence_number"))
    return first_fault(
        fault(
            ~id_kind.isin("STRING", "BIGINT", "VOID"),
            "message_id is neither a text nor a whole number",
        ),
        fault(
            ~number_kind.isin("STRING", "VOID"),
            "sequence_number is not a text: as a JSON number it may have lost digits",
        ),
    )


def _kind(value: Column) -> Column:
    return F.schema_of_variant(value)


def _text(value: Column) -> Column:
    return value.try_cast("string")


def _time_text(value: Column) -> Column:
    return F.when(_kind(value) != "BIGINT", _text(value))


def _time_us(value: Column) -> Column:
    micros = F.try_multiply(value.try_cast("bigint"), F.lit(1000))
    return F.when(_kind(value) == "BIGINT", F.coalesce(micros, F.lit(_BEYOND_US)))
