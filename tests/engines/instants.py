"""Tables of times: from year 1 to 9999, to the microsecond, with clocks that jump."""

from datetime import UTC, date, datetime, timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.engines.odd import INSTANTS_US, LONGS
from tests.engines.table import cases, shown, table

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
RUN = datetime(2026, 11, 1, 5, 30, tzinfo=UTC)
LAST_DAY = datetime(9999, 1, 1, tzinfo=UTC)


def instants(spark: SparkSession) -> DataFrame:
    return cases(spark, INSTANTS_US, "us bigint").withColumn("t", F.timestamp_micros("us"))


@table("F.timestamp_micros F.unix_micros F.pmod type:timestamp")
def micros_there_and_back(spark: SparkSession) -> DataFrame:
    instant, us = F.col("t"), F.unix_micros("t")
    return shown(
        instants(spark),
        instant=instant,
        us=us,
        minute=F.timestamp_micros(us - F.pmod(us, F.lit(60_000_000))),
        three_hours=F.timestamp_micros(us - F.pmod(us, F.lit(10_800_000_000))),
        whole_seconds=F.timestamp_micros(us - F.pmod(us, F.lit(1_000_000))),
    )


@table("F.timestamp_micros F.unix_micros")
def micros_of_any_size(spark: SparkSession) -> DataFrame:
    """No calendar reaches there, but the numbers come back."""
    instant = F.timestamp_micros("us")
    return shown(
        cases(spark, LONGS, "us bigint"),
        us=F.unix_micros(instant),
        is_late=instant > F.lit(RUN),
        is_early=instant < F.lit(EPOCH),
        hash=F.xxhash64(instant),
    )


@table("F.to_date F.date_format F.xxhash64 cast:date type:date")
def days_and_texts_of_instants(spark: SparkSession) -> DataFrame:
    instant = F.col("t")
    return shown(
        instants(spark),
        day=F.to_date(instant),
        cast_day=instant.cast("date"),
        text=F.date_format(instant, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'"),
        hash=F.xxhash64(instant),
        hash_of_day=F.xxhash64(F.to_date(instant)),
    )


@table("op:+ op:- F.lit type:interval")
def instants_and_durations(spark: SparkSession) -> DataFrame:
    early, late = (
        F.col("t") >= F.lit(datetime(1901, 1, 1, tzinfo=UTC)),
        F.col("t") < F.lit(LAST_DAY),
    )
    instant = F.when(early & late, F.col("t"))
    return shown(
        instants(spark),
        next_day=instant + F.lit(timedelta(days=1)),
        last_week=instant - F.lit(timedelta(days=7)),
        moment=instant + F.lit(timedelta(microseconds=1)),
        before=instant - F.lit(timedelta(hours=7, microseconds=3)),
    )


@table("op:== op:!= op:< op:<= op:> op:>= .between .isin .eqNullSafe F.greatest F.least F.coalesce")
def order_of_instants(spark: SparkSession) -> DataFrame:
    instant, run = F.col("t"), F.lit(RUN)
    return shown(
        instants(spark),
        equal=instant == run,
        unequal=instant != run,
        less=instant < F.lit(EPOCH),
        at_most=instant <= run,
        more=instant > run,
        at_least=instant >= F.lit(EPOCH),
        within=instant.between(F.lit(EPOCH), run),
        one_of=instant.isin(RUN, EPOCH),
        same=instant.eqNullSafe(run),
        greatest=F.greatest(instant, run),
        least=F.least(instant, run),
        given=F.coalesce(instant, run),
        chosen=F.when(instant.isNotNull(), instant).otherwise(run),
    )


@table("op:< .isin .between F.max type:date")
def order_of_days(spark: SparkSession) -> DataFrame:
    day = F.to_date("t")
    return shown(
        instants(spark),
        is_old=day < F.lit(date(1970, 1, 1)),
        one_of=day.isin(date(2026, 11, 1), date(1900, 1, 1)),
        within=day.between(F.lit(date(1900, 1, 1)), F.lit(date(2026, 11, 1))),
        unbounded=day.between(F.lit(None).cast("date"), F.lit(date(2026, 11, 1))),
        unknown=day.between(F.lit(None), F.lit(None)),
    )


@table("F.sequence F.explode")
def buckets_of_windows(spark: SparkSession) -> DataFrame:
    windows = (
        (datetime(2026, 11, 1, tzinfo=UTC), timedelta(days=1), timedelta(hours=1)),
        (datetime(2026, 3, 8, 6, tzinfo=UTC), timedelta(minutes=1), timedelta(seconds=7.5)),
        (datetime(1969, 12, 31, 23, 59, tzinfo=UTC), timedelta(minutes=2), timedelta(seconds=60)),
        (RUN, timedelta(0), timedelta(seconds=60)),
        (datetime(2000, 2, 28, tzinfo=UTC), timedelta(days=3), timedelta(days=1)),
    )
    starts = [
        F.sequence(F.lit(start), F.lit(start + span), F.lit(width))
        for start, span, width in windows
    ]
    rows = cases(spark, range(len(windows)), "n int")
    each = F.array(*(F.when(F.col("n") == n, start) for n, start in enumerate(starts)))
    chosen = rows.select("case", F.explode(F.get(each, F.col("n"))).alias("start"))
    return chosen.select(F.concat_ws("/", "case", F.unix_micros("start")).alias("case"), "start")


@table("cast:timestamp .try_cast")
def texts_of_instants(spark: SparkSession) -> DataFrame:
    texts = (
        None, "", "2026-11-20T12:00:00Z", "2026-11-20T12:00:00.123456789Z", "2026-11-20T12:00Z",
        "2026-11-20 12:00:00+0100", "2026-11-20T12:00:00-18:00", "2026-11-20T12:00:00+19:00",
        "2026-02-30T00:00:00Z", "2026-11-20T24:00:00Z", "2026-11-20T12:60:00Z", "2024-02-29T00:00Z",
        "2026-11-20T12:00:60Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z",
        "1969-12-31T23:59:59.9999999Z", "2026-11-01T01:30:00-04:00", "٢٠٢٦-11-20T12:00:00Z",
        " 2026-11-20T12:00:00Z", "2026-11-20T12:00:00z", "2026-11-20", "12:00:00", "epoch", "now",
        "today", "2026-11-20T12:00:00,5Z", "2026-11-20T12:00:00.Z", "1e3", "1763640000",
    )  # fmt: skip
    instant = F.col("t").try_cast("timestamp")
    return shown(cases(spark, texts, "t string"), instant=instant, us=F.unix_micros(instant))


@table("cast:timestamp")
def instants_without_a_zone(spark: SparkSession) -> DataFrame:
    moments = tuple(
        None if us is None else datetime(1970, 1, 1) + timedelta(microseconds=us)  # noqa: DTZ001 - the point
        for us in INSTANTS_US
    )
    return shown(cases(spark, moments, "t timestamp_ntz"), instant=F.col("t").cast("timestamp"))


@table("F.lit cast:array cast:map")
def literals(spark: SparkSession) -> DataFrame:
    values = {
        "int": 0, "wide": 2**40, "greatest": 2**63 - 1, "least": -(2**63), "double": 1.5,
        "zero": -0.0, "truth": True, "text": "😀\x00'\"\\%", "empty": "",
        "instant": datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        "last": datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        "folded": RUN, "day": date(2026, 11, 1), "span": timedelta(days=-3, microseconds=5),
    }  # fmt: skip
    kinds = ("string", "bigint", "timestamp", "map<string,string>", "array<bigint>", "boolean")
    return shown(
        cases(spark, [0], "n int"),
        **{name: F.lit(value) for name, value in values.items()},
        **{f"no_{n}": F.lit(None).cast(kind) for n, kind in enumerate(kinds)},
    )
