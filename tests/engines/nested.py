"""Tables of arrays, structs and maps: evidence of ids, latency counts, attributes."""

from itertools import product

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from shardaudit.columns.ledger_sums import sequence_key, sequence_number
from tests.engines.odd import NUMBERS, TEXTS
from tests.engines.table import cases, shown, table

ARRAYS: tuple[list[str | None] | None, ...] = (
    None, [], [None], [None, None], ["a"], ["a", None], [None, "a"], ["b", "a", "a"], ["a", "b"],
    ["é", "e\u0301"], ["10", "9", ""], ["x" * 1000] * 50,
)  # fmt: skip


@table("F.array_intersect F.concat F.size F.array_distinct F.sort_array F.array_sort F.flatten")
def pairs_of_arrays(spark: SparkSession) -> DataFrame:
    left, right = F.col("a"), F.col("b")
    return shown(
        cases(spark, product(ARRAYS, ARRAYS), "a array<string>, b array<string>"),
        have_one_in_common=F.size(F.array_intersect(left, right)) > 0,
        both=F.concat(left, right),
        flat=F.flatten(F.array(left, right)),
        equal=left == right,
        same=left.eqNullSafe(right),
    )


@table("F.get F.slice F.transform F.filter F.exists F.aggregate F.coalesce type:array")
def single_arrays(spark: SparkSession) -> DataFrame:
    array = F.col("a")
    there = F.filter(array, lambda x: x.isNotNull())
    return shown(
        cases(spark, ARRAYS, "a array<string>"),
        size=F.size(array),
        distinct=F.array_distinct(array),
        sorted=F.sort_array(array),
        in_order=F.array_sort(array),
        first=F.get(array, 0),
        beyond=F.get(array, 9),
        before=F.get(array, -1),
        last=F.get(array, F.size(array) - 1),
        rest=F.slice(array, 2, F.size(array)),
        two=F.slice(array, 1, 2),
        longer=F.transform(array, lambda x: F.concat(x, F.lit("-"))),
        there=there,
        has_a=F.exists(there, lambda x: x == "a"),
        characters=F.aggregate(
            F.transform(there, lambda x: F.length(x).cast("bigint")),
            F.lit(0).cast("bigint"),
            lambda total, n: total + n,
        ),
        absent=array.isNull(),
    )


@table("F.explode F.array F.sequence")
def exploded_arrays(spark: SparkSession) -> DataFrame:
    rows = cases(spark, ARRAYS, "a array<string>")
    exploded = rows.select("case", F.explode("a").alias("value"))
    numbers = rows.select("case", F.explode(F.sequence(F.lit(1), F.lit(3))).alias("n"))
    return exploded.unionByName(numbers.select("case", F.col("n").cast("string").alias("value")))


@table(
    "F.struct F.when op:== op:!= op:< op:<= op:> op:>= F.greatest F.least op:[] .alias type:struct"
)
def keys_of_sequence_numbers(spark: SparkSession) -> DataFrame:
    """Structs are NULL as a whole or not at all: a NULL in a field is ordered differently."""
    left, right = sequence_key(F.col("a")), sequence_key(F.col("b"))
    return shown(
        cases(spark, product(NUMBERS, NUMBERS), "a string, b string"),
        equal=left == right,
        unequal=left != right,
        less=left < right,
        at_most=left <= right,
        more=left > right,
        at_least=left >= right,
        same=left.eqNullSafe(right),
        greatest=F.greatest(left, right),
        least=F.least(left, right),
        given=F.coalesce(left, right),
        absent=left.isNull(),
        text=sequence_number(left),
    )


@table("F.array_sort F.array_distinct F.sort_array F.transform")
def arrays_of_keys(spark: SparkSession) -> DataFrame:
    rows = cases(spark, product(NUMBERS, NUMBERS), "a string, b string")
    keys = F.transform(F.array("a", "b", "a"), sequence_key)
    pairs = F.array(F.struct("a", "b"), F.struct(F.col("b").alias("a"), F.col("a").alias("b")))
    return shown(
        rows,
        in_order=F.array_sort(keys),
        sorted=F.sort_array(keys),
        distinct=F.size(F.array_distinct(keys)),
        distinct_pairs=F.size(F.array_distinct(pairs)),
        texts=F.transform(F.array_sort(keys), sequence_number),
    )


@table("type:map op:[] F.coalesce F.map_entries F.map_from_entries")
def maps(spark: SparkSession) -> DataFrame:
    values: tuple[dict[str, str | None] | None, ...] = (
        None, {}, {"a": "1"}, {"a": None, "b": "2"}, {"": "", "\x00": "x"},
              {"é": "1", "e\u0301": "2"}, dict.fromkeys(map(str, TEXTS[1:60]), "v"))  # fmt: skip
    attributes = F.col("m")
    return shown(
        cases(spark, values, "m map<string,string>"),
        map=attributes,
        value=attributes["a"],
        nothing=attributes["none"],
        absent=attributes.isNull(),
        entries=F.sort_array(F.map_entries(attributes)),
        again=F.map_from_entries(F.map_entries(attributes)),
        given=F.coalesce(attributes, F.lit(None).cast("map<string,string>")),
        chosen=F.when(attributes.isNotNull(), attributes),
    )


@table("F.map_from_entries F.filter op:[] F.array")
def counts_by_bin(spark: SparkSession) -> DataFrame:
    entries: tuple[object, ...] = (
        None,
        [],
        [(0, 5)],
        [(None, 5)],
        [(3, 7), (None, 1), (0, 1)],
        [(21, 2**62)],
    )
    rows = cases(spark, entries, "e array<struct<bin:int,n:bigint>>")
    counts = F.map_from_entries(F.filter("e", lambda entry: entry["bin"].isNotNull()))
    return shown(
        rows.withColumn("counts", counts),
        counts=F.array(*(F.coalesce(F.col("counts")[i], F.lit(0)) for i in range(22))),
    )
