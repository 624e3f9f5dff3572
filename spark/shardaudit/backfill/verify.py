"""Audits again what a backfill wrote, and settles its findings and windows."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from shardaudit.adapters.lake.delta_rs import Row
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.gates import Gates
from shardaudit.audit.job import audit
from shardaudit.backfill.ledger import sent_range
from shardaudit.backfill.proof import Proof, proofs
from shardaudit.backfill.round import SOURCE, Replay
from shardaudit.backfill.rules.planned import WindowState
from shardaudit.ingest.job import ingest_stream
from shardaudit.model.config.settings import Settings
from shardaudit.model.tables.audit_tables import QUARANTINE
from shardaudit.model.verdict import State
from shardaudit.report.plain import counted, messages
from shardaudit.report.progress import SILENT, Progress
from shardaudit.store.transitions import move_findings


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
        window=sent_range(replay.ledger.rows),
        as_of=as_of,
        retention=replay.retention,
    )
    judged = gates.of_plan(replay.plan_id, _read_windows(replay))
    report = audit(warehouse, request, judged, now=clock_now, progress=progress)
    proven = proofs(replay, report.audit_id)
    hands_over = request.stream.backfill_mode.hands_over
    ends = {
        str(row["window_id"]): _handed_over(row, proven) if hands_over else _end(row, proven)
        for row in _not_over(replay)
    }
    cut_short = sum(_is_cut_short(row, proven, hands_over=hands_over) for row in _not_over(replay))
    replay.ledger.save_each(ends, now=as_of)
    if not hands_over:
        _reopen(replay, as_of)
    total = sum(proven.values(), Proof())
    counts = (total.back, total.expired, total.left, cut_short, total.unjudged)
    return Verified(report.audit_id, *counts, hands_over=hands_over)


def _is_cut_short(row: Row, proven: Mapping[str, Proof], *, hands_over: bool) -> bool:
    done = (WindowState.MERGED, WindowState.RUNNING) if hands_over else (WindowState.MERGED,)
    proof = proven[str(row["window_id"])]
    return row["state"] not in done or (proof.unsettled > 0 and not proof.left)


def _read_windows(replay: Replay) -> list[Row]:
    """The windows that were read, as their gate wants them."""
    own = {"source": SOURCE, "batch_id": replay.plan_id}
    refused = replay.warehouse.counts(QUARANTINE, by=["source"], having=own).total()
    rows = [row for row in replay.ledger.rows if row["read_records"] is not None]
    read = sum(row["read_records"] for row in rows)
    takes_all = any(row["takes_all"] for row in rows)
    merged = sum(row["merged_rows"] or 0 for row in rows)
    # Of all windows: one that was read may have brought what was expected of one that was not.
    expected = sum(row["expected_ids"] for row in replay.ledger.rows)
    too_many = 0 if takes_all else max(0, merged - expected)
    shown = ("window_id", "shard_id", "state", "expected_ids", "read_records", "merged_rows")
    return [
        {
            **{name: row[name] for name in shown},
            "takes_all": takes_all,
            "rows_too_many": too_many,
            "refused_share": refused / read if read else 0.0,
            "expired": row["expired_from"] is not None,
        }
        for row in rows
    ]


def _not_over(replay: Replay) -> list[Row]:
    return [row for row in replay.ledger.rows if not WindowState(row["state"]).is_over]


def _end(row: Row, proven: Mapping[str, Proof]) -> dict[str, object]:
    """A window's last state: incomplete while a message is missing that the stream may have."""
    proof = proven[str(row["window_id"])]
    if error := _unproven(row, proof):
        return {"state": WindowState.INCOMPLETE.value, "error": error}
    if proof.gone:
        error = f"{messages(proof.gone)} had left the stream before it was read"
        return {"state": WindowState.EXPIRED.value, "error": error}
    is_expired = proof.expired or _has_expired(row)
    return {"state": (WindowState.EXPIRED if is_expired else WindowState.VERIFIED).value}


def _unproven(row: Row, proof: Proof) -> str | None:
    """Why nobody can say yet that the window's messages are there or gone for good."""
    if row["state"] != WindowState.MERGED:
        return row["error"] or "no run read it to its end"
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


def _has_expired(row: Row) -> bool:
    """Whether a part of a range was gone. Of planned messages, each says so itself."""
    if not row["takes_all"] or row["expired_to"] is None:
        return False
    return bool(row["sent_from"] is None or row["expired_to"] > row["sent_from"])


def _handed_over(row: Row, proven: Mapping[str, Proof]) -> dict[str, object]:
    """What somebody else lands ends when all of it has; until then it stays as it is."""
    left = proven[str(row["window_id"])].left
    if left and row["state"] in (WindowState.MERGED, WindowState.RUNNING):
        return {"error": f"{messages(left)} not landed yet"}
    landed = row if left else row | {"state": WindowState.MERGED}
    return {"error": None} | _end(landed, proven)


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
        move_findings(replay.warehouse, chosen, to=State.OPEN, reason=reason, now=now)
