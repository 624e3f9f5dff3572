"""Whether a run that holds a lock still does anything, by what it and all that it started use.

Each outside call has its own limit. This is for what none has: an engine that waits for itself.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from shardaudit.model.errors import RetryableError
from shardaudit.model.exit_code import ExitCode

# A false alarm costs an audit, a late one only time. All limits of one outside call end before, and
# who waits for the warehouse, for an hour, still gets it.
STILL_AFTER = timedelta(minutes=20)
# Of all processes together, in that time: 0.8 % of one processor. Apache Spark that waits uses 6
# (measured), the embedded engine 1, and the renewing of a lock on S3 another one.
LEAST_WORK_S = 10.0
# A look that comes late, as after SIGSTOP or a laptop's sleep, says nothing of the time before.
_LOOK_S = 30.0
_POLITE_S = 10.0  # less than what ends a tidying up that hangs: `adapters/engine/connect.py`
_PROC = Path("/proc")
_TICK = os.sysconf("SC_CLK_TCK")


class StandstillError(RetryableError, TimeoutError):
    """This run did nothing for long, and gave up."""

    def __init__(self) -> None:
        minutes = STILL_AFTER // timedelta(minutes=1)
        super().__init__(
            f"stands still: no outside call ended and no processor was used for {minutes} minutes; "
            "the run ends and gives its lock back, another try begins anew"
        )


class _Calls:
    ended = 0


def call_ended() -> None:
    """Tells that something outside has answered."""
    _Calls.ended += 1  # one that is lost between two threads is no matter


def processor_seconds() -> float | None:
    """What this process and those below it have used of processors; None: the system cannot say."""
    if not (_PROC / "self/stat").exists():
        return None
    return sum(_spent(pid) for pid in (os.getpid(), *_below(os.getpid())))


def _spent(pid: int) -> float:
    """Of a process, and of those that it has seen end; 0 when it is gone."""
    fields = _stat(pid)
    return sum(int(ticks) for ticks in fields[11:15]) / _TICK  # proc(5): fields 14 to 17


def _below(pid: int) -> Iterator[int]:
    """The processes that a process has started, and those that they have."""
    parents = {int(path.name): _stat(int(path.name)) for path in _PROC.glob("[0-9]*")}
    of = {child: int(fields[1]) for child, fields in parents.items() if fields}
    found = {pid}
    while new := {child for child, parent in of.items() if parent in found} - found:
        yield from new
        found |= new


def _stat(pid: int) -> list[str]:
    """What proc(5) says of a process, from its field 3 on; nothing when it is gone, or hidden.

    Its name may be no text.
    """
    try:
        said = (_PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return []
    return said.rpartition(b")")[2].decode().split()


@dataclass(slots=True)
class Pulse:
    """Looks at this process and those below it.

    Input:
        spent: their processor time in seconds; None where nobody can tell, which is taken for work.
    """

    spent: Callable[[], float | None] = processor_seconds
    clock: Callable[[], float] = time.monotonic
    _stood: float = 0.0
    _looked_at: float | None = None
    _seen: tuple[int, float] = (-1, 0.0)

    def stands_still(self) -> bool:
        """Whether nothing was done for too long. Each call is a look."""
        at, calls, spent = self.clock(), _Calls.ended, self.spent()
        passed = 0.0 if self._looked_at is None else min(at - self._looked_at, _LOOK_S)
        self._looked_at, self._stood = at, self._stood + passed
        calls_then, spent_then = self._seen
        # Less than before: a process has ended, and its parent has not yet looked after it.
        if spent is None or calls != calls_then or not 0 <= spent - spent_then < LEAST_WORK_S:
            self._seen, self._stood = (calls, spent or 0.0), 0.0
        return self._stood > STILL_AFTER.total_seconds()


def end_run(is_over: Callable[[float], bool]) -> None:
    """Ends this process as Ctrl-C does; where that hangs, too, with all that it started.

    Input:
        is_over: waits for so many seconds; whether the run has ended in them.
    """
    os.kill(os.getpid(), signal.SIGINT)
    if not is_over(_POLITE_S):
        # A JVM that woke up later would go on writing.
        for pid in _below(os.getpid()):
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        os._exit(ExitCode.RETRY)
