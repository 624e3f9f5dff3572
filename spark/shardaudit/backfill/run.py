"""`backfill run`: approve → replay → verify. The table of contents of a backfill.

`STAGES` is what a plan prints and what a run walks through: one list, so that they cannot differ.
`backfill replay` walks through the first two, `backfill verify` the last.
Every stage may be killed at any moment and the plan be run again: windows that are not over are
read again, and only what is not in the sink lands. In the mode `republish` a kill while records
are put can put some twice: nothing can take them out of a stream again.
"""

import os
import platform
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime

import pyarrow.compute as pc

from shardaudit.adapters.aws.kinesis_pages import ShardPages, StreamAddress
from shardaudit.adapters.clock import now
from shardaudit.adapters.clock import now as clock_now
from shardaudit.adapters.request_target import addressee, deliver
from shardaudit.audit.gates import Gates
from shardaudit.backfill.kinesis_source import JSON, ReadSettings, decoder
from shardaudit.backfill.landing import Landing, backfill_sink, sink_sources
from shardaudit.backfill.ledger import Ledger, stored_windows
from shardaudit.backfill.replay_run import Replay, fan_out
from shardaudit.backfill.rounds import in_rounds
from shardaudit.backfill.rules.approval import (
    approver,
    check_as_planned,
    check_sink_is_safe,
    configured_for,
)
from shardaudit.backfill.rules.planned import REPLAY, RUN, VERIFY, StoredWindow, WindowState
from shardaudit.backfill.rules.republished import request_document
from shardaudit.backfill.verify import Verified, verify
from shardaudit.ingest.ask_kinesis import retention_of
from shardaudit.model.config.choices import BackfillMode
from shardaudit.model.config.settings import Settings
from shardaudit.model.errors import ConfigError
from shardaudit.model.tables.backfill_tables import BACKFILLS
from shardaudit.model.verdict import State
from shardaudit.model.words import counted, messages
from shardaudit.report.progress import NO_PROGRESS, Progress
from shardaudit.store.audits import read_rows
from shardaudit.store.ledger_days import ledger_eras
from shardaudit.store.transitions import NewState
from shardaudit.store.warehouse import Warehouse

_TO_DO = (
    WindowState.APPROVED,
    WindowState.RUNNING,  # of a run that died: the lock on the stream's backfills is ours now
    WindowState.INCOMPLETE,
)
_TO_ASK_FOR = (WindowState.APPROVED, WindowState.INCOMPLETE)

_LANDS = {
    BackfillMode.MERGE: "are inserted",
    BackfillMode.APPEND: "are added in files of their own",
    BackfillMode.REPUBLISH: "are put into a stream again",
}


def stream_of(settings: Settings, plan_id: str, *, writes: bool) -> str:
    """The stream that a stored plan is of.

    Raises:
        ConfigError: there is no such plan, or its stream is not in the configuration; or
        (`writes`) what is to be done of it is configured otherwise by now.
    """
    rows = read_rows(settings, BACKFILLS, where=pc.field("plan_id") == plan_id)
    if not rows:
        raise ConfigError("--plan", plan_id, "a plan that `shardaudit backfill plan` printed")
    name: str = rows[0]["stream"]
    settings.stream(name)
    due = [row["configured"] for row in rows if row["state"] in (WindowState.PLANNED, *_TO_DO)]
    is_approved = any(row["approved_by"] is not None for row in rows)
    opens = f", after `shardaudit backfill verify --plan {plan_id}`, which opens again what it took"
    if writes and due:
        check_as_planned(
            plan_id,
            due[0],
            configured=configured_for(settings, name),
            instead="`shardaudit backfill plan` again" + opens * is_approved,
        )
    return name


def replay_of(
    warehouse: Warehouse,
    settings: Settings,
    plan_id: str,
    *,
    as_of: datetime | None,
    writing: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Replay:
    """What it takes to replay a stored plan.

    Raises:
        ConfigError: its stream cannot be written.
        StreamRefusedError: there is no such stream; nothing is read.
    """
    windows = stored_windows(warehouse, plan_id)
    name = windows[0].stream
    stream = settings.stream(name)
    address = StreamAddress(
        stream.stream_name, settings.aws.region, settings.aws.endpoint("kinesis")
    )
    check_sink_is_safe(name, stream, spark_settings=settings.spark)
    ShardPages(address).check_stream()
    return Replay(
        warehouse=warehouse,
        ledger=Ledger(warehouse, windows, f"{platform.node()}/{os.getpid()}"),
        landing=landing_of(warehouse, settings, name),
        reading=ReadSettings(address, stream.backfill.read_share, stream.backfill.decoder),
        retention=retention_of(warehouse, name, stream, as_of=as_of),
        cells=ledger_eras(warehouse, name, stream),
        now=now if as_of is None else lambda: as_of,
        writing=writing,
        route=stream.route,
    )


def check_landing(settings: Settings, name: str) -> None:
    """Returns when a backfill of the stream could land; no engine is asked.

    Raises:
        ConfigError: its rows cannot be made, its decoder is not there.
        StreamRefusedError: there is no stream to put records into.
    """
    stream = settings.stream(name)
    if stream.backfill_mode is BackfillMode.REQUEST:
        return
    if stream.backfill.decoder != JSON:
        decoder(stream.backfill.decoder)
    sink_sources(settings, name, only_ids=stream.backfill_mode.hands_over)
    target = _republish_to(settings, name)
    if target is not None:
        ShardPages(target).check_stream()


def landing_of(warehouse: Warehouse, settings: Settings, name: str) -> Landing | None:
    """How a stream's backfill lands; None when somebody else is asked for it.

    Raises:
        ConfigError: its rows cannot be made, its decoder is not there.
        StreamRefusedError: there is no stream to put records into.
    """
    check_landing(settings, name)
    mode = settings.stream(name).backfill_mode
    if mode is BackfillMode.REQUEST:
        return None
    sink = backfill_sink(warehouse.spark, settings, name, only_ids=mode.hands_over)
    return Landing(mode, sink, warehouse.check, _republish_to(settings, name))


def _republish_to(settings: Settings, name: str) -> StreamAddress | None:
    target = settings.stream(name).backfill.republish_to
    if target is None:
        return None
    return StreamAddress(target, settings.aws.region, settings.aws.endpoint("kinesis"))


@dataclass(slots=True)
class Running:
    """A run on its way through the stages; without `gates` it is not verified."""

    replay: Replay
    settings: Settings
    gates: Gates | None
    approve_as: str | None
    progress: Progress = NO_PROGRESS
    verified: Verified | None = field(default=None)

    def approve(self) -> None:
        """Stores who approved it, the whole plan, and marks the findings."""
        ledger = self.replay.ledger
        self._approver()  # or nobody waits for the warehouse
        with self.replay.writing():
            ledger.read()  # what others stored meanwhile: it may be cancelled
            self._store_approval(self._approver(), ledger.of(WindowState.PLANNED))

    def _approver(self) -> str:
        backfill = self.settings.stream(self.replay.name).backfill
        return approver(self.replay.ledger.windows, backfill, asked=self.approve_as)

    def _store_approval(self, who: str, waiting: Sequence[StoredWindow]) -> None:
        now = self.replay.now()
        approved = [replace(w, state=WindowState.APPROVED, approved_by=who) for w in waiting]
        self.replay.ledger.store(approved, now=now)
        reason = f"backfill {self.replay.plan_id}, approved by {who}"
        self.replay.change((State.OPEN,), NewState(State.PLANNED, reason, now))

    def replay_and_land(self) -> None:
        """Reads what is to be read, the most urgent first; or asks somebody else to."""
        if self.replay.landing is None:
            self._request()
            return
        waiting = self.replay.ledger.of(*_TO_DO)
        with self._reading(is_needed=bool(waiting)) as replay:
            in_rounds(waiting, replay.run_round)

    def _reading(self, *, is_needed: bool) -> AbstractContextManager[Replay]:
        """The replay as the configuration wants it to read."""
        if not self.settings.stream(self.replay.name).backfill.fanout:
            return nullcontext(self.replay)
        return fan_out(self.replay, warehouse=self.settings.warehouse, reads=is_needed)

    def _request(self) -> None:
        """Asks for the windows. Dying in between asks twice: `plan_id` tells that it is one."""
        windows = self.replay.ledger.of(*_TO_ASK_FOR)
        stream = self.settings.stream(self.replay.name)
        to = addressee(stream.backfill) if windows else None
        if to is not None:
            document = request_document(windows, stream_name=stream.stream_name)
            aws, name = self.settings.aws, self.replay.plan_id
            deliver(document, to, name=name, aws=aws)
            asked = [replace(w, state=WindowState.RUNNING, error=None) for w in windows]
            now = self.replay.now()
            with self.replay.writing():
                self.replay.ledger.store(asked, now=now)

    def verify(self) -> None:
        """Proves it by an audit.

        Raises:
            ConfigError: nobody approved the plan.
        """
        ledger = self.replay.ledger
        if len(ledger.of(WindowState.PLANNED, WindowState.CANCELLED)) == len(ledger.windows):
            wanted = "a plan that was approved, by `backfill run` or `backfill replay`"
            raise ConfigError("--plan", self.replay.plan_id, wanted)
        assert self.gates is not None  # noqa: S101 - or there is no such stage
        with self.replay.writing():
            ledger.read()  # what another run stored since
            self.verified = verify(self.replay, self.settings, self.gates, clock_now=clock_now())


@dataclass(frozen=True, slots=True)
class Stage:
    """A step of a run: its name, what it says of a plan's windows, and what it does."""

    name: str
    says: Callable[[Sequence[StoredWindow], BackfillMode], str]
    act: Callable[[Running], None]


def _says_approve(windows: Sequence[StoredWindow], mode: BackfillMode) -> str:
    del mode
    ids = sum(window.expected_ids for window in windows)
    return f"approve: a person's name is stored, {messages(ids)} planned"


def _says_replay(windows: Sequence[StoredWindow], mode: BackfillMode) -> str:
    shards = len({window.shard_id for window in windows})
    where = f"{counted(len(windows), 'window')} of {counted(shards, 'shard')}"
    what = "all records" if any(w.takes_all for w in windows) else "the missing messages"
    if mode is BackfillMode.REQUEST:
        return f"replay: your own job is asked for {where}"
    return f"replay: reads {where}; {what} that the sink does not have {_LANDS[mode]}"


def _says_verify(windows: Sequence[StoredWindow], mode: BackfillMode) -> str:
    del windows
    audited = "verify: the sink is ingested and the time is audited again"
    if mode.hands_over:
        return f"{audited}; what has not landed by then is left to later audits, or another run"
    return f"{audited}; what is missing fails it"


STAGES = (
    Stage("approve", _says_approve, Running.approve),
    Stage("replay", _says_replay, Running.replay_and_land),
    Stage("verify", _says_verify, Running.verify),
)
ACTIONS = {RUN: STAGES, REPLAY: STAGES[:-1], VERIFY: STAGES[-1:]}


def run_backfill(running: Running, stages: Sequence[Stage] = STAGES) -> Verified | None:
    """Walks through the stages; None when the plan was over before, or is not verified by these.

    Raises:
        ConfigError: nobody approved the plan, or it was cancelled.
    """
    ended = running.replay.ledger.of(WindowState.VERIFIED, WindowState.EXPIRED)
    if len(ended) == len(running.replay.ledger.windows):
        return None
    for stage in stages:
        with running.progress.stage(stage.name):
            stage.act(running)
    return running.verified
