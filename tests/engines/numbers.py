"""Tables of numbers and truth values: counts, sums, halves of hashes, shares."""

from itertools import product

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.engines.odd import DOUBLES, INTS, LONGS
from tests.engines.table import cases, shown, table

# Whose sums, differences and doubles stay within 64 bits: past them one engine wraps.
MODERATE = tuple(n for n in LONGS if n is None or abs(n) < 2**61)


@table(".bitwiseAND F.shiftright F.pmod op:% F.hex F.xxhash64 cast:string cast:boolean cast:double")
def halves_and_remainders(spark: SparkSession) -> DataFrame:
    number = F.col("n")
    return shown(
        cases(spark, LONGS, "n bigint"),
        low=number.bitwiseAND(F.lit(0xFFFFFFFF)),
        high=F.shiftright(number, 32),
        pmod=F.pmod(number, F.lit(1_000_000)),
        remainder=number % 60,
        hash=F.xxhash64(number),
        hash_beside_a_text=F.xxhash64(number, F.lit("seed")),
        hex=F.hex(number),
        text=number.cast("string"),
        truth=number.cast("boolean"),
        double=number.cast("double"),
        int=number.try_cast("int"),
    )


@table("op:+ op:- op:* op:neg op:/")
def arithmetic_within_64_bits(spark: SparkSession) -> DataFrame:
    number, low = F.col("n"), F.col("n").bitwiseAND(F.lit(0xFFFFFFFF))
    return shown(
        cases(spark, MODERATE, "n bigint"),
        plus=number + F.lit(1),
        minus=number - F.lit(2**60),
        doubled=number * 2,
        low_weighed=low * F.lit(-1),
        high_weighed=F.shiftright(number, 32) * F.lit(-1),
        negative=-number,
        seconds=number / F.lit(1_000_000),
    )


@table(
    "F.greatest F.least F.coalesce F.nullif .between .isin op:== op:!= op:< op:<= op:> op:>= F.lit"
)
def questions_about_numbers(spark: SparkSession) -> DataFrame:
    number = F.col("n")
    return shown(
        cases(spark, LONGS, "n bigint"),
        greatest=F.greatest(number, F.lit(0)),
        least=F.least(number, F.lit(2**40), F.lit(7)),
        given=F.coalesce(number, F.lit(0)),
        unless_zero=F.nullif(number, F.lit(0)),
        within=number.between(-10, 2**53),
        one_of=number.isin(1, 2, 2**63 - 1),
        equal=number == 2**53,
        unequal=number != 0,
        less=number < 7,
        at_most=number <= F.lit(2**31),
        more=number > 7,
        at_least=number >= F.lit(-(2**63)),
        same=number.eqNullSafe(F.lit(7)),
    )


@table("F.when .when .otherwise op:~ op:& op:|")
def chains_of_when(spark: SparkSession) -> DataFrame:
    number = F.col("n")
    return shown(
        cases(spark, LONGS, "n bigint"),
        open=F.when(number > 5, "many").when(number > 0, "few"),
        closed=F.when(number > 5, 1).otherwise(0),
        column=F.when(number > 5, number).otherwise(F.lit(None).cast("bigint")),
        negated=F.when(~(number > 5), number),
        both=F.when((number > 5) & (number < 100), number),
        either=F.when((number < 5) | (number > 100), number),
    )


@table("op:& op:| op:~ cast:int F.coalesce .eqNullSafe")
def truth(spark: SparkSession) -> DataFrame:
    values = (None, True, False)
    left, right = F.col("a"), F.col("b")
    return shown(
        cases(spark, product(values, values), "a boolean, b boolean"),
        both=left & right,
        either=left | right,
        neither=~left,
        equal=left == right,
        same=left.eqNullSafe(right),
        int=left.cast("int"),
        bigint=left.cast("bigint"),
        text=left.cast("string"),
        hash=F.xxhash64(left),
        given=F.coalesce(left, right, F.lit(False)),
        chosen=F.when(left, 1).when(right, 2).otherwise(3),
    )


@table("cast:bigint cast:string cast:double F.get F.array")
def ints(spark: SparkSession) -> DataFrame:
    number = F.col("n")
    return shown(
        cases(spark, INTS, "n int"),
        text=number.cast("string"),
        wide=number.cast("bigint") * 2,
        double=number.cast("double"),
        truth=number.cast("boolean"),
        hash=F.xxhash64(number),
        looked_up=F.get(
            F.array(*(F.lit(2.0**i) for i in range(22))),
            F.greatest(F.least(number, F.lit(99)), F.lit(-99)),
        ),
    )


@table("op:/ op:< op:<= op:> op:>= op:== op:!= F.greatest F.least F.coalesce F.nullif")
def doubles(spark: SparkSession) -> DataFrame:
    """Beside others in a row; never as a key, in an order or as text."""
    number = F.col("d")
    return shown(
        cases(spark, DOUBLES, "d double"),
        plus=number + 1,
        times=number * F.lit(3.0),
        third=number / F.lit(3.0),
        negative=-number,
        less=number < 0.5,
        at_most=number <= F.lit(0.0),
        more=number > 1,
        at_least=number >= 0,
        equal=number == 0,
        unequal=number != 1,
        greatest=F.greatest(number, F.lit(1.0)),
        least=F.least(number, F.lit(1.0)),
        given=F.coalesce(number, F.lit(0.0)),
        absent=number.isNull(),
        within=number.between(0, 2),
    )


@table("op:/ F.nullif")
def shares(spark: SparkSession) -> DataFrame:
    pairs = [(1, 0), (0, 0), (None, 0), (5, 2), (-5, 2), (2**63 - 1, 3), (10**18 + 1, 7), (3, None)]
    share = F.col("a") / F.nullif("b", F.lit(0))
    rows = cases(spark, pairs, "a bigint, b bigint")
    return shown(rows, share=share, is_below=share < 0.99)
