"""Audits again what a backfill wrote, and settles its findings and windows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pyspark.sql import functions as F

from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.gates import Gates
from shardaudit.audit.job import audit
from shardaudit.audit.records import in_eras
from shardaudit.backfill.ledger import sent_spans
from shardaudit.backfill.proofs import Proof, proofs
from shardaudit.backfill.replay_run import SOURCE, Replay
from shardaudit.backfill.rules.planned import StoredWindow, WindowState
from shardaudit.backfill.rules.republished import PUT_AGAIN, PUT_IN_PART
from shardaudit.columns.ledger_sums import CELL
from shardaudit.ingest.job import ingest_stream
from shardaudit.model.config.choices import BackfillMode
from shardaudit.model.config.settings import Settings
from shardaudit.model.gate import SummaryRow
from shardaudit.model.tables.audit_tables import FINGERPRINTS, QUARANTINE
from shardaudit.model.verdict import State
from shardaudit.model.words import counted, messages
from shardaudit.report.progress import NO_PROGRESS
from shardaudit.store.transitions import NewState

_DONE = (WindowState.MERGED,)
_DONE_WHEN_ASKED = (WindowState.MERGED, WindowState.RUNNING)  # somebody else was asked for it


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
) -> Verified:
    """Ingests, audits the time of the plan's messages, and tells each window how it ended."""
    name, warehouse, as_of = replay.name, replay.warehouse, replay.now()
    # What landed at --as-of may not be later than the ingest's now.
    ingest_stream(warehouse, settings, name, now=max(as_of, clock_now), progress=NO_PROGRESS)
    stream = settings.stream(name)
    requests = [
        AuditRequest(name, stream, span, as_of, replay.retention)
        for span in sent_spans(replay.ledger.windows, bucket=stream.bucket)
    ]
    judged = gates.of_plan(replay.plan_id, _read_windows(replay))
    parts = [part for request in requests for part in in_eras(warehouse, request)]
    for part in parts:
        audit(warehouse, part, judged, now=clock_now)
    proven = proofs(replay, *(part.audit_id for part in parts))
    mode = stream.backfill_mode
    hands_over, done = mode.hands_over, _DONE_WHEN_ASKED if mode is BackfillMode.REQUEST else _DONE
    # One that begins anew waits for somebody to approve it.
    waiting = [
        (w, proven[w.window_id])
        for w in replay.ledger.windows
        if w.state is not WindowState.PLANNED and not w.state.is_over
    ]
    undone = [w for w, _ in waiting if w.state not in done]
    cut_short = sum(_is_cut_short(*one, done) for one in waiting)
    ended = [_handed_over(*one, done) if hands_over else _ended(*one) for one in waiting]
    replay.ledger.store(ended, now=as_of)
    if undone or not hands_over:
        _reopen(replay, as_of, undone if hands_over else None)
    total = sum(proven.values(), Proof())
    counts = (total.back, total.expired, total.left, cut_short, total.unjudged)
    return Verified(parts[-1].audit_id, *counts, hands_over=hands_over)


def _is_cut_short(window: StoredWindow, proof: Proof, done: Sequence[WindowState]) -> bool:
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
    expected = sum(window.expected_ids for window in replay.ledger.windows) + _sent_since(replay)
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


def _sent_since(replay: Replay) -> int:
    """How many messages more there are in the plan's gaps than it knew: their traces came later."""
    cells = replay.planned_gaps().select(*CELL, "count")
    sent = replay.warehouse.read(FINGERPRINTS).where(
        (F.col("stream") == replay.name) & (F.col("side") == "traces")
    )
    in_gaps = sent.join(F.broadcast(cells), CELL, how="inner").groupBy(*CELL)
    by_cell = in_gaps.agg(F.sum("n").alias("sent"), F.max("count").alias("count"))
    [row] = by_cell.agg(F.sum(F.col("sent") - F.col("count")).alias("more")).collect()
    return max(0, row.more or 0)


def _ended(window: StoredWindow, proof: Proof) -> StoredWindow:
    """A window's last state: incomplete while a message is missing that the stream may have."""
    if error := _unproven(window, proof):
        return replace(window, state=WindowState.INCOMPLETE, error=error)
    if out := proof.gone + proof.expired:
        error = f"{messages(out)} no longer in the stream, and not in the sink"
        return replace(window, state=WindowState.EXPIRED, error=error)
    if _has_expired(window):
        return replace(window, state=WindowState.EXPIRED)
    said = f"{messages(proof.accepted)} accepted as missing" if proof.accepted else window.error
    return replace(window, state=WindowState.VERIFIED, error=said)


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


def _handed_over(window: StoredWindow, proof: Proof, done: Sequence[WindowState]) -> StoredWindow:
    """What somebody else lands ends when all of it has; until then it stays as it is."""
    told = PUT_AGAIN if window.error and PUT_AGAIN in window.error else None
    if not proof.left:
        return _ended(replace(window, state=WindowState.MERGED, error=told), proof)
    if window.state in done:
        waits = f"{messages(proof.left)} not landed yet"
        return replace(window, error="; ".join(filter(None, (told, waits))))
    put = PUT_IN_PART if window.merged_rows else None
    return _ended(replace(window, error=window.error or put), proof)


def _reopen(replay: Replay, now: datetime, windows: Sequence[StoredWindow] | None) -> None:
    """What the backfill, or these windows of it, did not bring back is open for the next plan."""
    ids = replay.planned_ids()
    if windows is not None:
        ids = ids.where(F.col("window_id").isin([window.window_id for window in windows]))
    change = NewState(State.OPEN, f"backfill {replay.plan_id} did not bring it back", now)
    replay.change((State.PLANNED, State.REPLAYED), change, ids=ids, windows=windows)
