"""Which clean cells are read by id all the same, and what an earlier audit already read.

A row of EVIDENCE carries the digest of its bucket's ledger. While that is the same, neither side of
the bucket changed on any shard, and its cells are not read again: the nightly audit of a week reads
what came in a day.
"""

from dataclasses import dataclass
from datetime import timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.audit.rules.drill_down import WANTED, sorted_entries, with_hash
from shardaudit.columns.ledger_sums import CELL, SUMS
from shardaudit.model.tables.audit_tables import EVIDENCE


def sampled_cells(cells: DataFrame, *, seed: str, size: int) -> DataFrame:
    """Some clean cells: `shard_id`, `bucket_start`. Another seed, other cells.

    Of as few buckets as possible, so that few files have to be opened.

    Input:
        cells: of `compared_cells`.
    """
    return (
        cells.where(~F.col("differs") & (F.col("sent_n") > 0))
        .orderBy(F.xxhash64("bucket_start", F.lit(seed)), F.xxhash64("shard_id", F.lit(seed)))
        .limit(size)
        .select(*CELL)
    )


def with_neighbours(cells: DataFrame, *, bucket: timedelta) -> DataFrame:
    """The cells and those before and after them in time on the same shard; each once."""
    start, width = F.col("bucket_start"), F.lit(bucket)
    starts = F.array(start - width, start, start + width)
    return cells.select("shard_id", F.explode(starts).alias("bucket_start")).distinct()


def with_bucket_digest(cells: DataFrame, sums: DataFrame) -> DataFrame:
    """The cells with `bucket_digest`: another one as soon as a batch touched a cell of the bucket.

    Of the whole bucket, as an id may have something on any shard: a trace that another shard counts
    leaves the sums of its own cell as they were.

    Input:
        cells: of `compared_cells`; sums: of `cell_sums`, those that the cells were made of.
    """
    counted = [f"{side}_{n}" for side in ("sent", "landed") for n in SUMS]
    touched = F.xxhash64("shard_id", *counted, "ledger_rows")
    # XOR is safe here: the shard is in the hash, so that no two are equal.
    digests = sums.groupBy("bucket_start").agg(F.bit_xor(touched).alias("bucket_digest"))
    # Unique on the bucket on the right, by its grouping.
    found = cells.join(digests, ["bucket_start"], how="left")
    return found.fillna(0, subset=["bucket_digest"])


@dataclass(frozen=True, slots=True)
class Carried:
    """What need not be read again, and what must be.

    `evidence`: rows of ids in buckets that did not change. `covered`: the differing cells that they
    speak for. `stale`: WANTED, of ids in buckets that did; of these all is read again.
    """

    evidence: DataFrame
    covered: DataFrame
    stale: DataFrame


def judged_evidence(stored: DataFrame, cells: DataFrame) -> DataFrame:
    """The stored evidence with `holds` and `differs`: what its buckets are now.

    Input:
        stored: EVIDENCE rows of the stream; those outside the grid of `cells` fall away.
        cells: of `compared_cells` with `bucket_digest`, unique on the cell.
    """
    now = cells.select(*CELL, "differs", F.col("bucket_digest").alias("digest_now"))
    # Evidence of an earlier version does not say when the stream took the id.
    is_whole = F.col("arrived_at").isNotNull()
    holds = (F.col("bucket_digest") == F.col("digest_now")) & is_whole
    return stored.join(now, CELL, how="inner").withColumn("holds", holds).drop("digest_now")


def carried(judged: DataFrame) -> Carried:
    """Sorts `judged_evidence` by whether its buckets are what they were."""
    hashed = with_hash(judged)
    stale = hashed.where(~F.col("holds")).select(*WANTED).distinct()
    return Carried(
        evidence=hashed.join(stale, WANTED, how="left_anti").drop("holds", "differs", "id_hash"),
        covered=judged.where(F.col("holds") & F.col("differs")).select(*CELL).distinct(),
        stale=stale,
    )


def changed_days(before: DataFrame, after: DataFrame) -> DataFrame:
    """The days of which the rows are not the same before and after.

    Input:
        before, after: EVIDENCE.
    Output:
        `sent_day`, unique; `rows` (bigint): how many there are after.
    """
    entries = sorted_entries().alias("attributes")
    values = [entries if name == "attributes" else F.col(name) for name in EVIDENCE.names]
    none, one = (F.lit(n).cast("bigint") for n in (0, 1))
    each = before.select(*values, one.alias("was"), none.alias("is")).unionByName(
        after.select(*values, none.alias("was"), one.alias("is"))
    )
    alike = each.groupBy(*EVIDENCE.names).agg(F.sum("was").alias("was"), F.sum("is").alias("is"))
    days = alike.groupBy("sent_day").agg(
        F.sum("is").alias("rows"), F.count_if(F.col("was") != F.col("is")).alias("others")
    )
    return days.where(F.col("others") > 0).select("sent_day", "rows")
