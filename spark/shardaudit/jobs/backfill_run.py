"""`backfill run`: approve → replay and merge → verify. The table of contents of a backfill.

`STAGES` is what a plan prints and what a run walks through: one list, so that they cannot differ.
Every stage may be killed at any moment and the plan be run again: windows that are not over are
read again, and the merge inserts only what is not there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from shardaudit.adapters.clock import now as clock_now
from shardaudit.adapters.delta_rs import Row
from shardaudit.backfill.approval import approver
from shardaudit.jobs.backfill_ledger import rounds
from shardaudit.jobs.backfill_replay import Replay
from shardaudit.jobs.backfill_verify import Verified, verify
from shardaudit.jobs.gates import Gates
from shardaudit.jobs.moves import move_findings
from shardaudit.model.backfill import WindowState
from shardaudit.model.config import Settings
from shardaudit.model.verdict import State
from shardaudit.report.progress import SILENT, Progress

# What one round may hold at most: the executors keep it on disk until it is merged.
ROUND_BYTES = 4 * 2**30
_TO_DO = (
    WindowState.APPROVED,
    WindowState.RUNNING,  # of a run that died: the claim on the warehouse is ours now
    WindowState.INCOMPLETE,
)


@dataclass(slots=True)
class Running:
    """A run on its way through the stages."""

    replay: Replay
    settings: Settings
    gates: Gates
    approve_as: str | None
    progress: Progress = SILENT
    verified: Verified | None = field(default=None)

    def approve(self) -> None:
        """Stores who approved it, and marks the findings."""
        ledger, now = self.replay.ledger, self.replay.now()
        waiting = ledger.of(WindowState.PLANNED)
        backfill = self.settings.stream(self.replay.name).backfill
        who = approver(ledger.rows, asked=self.approve_as, backfill=backfill)
        ledger.save(waiting, now=now, state=WindowState.APPROVED.value, approved_by=who)
        planned = self.replay.planned_ids().select("message_id")
        chosen = self.replay.findings(State.OPEN).join(planned, ["message_id"], how="left_semi")
        chosen = chosen.localCheckpoint()
        if not chosen.isEmpty():
            reason = f"backfill {self.replay.plan_id}, approved by {who}"
            move_findings(self.replay.warehouse, chosen, to=State.PLANNED, reason=reason, now=now)

    def replay_and_merge(self) -> None:
        """Reads what is to be read, the most urgent first."""
        for windows in rounds(self.replay.ledger.of(*_TO_DO), max_bytes=ROUND_BYTES):
            self.replay.round(windows)

    def verify(self) -> None:
        """Proves it by an audit."""
        self.verified = verify(self.replay, self.settings, self.gates, clock_now=clock_now())


@dataclass(frozen=True, slots=True)
class Stage:
    """A step of a run: its name, what it says of a plan's windows, and what it does."""

    name: str
    says: Callable[[Sequence[Row]], str]
    act: Callable[[Running], None]


def _says_approve(rows: Sequence[Row]) -> str:
    ids = sum(int(row["expected_ids"]) for row in rows)
    return f"approve: a person's name is stored, {ids:,} findings become planned"


def _says_replay(rows: Sequence[Row]) -> str:
    shards = len({row["shard_id"] for row in rows})
    what = "all records" if any(row["takes_all"] for row in rows) else "the missing messages"
    return (
        f"replay and merge: {len(rows):,} windows of {shards:,} shards are read, {what} that the "
        "sink does not have are inserted"
    )


def _says_verify(rows: Sequence[Row]) -> str:
    del rows
    return "verify: the sink is ingested and the time is audited again; what is missing fails it"


STAGES = (
    Stage("approve", _says_approve, Running.approve),
    Stage("replay and merge", _says_replay, Running.replay_and_merge),
    Stage("verify", _says_verify, Running.verify),
)


def run_backfill(running: Running) -> Verified | None:
    """Walks through the stages; None when the plan was over before.

    Raises:
        ConfigError: nobody approved the plan, or it was cancelled.
    """
    if all(WindowState(row["state"]).is_over for row in running.replay.ledger.rows):
        return None
    for stage in STAGES:
        with running.progress.stage(stage.name):
            stage.act(running)
    return running.verified
