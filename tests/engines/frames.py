"""Tables of what is done to whole frames: joins, unions, orders, actions."""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from functools import reduce
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from shardaudit.adapters.engine.held import held, own_rows
from shardaudit.model.tables.audit_tables import AUDITS, CELLS, EVIDENCE, FINGERPRINTS
from shardaudit.store.warehouse import Warehouse
from tests.engines.odd import INSTANTS_US, LONGS, TEXTS
from tests.engines.table import cases, table

LEFT = [
    (None, None, 1), (None, "x", 2), ("a", None, 3), ("a", "x", 4), ("a", "x", 5), ("é", "x", 6),
    ("e\u0301", "x", 7), ("", None, 8), ("", "", 9),
]  # fmt: skip
RIGHT = [
    (None, None, 10), ("a", "x", 40), ("a", None, 30), ("e\u0301", "x", 70), ("", "", 90),
    ("zz", "zz", 99), (None, "x", 20),
]  # fmt: skip
KEY = ["a", "b"]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def both(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    return (
        spark.createDataFrame(LEFT, "a string, b string, l int"),
        spark.createDataFrame(RIGHT, "a string, b string, r int"),
    )


def named(rows: DataFrame, *columns: str) -> DataFrame:
    """The rows with their texts and numbers, NULLs too, as their case."""
    texts = [F.coalesce(F.col(name).cast("string"), F.lit("NULL")) for name in columns]
    return rows.withColumn("case", F.concat_ws("|", *texts))


@table(".join join:inner")
def inner_joins(spark: SparkSession) -> DataFrame:
    left, right = both(spark)
    return named(left.join(right, KEY, how="inner"), *KEY, "l", "r")


@table(".join join:left F.broadcast")
def left_joins(spark: SparkSession) -> DataFrame:
    left, right = both(spark)
    return named(left.join(F.broadcast(right), KEY, how="left"), *KEY, "l", "r")


@table(".join join:full_outer .fillna")
def full_outer_joins(spark: SparkSession) -> DataFrame:
    left, right = both(spark)
    joined = left.join(right, KEY, how="full_outer").fillna(0, subset=["l"])
    return named(joined.fillna("nobody", subset=["a"]), *KEY, "l", "r")


@table(".join join:left_semi")
def semi_joins(spark: SparkSession) -> DataFrame:
    left, right = both(spark)
    return named(left.join(F.broadcast(right), KEY, how="left_semi"), *KEY, "l")


@table(".join join:left_anti")
def anti_joins(spark: SparkSession) -> DataFrame:
    left, right = both(spark)
    return named(left.join(right, KEY, how="left_anti"), *KEY, "l")


@table(".join join:full_outer .alias .withColumn")
def full_outer_joins_of_marked_rows(spark: SparkSession) -> DataFrame:
    left, right = both(spark)
    now = left.withColumn("is_found", F.lit(True)).alias("now")
    before = right.withColumn("is_known", F.lit(True)).alias("before")
    joined = now.join(before, KEY, how="full_outer").select(
        *KEY,
        F.coalesce("is_found", F.lit(False)).alias("is_found"),
        F.col("is_known").isNull().alias("is_new"),
        F.when(F.col("is_found"), F.col("now.l")).otherwise(F.col("before.r")).alias("newest"),
    )
    return named(joined, *KEY, "newest")


@table(".join join:left")
def joins_on_instants_and_odd_texts(spark: SparkSession) -> DataFrame:
    texts = cases(spark, TEXTS, "t string")
    instants = cases(spark, INSTANTS_US, "us bigint").withColumn("t", F.timestamp_micros("us"))
    twice = [
        rows.join(rows.select("t", F.col("case").alias("other")), ["t"], how="left")
        for rows in (texts, instants)
    ]
    by_text = twice[0].withColumn("t", F.hex(F.col("t").cast("binary")))
    by_time = twice[1].withColumn("t", F.unix_micros("t").cast("string"))
    return by_text.unionByName(by_time.select(by_text.columns))


@table(".union .unionByName .distinct .select")
def unions(spark: SparkSession) -> DataFrame:
    """Both sides have the same names and the same types: else one engine tells the wrong type."""
    left, right = both(spark)
    by_place = left.select(*KEY).union(right.select(*KEY)).distinct()
    by_name = left.select(*KEY).unionByName(right.select("b", "a"))
    return named(
        by_place.withColumn("n", F.lit(0)).unionByName(by_name.withColumn("n", F.lit(1))),
        *KEY,
        "n",
    )


@table(".union F.struct type:struct")
def unions_of_structs(spark: SparkSession) -> DataFrame:
    left, right = both(spark)
    some = left.select(F.col("l").alias("case"), F.struct("a", "b").alias("pair"))
    return some.unionByName(
        right.select(F.struct("a", "b").alias("pair"), F.col("r").alias("case"))
    )


@table(".orderBy .limit .desc F.xxhash64")
def first_rows_in_an_order(spark: SparkSession) -> DataFrame:
    rows = cases(spark, [(i % 3, text) for i, text in enumerate(TEXTS)], "n int, t string")
    firsts = (
        rows.orderBy("t", "case").limit(11),
        rows.orderBy(F.col("n").desc(), F.xxhash64("t", F.lit("seed")), "case").limit(17),
        rows.orderBy(F.col("t").asc_nulls_last(), "case").limit(70),
        rows.orderBy("case").limit(0),
    )
    marked = [some.withColumn("which", F.lit(i)) for i, some in enumerate(firsts)]
    together = marked[0].unionByName(marked[1]).unionByName(marked[2]).unionByName(marked[3])
    return together.withColumn("case", F.concat_ws("/", "which", "case"))


@table(".where .filter .drop .withColumns .withColumn .select .columns")
def chosen_rows_and_columns(spark: SparkSession) -> DataFrame:
    left, _ = both(spark)
    doubled = {"l": F.col("l") * 2, "same": F.col("a").eqNullSafe(F.col("b"))}
    chosen = left.where(F.col("a").isNotNull() & (F.col("b") != "")).withColumns(doubled)
    chosen = chosen.filter(F.col("l") > 0)
    return chosen.select("*", F.col("l").alias("case")).drop("b", "not_there")


@table("F.explode F.filter op:[]")
def kinds_of_a_row(spark: SparkSession) -> DataFrame:
    left, _ = both(spark)
    pairs = F.array(
        *(F.struct(F.lit(n).alias("kind"), F.col(n).alias("cause")) for n in ("a", "b"))
    )
    found = left.withColumn("found", F.explode(F.filter(pairs, lambda p: p["cause"].isNotNull())))
    return found.select(
        F.concat_ws("/", "l", "found.kind").alias("case"),
        F.col("found.kind").alias("kind"),
        F.col("found")["cause"].alias("cause"),
    )


@table(".fillna")
def filled_columns(spark: SparkSession) -> DataFrame:
    values = [(None, None, None), (1, 1.5, "a"), (0, -0.0, "")]
    rows = cases(spark, values, "i bigint, d double, t string")
    return rows.fillna(0, subset=["i"]).fillna(2.5, subset=["d"]).fillna("none", subset=["t"])


@table(".localCheckpoint .dtypes .schema .columns")
def kept_rows(spark: SparkSession) -> DataFrame:
    rows = cases(spark, TEXTS, "t string").withColumn("hash", F.xxhash64("t")).localCheckpoint()
    told = [f"{name} {kind}" for name, kind in rows.dtypes] + [f.name for f in rows.schema]
    return rows.withColumn("told", F.lit(", ".join([*told, *rows.columns])))


@table(".collect .first .count .isEmpty .asDict .createDataFrame")
def actions(spark: SparkSession) -> DataFrame:
    rows = cases(spark, TEXTS, "t string")
    in_order, none = rows.orderBy("case"), rows.limit(0)
    there = [(row.case, row["t"]) for row in in_order.collect()]
    first = in_order.first()
    told = (first and first.asDict(), rows.count(), none.isEmpty(), rows.isEmpty(), none.first())
    told_twice = spark.createDataFrame(there, "case int, t string").withColumn(
        "told", F.lit(repr(told))
    )
    return told_twice.where(F.col("t").isNull() | (F.length("t") < 100))


@table(".createDataFrame type:timestamp type:date")
def rows_from_the_driver(spark: SparkSession) -> DataFrame:
    instants = [None if us is None else EPOCH + timedelta(microseconds=us) for us in INSTANTS_US]
    days = [None if instant is None else instant.date() for instant in instants]
    return cases(spark, zip(instants, days, strict=True), "at timestamp, day date")


@table(".createDataFrame type:map type:array type:struct")
def held_rows(spark: SparkSession) -> DataFrame:
    """Of all types that we have, given by the driver, and held by it in between."""
    kinds = (
        "case int, t string, at timestamp, m map<string,string>, l array<bigint>, f double, "
        "s struct<a: string, b: timestamp>"
    )
    instants = [None if us is None else EPOCH + timedelta(microseconds=us) for us in INSTANTS_US]
    values = [
        (n, t, at, *((None,) * 4 if t is None else ({t: None}, [n, None], 0.5, {"a": t, "b": at})))
        for n, (t, at) in enumerate(zip(TEXTS, instants * 9, strict=False))
    ]
    rows = held(own_rows(spark, values, kinds))
    none = held(own_rows(spark, [], kinds))
    return none.unionByName(rows.where(F.col("t").isNull() | (F.length("t") < 100)))


@table(".mapInArrow .range .sortWithinPartitions")
def rows_of_python(spark: SparkSession) -> DataFrame:
    def texts(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        for batch in batches:
            numbers = batch.column(0).to_pylist()
            columns = [pa.array(numbers, pa.int64()), pa.array([TEXTS[n] for n in numbers])]
            yield pa.RecordBatch.from_arrays(columns, ["case", "t"])

    rows = spark.range(0, len(TEXTS), 1, 3).mapInArrow(texts, "case bigint, t string")
    return rows.sortWithinPartitions("t")


@table(".read .load .format .write .mode .save .option .sql .createOrReplaceTempView cast:map")
def rows_of_a_warehouse(spark: SparkSession) -> DataFrame:
    """Appended, put in the place of others, merged: a table with all types that we have."""
    rows = cases(spark, zip(TEXTS, INSTANTS_US * 9, strict=False), "message_id string, us bigint")
    key = F.struct(F.length("message_id").alias("digits"), F.col("message_id").alias("text"))
    whole = rows.where(F.col("message_id").isNotNull()).select(
        F.concat(F.lit("s'"), F.col("case") % 3).alias("stream"),
        "message_id",
        F.concat(F.lit("\\"), "case").alias("shard_id"),
        F.timestamp_micros("us").alias("bucket_start"),
        *(
            F.lit(2**62).alias(name)
            for name in ("bucket_digest", "sent_count", "counted", "own_rows")
        ),
        F.col("us").alias("landed_count"),
        F.when(F.col("case") % 2 == 0, key).alias("counted_key"),
        F.array("message_id", F.lit("")).alias("sent_sequences"),
        F.filter(F.array("message_id"), lambda x: x == "a").alias("landed_sequences"),
        *(
            F.timestamp_micros("us").alias(name)
            for name in ("sent_at", "arrived_at", "first_landed_at")
        ),
        F.lit(None).cast("timestamp").alias("last_landed_at"),
        F.lit(None).cast("string").alias("location"),
        F.lit(None).cast("map<string,string>").alias("attributes"),
        F.lit(date(2026, 11, 1)).alias("sent_day"),
    )
    cells = whole.select(
        F.col("stream").alias("audit_id"),
        *("shard_id", "bucket_start", "landed_count", "bucket_digest"),
    )
    with TemporaryDirectory() as folder:
        warehouse = Warehouse(spark, folder)
        warehouse.append(whole, EVIDENCE)
        some = whole.where(F.col("landed_count") > 0).withColumn("counted", F.lit(1))
        warehouse.merge(some.withColumn("location", F.lit("merged")), EVIDENCE)
        warehouse.append(filled(cells), CELLS)
        others = cells.withColumn("bucket_digest", F.lit(7)).where(F.col("audit_id") == "s'1")
        warehouse.replace(filled(others), CELLS, having={"audit_id": ["s'1"]})
        read = warehouse.read(CELLS).select("shard_id", "sent", "landed", "audit_id")
        kept = warehouse.read(EVIDENCE).join(read, ["shard_id"], how="full_outer")
        return kept.withColumn("case", F.col("shard_id")).localCheckpoint()


@table(".read .load type:timestamp")
def values_alone_in_their_files(spark: SparkSession) -> DataFrame:
    """Of such a file the embedded engine reads the table's statistics, and not the file."""
    instants = [us for us in INSTANTS_US if us is None or us > -(2**61)]
    some = zip((t for t in TEXTS if not t or len(t) < 1000), LONGS * 9, instants * 9, strict=False)
    rows = cases(spark, some, "t string, n bigint, us bigint").select(
        *(F.lit("x").alias(name) for name in ("batch_id", "side")),
        F.col("case").cast("string").alias("stream"),
        *(F.col("t").alias(name) for name in ("location", "shard_id")),
        *(F.col("t").alias(f"{end}_sequence_number") for end in ("max", "min")),
        *(F.timestamp_micros("us").alias(n) for n in ("bucket_start", "last_at", "unnumbered_at")),
        *(F.timestamp_micros("us").alias(n) for n in ("arrived_from", "arrived_until")),
        *(F.col("n").alias(name) for name in ("n", "sum_lo", "sum_hi", "own_n")),
        F.col("n").alias("without_landed_at"),
        F.array("n").alias("latency_counts"),
        F.to_date(F.timestamp_micros("us")).alias("sent_day"),
    )
    with TemporaryDirectory() as folder:
        warehouse = Warehouse(spark, folder)
        warehouse.append(rows.where(F.col("sent_day").isNotNull()), FINGERPRINTS)
        read = warehouse.read(FINGERPRINTS)
        found = [
            read,
            read.where(F.col("n").isin(2**53 + 1, 2**63 - 1, -(2**63), 0)),
            read.where(F.col("max_sequence_number").isin("9" * 129, "e\u0301", "", "\x00")),
            read.where(F.col("last_at") == F.lit(datetime(1970, 1, 1, tzinfo=UTC))),
            read.where(F.col("last_at") > F.lit(datetime(2026, 11, 20, 12, tzinfo=UTC))),
        ]
        marked = [
            rows.withColumn("case", F.concat(F.lit(f"{number}/"), F.col("stream")))
            for number, rows in enumerate(found)
        ]
        return reduce(DataFrame.unionByName, marked).localCheckpoint()


@table(".createDataFrame type:timestamp")
def rows_with_doubles(spark: SparkSession) -> DataFrame:
    """By delta-rs: what has doubles is not read by the engine."""
    doubles = (0.9333333333333333, 0.9184210526315789, 0.1, 1e300, 5e-324, -0.0, None)
    with TemporaryDirectory() as folder:
        warehouse = Warehouse(spark, folder)
        for number, double in enumerate(doubles):
            row = {"audit_id": str(number), "trace_coverage": double, "as_of": EPOCH}
            warehouse.upsert([row], AUDITS)
        read = warehouse.rows(AUDITS, where=pc.field("audit_id") != "")
    told = [(row["audit_id"], row["trace_coverage"], row["as_of"]) for row in read]
    return spark.createDataFrame(told, "case string, share double, as_of timestamp")


def filled(cells: DataFrame) -> DataFrame:
    """The rows as CELLS has them; what they do not have is NULL."""
    given = {"landed": F.col("landed_count"), "sent": F.col("bucket_digest")}
    return cells.select(
        *(
            F.col(name)
            if name in cells.columns
            else given.get(name, F.lit(None)).cast(kind).alias(name)
            for name, kind, _ in CELLS.columns
        )
    )


@table(".read .schema .parquet")
def rows_of_a_parquet_file(spark: SparkSession) -> DataFrame:
    """With the schema given, never guessed; a column that the file does not have is NULL."""
    some = list(zip(range(len(TEXTS)), TEXTS, INSTANTS_US * 9, strict=False))
    names = {"case": pa.int32(), "t": pa.string(), "at": pa.timestamp("us", tz="UTC")}
    columns = zip(names.items(), zip(*some, strict=True), strict=True)
    rows = pa.table({name: pa.array(values, kind) for (name, kind), values in columns})
    kinds = StructType().add("case", "integer").add("t", "string").add("at", "timestamp")
    with TemporaryDirectory() as folder:
        pq.write_table(rows, f"{folder}/x.parquet")
        read = spark.read.schema(kinds.add("none", "long")).parquet(f"{folder}/x.parquet")
        return read.localCheckpoint()
