"""A process that ends with us, and all that it started with it, whatever ends us."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

# The pipe is closed by whatever ends this process.
_BOUND = (
    'exec 3<&0; "$@" 3<&- </dev/null & started=$!; { read -r _ <&3; kill -KILL 0; } & wait $started'
)
_PAUSE_S, _PATIENCE_S = 0.1, 300


class BoundProcess:
    """A command in a group of processes of its own, and the log into which it writes."""

    def __init__(self, words: list[str], environment: Mapping[str, str], log: Path) -> None:
        self._log = log
        with log.open("w") as output:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _BOUND, "sh", *words],
                env=dict(environment),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                process_group=0,
            )

    def said(self, pattern: str) -> str:
        """The first group of what it says sooner or later."""
        until = time.monotonic() + _PATIENCE_S
        while time.monotonic() < until:
            if found := re.search(pattern, self.words()):
                return found[1]
            assert self._process.poll() is None, f"no {pattern!r}: {self.words()[-2000:]}"
            time.sleep(_PAUSE_S)
        raise AssertionError(f"{pattern!r} was not said: {self.words()[-2000:]}")

    def words(self) -> str:
        """What it said so far."""
        return self._log.read_text(errors="replace")

    def exit_code(self, *, within_s: float = 2 * _PATIENCE_S) -> int:
        """How it ended by itself."""
        try:
            return self._process.wait(within_s)
        finally:
            self.kill()

    def kill(self) -> None:
        """SIGKILL, for it and all that it started; once, as its number may be another's then."""
        assert self._process.stdin is not None
        if self._process.stdin.closed:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.stdin.close()
        self._process.wait()
