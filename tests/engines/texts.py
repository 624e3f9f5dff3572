"""Tables of texts: ids, shards, sequence numbers, reasons."""

from itertools import product

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.engines.odd import NUMBERS, TEXTS
from tests.engines.table import cases, shown, table

SHORT = tuple(text for text in TEXTS if text is None or len(text) < 100)
# Every code point that may stand in a text, a thousand at a time.
ALL = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x110000)]))
EVERYTHING = tuple(ALL[start : start + 1000] for start in range(0, len(ALL), 1000))


def spelled(text: Column) -> Column:
    """Without those that JSON has in hexadecimal digits, whose case differs."""
    controls = "\x0b\x0e\x0f\x1a\x1b\x1c\x1d\x1e\x1f"
    return F.translate(text, controls, "·" * len(controls))


@table("F.xxhash64 F.length F.octet_length F.hex cast:binary")
def hashes_of_every_code_point(spark: SparkSession) -> DataFrame:
    text = F.col("t")
    return shown(
        cases(spark, EVERYTHING, "t string"),
        hash=F.xxhash64(text),
        two=F.xxhash64(text, F.lit("seed")),
        length=F.length(text),
        bytes=F.octet_length(text),
        hex=F.hex(text.cast("binary")),
        translated=F.translate(text, "tz,", "TZ."),
        joined=F.concat_ws("/", text, text),
        trimmed=F.rtrim(text, F.lit("\ufffd\x00 ")),
        valid=F.make_valid_utf8(text.cast("binary")),
        json=F.to_json(F.struct(spelled(text).alias("t"))),
        is_small=text < F.lit("\U00010000"),
        begins=F.substring(text, 1, 2).isin("\x00\x01", "ab"),
    )


@table("F.xxhash64 F.length F.octet_length F.hex F.concat F.coalesce F.lit F.col cast:binary .cast")
def ids(spark: SparkSession) -> DataFrame:
    text = F.col("t")
    return shown(
        cases(spark, TEXTS, "t string"),
        hash=F.xxhash64(text),
        seeded=F.xxhash64(text, F.lit("seed"), F.lit(1)),
        length=F.length(text),
        bytes=F.octet_length(text),
        hex=F.hex(text.cast("binary")),
        byte_count=F.octet_length(text.cast("binary")),
        again=text.cast("string"),
        joined=F.concat(text, F.lit("/"), text),
        given=F.coalesce(text, F.lit("-")),
    )


@table("F.concat_ws F.translate F.substring F.rtrim F.make_valid_utf8 F.unhex")
def pieces_of_texts(spark: SparkSession) -> DataFrame:
    text = F.col("t")
    first_bytes = F.unhex(F.substring(F.hex(text.cast("binary")), 1, 2 * 5))
    return shown(
        cases(spark, TEXTS, "t string"),
        joined=F.concat_ws("/", text, F.lit("x"), text),
        translated=F.translate(text, "a,é", "b."),
        first=F.substring(text, 1, 3),
        inner=F.substring(text, 2, 2),
        trimmed=F.rtrim(text, F.lit("a\ufffd")),
        valid=F.make_valid_utf8(first_bytes),
    )


@table(".startswith .endswith .contains .isin .isNull .isNotNull .eqNullSafe .between F.nullif")
def questions_about_texts(spark: SparkSession) -> DataFrame:
    text = F.col("t")
    return shown(
        cases(spark, TEXTS, "t string"),
        starts=text.startswith("a"),
        ends=text.endswith("a"),
        contains=text.contains("a"),
        contains_nothing=text.contains(""),
        one_of=text.isin("a", "0", "😀", "e\u0301"),
        none_of=~text.isin("a", ""),
        absent=text.isNull(),
        there=text.isNotNull(),
        same=text.eqNullSafe(F.lit("a")),
        not_same=~text.eqNullSafe(F.lit(None).cast("string")),
        within=text.between("0", "a"),
        unless_empty=F.nullif(text, F.lit("")),
    )


@table("op:== op:!= op:< op:<= op:> op:>= F.greatest F.least")
def order_of_texts(spark: SparkSession) -> DataFrame:
    left, right = F.col("a"), F.col("b")
    return shown(
        cases(spark, product(SHORT, SHORT), "a string, b string"),
        equal=left == right,
        unequal=left != right,
        less=left < right,
        at_most=left <= right,
        more=left > right,
        at_least=left >= right,
        same=left.eqNullSafe(right),
        greatest=F.greatest(left, right),
        least=F.least(left, right),
    )


@table(".rlike F.regexp_replace")
def patterns(spark: SparkSession) -> DataFrame:
    """Without `\\d \\w \\s . $`: they mean other things on the two engines."""
    text = F.col("t")
    return shown(
        cases(spark, (*TEXTS, *NUMBERS), "t string"),
        is_number=text.rlike(r"^(0|[1-9][0-9]{0,128})\z"),
        is_any=text.rlike(r"(?s)^.{1,3}\z"),
        has_digit=text.rlike("[0-9]"),
        replaced=F.regexp_replace(text, r"(?s)^(.{2})([0-9]+)\z", "$2-$1"),
        marked=F.regexp_replace(text, "[0-9]+", "<$0>"),
    )


@table(".try_cast cast:int cast:bigint cast:double cast:boolean cast:string")
def numbers_in_texts(spark: SparkSession) -> DataFrame:
    text = F.col("t")
    return shown(
        cases(spark, (*TEXTS, *NUMBERS), "t string"),
        int=text.try_cast("int"),
        bigint=text.try_cast("bigint"),
        double=text.try_cast("double"),
    )


@table("F.to_json F.struct")
def json_of_texts(spark: SparkSession) -> DataFrame:
    """Of texts alone: times and doubles come out differently, so they are made texts before."""
    left, right = spelled(F.col("a")).alias("a"), spelled(F.col("b")).alias("b c")
    pairs = zip(TEXTS, reversed(TEXTS), strict=True)
    return shown(
        cases(spark, pairs, "a string, b string"),
        both=F.to_json(F.struct(left, right)),
        none=F.to_json(F.struct(F.lit(None).cast("string").alias("a"))),
    )
