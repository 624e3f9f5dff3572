"""Where an audit's row, its cells, findings and gaps are written.

What a night leaves to a later one is added to the row by `late.py`; states that no audit moves are
changed by `store/transitions.py`.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pyarrow.compute as pc
from pyspark.sql import functions as F

from shardaudit.adapters.clock import now
from shardaudit.adapters.lake.delta_rs import Row
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.evidence import Ingested
from shardaudit.audit.judged import Judged, Outcome
from shardaudit.audit.records import stored_watermark
from shardaudit.audit.rules.findings import AuditFacts, transitions
from shardaudit.audit.rules.totals import TOTALS
from shardaudit.columns.instants import in_windows
from shardaudit.ingest.producer_numbers import producer_lines
from shardaudit.model.errors import GateError, InvariantError, SelfCheckError
from shardaudit.model.rates import audit_rates
from shardaudit.model.tables.audit_tables import (
    AUDITS,
    CELLS,
    FINDINGS,
    FINGERPRINTS,
    QUARANTINE,
    TRANSITIONS,
)
from shardaudit.model.tables.gap_tables import GAP_TRANSITIONS, GAPS
from shardaudit.model.tables.table import LATENCY_BINS
from shardaudit.model.verdict import AuditStatus, SelfCheck, Verdict, by_rank
from shardaudit.model.watermark import Watermark
from shardaudit.report.producer_lines import producers_as_json
from shardaudit.report.route_lines import hop_rates, hops_as_json
from shardaudit.report.summary import AuditReport
from shardaudit.store.cell_grid import quantile
from shardaudit.store.found.keep_counts import keep_finding_counts
from shardaudit.store.published import audit_notes, deadline_lines, worst_shards
from shardaudit.store.warehouse import Warehouse

_REJECTIONS = (InvariantError, SelfCheckError, GateError)


@dataclass(frozen=True, slots=True)
class AuditRow:
    """Writes the row of one audit; each save replaces the one before."""

    warehouse: Warehouse
    request: AuditRequest
    state: Ingested
    started_at: datetime

    @contextmanager
    def running(self) -> Iterator[None]:
        """Stores the audit as running; as failed when an error that is no rejection ends it."""
        self._end_the_dead()
        self._save(AuditStatus.RUNNING)
        try:
            yield
        except (Exception, KeyboardInterrupt) as error:
            if not isinstance(error, _REJECTIONS):
                with suppress(Exception):  # the first error is the one to tell
                    self._save(AuditStatus.FAILED)
            raise

    def _end_the_dead(self) -> None:
        """Stores as failed what was killed: who holds the warehouse is the only one that runs."""
        dead = self.warehouse.rows(AUDITS, where=pc.field("status") == AuditStatus.RUNNING)
        if dead:
            ended = [row | {"status": AuditStatus.FAILED, "finished_at": now()} for row in dead]
            self.warehouse.upsert(ended, AUDITS)

    def _save(self, status: AuditStatus) -> None:
        self.warehouse.upsert([self._identity(status)], AUDITS)

    def publish(
        self, outcome: Outcome, *, watermark: Watermark, noted: Sequence[str]
    ) -> AuditReport:
        """Stores the audit as published, with its numbers, and gives them back as a report."""
        request = self.request
        report = replace(
            self._report(AuditStatus.PUBLISHED, outcome, SelfCheck.PASSED),
            watermark=watermark.at,
            watermark_reason=watermark.reason,
            producers=producer_lines(
                self.warehouse, request.name, request.aligned, as_of=request.as_of
            ),
        )
        row = self._finish(report, outcome)
        return replace(
            report, notes=(*noted, *audit_notes(row, outcome.missing, stream=request.stream))
        )

    def reject(self, outcome: Outcome, *, self_check: SelfCheck) -> None:
        """Stores the audit as rejected, with its numbers: the watermark stays where it is."""
        stays = stored_watermark(self.warehouse, self.request.name)
        self._finish(
            replace(self._report(AuditStatus.REJECTED, outcome, self_check), watermark=stays.at),
            outcome,
        )

    def _finish(self, report: AuditReport, outcome: Outcome) -> Row:
        sums = {name: outcome.sums[name] for name in TOTALS}
        p50, p99 = self._latency()
        numbers = {
            "finished_at": now(),
            "latency_p50": p50,
            "latency_p99": p99,
            "verdict": report.verdict.value,
            "trace_coverage": report.trace_coverage,
            "cells_total": report.cells_total,
            "cells_compared_by_id": report.cells_compared_by_id,
            "self_check": report.self_check,
            "watermark": report.watermark,
            "watermark_reason": report.watermark_reason,
            "stamped_anew": outcome.stamped_anew,
            "vanished_until": outcome.vanished_until,
            "unnamed": outcome.sums["unsent_n"],
            "hops": hops_as_json(outcome.hops),
            "producers": producers_as_json(report.producers),
            "shard_verdicts": self._shard_verdicts(outcome),
        }
        row = self._identity(report.status) | sums | numbers
        self.warehouse.upsert([row], AUDITS)
        return row

    def _identity(self, status: str) -> dict[str, object]:
        request = self.request
        return {
            "audit_id": request.audit_id,
            "stream": request.name,
            "window_start": request.aligned.start,
            "window_end": request.aligned.end,
            "as_of": request.as_of,
            "started_at": self.started_at,
            "status": status,
            "engine": self.warehouse.engine,
            "config_digest": request.stream.digest(),
            "inputs": self.state.as_json(shape=request.stream.cell_shape, late_of=request.late_of),
            "retention_s": self._retention_s,
        }

    def _verdicts(self, outcome: Outcome) -> dict[str, Verdict]:
        stream = self.request.stream
        return outcome.shard_verdicts(
            tolerance=stream.tolerance, coverage_floor=stream.trace_coverage_floor
        )

    def _shard_verdicts(self, outcome: Outcome) -> str:
        """Those that the cells do not say, as JSON."""
        said, worst = self._verdicts(outcome), {one.shard_id: one.worst for one in outcome.shards}
        others = {name: of for name, of in said.items() if of is not worst[name]}
        return json.dumps(others, sort_keys=True)

    @property
    def _retention_s(self) -> int:
        return self.request.retention.length // timedelta(seconds=1)

    def _latency(self) -> tuple[float | None, float | None]:
        """How long half and 99 % of the window's rows took to land, seconds, at most."""
        landed = self.warehouse.read(FINGERPRINTS).where(
            (F.col("stream") == self.request.name)
            & (F.col("side") == "sink")
            & in_windows(F.col("bucket_start"), [self.request.aligned])
        )
        bins = (F.sum(F.get("latency_counts", i)).alias(str(i)) for i in range(LATENCY_BINS))
        [sums] = landed.agg(*bins).collect()
        counts = [rows or 0 for rows in sums]
        return quantile(counts, 0.5), quantile(counts, 0.99)

    def _report(self, status: AuditStatus, outcome: Outcome, self_check: SelfCheck) -> AuditReport:
        request, verdicts = self.request, self._verdicts(outcome)
        # A stream of which nothing was ever seen is inconclusive.
        worst = max(verdicts.values(), key=by_rank, default=Verdict.INCONCLUSIVE)
        is_trusted = self_check is SelfCheck.PASSED and status is AuditStatus.PUBLISHED
        refused = self.warehouse.counts(QUARANTINE, by=["stream"], having={"stream": request.name})
        return AuditReport(
            audit_id=request.audit_id,
            stream=request.name,
            window_start=request.aligned.start,
            window_end=request.aligned.end,
            as_of=request.as_of,
            ran_at=self.started_at,
            status=status,
            engine=self.warehouse.engine,
            verdict=worst if is_trusted else Verdict.INCONCLUSIVE,
            counts={name: outcome.sums[name] for name in TOTALS},
            trace_coverage=outcome.trace_coverage,
            self_check=self_check,
            watermark=None,
            watermark_reason=None,
            cells_total=outcome.sums["cells"],
            cells_compared_by_id=outcome.sums["by_id"],
            worst_shards=worst_shards(
                (one.shard_id, verdicts[one.shard_id], one.sums) for one in outcome.shards
            ),
            deadlines=deadline_lines(outcome.missing),
            quarantined=refused.total(),
            notes=(),
            hops=outcome.hops,
            rates=audit_rates(outcome.sums, sample_rate=request.stream.sample_rate),
            place_rates=hop_rates(outcome.hops, sample_rate=request.stream.sample_rate),
        )


def publish(
    warehouse: Warehouse, run: AuditFacts, own: Judged, outcome: Outcome, *, now: datetime
) -> None:
    """Cells, then transitions, then findings: a crash in between leaves what a rerun repeats.

    Gaps come last: the messages of one that is over are findings by then. What is as the tables
    have it is not written again: that the audit saw it, its window says.

    Input:
        own: without the canary; outcome: its numbers.
    """
    cells = own.cells.withColumn("audit_id", F.lit(run.audit_id)).withColumn(
        "stream", F.lit(run.stream)
    )
    of_run = {"audit_id": [run.audit_id]}
    warehouse.replace(cells, CELLS, having=of_run, most=outcome.sums["cells"])
    if outcome.changed:
        warehouse.merge(
            transitions(own.folded, TRANSITIONS, run), TRANSITIONS, most=outcome.changed
        )
    if outcome.folded:
        folded = own.folded.where(F.col("is_news")).withColumn("updated_at", F.lit(now))
        warehouse.merge(folded, FINDINGS, most=outcome.folded)
        keep_finding_counts(warehouse)
    if outcome.gaps:
        gaps = own.gaps.where(F.col("is_news")).withColumn("updated_at", F.lit(now))
        warehouse.merge(
            transitions(own.gaps, GAP_TRANSITIONS, run), GAP_TRANSITIONS, most=outcome.gaps
        )
        warehouse.merge(gaps, GAPS, most=outcome.gaps)
