"""An audit, and the minutes before its window that it can settle: they are audited with it.

A device that was offline sends what it wrote last week, a consumer delivers what it held back for
nine days, a night is left out, a broken file is replaced: no window of the last days would ever
look at it, and Kinesis drops it after a day.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pyarrow.compute as pc

from shardaudit.adapters.lake.delta_rs import Row
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.evidence import ingested
from shardaudit.audit.gates import Gates
from shardaudit.audit.job import audit
from shardaudit.audit.records import in_eras, mend_records, never_used, shard_records
from shardaudit.audit.rules.late_windows import (
    cut_off,
    early_holds,
    given_up,
    judged_over,
    late_windows,
    never_audited,
    still_tried,
)
from shardaudit.audit.rules.watermark import without
from shardaudit.model.audit_id import StoredAudit, audit_order, late_of, published_audits
from shardaudit.model.errors import FinalError
from shardaudit.model.tables.audit_tables import AUDITS, CELLS
from shardaudit.model.verdict import AuditStatus
from shardaudit.model.waiting import Waiting, still_waiting, waiting_from_json
from shardaudit.model.watermark import Held, Hold
from shardaudit.model.window import Window
from shardaudit.report.plain import instant
from shardaudit.report.progress import NO_PROGRESS, Progress
from shardaudit.report.summary import AuditReport
from shardaudit.store.published import audits_beside, with_late
from shardaudit.store.warehouse import Warehouse

log = logging.getLogger(__name__)


def audit_with_late(
    warehouse: Warehouse,
    request: AuditRequest,
    gates: Gates,
    *,
    now: datetime,
    progress: Progress = NO_PROGRESS,
) -> AuditReport:
    """The audit, and one of each span before its window that is not as it was when one looked.

    One of these that is rejected, or fails for good, is told as such, and the others go on.

    Raises:
        As `audit`.
    """
    mend_records(warehouse, request, now=now)
    *older, own = in_eras(warehouse, request)
    night = _Night(warehouse, own)
    # Before the window's own: the record of a stream begins with the first.
    night.audit_all([replace(part, late_of=own.audit_id) for part in older], gates, now=now)
    report = audit(warehouse, own, gates, now=now, progress=progress)
    with progress.stage("audit what came late"):
        if not request.is_to_come(now) and night.is_last:
            night.keep_what_waits(night.audit_all(night.spans(), gates, now=now))
    # From the table: another run of the same request finds nothing late any more.
    return with_late(report, warehouse.rows(AUDITS, where=audits_beside(report)))


@dataclass(frozen=True, slots=True)
class _Night:
    """What an audit has to look at besides its window."""

    warehouse: Warehouse
    request: AuditRequest

    @property
    def is_last(self) -> bool:
        """Whether no audit was as of a later time, or reached further."""
        records = shard_records(self.warehouse, self.request.name).values()
        return not any(
            record.as_of > self.request.as_of or record.audited_until > self.request.aligned.end
            for record in records
        )

    def _late(self, audits: Sequence[Row]) -> list[Window]:
        """The spans that are held, and to be audited."""
        rejected = (
            r for r in audits if late_of(r) is not None and r["status"] != AuditStatus.PUBLISHED
        )
        published = [_looked_at(row) for row in published_audits(audits)]
        return late_windows(
            self._holds(),
            self.request.aligned,
            bucket=self.request.stream.bucket,
            kept_from=self.request.as_of - self.request.retention.length,
            tried=still_tried(map(_looked_at, rejected), published),
        )

    def spans(self) -> list[AuditRequest]:
        """What the audits of the spans are asked, each of one era."""
        own, windows, audits = self.request, list[Window](), self._audits()
        again = cut_off(self._failed(audits), since=self._since, before=own.aligned.start)
        # What was cut off in full, as it may have the same id again; of the rest what it leaves.
        for window in [*again, *self._late(audits)]:
            rest = without([Hold(window.start, window.end, Held.CHANGED)], windows)
            windows += [hold.window for hold in rest]
        return [
            replace(part, known_as=None)
            for window in windows
            for part in replace(
                own,
                window=window,
                late_of=own.audit_id,
                judged_over=judged_over(window, own.aligned),
            ).by_era(own.cells)
        ]

    def audit_all(
        self, requests: list[AuditRequest], gates: Gates, *, now: datetime
    ) -> list[Window]:
        """Audits each of them; the windows of those whose audit did not fail for good."""
        looked_at = []
        for late in requests:
            span = f"{late.name}: {instant(late.window.start)} to {instant(late.window.end)}"
            log.info("%s: not proven complete: audited, too", span)
            try:
                audit(self.warehouse, late, gates, now=now)
            except FinalError as error:
                log.error("%s: %s", span, error)
            else:
                looked_at.append(late.window)
        return looked_at

    def keep_what_waits(self, looked_at: list[Window]) -> None:
        """Notes in the audit's row what had no room, was looked at in vain, or is given up."""
        holds, audits, as_of = self._holds(), self._audits(), self.request.as_of
        left = without(holds, looked_at)
        earlier = [
            row
            for row in published_audits(audits)
            if row["as_of"] < as_of and row["waiting"] is not None
        ]
        last = max(earlier, key=audit_order, default={"waiting": None})["waiting"]
        before = waiting_from_json(last)
        lost = given_up(
            self._failed(audits),
            since=self._since,
            before=self.request.aligned.start,
            held=holds,
        )
        others = without(self._all_holds(), [window for window, _ in lost])
        too_old, known = self._out_of_reach, before.given_up
        lost += never_audited(others, before=too_old, known=known, as_of=as_of)
        waiting = still_waiting(left, before, as_of=as_of, is_night=self._is_whole)
        waiting = replace(waiting, given_up=tuple(lost))
        if waiting == before == Waiting():
            return
        own = [row for row in audits if row["audit_id"] == self.request.audit_id]
        self.warehouse.upsert([row | {"waiting": waiting.as_json()} for row in own], AUDITS)

    def _audits(self) -> list[Row]:
        return self.warehouse.rows(AUDITS, where=pc.field("stream") == self.request.name)

    def _failed(self, audits: Sequence[Row]) -> list[tuple[Window, datetime]]:
        """What audits did not look at to the end, and none since: the last ones first.

        A run that was killed may have ended what held such a span, and not its audit. One for
        itself only behind its cells: what it had not begun to publish is held as unaudited.
        """
        published = [_looked_at(row) for row in published_audits(audits)]
        ordered = sorted(audits, key=audit_order, reverse=True)
        rows = [row for row in ordered if row["status"] == AuditStatus.FAILED]
        if not still_tried(map(_looked_at, rows), published):
            return []
        begun = {file["partition.audit_id"] for file in self.warehouse.files(CELLS)}
        looked = (_looked_at(row) for row in rows if late_of(row) or row["audit_id"] in begun)
        return still_tried(looked, published)

    @property
    def _is_whole(self) -> bool:
        """Whether it looks at as much as a night does, and not at a part of that."""
        own = self.request.aligned
        return own.end - own.start >= self.request.stream.audit_window

    @property
    def _reach(self) -> timedelta:
        return max(self.request.retention.length, self.request.stream.audit_window)

    @property
    def _since(self) -> datetime:
        """What nobody audited is made up for as far back as the stream, or an audit, reaches."""
        return self.request.aligned.start - self._reach

    @property
    def _out_of_reach(self) -> datetime:
        """What nobody audited before then no night makes up for: one is as long as it may be."""
        own = self.request.aligned
        return min(own.start, own.end - self.request.stream.audit_window) - self._reach

    def _all_holds(self) -> list[Hold]:
        """Of all shards, but for `never_used`."""
        name = self.request.name
        records = shard_records(self.warehouse, name).values()
        holds = [hold for record in records for hold in record.holds]
        return without(holds, never_used(self.warehouse, name, records), of=[Held.UNAUDITED])

    def _holds(self) -> list[Hold]:
        holds, own = self._all_holds(), self.request.aligned
        damage: list[Window] = []
        # Not looked for where it holds nothing.
        if any(hold.why is Held.DAMAGED and hold.start < own.start for hold in holds):
            found = ingested(self.warehouse, self.request.name).damage
            damage = [Window(*span) for span in found.traces + found.sink]
        return early_holds(holds, own, since=self._since, damage=damage)


def _looked_at(row: StoredAudit) -> tuple[Window, datetime]:
    return Window(row["window_start"], row["window_end"]), row["as_of"]
