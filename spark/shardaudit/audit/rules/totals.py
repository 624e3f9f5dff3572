"""Cells to shards to one verdict, and whether the numbers of a result add up."""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.audit.rules.classify import COUNTS
from shardaudit.columns.ledger_sums import CELL, cell_hash, is_any
from shardaudit.ingest.rules.placed_rows import UNKNOWN_SHARD
from shardaudit.model.rates import due_ids
from shardaudit.model.verdict import Verdict, by_rank

TOTALS = ("sent", "landed", "matched", *COUNTS)
_COVERED = ("matched", "untraced")


@dataclass(frozen=True, slots=True)
class Around:
    """What else there is of a shard in the time of which a window of few minutes is a part.

    `due`: what was sent, without what filters of the route left out.
    """

    due: int = 0
    lost: int = 0
    matched: int = 0
    untraced: int = 0


@dataclass(frozen=True, slots=True)
class ShardTotals:
    """What a shard's cells add up to over the window. `trace_coverage`: of `shard_coverages`.

    `around`: what counts besides where a share is asked for: in a few minutes one message is much.
    """

    shard_id: str
    sums: dict[str, int]
    lost: int
    verdicts: frozenset[Verdict]
    is_damaged: bool
    is_doubtful: bool
    trace_coverage: float | None
    around: Around = Around()

    @property
    def traced(self) -> dict[str, int]:
        """`matched` and `untraced`, with what is around."""
        beside = self.around
        return {
            "matched": self.sums["matched"] + beside.matched,
            "untraced": self.sums["untraced"] + beside.untraced,
        }

    @property
    def worst(self) -> Verdict:
        """The worst verdict of the shard's cells."""
        return max(self.verdicts, key=by_rank)

    def verdict(self, *, tolerance: float, coverage_floor: float) -> Verdict:
        """The worst verdict of the shard's cells, after what the configuration tolerates."""
        return max(self._standing(tolerance, coverage_floor), key=by_rank)

    def _standing(self, tolerance: float, coverage_floor: float) -> set[Verdict]:
        standing = set(self.verdicts)
        due = due_ids(self.sums)
        lost = self.lost + self.around.lost
        if lost <= tolerance * (due + self.around.due):
            if Verdict.MIXED in standing:
                standing.add(Verdict.DUPLICATION)
            standing -= {Verdict.LOSS, Verdict.MIXED}
        covered = self.trace_coverage is None or self.trace_coverage >= coverage_floor
        if self.is_damaged or self.is_doubtful:
            standing.add(Verdict.INCONCLUSIVE)  # whatever is tolerated of the same cells
        elif Verdict.INCONCLUSIVE in standing and covered:
            # A cell of ten messages is below any floor by one lost trace; the shard is not.
            standing = (standing - {Verdict.INCONCLUSIVE}) | {Verdict.UNTRACED}
        return standing or {Verdict.OK}


def coverage(sums: Mapping[str, int]) -> float | None:
    """Landed ids with a trace / landed ids; None when none landed."""
    landed_ids = sum(sums[name] for name in _COVERED)
    return sums["matched"] / landed_ids if landed_ids else None


def shard_coverages(sums: Mapping[str, Mapping[str, int]]) -> dict[str, float | None]:
    """By shard, the `coverage` by which it is judged.

    What has neither a shard nor a trace is of the stream: it counts when that is thin as a whole.

    Input:
        sums: of each shard, over the window.
    """
    found = {shard_id: coverage(of_shard) for shard_id, of_shard in sums.items()}
    if UNKNOWN_SHARD in found:
        found[UNKNOWN_SHARD] = coverage(
            {name: sum(one[name] for one in sums.values()) for name in _COVERED}
        )
    return found


def shard_totals(judged: DataFrame) -> DataFrame:
    """One row per shard: the sums of its cells and what decides its verdict.

    Output:
        `shard_id`, the names in `TOTALS`, `lost` and `unsent_n` (bigint), `verdicts` (array),
        `is_damaged`, `is_doubtful`, `cells`, `by_id`, `without_verdict`, `impossible` (bigint),
        `vanished_until` (timestamp or NULL: the end of the last cell from which rows are gone).
    """
    return judged.groupBy("shard_id").agg(
        *(F.sum(name).alias(name) for name in (*TOTALS, "lost", "unsent_n")),
        F.sort_array(F.collect_set("verdict")).alias("verdicts"),
        is_any(F.col("is_damaged")).alias("is_damaged"),
        is_any(F.col("is_doubtful")).alias("is_doubtful"),
        F.count("*").alias("cells"),
        F.count_if(F.col("compared") == "ids").alias("by_id"),
        F.count_if(F.col("verdict").isNull()).alias("without_verdict"),
        F.count_if(
            F.least(*("matched", "pending", "filtered", "sent", "landed", "vanished", "gap_count"))
            < 0
        ).alias("impossible"),
        F.max(F.when(F.col("vanished") > 0, F.col("bucket_end"))).alias("vanished_until"),
    )


def disagreeing_cells(seen: DataFrame, cells: DataFrame, drilled: DataFrame) -> DataFrame:
    """Cells that were read by id and in which the rows are not those that the ledger counted.

    No row means that ledger, traces and sink tell of the same rows.

    Input:
        seen: of `drill_down.seen`, without the ids that are only counted.
    """
    sums = (F.sum("counted").alias("counted"), F.sum("landed").alias("rows"))
    read = seen.groupBy("cell").agg(*sums)
    # All three are unique on the cell.
    return (
        cells.join(F.broadcast(drilled), CELL, how="left_semi")
        .withColumn("cell", cell_hash())
        .join(read, ["cell"], how="left")
        .fillna(0, subset=["counted", "rows"])
        .withColumn("rows", F.col("rows") + F.col("unsent_n"))
        .where((F.col("counted") != F.col("sent_n")) | (F.col("rows") != F.col("landed_n")))
        .select(*CELL, "sent_n", "counted", "landed_n", "rows")
    )


def broken_invariants(sums: dict[str, int], kinds: dict[str, int]) -> list[str]:
    """What does not add up, one sentence each; none when all is well.

    Input:
        sums: over the window, the names in `TOTALS`, and `cells`, `grid_cells`, `without_verdict`,
        `impossible`; kinds: of `Outcome`.
    """
    equations = {
        "sent = matched + missing + pending + filtered": (
            sums["sent"],
            sums["matched"] + sums["missing"] + sums["pending"] + sums["filtered"],
        ),
        "landed = matched - vanished + extra rows + untraced": (
            sums["landed"],
            sums["matched"] - sums["vanished"] + sums["extra_rows"] + sums["untraced"],
        ),
        "every cell of the grid is there once": (sums["cells"], sums["grid_cells"]),
        "every cell has a verdict": (sums["without_verdict"], 0),
        "no count is below zero": (sums["impossible"], 0),
        **{
            f"the findings of kind {kind} are the cells' sum": (kinds.get(kind, 0), sums[kind])
            for kind in ("missing", "duplicated", "untraced", "moved")
        },
    }
    return [f"{name} ({a} against {b})" for name, (a, b) in equations.items() if a != b]
