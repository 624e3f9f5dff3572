"""What an audit has to tell people: what changed since the one before. Stored once, sent later.

`watch/notify.py` sends it with what the watch has to tell, by `adapters/notifiers.py`.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow.compute as pc
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.columns.instants import in_windows
from shardaudit.model.audit_id import StoredAudit, audit_order, late_of
from shardaudit.model.tables.audit_tables import AUDITS, CELLS, FINDINGS, TRANSITIONS
from shardaudit.model.tables.gap_tables import GAP_TRANSITIONS, GAPS
from shardaudit.model.tables.watch_tables import NOTIFICATIONS
from shardaudit.model.verdict import AuditStatus, Kind, Level, State, Verdict, by_rank
from shardaudit.model.window import Window, joined
from shardaudit.model.words import messages, time_left
from shardaudit.report.held_back import complete_until
from shardaudit.report.plain import MAX_SHOWN, gap_line, harmless, instant
from shardaudit.report.summary import AuditReport
from shardaudit.store.audits import published_of
from shardaudit.store.cell_grid import Segment, audit_spans, newest_segments
from shardaudit.store.warehouse import Warehouse

StateChange = tuple[Kind, State | None, State]  # from which state (None: a new finding) to which

_BAD = {
    Kind.MISSING: "missing",
    Kind.DUPLICATED: "landed more than once",
    Kind.UNTRACED: "landed without a trace",
    Kind.MOVED: "landed on another shard than traced",
}
_GOOD = {State.RECOVERED: "recovered", State.FALSE_ALARM: "arrived after all"}

_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class AuditNews:
    """One message about one audit. `news_id` is the same however often it is made or sent."""

    news_id: str
    level: Level
    title: str
    text: str


def published_news(
    report: AuditReport,
    changes: Mapping[StateChange, int],
    *,
    before: Verdict | None,
    examples: Sequence[str],
    gaps: Sequence[str],
) -> AuditNews | None:
    """What a published audit tells; None when nothing changed.

    Input:
        changes: how many findings went from which state to which.
        before: the verdict before, of the same minutes or the last window.
        examples: ids of messages that are newly missing; gaps: sentences about new gaps.
    """
    worse, better = _worse(changes), _better(changes)
    verdict = _verdict(report.verdict, before)
    if not (worse or better or verdict):
        return None
    headline = ", ".join([*worse, *better]) or verdict
    shown = [f"for example {_cut(example)}" for example in examples]
    lines = [*worse, *gaps, *shown, *better, verdict, _deadline(report), _about(report)]
    lines += [complete_until(report.watermark, report.watermark_reason), *report.notes]
    return AuditNews(
        news_id=_news_id(report.stream, report.audit_id, report.status),
        level=_level(worse, report),
        title=f"shardaudit: {report.stream} is {report.verdict.upper()}: {headline}",
        text="\n".join(harmless(line) for line in lines if line),
    )


def rejected_news(stream: str, audit_id: str, reason: str) -> AuditNews:
    """What a rejected audit tells: nothing new is known, the last good verdict stays."""
    return AuditNews(
        news_id=_news_id(stream, audit_id, AuditStatus.REJECTED),
        level=Level.WARN,
        title=f"shardaudit: the audit of {stream} is rejected, its last good verdict stays",
        text=harmless(reason),
    )


def _worse(changes: Mapping[StateChange, int]) -> list[str]:
    found = []
    for kind, meaning in _BAD.items():
        for state, more in ((State.OPEN, ""), (State.EXPIRED, ", and gone from the stream")):
            new = changes.get((kind, None, state), 0)
            if new:
                found.append(f"{messages(new)} newly {meaning}{more}")
        closed = (state for state in State if state is not State.EXPIRED)
        again = sum(changes.get((kind, state, State.OPEN), 0) for state in closed)
        if again:
            found.append(f"{messages(again)} {meaning} again")
    expired = sum(changes.get((Kind.MISSING, state, State.EXPIRED), 0) for state in State)
    return [*found, f"{messages(expired)} left the stream for good"] if expired else found


def _better(changes: Mapping[StateChange, int]) -> list[str]:
    counts = {
        meaning: sum(n for (_, _, to), n in changes.items() if to is state)
        for state, meaning in _GOOD.items()
    }
    # The retention is longer than was known.
    counts["can be read again after all"] = changes.get(
        (Kind.MISSING, State.EXPIRED, State.OPEN), 0
    )
    return [f"{messages(count)} {meaning}" for meaning, count in counts.items() if count]


def _verdict(now: Verdict, before: Verdict | None) -> str:
    was_good = before is None or before.is_good
    if now is before or (now.is_good and was_good):
        return ""
    return f"the verdict is {now}" if before is None else f"the verdict was {before} and is {now}"


def _deadline(report: AuditReport) -> str:
    if not report.deadlines:
        return ""
    line = min(report.deadlines, key=lambda line: line.recoverable_until)
    left = time_left(line.recoverable_until - report.left_by)
    return (
        f"nearest deadline: {messages(line.ids)} of {line.shard_id} leave the stream from "
        f"{instant(line.recoverable_until)} on ({left})"
    )


def _about(report: AuditReport) -> str:
    window = f"{instant(report.window_start)} to {instant(report.window_end)}"
    return f"audit {report.audit_id}: {window}, as of {instant(report.as_of)}"


def _level(worse: Sequence[str], report: AuditReport) -> Level:
    if report.verdict.is_good:
        return Level.NOTICE if worse else Level.NONE
    return Level.WARN


def _cut(message_id: str) -> str:
    return message_id if len(message_id) <= MAX_SHOWN else f"{message_id[: MAX_SHOWN - 1]}…"


def _news_id(stream: str, audit_id: str, status: str) -> str:
    identity = "\n".join(("audit", stream, audit_id, status))
    return hashlib.sha256(identity.encode()).hexdigest()[:24]


def tell_published(warehouse: Warehouse, request: AuditRequest, report: AuditReport) -> None:
    """Stores what changed by a published audit, when something did."""
    changes = _changes(warehouse, report.audit_id)
    news = published_news(
        report,
        changes,
        before=_verdict_before(warehouse, request),
        examples=_examples(warehouse, report.audit_id, changes),
        gaps=_new_gaps(warehouse, report.audit_id, changes),
    )
    if news is not None:
        _store(warehouse, request, news)


def tell_rejected(warehouse: Warehouse, request: AuditRequest, reason: Exception) -> None:
    """Stores that an audit was rejected, and why."""
    _store(warehouse, request, rejected_news(request.name, request.audit_id, str(reason)))


def _changes(warehouse: Warehouse, audit_id: str) -> dict[StateChange, int]:
    """From the stored transitions: an audit that died after them and runs again finds them here."""
    transition = ("kind", "from_state", "to_state")
    found = Counter(
        {
            (Kind(kind), before and State(before), State(after)): count
            for (kind, before, after), count in warehouse.counts(
                TRANSITIONS, by=transition, having={"audit_id": audit_id}
            ).items()
        }
    )
    for row in warehouse.rows(GAP_TRANSITIONS, where=pc.field("audit_id") == audit_id):
        before = row["from_state"] and State(row["from_state"])
        found[Kind.MISSING, before, State(row["to_state"])] += row["count"]
    return found


def _examples(warehouse: Warehouse, audit_id: str, changes: dict[StateChange, int]) -> list[str]:
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


def _new_gaps(warehouse: Warehouse, audit_id: str, changes: Mapping[StateChange, int]) -> list[str]:
    """The greatest new gaps, shard by shard, one sentence each."""
    if (Kind.MISSING, None, State.OPEN) not in changes:
        return []
    new = warehouse.read(GAPS).where(
        (F.col("first_audit_id") == audit_id) & (F.col("state") == State.OPEN.value)
    )
    by_shard = new.groupBy("stream", "shard_id").agg(
        F.count("*").alias("gaps"),
        F.sum("count").alias("ids"),
        F.min("bucket_start").alias("start"),
        F.max("bucket_end").alias("end"),
    )
    return [
        gap_line(row.shard_id, row.gaps, row.ids, window=Window(row.start, row.end))
        for row in collected(by_shard.orderBy(F.desc("ids"), "shard_id").limit(_EXAMPLES))
    ]


def _verdict_before(warehouse: Warehouse, request: AuditRequest) -> Verdict | None:
    """What was said before: of the same minutes, by the newest audits that looked at them.

    A window that moves on has minutes of which nothing was said: before it was the last one of its
    length, late ones aside. None: there was nothing.
    """
    rows = warehouse.rows(AUDITS, where=published_of(request.name))
    earlier = {
        row["audit_id"]: row
        for row in rows
        if row["audit_id"] != request.audit_id and row["as_of"] <= request.as_of
    }
    window = request.aligned
    segments = newest_segments(audit_spans(earlier.values()), window)
    looked_at = joined(Window(segment.start, segment.end) for segment in segments)
    if request.late_of is None and looked_at != [window]:
        alike = [
            row for row in earlier.values() if late_of(row) is None and _is_as_long(row, window)
        ]
        return Verdict(max(alike, key=audit_order)["verdict"]) if alike else None
    said = [
        _said_there(warehouse, segment, Verdict(earlier[segment.audit_id]["verdict"]))
        for segment in segments
    ]
    return max(said, key=by_rank, default=None)


def _is_as_long(row: StoredAudit, window: Window) -> bool:
    return bool(row["window_end"] - row["window_start"] == window.end - window.start)


def _said_there(warehouse: Warehouse, part: Segment, whole: Verdict) -> Verdict:
    """What an audit said of a part of its window: no worse than of all, where some is tolerated."""
    if whole.is_good:
        return whole
    cells = warehouse.read(CELLS).where(
        (F.col("audit_id") == part.audit_id)
        & in_windows(F.col("bucket_start"), [Window(part.start, part.end)])
    )
    found = [Verdict(row.verdict) for row in cells.select("verdict").distinct().collect()]
    return min(whole, max(found, key=by_rank, default=whole), key=by_rank)


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
