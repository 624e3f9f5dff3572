"""The numbers of a finished comparison: collected once, then plain values."""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.adapters.collected import collected
from shardaudit.compare.totals import SUMS, ShardTotals, coverage, shard_totals
from shardaudit.model.missing_ids import MissingIds
from shardaudit.model.verdict import Cause, Kind, State, Verdict


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an audit found, over the window and per shard.

    `stamped_anew`: messages that a producer gave another `sent_at` when it sent them again.
    """

    shards: tuple[ShardTotals, ...]
    sums: dict[str, int]
    kinds: dict[str, int]
    missing: tuple[MissingIds, ...]
    stamped_anew: int

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


def outcome_of(
    judged: DataFrame, found: DataFrame, missing: DataFrame, *, stamped_anew: int
) -> Outcome:
    """The numbers of the judged cells, the found (id, kind) pairs, and `missing_ids`."""
    rows = collected(shard_totals(judged))
    shards = tuple(
        ShardTotals(
            shard_id=row.shard_id,
            sums={name: row[name] for name in SUMS},
            lost=row.lost,
            verdicts=frozenset(Verdict(v) for v in row.verdicts),
            is_damaged=row.is_damaged,
            is_quiet=row.is_quiet,
        )
        for row in rows
    )
    counted = (*SUMS, "cells", "by_id", "without_verdict", "impossible")
    kinds = {row.kind: row["count"] for row in collected(found.groupBy("kind").count())}
    return Outcome(
        shards=shards,
        sums={name: sum(row[name] for row in rows) for name in counted},
        kinds=kinds,
        missing=tuple(
            MissingIds(
                row.shard_id, Cause(row.cause), State(row.state), row.ids, row.recoverable_until
            )
            for row in collected(missing)
        ),
        stamped_anew=stamped_anew,
    )


def missing_ids(folded: DataFrame, audit_id: str) -> DataFrame:
    """What the audit found missing: one row per shard, cause and state.

    Input:
        folded: of `compare.findings.folded_findings`.
    Output:
        `shard_id`, `cause`, `state`, `ids`, `recoverable_until` (of the first of them to go).
    """
    found = folded.where(
        (F.col("kind") == Kind.MISSING.value) & (F.col("last_audit_id") == audit_id)
    )
    return found.groupBy("shard_id", "cause", "state").agg(
        F.count("*").alias("ids"), F.min("recoverable_until").alias("recoverable_until")
    )
