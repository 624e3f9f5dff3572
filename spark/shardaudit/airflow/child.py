"""A command as a child of this process, in a process group of its own, that ends as one."""

import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress

# To stop by itself. Airflow kills a task's own process 5 seconds after it asked it to end.
_POLITE_SECONDS = 3.0


class Child:
    """A command at work: a fresh program, never a fork of this one, with its environment.

    It stays in its parent's session: who ends that, as our local Airflow does, ends it, too.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="backslashreplace",
            process_group=0,
        )

    def followed(self, tell: Callable[[str], None]) -> int:
        """Its exit code, once every line of it was told; below zero the signal that ended it.

        Whatever is raised meanwhile, as a time limit is, ends it.
        """
        assert self._process.stdout is not None  # noqa: S101 - it is a pipe
        with self._process.stdout as lines:
            try:
                for line in lines:
                    tell(line.rstrip())
                return self._process.wait()
            except BaseException:
                self.end()
                self._process.wait()
                raise

    def end(self) -> None:
        """Ends it and its group; first as Ctrl-C does, so that it gives back what it holds.

        May be called by a signal's handler: it waits for no lock that the interrupted code has.
        """
        if self._process.poll() is None:
            self._send(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_POLITE_SECONDS)
        self._send(signal.SIGKILL)

    def _send(self, one: signal.Signals) -> None:
        with suppress(ProcessLookupError):  # all of the group has ended
            os.killpg(self._process.pid, one)
