"""What an earlier audit already read: evidence that holds as long as the ledger of its cells does.

A row of EVIDENCE carries the digest of its cell's ledger. While that is the same, neither side of
the cell changed, and the cell is not read again: the nightly audit of a week reads what came in a
day.
"""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.compare.drill_down import CELL

ID = ["message_id", "bucket_start"]


def ledger_digest(cells: DataFrame) -> DataFrame:
    """The cells with `cell_digest`: another one as soon as any batch touched the cell."""
    counted = [f"{side}_{n}" for side in ("sent", "landed") for n in ("n", "sum_lo", "sum_hi")]
    return cells.withColumn("cell_digest", F.xxhash64(*counted, "ledger_rows"))


@dataclass(frozen=True, slots=True)
class Carried:
    """What need not be read again, and what must be.

    `evidence`: rows of ids of which no cell changed. `covered`: the differing cells that they speak
    for. `stale`: (message id, bucket) of ids of which a cell changed; they are read again.
    """

    evidence: DataFrame
    covered: DataFrame
    stale: DataFrame


def judged_evidence(stored: DataFrame, cells: DataFrame) -> DataFrame:
    """The stored evidence with `holds` and `differs`: what its cells are now.

    Input:
        stored: EVIDENCE rows of the stream; those outside the grid of `cells` fall away.
        cells: of `compared_cells` with `cell_digest`, unique on the cell.
    """
    now = cells.select(*CELL, "differs", F.col("cell_digest").alias("digest_now"))
    holds = F.col("cell_digest") == F.col("digest_now")
    return stored.join(now, CELL, how="inner").withColumn("holds", holds).drop("digest_now")


def carried(judged: DataFrame) -> Carried:
    """Sorts `judged_evidence` by whether its cells are what they were."""
    stale = judged.where(~F.col("holds")).select(*ID).distinct()
    return Carried(
        evidence=judged.join(stale, ID, how="left_anti").drop("holds", "differs"),
        covered=judged.where(F.col("holds") & F.col("differs")).select(*CELL).distinct(),
        stale=stale,
    )
