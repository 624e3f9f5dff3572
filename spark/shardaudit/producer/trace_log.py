"""The trace log of a process: one thread writes what others add, and none of them waits for it.

While a file cannot be written it is tried again and again; meanwhile the queue fills, and what has
no room is counted. A file is in memory until it is whole: a killed process loses at most what it
had not flushed, and its session's numbers end there.
"""

import atexit
import logging
import os
import re
import threading
import time
import uuid
import weakref
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from shardaudit.adapters.clock import now
from shardaudit.producer.message_fields import instant_with_ms
from shardaudit.producer.packed_lines import ENDING, PackedLines, Teller
from shardaudit.producer.trace_folder import TraceFolder
from shardaudit.producer.trace_queue import TraceColumns, TraceQueue

_LONGEST_PAUSE_S = 30.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LogLimits:
    """`queued`: traces and ids of parents that wait, some 10 MB. `file_bytes`: packed."""

    queued: int = 20_000
    file_bytes: int = 8 * 2**20
    file_age_s: float = 60.0
    health_every_s: float = 60.0
    look_every_s: float = 0.2
    pause_s: float = 0.5  # before a file is tried again, at first
    patience_s: float = 10.0  # of a flush, of a close


class LogStats(NamedTuple):
    """Traces by what became of them, and the bytes of the files that were written.

    `written` + `dropped` + `queued` are the acknowledged records of the sample, and those of which
    there can be no trace.
    """

    written: int
    dropped: int
    queued: int
    bytes: int


class TraceLog:
    """Adds traces to files of a folder. For any thread, also in a child after a fork."""

    def __init__(self, folder: TraceFolder, teller: Teller, limits: LogLimits) -> None:
        self._folder, self._limits = folder, limits
        self._begin(teller)
        _logs.add(self)
        atexit.register(self.close)

    def _begin(self, teller: Teller) -> None:
        """Nothing is added yet, and there is no session."""
        self._teller = replace(teller, session="")
        self._queue = TraceQueue(self._limits.queued)
        self._file = PackedLines(self._teller)
        self._file_since = self._health_since = self._until = time.monotonic()
        self._files = self._written = self._flushed = self._bytes = self._unfit = 0
        self._asked = self._done = 0
        self._is_closed = self._has_told_late = False
        self._thread: threading.Thread | None = None
        self._changed = self._queue.changed

    def begin_in_child(self) -> None:
        """After a fork: what waits is the parent's to write, and so is its session."""
        is_closed = self._is_closed
        self._begin(self._teller)
        if is_closed:
            self._is_closed = True
            self._queue.shut()

    @property
    def stats(self) -> LogStats:
        """What became of the traces so far; after the close nothing waits any more."""
        # In this order: what is written or dropped meanwhile was numbered before.
        written, dropped = self._written, self._dropped()
        rest = self._queue.numbered - written - dropped
        if self._is_closed:  # what even now is not written will not be
            return LogStats(written, dropped + rest, 0, self._bytes)
        return LogStats(written, dropped, rest, self._bytes)

    def add(self, traces: Iterable[TraceColumns | str]) -> None:
        """Takes traces, or reasons why there is none; see `TraceQueue.add`."""
        self._queue.add(traces)
        if self._is_closed and not self._has_told_late:
            self._has_told_late = True
            _warn("the log of session %s is closed: no trace any more", self._teller.session)
        if self._thread is None and not self._is_closed:
            self._start()
        if len(self._queue) > self._limits.queued // 4:
            self._wake()

    def flush(self, timeout_s: float | None = None) -> bool:
        """Whether all that waited before is in files now; waits for it, ten seconds at most.

        A file that could not be written is tried again at once. What was dropped before is in no
        file, and no reason for False: see `stats`.
        """
        patience = self._limits.patience_s if timeout_s is None else timeout_s
        with self._changed:
            if not self._is_at_work():
                return self.stats.queued == 0
            self._asked += 1
            asked = self._asked
            self._changed.notify_all()
            # Not longer than there is somebody to wait for.
            self._changed.wait_for(lambda: self._done >= asked or not self._is_at_work(), patience)
            return self._done >= asked

    def close(self) -> None:
        """Flushes, and ends the thread; what cannot be written in ten seconds is dropped."""
        if self._is_closed:
            return
        atexit.unregister(self.close)
        self._queue.shut()
        with self._changed:
            self._is_closed = True
            # No thread could be had, as in exit handlers from Python 3.12 on, or an error ended it.
            is_alone = len(self._queue) > 0 and not self._is_at_work()
            self._until = time.monotonic() + self._limits.patience_s
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._is_at_work(), self._limits.patience_s)
        if is_alone:
            self._run()
        if dropped := self.stats.dropped:
            _warn("%d traces of session %s were dropped", dropped, self._teller.session)

    def _is_at_work(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _start(self) -> None:
        with self._changed:
            if self._thread is not None or self._is_closed:
                return
            self._health_since = time.monotonic()
            self._thread = threading.Thread(target=self._run, name="shardaudit-traces", daemon=True)
            try:
                self._thread.start()
            except RuntimeError:  # no more threads: the producer goes on, its traces are counted
                self._thread = None

    def _wake(self) -> None:
        # Never waits: whoever holds it will look by itself.
        if self._changed.acquire(blocking=False):
            try:
                self._changed.notify_all()
            finally:
                self._changed.release()

    def _run(self) -> None:
        """The thread, to its end. If an error ends it, the next trace begins another."""
        if not self._teller.session:
            # Not before: whoever is restored from a snapshot shall have a session of its own.
            self._teller = replace(self._teller, session=uuid.uuid4().hex)
        self._file = PackedLines(self._teller)
        try:
            self._work()
        except BaseException:
            self._unfit += self._file.traces
            with suppress(Exception):  # as in `_warn`
                log.exception("traces of session %s are lost", self._teller.session)
        with self._changed:
            self._thread = None
            self._changed.notify_all()

    def _work(self) -> None:
        while True:
            with self._changed:
                if self._asked == self._done and not self._is_closed:
                    self._changed.wait(self._limits.look_every_s)
                asked, is_closing = self._asked, self._is_closed
            self._take()
            if asked > self._done or is_closing or self._is_full() or self._is_minute_over():
                is_asked = asked > self._done
                if not self._write_file(is_last=is_closing, is_asked=is_asked):
                    return
                with self._changed:
                    self._done = asked
                    self._changed.notify_all()
            if is_closing and not len(self._queue):
                return

    def _take(self) -> None:
        if entries := self._queue.take():
            if not self._file.lines:
                self._file_since = time.monotonic()
            self._unfit += self._file.add(entries)

    def _dropped(self) -> int:
        return self._queue.dropped + self._unfit

    def _is_full(self) -> bool:
        is_old = time.monotonic() - self._file_since >= self._limits.file_age_s
        return self._file.size_bytes >= self._limits.file_bytes or (is_old and self._file.lines > 0)

    def _is_minute_over(self) -> bool:
        return time.monotonic() - self._health_since >= self._limits.health_every_s

    def _write_file(self, *, is_last: bool, is_asked: bool) -> bool:
        """Whether the file, if it has lines, is where it belongs; False: there is no time left."""
        # Without lines: a file of health alone, if traces came into others since the last flush.
        is_asked &= self._file.lines > 0 or self._written + self._dropped() > self._flushed
        if self._is_minute_over() or is_last or is_asked:
            self._health_since = time.monotonic()
            told = {"closed": True} if is_last else {"flushed": True} if is_asked else {}
            health = self._health() | told
            self._file.add_health(health, instant_with_ms(now()))
        if not self._file.lines:
            return True
        content = self._file.content()
        name = re.sub(r"[^A-Za-z0-9_.-]", "-", self._teller.producer_id)
        name = f"traces-{name[:100]}-{self._teller.session}-{self._files:06d}"
        # Two that were restored from one snapshot have all the rest in common.
        name = f"{name}-{os.urandom(4).hex()}{ENDING}"
        if not self._write_patiently(name, content):
            return False
        with self._changed:
            self._written += self._file.traces
            self._bytes += len(content)
        self._files += 1
        if is_asked:
            self._flushed = self._written + self._dropped()
        self._file = PackedLines(self._teller)
        return True

    def _write_patiently(self, name: str, content: bytes) -> bool:
        """Whether it was written, in as many tries as it takes; not where a close waits no more."""
        pause_s = self._limits.pause_s
        while True:
            heard = self._calls()
            try:
                self._folder.write(name, content)
            except BaseException as error:  # noqa: BLE001 - a full disk, S3, a client of the caller's
                _warn("%s is not written yet: %s: %s", name, type(error).__name__, error)
            else:
                return True
            with self._changed:
                is_called = self._wait_to_try_again(heard, pause_s)
                if self._is_closed and time.monotonic() >= self._until:
                    return False
                # Whoever flushes or closes waits ten seconds.
                longer_s = min(_LONGEST_PAUSE_S, 2 * pause_s)
                pause_s = self._limits.pause_s if is_called or self._is_closed else longer_s

    def _wait_to_try_again(self, heard: tuple[bool, int], pause_s: float) -> bool:
        """Whether a flush or a close ended the wait."""
        return self._changed.wait_for(lambda: self._calls() != heard, pause_s)

    def _calls(self) -> tuple[bool, int]:
        """Changes with every flush, and with the close."""
        return self._is_closed, self._asked

    def _health(self) -> dict[str, int]:
        """As it is once this file is written, but for its own bytes."""
        # In this order, as in `stats`.
        written, dropped = self._written + self._file.traces, self._dropped()
        queued = self._queue.numbered - written - dropped
        return {"written": written, "dropped": dropped, "queued": queued, "bytes": self._bytes}


def _warn(text: str, *values: object) -> None:
    """Logs. A handler or filter that raises ends neither the caller's call nor the thread."""
    with suppress(Exception):
        log.warning(text, *values)


# Not kept alive by it.
_logs: "weakref.WeakSet[TraceLog]" = weakref.WeakSet()


def _begin_in_child() -> None:
    for each in list(_logs):
        each.begin_in_child()


os.register_at_fork(after_in_child=_begin_in_child)
