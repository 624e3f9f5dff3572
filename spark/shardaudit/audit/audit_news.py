"""Stores what an audit has to tell, once; the DAG's task sends it."""

import pyarrow.compute as pc
from pyspark.sql import functions as F

from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.changes import AuditNews, Change, published_news, rejected_news
from shardaudit.model.audit_id import audit_order
from shardaudit.model.tables.audit_tables import AUDITS, FINDINGS, TRANSITIONS
from shardaudit.model.tables.watch_tables import NOTIFICATIONS
from shardaudit.model.verdict import Kind, Level, State, Verdict
from shardaudit.report.summary import AuditReport
from shardaudit.store.warehouse import Warehouse

_EXAMPLES = 3


def tell_published(warehouse: Warehouse, request: AuditRequest, report: AuditReport) -> None:
    """Stores what changed by a published audit, when something did."""
    changes = _changes(warehouse, report.audit_id)
    news = published_news(
        report,
        changes,
        before=_verdict_before(warehouse, request),
        examples=_examples(warehouse, report.audit_id, changes),
    )
    if news is not None:
        _store(warehouse, request, news)


def tell_rejected(warehouse: Warehouse, request: AuditRequest, reason: Exception) -> None:
    """Stores that an audit was rejected, and why."""
    _store(warehouse, request, rejected_news(request.name, request.audit_id, str(reason)))


def _changes(warehouse: Warehouse, audit_id: str) -> dict[Change, int]:
    """From the stored transitions: an audit that died after them and runs again finds them here."""
    moves = ("kind", "from_state", "to_state")
    return {
        (Kind(kind), before and State(before), State(after)): count
        for (kind, before, after), count in warehouse.counts(
            TRANSITIONS, by=moves, having={"audit_id": audit_id}
        ).items()
    }


def _examples(warehouse: Warehouse, audit_id: str, changes: dict[Change, int]) -> list[str]:
    """The most urgent of the messages that are newly missing."""
    if (Kind.MISSING, None, State.OPEN) not in changes:
        return []
    new = warehouse.read(FINDINGS).where(
        (F.col("first_audit_id") == audit_id)
        & (F.col("kind") == Kind.MISSING.value)
        & (F.col("state") == State.OPEN.value)
    )
    first = new.orderBy("recoverable_until", "message_id").limit(_EXAMPLES)
    return [row.message_id for row in first.select("message_id").collect()]


def _verdict_before(warehouse: Warehouse, request: AuditRequest) -> Verdict | None:
    """That of the last published audit of a window as long as this one."""
    rows = warehouse.rows(
        AUDITS, where=(pc.field("stream") == request.name) & (pc.field("status") == "published")
    )
    span = request.aligned.end - request.aligned.start
    earlier = [
        row
        for row in rows
        if row["window_end"] - row["window_start"] == span
        and row["audit_id"] != request.audit_id
        and row["as_of"] <= request.as_of
    ]
    if not earlier:
        return None
    return Verdict(max(earlier, key=audit_order)["verdict"])


def _store(warehouse: Warehouse, request: AuditRequest, news: AuditNews) -> None:
    """As pending, unless it is stored already: it may have been sent."""
    if warehouse.rows(NOTIFICATIONS, where=pc.field("notification_id") == news.news_id):
        return
    row = {
        "notification_id": news.news_id,
        "stream": request.name,
        "kind": "audit",
        "previous_level": Level.NONE.value,
        "level": news.level.value,
        "text": f"{news.title}\n{news.text}",
        "observed_at": request.as_of,
        "state": "pending",
    }
    warehouse.upsert([row], NOTIFICATIONS)
