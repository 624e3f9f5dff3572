"""Audits again what a backfill wrote, and settles its findings and windows."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from pyspark.sql import functions as F

from shardaudit.adapters.delta_rs import Row
from shardaudit.backfill.windows import AFTER, BEFORE
from shardaudit.jobs.audit import audit
from shardaudit.jobs.audit_request import AuditRequest
from shardaudit.jobs.backfill_replay import SOURCE, Replay
from shardaudit.jobs.commands.ingest import ingest_stream
from shardaudit.jobs.gates import Gates
from shardaudit.jobs.moves import move_findings
from shardaudit.model.backfill import WindowState
from shardaudit.model.config import Settings
from shardaudit.model.tables import FINDINGS, QUARANTINE
from shardaudit.model.verdict import Kind, State
from shardaudit.model.window import Window
from shardaudit.report.progress import SILENT, Progress

_S = timedelta(seconds=1)
_LEFT = (State.OPEN, State.PLANNED, State.REPLAYED)


@dataclass(frozen=True, slots=True)
class Verified:
    """How many of the plan's messages came to which end, and the audit that says so.

    `cut_short`: windows that were not read to their end. `hands_over`: what is left may be on its
    way, somebody else lands it.
    """

    audit_id: str
    recovered: int
    expired: int
    left: int
    cut_short: int
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
    name, warehouse = replay.name, replay.warehouse
    as_of = replay.now()
    # What landed at --as-of may not be later than the ingest's now.
    ingest_stream(warehouse, settings, name, now=max(as_of, clock_now), progress=progress)
    request = AuditRequest(
        name=name,
        stream=settings.stream(name),
        window=_sent_window(replay.ledger.rows),
        as_of=as_of,
        retention=replay.retention,
    )
    judged = gates.of_plan(replay.plan_id, _read_windows(replay))
    report = audit(warehouse, request, judged, now=clock_now, progress=progress)
    counts = _states_by_window(replay)
    hands_over = request.stream.backfill_mode.hands_over
    done = (WindowState.MERGED, WindowState.RUNNING) if hands_over else (WindowState.MERGED,)
    cut_short = sum(row["state"] not in done for row in _not_over(replay))
    ends = {
        str(row["window_id"]): _handed_over(row, counts) if hands_over else _end(row, counts)
        for row in _not_over(replay)
    }
    replay.ledger.save_each(ends, now=as_of)
    if not hands_over:
        _reopen(replay, as_of)
    total = {state: sum(n for (_, s), n in counts.items() if s == state) for state in State}
    left = sum(total[state] for state in _LEFT)
    expired = total[State.EXPIRED]
    recovered = sum(total.values()) - left - expired
    return Verified(report.audit_id, recovered, expired, left, cut_short, hands_over)


def _read_windows(replay: Replay) -> list[Row]:
    """The windows that were read, as their gate wants them."""
    is_own = (F.col("source") == SOURCE) & (F.col("batch_id") == replay.plan_id)
    refused = replay.warehouse.read(QUARANTINE).where(is_own).count()
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


def _sent_window(rows: list[Row]) -> Window:
    """When the plan's messages were sent: its windows without their margins."""
    start = min(row["window_start"] for row in rows) + BEFORE
    end = max(row["window_end"] for row in rows) - AFTER
    return Window(start, max(end, start).replace(microsecond=0) + _S)


def _states_by_window(replay: Replay) -> dict[tuple[str, State], int]:
    """How many of a window's messages have a finding in which state."""
    findings = replay.warehouse.read(FINDINGS).where(
        (F.col("stream") == replay.name) & (F.col("kind") == Kind.MISSING.value)
    )
    # Unique on message_id on both sides: the key of findings within a stream and kind, and that
    # of the ids within a plan.
    of_ids = findings.select("message_id", "state")
    states = replay.planned_ids().join(of_ids, ["message_id"], how="inner")
    counted = states.groupBy("window_id", "state").count().collect()
    return {(row["window_id"], State(row["state"])): row["count"] for row in counted}


def _not_over(replay: Replay) -> list[Row]:
    return [row for row in replay.ledger.rows if not WindowState(row["state"]).is_over]


def _end(row: Row, counts: dict[tuple[str, State], int]) -> dict[str, object]:
    """A window's last state: incomplete while a message is missing that has not expired."""
    window_id = str(row["window_id"])
    left = sum(counts.get((window_id, state), 0) for state in _LEFT)
    expired = counts.get((window_id, State.EXPIRED), 0)
    if row["state"] != WindowState.MERGED:
        error = row["error"] or "no run read it to its end"
        return {"state": WindowState.INCOMPLETE.value, "error": error}
    if left:
        error = f"{left} of {row['expected_ids']} messages were not in the stream as it is now"
        return {"state": WindowState.INCOMPLETE.value, "error": error}
    # A margin may reach behind the horizon when none of the wanted messages does.
    if expired or (row["takes_all"] and row["expired_from"] is not None):
        return {"state": WindowState.EXPIRED.value}
    return {"state": WindowState.VERIFIED.value}


def _handed_over(row: Row, counts: dict[tuple[str, State], int]) -> dict[str, object]:
    """What somebody else lands ends when all of it has; until then it stays as it is."""
    left = sum(counts.get((str(row["window_id"]), state), 0) for state in _LEFT)
    if left and row["state"] in (WindowState.MERGED, WindowState.RUNNING):
        return {"error": f"{left} of {row['expected_ids']} messages have not landed yet"}
    landed = row if left else row | {"state": WindowState.MERGED}
    return {"error": None} | _end(landed, counts)


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
