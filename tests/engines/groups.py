"""Tables of groups and windows: what folds rows, also none, also the same ones twice."""

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from shardaudit.columns.ledger_sums import sequence_key, sequence_number
from tests.engines.odd import INSTANTS_US, NUMBERS, TEXTS
from tests.engines.table import grouped, table

LONG_GROUPS = (
    [None], [None, None], [0], [1], [1, None], [None, 1], [1, 1, 1], [2, 1, 3], [-1, None, -5],
    [2**62, 2**62 - 1], [-(2**62), -(2**62)], [2**31, -(2**31)], list(range(100)),
)  # fmt: skip
TEXT_GROUPS = (
    list(TEXTS), [None], ["b", "a", None], ["a", "A", "é", "e\u0301"], ["", None], ["9", "10"],
    ["a", "a", "a"],
)  # fmt: skip
NUMBER_GROUPS = (
    list(NUMBERS), [None], [None, None], ["10", "9"], ["9", "10"], [None, "5"], ["5", None],
    ["5", "5"], ["99", "100", None],
)  # fmt: skip


@table(".groupBy .agg F.sum F.count F.count_if F.min F.max F.collect_set F.collect_list F.bit_xor")
def groups_of_longs(spark: SparkSession) -> DataFrame:
    rows = spark.createDataFrame(grouped(LONG_GROUPS), "case int, n bigint")
    number = F.col("n")
    return rows.groupBy("case").agg(
        F.sum(number).alias("sum"),
        (-F.sum(F.when(number.between(-10, 10), number))).alias("less"),
        F.sum(F.when(number > 0, 1).otherwise(0)).alias("above_zero"),
        F.sum(F.shiftright(number, 32) * F.lit(-1)).alias("high"),
        F.sum(number.bitwiseAND(F.lit(0xFFFFFFFF)) * F.lit(-1)).alias("low"),
        F.count("*").alias("rows"),
        F.count(number).alias("numbers"),
        F.count_if(number > 0).alias("positive"),
        F.count_if(~(number > 0)).alias("others"),
        F.min(number).alias("least"),
        F.max(number).alias("greatest"),
        F.max(number > 0).alias("any"),
        F.min(number > 0).alias("all"),
        F.sort_array(F.collect_set(number)).alias("set"),
        F.size(F.collect_set(number)).alias("distinct"),
        F.sort_array(F.collect_list(number)).alias("list"),
        F.bit_xor(F.xxhash64(number)).alias("digest"),
        F.array(F.sum(number), F.max(number)).alias("both"),
    )


@table(".groupBy .agg F.sum F.coalesce F.collect_set F.bit_xor F.count_if")
def nothing_to_fold(spark: SparkSession) -> DataFrame:
    rows = spark.createDataFrame([], "case int, n bigint, t string, at timestamp")
    return rows.agg(
        F.lit(0).alias("case"),
        F.sum("n").alias("sum"),
        F.coalesce(F.sum("n"), F.lit(0)).alias("given"),
        F.count("*").alias("rows"),
        F.count_if(F.col("n") > 0).alias("positive"),
        F.min("t").alias("least"),
        F.max("at").alias("latest"),
        F.unix_micros(F.min("at")).alias("first"),
        F.collect_set("t").alias("set"),
        F.bit_xor("n").alias("digest"),
        F.max(sequence_key(F.col("t"))).alias("key"),
    )


@table("F.min F.max F.collect_set F.collect_list F.sort_array F.count")
def groups_of_texts(spark: SparkSession) -> DataFrame:
    rows = spark.createDataFrame(grouped(TEXT_GROUPS), "case int, t string")
    return rows.groupBy("case").agg(
        F.min("t").alias("least"),
        F.max("t").alias("greatest"),
        F.sort_array(F.collect_set("t")).alias("set"),
        F.sort_array(F.collect_list("t")).alias("list"),
        F.size(F.collect_set("t")).alias("distinct"),
        F.count("t").alias("texts"),
        F.get(F.collect_set(F.when(F.col("t") == "9", F.lit(9))), 0).alias("seen"),
        F.bit_xor(F.xxhash64("t", F.lit(1))).alias("digest"),
    )


@table("F.max F.min F.max_by F.min_by F.collect_set F.struct")
def groups_of_sequence_numbers(spark: SparkSession) -> DataFrame:
    """The greatest by a key that is NULL as a whole or has no NULL in it; no two alike."""
    rows = spark.createDataFrame(
        [(g, t, i) for i, (g, t) in enumerate(grouped(NUMBER_GROUPS))], "case int, t string, i int"
    )
    text, number = F.col("t"), sequence_key(F.col("t"))
    whole = F.struct(
        F.coalesce(F.length(text), F.lit(-1)).alias("n"),
        F.coalesce(text, F.lit("")).alias("t"),
        "i",
    )
    return rows.groupBy("case").agg(
        F.max(number).alias("greatest"),
        F.min(number).alias("least"),
        sequence_number(F.max(number)).alias("text"),
        F.max(F.when(text == "none", number)).alias("none"),
        F.max_by("t", number).alias("text_of_greatest"),
        F.min_by("t", number).alias("text_of_least"),
        F.max_by("i", whole).alias("last"),
        F.min_by("i", whole).alias("first"),
        F.max_by(F.struct("t", "i"), "i").alias("newest"),
        F.min_by(text, "i").alias("oldest_text"),
        F.sort_array(F.collect_set(number)).alias("set"),
        F.count(number).alias("numbers"),
    )


@table("F.min_by F.max_by")
def attributes_of_the_first(spark: SparkSession) -> DataFrame:
    values = [
        (0, 1, {"a": "1"}), (0, 0, None), (0, 2, {"b": None}), (1, 1, None), (1, 2, {"x": "y"}),
        (2, None, {"q": "q"}), (3, None, {"q": "q"}), (3, 1, {"a": "1"}), (4, None, None),
    ]  # fmt: skip
    rows = spark.createDataFrame(values, "case int, o int, m map<string,string>")
    is_later = F.struct(F.col("o").isNull(), F.coalesce("o", F.lit(0)).alias("o"))
    return rows.groupBy("case").agg(
        F.min_by("m", "o").alias("first"),
        F.max_by("m", "o").alias("last"),
        F.min_by("m", is_later).alias("guarded"),
    )


@table("F.collect_list F.sort_array F.get F.map_entries F.map_from_entries")
def attributes_of_the_least(spark: SparkSession) -> DataFrame:
    """A group's structs in order: the last field is NULL, or the entries of a map."""
    values = [
        (0, 1, {"a": "1"}), (0, 0, None), (0, 2, {"b": None}), (1, 1, None), (1, 2, {"x": "y"}),
        (2, 7, {"q": "q"}), (2, 7, {"p": "p"}), (2, 7, None), (3, 1, {}), (4, None, {"z": "z"}),
        (5, 3, {"b": "1", "a": "2"}), (5, 3, {"b": "1"}),
    ]  # fmt: skip
    rows = spark.createDataFrame(values, "case int, o int, m map<string,string>")
    entries = F.sort_array(F.map_entries("m")).alias("m")
    listed = F.collect_list(F.when(F.col("o").isNotNull(), F.struct("o", entries)))
    first = F.get(F.sort_array("listed"), 0)
    return (
        rows.groupBy("case")
        .agg(listed.alias("listed"))
        .select("case", first["o"].alias("o"), F.map_from_entries(first["m"]).alias("m"))
    )


@table("F.min F.max F.collect_set F.unix_micros F.to_date")
def groups_of_instants(spark: SparkSession) -> DataFrame:
    values = [(i % 4, str(i % 2), us) for i, us in enumerate(INSTANTS_US * 2)]
    values += [(4, "0", None), (5, "1", None), (5, "0", 0)]
    rows = spark.createDataFrame(values, "case int, a string, us bigint")
    instant = F.col("t")
    both = F.when(instant.isNotNull(), F.struct("a", "t"))
    home = F.struct(
        F.col("a") == "0", F.coalesce("t", F.timestamp_micros(F.lit(0))).alias("t"), "a"
    )
    return (
        rows.withColumn("t", F.timestamp_micros("us"))
        .groupBy("case")
        .agg(
            F.min("t").alias("first"),
            F.max("t").alias("last"),
            F.unix_micros(F.min("t")).alias("first_us"),
            F.sort_array(F.collect_set(F.to_date("t"))).alias("days"),
            F.sort_array(F.collect_set(both)).alias("cells"),
            F.min(both).alias("least_cell"),
            F.max(F.when(instant.isNotNull(), F.struct("t", "a"))).alias("newest"),
            F.min(home).alias("home"),
            F.min(home)["a"].alias("shard"),
        )
    )


@table(".groupBy .count .distinct")
def groups_by_odd_texts(spark: SparkSession) -> DataFrame:
    rows = spark.createDataFrame([(text,) for text in TEXTS] * 2, "case string")
    return (
        rows.groupBy("case")
        .count()
        .unionByName(rows.distinct().select("case", F.lit(0).cast("bigint").alias("count")))
    )


@table(".groupBy .count .distinct")
def groups_by_instants(spark: SparkSession) -> DataFrame:
    rows = spark.createDataFrame([(us, "s") for us in INSTANTS_US] * 2, "us bigint, shard string")
    cells = rows.select("shard", F.timestamp_micros("us").alias("start"))
    return (
        cells.groupBy("shard", "start")
        .count()
        .select(F.unix_micros("start").alias("case"), "shard", "start", "count")
    )


@table(
    ".partitionBy .orderBy .rangeBetween .over F.row_number F.lag F.max F.min F.count F.sum F.desc"
)
def windows(spark: SparkSession) -> DataFrame:
    groups: tuple[list[tuple[object, object]], ...] = (
        [(1, "a"), (2, "b"), (3, None)], [(None, "x"), (1, "y"), (None, "w")], [(5, "q")],
        [(1, "a"), (1, "b"), (1, "b")], [(None, None), (None, None)],
    )  # fmt: skip
    values = [(g, o, v) for g, group in enumerate(groups) for o, v in group]
    rows = spark.createDataFrame(
        [(i, *value) for i, value in enumerate(values)], "case int, g int, o int, v string"
    )
    of_group = Window.partitionBy("g")
    in_order = of_group.orderBy("o", "v", "case")
    backwards = of_group.orderBy(F.desc("o"), F.col("v").asc_nulls_last(), "case")
    return rows.select(
        "case",
        F.row_number().over(in_order).alias("rank"),
        F.row_number().over(backwards).alias("rank_backwards"),
        F.lag("v").over(in_order).alias("before"),
        F.lag("o").over(backwards).alias("after"),
        F.max("o").over(of_group).alias("greatest"),
        F.min("o").over(of_group).alias("least"),
        F.max(F.col("o") > 1).over(of_group).alias("any"),
        F.max(sequence_key(F.col("v"))).over(of_group).alias("greatest_key"),
        F.count("*").over(of_group).alias("rows"),
        F.sum("o").over(of_group).alias("sum"),
        F.sum("case").over(of_group.orderBy("o")).alias("running"),
        F.min("v").over(of_group.orderBy("o").rangeBetween(0, 0)).alias("least_of_peers"),
        F.min("case").over(of_group.orderBy("o").rangeBetween(0, 0)).alias("first_of_peers"),
    )


@table(".partitionBy .orderBy F.row_number F.lag .desc .asc_nulls_last")
def windows_over_odd_texts(spark: SparkSession) -> DataFrame:
    rows = spark.createDataFrame(
        [(i, i % 2, t) for i, t in enumerate(TEXTS)], "case int, g int, t string"
    )
    of_group = Window.partitionBy("g")
    by_hash = of_group.orderBy(F.xxhash64("t"), "t", "case")
    return rows.select(
        "case",
        F.row_number().over(of_group.orderBy("t", "case")).alias("by_text"),
        F.row_number().over(of_group.orderBy(F.col("t").desc(), "case")).alias("backwards"),
        F.row_number().over(of_group.orderBy(F.col("t").asc_nulls_last(), "case")).alias("last"),
        F.row_number().over(by_hash).alias("by_hash"),
        F.row_number().over(of_group.orderBy(F.length("t"), "t", "case")).alias("by_length"),
        F.row_number().over(Window.partitionBy("t").orderBy("case")).alias("copies"),
        F.lag("t").over(by_hash).alias("before"),
    )


@table(".partitionBy .orderBy F.lag F.max")
def windows_over_instants(spark: SparkSession) -> DataFrame:
    rows = spark.createDataFrame(
        [(i, i % 2, us) for i, us in enumerate(INSTANTS_US)], "case int, g int, us bigint"
    ).withColumn("t", F.timestamp_micros("us"))
    of_group = Window.partitionBy("g")
    in_order = of_group.orderBy("t", "case")
    return rows.select(
        "case",
        F.row_number().over(in_order).alias("rank"),
        F.lag("t").over(in_order).alias("before"),
        F.max("t").over(of_group).alias("last"),
    )
