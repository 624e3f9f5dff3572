"""The numbers of a finished comparison: collected once, then plain values."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.adapters.collected import collected
from shardaudit.compare.totals import SUMS, ShardTotals, coverage, shard_totals
from shardaudit.model.verdict import Cause, Kind, Verdict
from shardaudit.report.summary import DeadlineLine, ShardLine

WORST_SHARDS = 10
NEAREST_DEADLINES = 10


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an audit found, over the window and per shard."""

    shards: tuple[ShardTotals, ...]
    sums: dict[str, int]
    kinds: dict[str, int]
    deadlines: tuple[DeadlineLine, ...]

    def verdict(self, *, tolerance: float, coverage_floor: float) -> Verdict:
        """The worst of any shard; a stream of which nothing was ever seen is inconclusive."""
        verdicts = [
            shard.verdict(tolerance=tolerance, coverage_floor=coverage_floor)
            for shard in self.shards
        ]
        return min(verdicts, key=list(Verdict).index, default=Verdict.INCONCLUSIVE)

    @property
    def trace_coverage(self) -> float | None:
        """Landed ids with a trace / landed ids; None when none landed."""
        return coverage(self.sums)

    def worst_shards(self, *, tolerance: float, coverage_floor: float) -> tuple[ShardLine, ...]:
        """The shards that are not well, the worst verdict and the most messages first."""
        lines = [
            ShardLine(
                shard_id=shard.shard_id,
                verdict=shard.verdict(tolerance=tolerance, coverage_floor=coverage_floor),
                **{
                    name: shard.sums[name]
                    for name in (
                        "sent",
                        "landed",
                        "missing",
                        "pending",
                        "duplicated",
                        "untraced",
                        "moved",
                    )
                },
            )
            for shard in self.shards
        ]
        order = list(Verdict)
        lines.sort(key=lambda line: (order.index(line.verdict), -line.missing, -line.duplicated))
        return tuple(line for line in lines if not line.verdict.is_good)[:WORST_SHARDS]


def outcome_of(judged: DataFrame, found: DataFrame, deadlines: DataFrame) -> Outcome:
    """The numbers of the judged cells, the found (id, kind) pairs and the deadlines by shard."""
    rows = collected(shard_totals(judged))
    shards = tuple(
        ShardTotals(
            shard_id=row.shard_id,
            sums={name: row[name] for name in SUMS},
            lost=row.lost,
            verdicts=frozenset(Verdict(v) for v in row.verdicts),
            is_damaged=row.is_damaged,
        )
        for row in rows
    )
    counted = (*SUMS, "cells", "by_id", "without_verdict", "impossible")
    kinds = {row.kind: row["count"] for row in collected(found.groupBy("kind").count())}
    return Outcome(
        shards=shards,
        sums={name: sum(row[name] for row in rows) for name in counted},
        kinds=kinds,
        deadlines=tuple(
            DeadlineLine(
                shard_id=row.shard_id,
                kind=Kind.MISSING,
                cause=Cause(row.cause),
                ids=row.ids,
                recoverable_until=row.recoverable_until,
            )
            for row in collected(deadlines.limit(NEAREST_DEADLINES))
        ),
    )


def nearest_deadlines(found: DataFrame, *, retention: timedelta, as_of: datetime) -> DataFrame:
    """Per shard and cause, the messages that can still be saved: soonest first.

    Output:
        `shard_id`, `cause`, `ids`, `recoverable_until` (of the oldest of them).
    """
    deadline = F.col("sent_at") + F.lit(retention)
    return (
        found.where(F.col("kind") == Kind.MISSING.value)
        .withColumn("deadline", deadline)
        .where(F.col("deadline") >= F.lit(as_of))
        .groupBy("shard_id", "cause")
        .agg(F.count("*").alias("ids"), F.min("deadline").alias("recoverable_until"))
        .orderBy("recoverable_until", "shard_id", "cause")
    )
