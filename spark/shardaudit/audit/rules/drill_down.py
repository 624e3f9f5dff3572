"""The ids of the cells that differ: one row per id with the evidence of both sides.

A cell that lacks one id, or has one row too many, differs by that id's hash: so most are named by
their sums. Of other cells `seen` reads what tells ids apart and gives the `suspects`, the few ids
that were not sent once and landed once in one cell. Then everything of the ids that are wanted is
read, in their buckets and on any shard. A difference of several ids may look like that of one: it
is taken for explained only when what was found adds up to it, else the cell is read like others.
Grain: `cell_ids` has one row per (id, cell); `ids` folds those, so that an id that sits in another
cell or shard is one id, not lost + extra.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.columns.ledger_sums import (
    CELL,
    SUMS,
    cell_hash,
    id_hash,
    sequence_key,
    sequence_number,
)
from shardaudit.ingest.rules.fingerprint import fingerprint_sums, trace_arrival

WANTED = ["id_hash", "bucket_start"]  # what is read of ids: an id is told by its hash

_HALF = 1 << 32
_COUNTS = ("sent_count", "counted", "landed_count")
_OF_ALL = ("arrived_at", "first_landed_at", "last_landed_at", "location")  # of all its traces, rows


def difference_hash() -> Column:
    """The hash of the one id by which a cell differs; NULL where it cannot be one id.

    Of a row of `compared_cells`. Source: the two halves of `fingerprint_sums`.
    """
    n, low, high = (F.col(f"sent_{name}") - F.col(f"landed_{name}") for name in SUMS)
    # One too many is one missing with the other sign. Of all others NULL, also on the way: the
    # product of many hashes has no place in a bigint.
    low, high = (F.when(n == 1, half).when(n == -1, -half) for half in (low, high))
    low = F.when((low >= 0) & (low < F.lit(_HALF)), low)
    high = F.when((high >= F.lit(-_HALF // 2)) & (high < F.lit(_HALF // 2)), high)
    return high * F.lit(_HALF) + low


def unexplained(alone: DataFrame, cells: DataFrame, evidence: DataFrame) -> DataFrame:
    """The cells that the ids which were looked up do not explain: they have to be read in full.

    Input:
        alone: `shard_id`, `bucket_start`; cells: of `compared_cells`; both unique on the cell.
        evidence: of `drill_down.cell_ids`, of all ids that were found for the cells.
    Output:
        `shard_id`, `bucket_start`, unique.
    """
    weight = F.col("counted") - F.col("landed_count")
    found = (
        evidence.join(alone.select(*CELL), CELL, how="left_semi")
        .groupBy(*CELL)
        .agg(*fingerprint_sums(id_hash(), weight))
    )
    differences = [F.col(f"sent_{name}") - F.col(f"landed_{name}") for name in SUMS]
    same = [F.col(n).eqNullSafe(lacking) for n, lacking in zip(SUMS, differences, strict=True)]
    return (
        cells.join(alone.select(*CELL), CELL, how="left_semi")
        .join(found, CELL, how="left")
        .where(~(same[0] & same[1] & same[2]))
        .select(*CELL)
    )


def seen(traces: DataFrame, rows: DataFrame, cells: DataFrame) -> DataFrame:
    """What stands in the given cells on both sides: one row per trace and per row of the sink.

    Output:
        `id_hash`, `bucket_start`, `cell` (bigint, of `cell_hash`), `counted`, `landed` (int, 0 or
        1).
    """
    # One long to look up is a third cheaper than a text and a time. Presence only: nothing can
    # multiply, and a cell that has another's hash would be read in full, on both sides.
    wanted = F.broadcast(cells.select(cell_hash()))
    traced = _standing_in(wanted, traces, counted=F.col("counted").cast("int"), landed=F.lit(0))
    landed = _standing_in(wanted, rows, counted=F.lit(0), landed=F.lit(1))
    return traced.unionByName(landed)


def _standing_in(wanted: DataFrame, side: DataFrame, **tells: Column) -> DataFrame:
    near = side.withColumn("cell", cell_hash()).join(wanted, ["cell"], how="left_semi")
    return near.select(id_hash(), "bucket_start", "cell", *(c.alias(n) for n, c in tells.items()))


def unclean(seen: DataFrame) -> DataFrame:
    """The ids that were not counted once and landed once in the same cell: one row per id.

    Output:
        `id_hash`, `counted`, `landed` (bigint: traces that count, rows). An id whose trace or other
        row lies in a cell that was not looked into is among them. Two ids of one hash are one here.
    """
    per_id = seen.groupBy("id_hash").agg(
        F.sum("counted").alias("counted"),
        F.sum("landed").alias("landed"),
        # Read only where both counts are 1: then they are the one cell of each side.
        F.max(F.when(F.col("counted") == 1, F.col("cell"))).alias("counted_cell"),
        F.max(F.when(F.col("landed") == 1, F.col("cell"))).alias("landed_cell"),
    )
    whole = (F.col("counted") == 1) & (F.col("landed") == 1)
    is_clean = whole & F.col("counted_cell").eqNullSafe(F.col("landed_cell"))
    return per_id.where(~is_clean).select("id_hash", "counted", "landed")


def suspects(seen: DataFrame) -> DataFrame:
    """The buckets in which the unclean ids were seen: WANTED, unique."""
    # Unique on the id on the right: presence only.
    return seen.join(unclean(seen), ["id_hash"], how="left_semi").select(*WANTED).distinct()


def without_trace(seen: DataFrame) -> DataFrame:
    """The ids of which a row stands there and nothing else, as of all `unsent`; unique."""
    counts = F.count("*").alias("n"), F.sum("landed").alias("landed")
    per_id = seen.groupBy("id_hash").agg(*counts)
    return per_id.where((F.col("n") == 1) & (F.col("landed") == 1)).select("id_hash")


def unsent(traces: DataFrame, rows: DataFrame, cells: DataFrame) -> DataFrame:
    """The untraced ids that may be only counted: one row in the cells, none elsewhere; unique.

    Input:
        traces, rows: of the buckets of these cells, and of all in which another row is looked for.
    Output:
        `id_hash`, `cell`.
    """
    wanted = F.broadcast(cells.select(cell_hash()))
    none = F.lit(None).cast("bigint").alias("cell")
    landed = rows.select(id_hash(), cell_hash(), F.lit(0).alias("traced"), F.lit(1).alias("landed"))
    traced = traces.select(id_hash(), none, F.lit(1).alias("traced"), F.lit(0).alias("landed"))
    return (
        landed.unionByName(traced)
        .groupBy("id_hash")
        .agg(
            F.sum("traced").alias("traced"),
            F.sum("landed").alias("landed"),
            F.max("cell").alias("cell"),
        )
        .where((F.col("traced") == 0) & (F.col("landed") == 1))
        # Presence only.
        .join(wanted, ["cell"], how="left_semi")
        .select("id_hash", "cell")
    )


def with_hash(ids: DataFrame) -> DataFrame:
    """Rows with a `message_id`, and its `id_hash`."""
    return ids.withColumn("id_hash", id_hash())


def traces_of(traces: DataFrame, wanted: DataFrame) -> DataFrame:
    """All traces of the WANTED in their buckets, in the shape that both sides share.

    Should two ids have one hash, both are read: who is sound is told by its evidence.
    """
    return (
        with_hash(traces)
        .join(wanted, WANTED, how="left_semi")
        .select(
            "message_id",
            *CELL,
            F.lit(1).alias("sent_count"),
            F.col("counted").cast("int").alias("counted"),
            F.lit(0).alias("landed_count"),
            F.lit(0).alias("own_rows"),
            F.col("sequence_number").alias("sent_sequence"),
            F.lit(None).cast("string").alias("landed_sequence"),
            "sent_at",
            trace_arrival().alias("arrived_at"),
            F.lit(None).cast("timestamp").alias("landed_at"),
            "location",
            "attributes",
        )
    )


def rows_of(sink_rows: DataFrame, wanted: DataFrame) -> DataFrame:
    """All rows of the WANTED in their buckets, in the same shape."""
    return (
        with_hash(sink_rows)
        .join(wanted, WANTED, how="left_semi")
        .select(
            "message_id",
            *CELL,
            F.lit(0).alias("sent_count"),
            F.lit(0).alias("counted"),
            F.lit(1).alias("landed_count"),
            F.col("is_own").cast("int").alias("own_rows"),
            F.lit(None).cast("string").alias("sent_sequence"),
            F.col("sequence_number").alias("landed_sequence"),
            "sent_at",
            F.coalesce(F.greatest("sent_at", "arrived_at"), "landed_at").alias("arrived_at"),
            "landed_at",
            F.lit(None).cast("string").alias("location"),
            F.lit(None).cast("map<string,string>").alias("attributes"),
        )
    )


def cell_ids(traces: DataFrame, rows: DataFrame) -> DataFrame:
    """Both sides tagged, united and grouped: one row per (id, cell).

    By lists and no `collect_set` or `min_by`: the embedded engine would keep an object per id and
    aggregate, and of maps count the whole batch that each lies in.

    Output:
        `message_id, shard_id, bucket_start, sent_count, counted, landed_count` (bigint),
        `counted_key` (struct or NULL), `sent_sequences`, `landed_sequences`
        (arrays, sorted), `sent_at` (of the trace that counts, else the least), `arrived_at` (when
        the stream took it, at the latest: of its traces and rows the last `sent_at`, `acked_at`,
        `arrived_at`), `first_landed_at, last_landed_at, location, attributes`, `own_rows` (bigint;
        NULL: none).
    """
    number = F.coalesce("sent_sequence", F.lit("")).alias("number")
    trace = F.struct(number, sorted_entries().alias("attributes"))
    grouped = (
        traces.unionByName(rows)
        .groupBy("message_id", *CELL)
        .agg(
            *(F.sum(name).alias(name) for name in (*_COUNTS, "own_rows")),
            # One trace of an id counts in a bucket.
            F.max(_of_counted("sent_sequence")).alias("counted_number"),
            F.collect_list("sent_sequence").alias("sent_sequences"),
            F.collect_list("landed_sequence").alias("landed_sequences"),
            F.coalesce(F.min(_of_counted("sent_at")), F.min("sent_at")).alias("sent_at"),
            F.max("arrived_at").alias("arrived_at"),
            F.min("landed_at").alias("first_landed_at"),
            F.max("landed_at").alias("last_landed_at"),
            F.min("location").alias("location"),
            F.collect_list(F.when(F.col("sent_count") == 1, trace)).alias("traces"),
        )
    )
    counted = F.col("counted_number")
    return grouped.select(
        "message_id",
        *CELL,
        "sent_count",
        "counted",
        "landed_count",
        F.when(
            counted.isNotNull(), F.struct(F.length(counted).alias("digits"), counted.alias("text"))
        ).alias("counted_key"),
        F.sort_array(F.array_distinct("sent_sequences")).alias("sent_sequences"),
        F.sort_array(F.array_distinct("landed_sequences")).alias("landed_sequences"),
        "sent_at",
        *_OF_ALL,
        F.map_from_entries(F.get(F.sort_array("traces"), 0)["attributes"]).alias("attributes"),
        "own_rows",
    )


def _of_counted(name: str) -> Column:
    return F.when(F.col("counted") == 1, F.col(name))


def ids(cell_ids: DataFrame) -> DataFrame:
    """One row per id, the evidence of all its cells together.

    Output:
        `message_id`; `shard_id`, `bucket_start`: the cell it counts in (that of its counted trace,
        else the least in which it landed); `sent_count, counted, landed_count`; `own_rows` (of
        `landed_count`, of our backfills); `counted_key`; `last_sent_key` (greatest of its traces on
        its shard); `cells` (NULL: it landed); `counted_cells` (sorted: more than one when a
        producer broke the rule of `sent_at`); `landed_pairs` (how many (shard, sequence number) its
        rows have; 0 when the sink knows none); `sequence_numbers` (all, by (length, text));
        `is_moved`; times, location, attributes.
    """
    is_apart = F.size(F.array_intersect("sent_shards", "landed_shards")) == 0
    is_moved = (F.col("sent_count") > 0) & (F.col("landed_count") > 0) & is_apart
    return _folded(cell_ids).select(
        "message_id",
        F.col("home.shard_id").alias("shard_id"),
        F.col("home.bucket_start").alias("bucket_start"),
        "sent_count",
        "counted",
        "landed_count",
        "own_rows",
        sequence_key(F.col("home.counted_number")).alias("counted_key"),
        _last_sent_key().alias("last_sent_key"),
        F.when(F.col("landed_count") == 0, F.col("cells")).alias("cells"),
        F.sort_array("counted_cells").alias("counted_cells"),
        F.size(F.array_distinct(F.flatten("landed_pairs"))).alias("landed_pairs"),
        F.transform(
            F.array_sort(F.transform(F.array_distinct(F.flatten("numbers")), sequence_key)),
            sequence_number,
        ).alias("sequence_numbers"),
        is_moved.alias("is_moved"),
        F.col("home.sent_at").alias("sent_at"),
        *_OF_ALL,
        F.map_from_entries("home.attributes").alias("attributes"),
    )


def _last_sent_key() -> Column:
    """The greatest number that any attempt has on the home shard: numbers compare in a shard."""
    on_home = F.filter("cells", lambda cell: cell["shard_id"] == F.col("home.shard_id"))
    numbers = F.flatten(F.transform(on_home, lambda cell: cell["sent_sequences"]))
    keys = F.transform(numbers, sequence_key)
    return F.get(F.sort_array(keys), F.size(keys) - 1)


def sorted_entries(attributes: str = "attributes") -> Column:
    """The attributes in an order: a map has none, and can be neither compared nor sorted."""
    return F.sort_array(F.map_entries(attributes))


def _folded(cell_ids: DataFrame) -> DataFrame:
    shard = F.col("shard_id")
    landed_pairs = F.transform(
        "landed_sequences", lambda s: F.struct(shard, s.alias("sequence_number"))
    )
    # The first is the home; no two of an id have the same cell.
    in_order = F.struct(
        (F.col("counted") == 0).alias("counts_not"),
        (F.col("sent_count") == 0).alias("sent_not"),
        *CELL,
        F.col("counted_key")["text"].alias("counted_number"),
        "sent_at",
        sorted_entries().alias("attributes"),
        "sent_sequences",
    )
    return (
        cell_ids.groupBy("message_id")
        .agg(
            *(F.sum(name).alias(name) for name in _COUNTS),
            F.coalesce(F.sum("own_rows"), F.lit(0)).alias("own_rows"),
            F.sort_array(F.collect_list(in_order)).alias("cells"),
            F.collect_list(F.when(F.col("counted") > 0, F.struct(*CELL))).alias("counted_cells"),
            F.collect_list(F.when(F.col("sent_count") > 0, shard)).alias("sent_shards"),
            F.collect_list(F.when(F.col("landed_count") > 0, shard)).alias("landed_shards"),
            F.collect_list(landed_pairs).alias("landed_pairs"),
            F.collect_list(F.concat("sent_sequences", "landed_sequences")).alias("numbers"),
            F.max("arrived_at").alias("arrived_at"),
            F.min("first_landed_at").alias("first_landed_at"),
            F.max("last_landed_at").alias("last_landed_at"),
            F.min("location").alias("location"),
        )
        .withColumn("home", F.get("cells", 0))
    )
