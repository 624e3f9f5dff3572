"""What people are shown of bad rows: the same on every engine."""

from collections.abc import Iterable

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from shardaudit.columns.faults import cut, shown_texts
from shardaudit.columns.instants import instant_text


def found(spark: SparkSession, column: Column, values: Iterable[object], kind: str) -> list[object]:
    """What a column becomes for each value of `v`."""
    frame = spark.createDataFrame(list(enumerate(values)), f"i int, v {kind}")
    return [row.found for row in frame.select("i", column.alias("found")).orderBy("i").collect()]


def test_text_is_cut_between_characters_when_longer_than_4_kib(spark: SparkSession) -> None:
    texts = [
        begin + character * 5000 + end
        for begin in ("", "a", "ab", "abc")
        for character in ("x", "\0", "é", "日", "😀", "\ufffd", "\u07ff", "\uffff", "\U0010ffff")
        for end in ("", "\n")
    ] + ["x" * 4096, "x" * 4095 + "é", "x" * 4094 + "é", "😀" * 1024, "é", "\0", "", " ", "\ufffd"]
    whole = [text.encode()[:4096].decode(errors="ignore") for text in texts]
    assert found(spark, cut(F.col("v")), [*texts, None], "string") == [*whole, None]


def test_texts_are_shown_as_json_when_they_hold_anything(spark: SparkSession) -> None:
    texts = ["", 'a"b', "a\\b", "/<>&'", "\0\b\f\n\r\t", "\x0b\x1a\x1f", "\x7f\x85\u2028", "é😀"]
    shown = ["", 'a\\"b', "a\\\\b", "/<>&'", r"\u0000\b\f\n\r\t", "␋␚␟", "\x7f\x85\u2028", "é😀"]
    column = shown_texts({"v": F.col("v"), "none": F.lit(None).cast("string")})
    assert found(spark, column, [*texts, None], "string") == [
        *(f'{{"v":"{text}"}}' for text in shown),
        "{}",
    ]


def test_instant_is_shown_to_the_microsecond_when_a_calendar_reaches_it(
    spark: SparkSession,
) -> None:
    shown = {
        0: "1970-01-01T00:00:00.000000Z",
        -1: "1969-12-31T23:59:59.999999Z",
        1_795_176_000_120_000: "2026-11-20T12:00:00.120000Z",
        -62_135_596_800_000_000: "0001-01-01T00:00:00.000000Z",
        -62_135_596_800_000_001: "-62135596800000001",
        10**17: "5138-11-16T09:46:40.000000Z",
        2**63 - 1: "9223372036854775807",
        -(2**63): "-9223372036854775808",
    }
    column = instant_text(F.timestamp_micros("v"))
    assert found(spark, column, shown, "bigint") == [*shown.values()]
