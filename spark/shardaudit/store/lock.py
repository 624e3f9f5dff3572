"""One run at a time per warehouse: generation files, each taken by exactly one process.

A named lock is one more, on the watch's own tables (it is not to wait for an audit of an hour) or
on one piece of work; the warehouse is then taken for its writes alone.
`<warehouse>/_claims/<12 digits>.json` is one generation. A generation is taken by creating the
next file, which the file system or S3 lets only one process do, and only when the newest one was
released or its holder is dead. The holder renews its own file; who finds a newer one has lost.
No two machines' clocks are compared: dead is who was seen to be silent for a minute, by the clock
of who looks, or whose process is gone from this very machine. The JVM of a killed run ends
with its standard input: long before the JVM of the run that takes over has started. What a
run began to commit before it was taken over fails (`_fence_tables`).
"""

import json
import logging
import os
import platform
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path

from shardaudit.adapters.clock import now
from shardaudit.adapters.files.files import at_once
from shardaudit.adapters.lake.delta_rs import DeltaRs
from shardaudit.adapters.pulse import Pulse, StandstillError, end_run
from shardaudit.model.config.settings import Settings
from shardaudit.model.errors import LockLostError, ShardauditError, WarehouseBusyError
from shardaudit.model.tables.all_tables import OF_LEDGER, OF_WATCH
from shardaudit.model.window import parse_instant
from shardaudit.store.lock_files import WATCH, LockFiles, WarehouseAccessError, lock_files_of
from shardaudit.store.migrations import tables_of_places

_PROC = Path("/proc")

log = logging.getLogger(__name__)

RENEW_SECONDS = 10
DEAD_AFTER = timedelta(seconds=60)
_LOOK_SECONDS, _TELL_SECONDS = 1.0, 60.0
AT_ONCE = timedelta(0)


def machine() -> str:
    """A name of this machine's process numbers: the same pid on an equal name is the same process.

    The host name alone would not do: containers share names, and each has a pid 1.
    """
    if not (_PROC / "self/ns/pid").exists():
        return platform.node()
    boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    return f"{platform.node()} {boot} {(_PROC / 'self/ns/pid').stat().st_ino}"


def process_start(pid: int) -> str | None:
    """When the process started, as a text to compare; None when it is gone or only not yet buried.

    A pid is used again: an equal start time tells that it is the same process.
    """
    if not (_PROC / "self/stat").exists():
        return _started_by_ps(pid)
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()  # the name before it may hold anything
    state, ticks = fields[0], fields[19]  # proc(5): fields 3 and 22
    return None if state in "ZX" else ticks


def own_start() -> str:
    """When this process started."""
    return process_start(os.getpid()) or "unknown"


def _started_by_ps(pid: int) -> str | None:
    """The same on macOS, which has no /proc."""
    answer = subprocess.run(
        ["/bin/ps", "-o", "state=,lstart=", "-p", str(pid)],
        capture_output=True,
        text=True,
        check=False,
    )
    state, _, start = answer.stdout.strip().partition(" ")
    return None if not start or state.startswith("Z") else start.strip()


@dataclass(frozen=True, slots=True)
class Holder:
    """What a lock file says."""

    owner: str
    host: str
    machine: str
    pid: int
    process_start: str
    since: str
    heartbeat_at: str
    released: bool = False

    def is_gone(self) -> bool:
        """Whether its process is gone from this very machine."""
        return self.machine == machine() and process_start(self.pid) != self.process_start

    def looks_silent(self) -> bool:
        """Whether its heartbeat is old, or to come: it is dead, or its clock is not ours."""
        heartbeat_at = parse_instant(self.heartbeat_at, where="lock heartbeat")
        return abs(now() - heartbeat_at) > DEAD_AFTER

    def __str__(self) -> str:
        return f"{self.owner} (process {self.pid} on {self.host})"


@dataclass(slots=True)
class _Watched:
    """What is seen of a warehouse's holder, look by look, by this process' own clock."""

    seen: Holder | None = None
    since: float = 0.0
    has_moved: bool = False

    def is_dead(self, holder: Holder) -> bool:
        """Whether it has been silent for too long, or is gone. Each call is a look."""
        if holder != self.seen:
            self.has_moved = self.seen is not None
            self.seen, self.since = holder, time.monotonic()
        return holder.is_gone() or time.monotonic() - self.since > DEAD_AFTER.total_seconds()

    def is_in_doubt(self) -> bool:
        """Whether only another look can tell if anybody lives there."""
        return self.seen is not None and not self.has_moved and self.seen.looks_silent()


class Lock:
    """The right to write a warehouse, as long as `check` does not raise.

    `is_taken_over`: from a holder that had not given it back; `is_renewed`: at the last try.
    """

    def __init__(
        self,
        store: LockFiles,
        *,
        warehouse: str,
        generation: int,
        holder: Holder,
        is_taken_over: bool = False,
    ) -> None:
        self._store, self._warehouse = store, warehouse
        self.generation, self._holder = generation, holder
        self.is_taken_over, self.is_renewed = is_taken_over, True

    def check(self) -> None:
        """Returns while the lock holds; call it before each write.

        It looks each time, and not at what the last renewal saw: a process that slept (a laptop
        lid, SIGSTOP) may have been taken over since.

        Raises:
            LockLostError: another run took the warehouse over.
        """
        newest = max(self._store.generations(), default=0)
        if newest > self.generation:
            raise LockLostError(self._warehouse, str(_read(self._store, newest) or "another run"))

    def renew(self) -> None:
        """Says that this run is alive.

        Raises:
            LockLostError: another run took the warehouse over.
        """
        self.is_renewed = False
        self.check()
        holder = replace(self._holder, heartbeat_at=now().isoformat())
        self._store.rewrite(self.generation, _text(holder))
        self.is_renewed = True

    def release(self) -> None:
        """Gives the warehouse free; the file stays, so that numbers never repeat."""
        released = replace(self._holder, heartbeat_at=now().isoformat(), released=True)
        try:
            self._store.rewrite(self.generation, _text(released))
        except (ShardauditError, OSError) as error:
            # The work is done; the next run finds this process gone, or silent.
            log.warning("could not release the lock: %s", error)


@contextmanager
def warehouse_lock(
    settings: Settings,
    *,
    owner: str,
    name: str | None = None,
    timeout: timedelta = AT_ONCE,
    pulse: Pulse | None = None,
) -> Iterator[Lock]:
    """Holds the warehouse for the time of the block, renewing the lock in the background.

    Input:
        name: of a lock beside the warehouse's own, held instead of it; timeout: how long another
        run is waited for, which the log says each minute. Whether one that seems dead is dead takes
        a minute to see. pulse: of this process, which is ended when it stands still.

    Raises:
        WarehouseBusyError: a living run holds it; says who and since when.
        WarehouseUnreadableError: what a dead run may still commit could not be kept out.
        StandstillError: this one stood still in the block.
    """
    held = _acquire(settings, owner=owner, name=name, timeout=timeout)
    ended, stood = threading.Event(), threading.Event()
    arguments = (held, ended, pulse, stood)
    beat = threading.Thread(target=_keep_renewing, args=arguments, name="lock", daemon=True)
    beat.start()
    is_fenced = not held.is_taken_over
    try:
        if held.is_taken_over:
            _fence_tables(settings, name=name, generation=held.generation)
            is_fenced = True
        yield held
    except KeyboardInterrupt:
        if stood.is_set():
            raise StandstillError from None
        raise
    finally:
        ended.set()
        beat.join(RENEW_SECONDS)
        if not held.is_renewed:  # to ask once more would take long, and the answer be the same
            log.warning("did not release the lock: %s does not answer", settings.warehouse)
        elif is_fenced:  # else the next one takes it over, too, and fences
            held.release()


def living_holder(settings: Settings, *, name: str) -> Holder | None:
    """Who holds a named lock, as far as one look can tell; None: nobody, or it is dead."""
    store = lock_files_of(settings, name=name)
    newest = max(store.generations(), default=0)
    holder = _read(store, newest) if newest else None
    if holder is None or holder.released or holder.is_gone() or holder.looks_silent():
        return None
    return holder


def _fence_tables(settings: Settings, *, name: str | None, generation: int) -> None:
    """Lets no commit pass that was begun under an earlier generation of a lock.

    Who lost it may have asked for it, begun a statement of minutes and been silent since. Delta
    lets no commit pass a change of the metadata of a table that was read before: so each table gets
    one, before the new holder reads it. A lock on a piece of work has no tables.
    """
    of_ledger = (*OF_LEDGER, *tables_of_places(settings)) if name is None else ()
    tables = DeltaRs(settings.warehouse, settings.aws)
    known = OF_WATCH if name == WATCH else of_ledger
    at_once(lambda table: tables.fence(table, generation), known)


def _acquire(settings: Settings, *, owner: str, name: str | None, timeout: timedelta) -> Lock:
    store = lock_files_of(settings, name=name)
    what = settings.warehouse if name is None else f"{settings.warehouse} ({name})"
    until, watched = time.monotonic() + timeout.total_seconds(), _Watched()
    tell_at = 0.0
    while True:
        try:
            return _try_to_acquire(store, watched, warehouse=what, owner=owner)
        except WarehouseBusyError as busy:
            at = time.monotonic()
            if at >= until and not watched.is_in_doubt():
                raise
            if at >= tell_at:
                tell_at = at + _TELL_SECONDS
                left = max(timedelta(seconds=until - at), DEAD_AFTER)
                minutes = round(left / timedelta(minutes=1))
                # A warning: at a terminal the log shows no less.
                said = "waits for %s, which holds %s since %s; %d more min at most"
                log.warning(said, busy.owner, what, busy.since, minutes)
            time.sleep(_LOOK_SECONDS)


def _try_to_acquire(store: LockFiles, watched: _Watched, *, warehouse: str, owner: str) -> Lock:
    newest = max(store.generations(), default=0)
    holder = _read(store, newest) if newest else None
    if holder is not None and not holder.released and not watched.is_dead(holder):
        raise WarehouseBusyError(warehouse, str(holder), holder.since)
    mine = _new_holder(owner)
    if not store.create(newest + 1, _text(mine)):
        winner = _read(store, newest + 1)
        if winner != mine:  # or S3 wrote it, its answer was lost, and boto3 asked once more
            raise WarehouseBusyError(
                warehouse, str(winner or "another run"), winner.since if winner else "this moment"
            )
    is_taken_over = holder is not None and not holder.released
    if is_taken_over:
        log.warning("took warehouse %s over from %s, which is dead", warehouse, holder)
    for older in store.generations():
        if older <= newest:
            store.delete(older)
    return Lock(
        store, warehouse=warehouse, generation=newest + 1, holder=mine, is_taken_over=is_taken_over
    )


def _keep_renewing(
    held: Lock, ended: threading.Event, pulse: Pulse | None, stood: threading.Event
) -> None:
    while not ended.wait(RENEW_SECONDS):
        if pulse is not None and pulse.stands_still():
            log.error("%s", StandstillError())
            stood.set()
            end_run(ended.wait)
            return
        try:
            held.renew()
        except LockLostError as error:
            log.error("%s", error)  # check() raises it where it matters
            return
        except (ShardauditError, OSError) as error:
            log.warning("could not renew the lock, trying again: %s", error)


def _new_holder(owner: str) -> Holder:
    instant = now().isoformat()
    return Holder(
        owner=owner,
        host=platform.node(),
        machine=machine(),
        pid=os.getpid(),
        process_start=own_start(),
        since=instant,
        heartbeat_at=instant,
    )


def _read(store: LockFiles, generation: int) -> Holder | None:
    text = store.read(generation)
    try:
        return None if text is None else Holder(**json.loads(text))
    except (TypeError, ValueError) as error:
        raise WarehouseAccessError(
            f"{store.folder}/{generation:012}.json is not a lock of this version of shardaudit: "
            "delete it when no run is active"
        ) from error


def _text(holder: Holder) -> str:
    return json.dumps(asdict(holder), sort_keys=True)
