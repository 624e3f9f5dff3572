"""Audits again what a backfill wrote, and settles its findings and windows."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.adapters.engine.held import own_rows
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.gates import Gates
from shardaudit.audit.job import audit
from shardaudit.backfill.ledger import sent_range
from shardaudit.backfill.rounds import SOURCE, Replay
from shardaudit.backfill.rules.plan import ASKED_FOR
from shardaudit.backfill.rules.planned import StoredWindow, WindowState
from shardaudit.ingest.job import ingest_stream
from shardaudit.model.config.settings import Settings
from shardaudit.model.gate import SummaryRow
from shardaudit.model.tables.audit_tables import CELLS, FINDINGS, QUARANTINE
from shardaudit.model.verdict import Kind, State, Verdict
from shardaudit.model.window import Window
from shardaudit.report.plain import counted, messages
from shardaudit.report.progress import SILENT, Progress
from shardaudit.store.transitions import change_state

AskedRange = tuple[StoredWindow, Window]  # of a range by hand: when its messages were sent
LEFT = (State.OPEN.value, State.PLANNED.value, State.REPLAYED.value)


@dataclass(frozen=True, slots=True)
class Proof:
    """Of a window's messages: how many are there by now, expired, or still missing.

    `gone`: of the missing ones, those that reached the stream before its oldest record.
    `unsettled`: cells of which the audit cannot say yet that nothing is missing.
    `unjudged`: cells of which it cannot say so at all; `reason` is that of one of them.
    """

    back: int = 0
    expired: int = 0
    left: int = 0
    gone: int = 0
    unsettled: int = 0
    unjudged: int = 0
    reason: str = ""

    def __add__(self, other: "Proof") -> "Proof":
        return Proof(
            self.back + other.back,
            self.expired + other.expired,
            self.left + other.left,
            self.gone + other.gone,
            self.unsettled + other.unsettled,
            self.unjudged + other.unjudged,
            self.reason or other.reason,
        )


def proofs(replay: Replay, audit_id: str) -> dict[str, Proof]:
    """By window: of its planned messages, and where a range was asked for, of all that lie in it.

    Input:
        audit_id: of an audit of exactly the plan's time.
    """
    windows = replay.ledger.windows
    found: dict[str, Proof] = defaultdict(Proof)
    for window_id, proof in _of_planned(replay, windows):
        found[window_id] += proof
    asked = [(w, w.sent) for w in windows if w.because == ASKED_FOR and w.sent is not None]
    if asked:
        for window_id, proof in [*_of_others(replay, asked), *_of_cells(replay, asked, audit_id)]:
            found[window_id] += proof
    return {window.window_id: found[window.window_id] for window in windows}


def _of_planned(replay: Replay, stored: Sequence[StoredWindow]) -> list[tuple[str, Proof]]:
    # Unique on message_id on both sides: the key of findings within a stream and kind, and that
    # of the ids within a plan.
    states = replay.planned_ids().join(
        _missing(replay).select("message_id", "state"), ["message_id"], how="inner"
    )
    windows = _begins(replay, stored)
    arrived = F.coalesce("acked_at", "sent_at")
    judged = states.join(windows, ["window_id"], how="left")
    return _counted(judged, arrived)


def _of_others(replay: Replay, asked: Sequence[AskedRange]) -> list[tuple[str, Proof]]:
    """The messages in the ranges that nobody knew to be missing when the plan was made."""
    found = _in_parts(replay, asked, _missing(replay), F.col("sent_at"))
    planned = replay.planned_ids().select("message_id")
    others = found.join(planned, ["message_id"], how="left_anti")
    return _counted(others, F.col("sent_at"))


def _of_cells(
    replay: Replay, asked: Sequence[AskedRange], audit_id: str
) -> list[tuple[str, Proof]]:
    """What is on its way, as far as the audit knows, and what it cannot judge yet, or at all."""
    is_unjudged = F.col("verdict") == Verdict.INCONCLUSIVE.value
    is_open = (F.col("pending") > 0) | (F.col("verdict") == Verdict.PENDING.value) | is_unjudged
    cells = replay.warehouse.read(CELLS).where((F.col("audit_id") == audit_id) & is_open)
    sums = (
        _in_parts(replay, asked, cells, F.col("bucket_start"))
        .groupBy("window_id")
        .agg(
            F.sum("pending").alias("left"),
            F.count_if(~is_unjudged).alias("unsettled"),
            F.count_if(is_unjudged).alias("unjudged"),
            F.coalesce(F.max("reason"), F.lit("")).alias("reason"),
        )
    )
    counted = [row.asDict() for row in collected(sums)]
    return [(str(row.pop("window_id")), Proof(**row)) for row in counted]


def _missing(replay: Replay) -> DataFrame:
    return replay.warehouse.read(FINDINGS).where(
        (F.col("stream") == replay.name) & (F.col("kind") == Kind.MISSING.value)
    )


def _counted(judged: DataFrame, arrived: Column) -> list[tuple[str, Proof]]:
    """Counts rows with `window_id`, `state` and `begins_at`."""
    is_left = F.col("state").isin(*LEFT)
    is_expired = F.col("state") == State.EXPIRED.value
    sums = judged.groupBy("window_id").agg(
        F.count_if(is_left).alias("left"),
        F.count_if(is_expired).alias("expired"),
        F.count_if(~is_left & ~is_expired).alias("back"),
        F.count_if(is_left & (arrived < F.col("begins_at"))).alias("gone"),
    )
    return [
        (str(row.window_id), Proof(row.back, row.expired, row.left, row.gone))
        for row in collected(sums)
    ]


def _begins(replay: Replay, windows: Sequence[StoredWindow]) -> DataFrame:
    values = [(window.window_id, window.begins_at) for window in windows]
    ddl = "window_id string, begins_at timestamp"
    return F.broadcast(own_rows(replay.warehouse.spark, values, ddl))


def _in_parts(
    replay: Replay, asked: Sequence[AskedRange], rows: DataFrame, instant: Column
) -> DataFrame:
    """The rows that lie in one of the ranges of their shard, with `window_id` and `begins_at`."""
    values = [
        (window.shard_id, window.window_id, sent.start, sent.end, window.begins_at)
        for window, sent in asked
    ]
    ddl = (
        "shard_id string, window_id string, sent_from timestamp, sent_to timestamp, "
        "begins_at timestamp"
    )
    parts = F.broadcast(own_rows(replay.warehouse.spark, values, ddl))
    start, end = _edges(asked)
    near = rows.where((instant >= F.lit(start)) & (instant < F.lit(end)))
    # The parts of a shard are disjoint: a row lies in one of them at most.
    inside = (instant >= F.col("sent_from")) & (instant < F.col("sent_to"))
    return near.join(parts, ["shard_id"], how="inner").where(inside)


def _edges(asked: Sequence[AskedRange]) -> tuple[datetime, datetime]:
    return min(sent.start for _, sent in asked), max(sent.end for _, sent in asked)


@dataclass(frozen=True, slots=True)
class Verified:
    """How many of the plan's messages came to which end, and the audit that says so.

    `cut_short`: windows that were not read to their end, or of which no audit can say yet that
    nothing is missing. `unjudged`: cells of which none can say so at all: to verify them again
    later does not help. `hands_over`: what is left may be on its way, somebody else lands it.
    """

    audit_id: str
    recovered: int
    expired: int
    left: int
    cut_short: int
    unjudged: int
    hands_over: bool = False


def verify(
    replay: Replay,
    settings: Settings,
    gates: Gates,
    *,
    clock_now: datetime,
    progress: Progress = SILENT,
) -> Verified:
    """Ingests, audits the time of the plan's messages, and tells each window how it ended."""
    name, warehouse, as_of = replay.name, replay.warehouse, replay.now()
    # What landed at --as-of may not be later than the ingest's now.
    ingest_stream(warehouse, settings, name, now=max(as_of, clock_now), progress=progress)
    request = AuditRequest(
        name=name,
        stream=settings.stream(name),
        window=sent_range(replay.ledger.windows),
        as_of=as_of,
        retention=replay.retention,
    )
    judged = gates.of_plan(replay.plan_id, _read_windows(replay))
    report = audit(warehouse, request, judged, now=clock_now, progress=progress)
    proven = proofs(replay, report.audit_id)
    hands_over = request.stream.backfill_mode.hands_over
    waiting = [(w, proven[w.window_id]) for w in replay.ledger.windows if not w.state.is_over]
    ended = _handed_over if hands_over else _ended
    cut_short = sum(_is_cut_short(*one, hands_over=hands_over) for one in waiting)
    replay.ledger.store([ended(*one) for one in waiting], now=as_of)
    if not hands_over:
        _reopen(replay, as_of)
    total = sum(proven.values(), Proof())
    counts = (total.back, total.expired, total.left, cut_short, total.unjudged)
    return Verified(report.audit_id, *counts, hands_over=hands_over)


def _is_cut_short(window: StoredWindow, proof: Proof, *, hands_over: bool) -> bool:
    done = (WindowState.MERGED, WindowState.RUNNING) if hands_over else (WindowState.MERGED,)
    return window.state not in done or (proof.unsettled > 0 and not proof.left)


def _read_windows(replay: Replay) -> list[SummaryRow]:
    """The windows that were read, as their gate wants them."""
    own = {"source": SOURCE, "batch_id": replay.plan_id}
    refused = replay.warehouse.counts(QUARANTINE, by=["source"], having=own).total()
    windows = [window for window in replay.ledger.windows if window.read_records is not None]
    read = sum(window.read_records or 0 for window in windows)
    takes_all = any(window.takes_all for window in windows)
    merged = sum(window.merged_rows or 0 for window in windows)
    # Of all windows: one that was read may have brought what was expected of one that was not.
    expected = sum(window.expected_ids for window in replay.ledger.windows)
    too_many = 0 if takes_all else max(0, merged - expected)
    return [
        {
            "window_id": window.window_id,
            "shard_id": window.shard_id,
            "state": window.state.value,
            "expected_ids": window.expected_ids,
            "read_records": window.read_records,
            "merged_rows": window.merged_rows,
            "takes_all": takes_all,
            "rows_too_many": too_many,
            "refused_share": refused / read if read else 0.0,
            "expired": window.expired_from is not None,
        }
        for window in windows
    ]


def _ended(window: StoredWindow, proof: Proof) -> StoredWindow:
    """A window's last state: incomplete while a message is missing that the stream may have."""
    if error := _unproven(window, proof):
        return replace(window, state=WindowState.INCOMPLETE, error=error)
    if proof.gone:
        error = f"{messages(proof.gone)} had left the stream before it was read"
        return replace(window, state=WindowState.EXPIRED, error=error)
    is_expired = proof.expired or _has_expired(window)
    return replace(window, state=WindowState.EXPIRED if is_expired else WindowState.VERIFIED)


def _unproven(window: StoredWindow, proof: Proof) -> str | None:
    """Why nobody can say yet that the window's messages are there or gone for good."""
    if window.state is not WindowState.MERGED:
        return window.error or "no run read it to its end"
    if proof.left > proof.gone:
        return f"{messages(proof.left)} not found in the stream as it is now"
    if proof.gone:
        return None
    if proof.unsettled:
        return f"{counted(proof.unsettled, 'cell')} not settled yet: run the plan again later"
    if proof.unjudged:
        cells = counted(proof.unjudged, "cell")
        return f"of {cells} no audit can say that all is there: {proof.reason}"
    return None


def _has_expired(window: StoredWindow) -> bool:
    """Whether a part of a range was gone. Of planned messages, each says so itself."""
    if not window.takes_all or window.expired_to is None:
        return False
    return window.sent_from is None or window.expired_to > window.sent_from


def _handed_over(window: StoredWindow, proof: Proof) -> StoredWindow:
    """What somebody else lands ends when all of it has; until then it stays as it is."""
    if not proof.left:
        return _ended(replace(window, state=WindowState.MERGED, error=None), proof)
    if window.state in (WindowState.MERGED, WindowState.RUNNING):
        return replace(window, error=f"{messages(proof.left)} not landed yet")
    return _ended(window, proof)


def _reopen(replay: Replay, now: datetime) -> None:
    """What the backfill did not bring back is open again, for the next plan."""
    planned = replay.planned_ids().select("message_id")
    chosen = (
        replay.findings(State.PLANNED, State.REPLAYED)
        .join(planned, ["message_id"], how="left_semi")
        .localCheckpoint()
    )
    if not chosen.isEmpty():
        reason = f"backfill {replay.plan_id} did not bring it back"
        change_state(replay.warehouse, chosen, to=State.OPEN, reason=reason, now=now)
