"""`dedupe run`: of each message one row stays in the sink, the others move to `removed_rows`.

`dedupe remove` does it without the proof, `dedupe verify` is the proof.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.adapters.clock import now as clock_now
from shardaudit.adapters.lake.delta_sink_writer import beside_others
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.gates import Gates
from shardaudit.audit.job import audit
from shardaudit.backfill.dedupe_plan import store_dedupe
from shardaudit.backfill.landing import BackfillSink
from shardaudit.backfill.rules.approval import approver
from shardaudit.backfill.rules.copies import (
    CONTENT,
    COPY,
    DIGEST,
    numbered_copies,
)
from shardaudit.backfill.rules.decode import ID
from shardaudit.backfill.rules.planned import StoredDedupe, WindowState
from shardaudit.ingest.job import ingest_stream
from shardaudit.model.config.settings import Settings
from shardaudit.model.errors import ConfigError
from shardaudit.model.retention import Retention
from shardaudit.model.tables.backfill_tables import DEDUPE_IDS, REMOVED_ROWS
from shardaudit.model.verdict import LIVE, Kind
from shardaudit.model.window import Window
from shardaudit.model.words import messages
from shardaudit.report.progress import NO_PROGRESS, Progress
from shardaudit.store.transitions import findings_in, without_accepted
from shardaudit.store.warehouse import Warehouse


@dataclass(slots=True)
class Dedupe:
    """A run of one stored plan. `now` is the run's --as-of, or the clock.

    Without `gates` it is not verified.
    """

    warehouse: Warehouse
    settings: Settings
    gates: Gates | None
    plan: StoredDedupe
    sink: BackfillSink
    retention: Retention
    now: Callable[[], datetime]
    owner: str
    progress: Progress = NO_PROGRESS

    @property
    def plan_id(self) -> str:
        """The plan's."""
        return self.plan.plan_id

    @property
    def name(self) -> str:
        """The stream's name in the configuration."""
        return self.plan.stream

    @property
    def _sent(self) -> tuple[datetime, datetime]:
        return self.plan.sent_from, self.plan.sent_to

    def remove(self, *, approve_as: str | None) -> None:
        """Approves it, and takes the rows out of the sink. Killed at any moment, it is run again.

        Raises:
            ConfigError: nobody approved it.
            SinkChangedError: other writers changed the rows, try after try.
        """
        if self.plan.state is WindowState.VERIFIED:
            return
        with self.progress.stage("approve"):
            backfill = self.settings.stream(self.name).backfill
            who = approver([self.plan], backfill, asked=approve_as)
            self._save(replace(self.plan, state=WindowState.APPROVED, approved_by=who))
        with self.progress.stage("remove"):
            removed = (self.plan.removed_rows or 0) + beside_others(self._remove)
            self._save(replace(self.plan, state=WindowState.MERGED, removed_rows=removed))

    def verify(self) -> None:
        """Proves it by an audit.

        Raises:
            ConfigError: no run of it began.
        """
        if self.plan.state is WindowState.VERIFIED:
            return
        if self.plan.state in (WindowState.PLANNED, WindowState.CANCELLED):
            wanted = "a plan that `dedupe run` or `dedupe remove` began"
            raise ConfigError("--plan", self.plan_id, wanted)
        with self.progress.stage("verify"):
            left = self._audit_again()
            error = f"{messages(left)} still in the sink more than once" if left else None
            state = WindowState.INCOMPLETE if left else WindowState.VERIFIED
            self._save(replace(self.plan, state=state, error=error))

    def _remove(self) -> int:
        """Counts, keeps and removes; anew where the sink changed in between."""
        self._forget_accepted()
        copies = self._copies(self._ids())
        counted = copies.localCheckpoint()
        extra = counted.where(F.col(COPY) > 1)
        count = extra.count()
        if count:
            # In this order: no row leaves the sink that is not kept.
            self.warehouse.merge(self._kept(extra), REMOVED_ROWS)
            tag = json.dumps({"by": "shardaudit dedupe", "plan_id": self.plan_id})
            self.sink.keep_one(counted, copies, sent=self._sent, tag=tag)
        return count

    def _forget_accepted(self) -> None:
        """Of messages that were accepted since: what a run had kept that died before it removed."""
        kept = self.warehouse.read(REMOVED_ROWS).where(F.col("plan_id") == self.plan_id)
        ids = kept.select("message_id").distinct()
        accepted = ids.join(self._ids().select("message_id"), ["message_id"], how="left_anti")
        if accepted.isEmpty():
            return
        there = self._copies(accepted).select(
            F.col(ID).alias("message_id"),
            F.col(COPY).alias("copy"),
            F.col(DIGEST).alias("row_digest"),
        )
        # Presence only.
        gone = kept.join(there, there.columns, how="left_anti").localCheckpoint()
        self.warehouse.replace(gone, REMOVED_ROWS, having={"plan_id": [self.plan_id]})

    def _copies(self, ids: DataFrame) -> DataFrame:
        """Of `numbered_copies`, of the messages of rows with a `message_id`."""
        wanted = ids.select(F.col("message_id").alias("_sa_wanted"))
        rows = self.sink.rows_of(wanted, key="_sa_wanted", sent=self._sent)
        return numbered_copies(rows, id_column=self.sink.id_column, order=self.sink.landing_order)

    def _ids(self) -> DataFrame:
        """The plan's messages, but those that a person accepted since."""
        ids = self.warehouse.read(DEDUPE_IDS).where(F.col("plan_id") == self.plan_id)
        return without_accepted(self.warehouse, self.name, Kind.DUPLICATED, ids)

    def _kept(self, extra: DataFrame) -> DataFrame:
        return extra.select(
            F.lit(self.plan_id).alias("plan_id"),
            F.lit(self.name).alias("stream"),
            F.col(ID).alias("message_id"),
            F.col(COPY).alias("copy"),
            F.col(DIGEST).alias("row_digest"),
            F.col(CONTENT).alias("content"),
            F.lit(self.now()).alias("removed_at"),
        )

    def _audit_again(self) -> int:
        """Audits the span of the plan; how many of its messages are still found more than once."""
        assert self.gates is not None  # noqa: S101 - or it is not verified
        as_of, clock = self.now(), clock_now()
        ingest_stream(
            self.warehouse, self.settings, self.name, now=max(as_of, clock), progress=NO_PROGRESS
        )
        until = self.plan.sent_to + datetime.resolution
        request = AuditRequest(
            name=self.name,
            stream=self.settings.stream(self.name),
            window=Window(self.plan.sent_from, until),
            as_of=as_of,
            retention=self.retention,
        )
        audit(self.warehouse, request, self.gates, now=clock)
        findings = findings_in(self.warehouse, self.name, Kind.DUPLICATED, *LIVE)
        ids = self._ids().select("message_id")
        return findings.join(ids, ["message_id"], how="left_semi").count()

    def _save(self, plan: StoredDedupe) -> None:
        self.plan = replace(plan, updated_at=self.now(), owner=self.owner)
        store_dedupe(self.warehouse, self.plan)
