"""Commands as forks of a process that has imported what they import, and started no engine.

Each is a process of its own, in a group of its own: it starts its engine itself and can be killed
with all that it started. What it spares is the import: as much as a small command's work.
"""

import gc
import importlib
import json
import os
import select
import signal
import subprocess
import sys
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from shardaudit.cli import main

_REPOSITORY = Path(__file__).parents[2]
_IMPORTED = (
    *(f"shardaudit.cli.{name}_command" for name in ("audit", "watch", "backfill")),
    "shardaudit.adapters.quality",
    "pysail.spark",
)
_READY = "ready"
_LIMIT_S = 600  # of a machine that does much beside


class Forks(AbstractContextManager["Forks"]):
    """The process that forks, for as long as the block. One command at a time."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.forks"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            cwd=_REPOSITORY,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._process:
            self._process.kill()

    def start(self, words: list[str], environment: dict[str, str], *, said: Path) -> int:
        """Starts a command that writes to the files `said`.out and `said`.err: its process."""
        assert self._process.stdin is not None
        assert self._said() == _READY
        asked = {"words": words, "environment": environment, "said": str(said)}
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")
        return int(self._said())

    def ended(self, timeout_s: float) -> int | None:
        """The exit code of the command, less than 0 when it was killed; None: it is at work."""
        assert self._process.stdout is not None
        found, _, _ = select.select([self._process.stdout], [], [], timeout_s)
        return int(self._said()) if found else None

    def run(
        self, words: list[str], environment: dict[str, str], *, said: Path
    ) -> "subprocess.CompletedProcess[str]":
        """A command from its start to its end, as `subprocess.run` has it."""
        self.start(words, environment, said=said)
        code = self.ended(_LIMIT_S)
        assert code is not None, f"{words}: at work for {_LIMIT_S} s"
        out, err = (Path(f"{said}.{name}").read_text() for name in ("out", "err"))
        return subprocess.CompletedProcess(words, code, out, err)

    def _said(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().decode().strip()


def _fork_what_is_asked() -> None:
    for name in _IMPORTED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    print(_READY, flush=True)  # noqa: T201 - the protocol
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            _become_command(**json.loads(line))
        with suppress(OSError):  # who comes first does it
            os.setpgid(pid, pid)
        print(pid, flush=True)  # noqa: T201 - the protocol
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))  # noqa: T201
        print(_READY, flush=True)  # noqa: T201


def _become_command(words: list[str], environment: dict[str, str], said: str) -> None:
    with suppress(OSError):
        os.setpgid(0, 0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(f"{said}.{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    os.environ.clear()
    os.environ |= environment
    sys.argv = ["shardaudit", *words]
    try:
        main.process()
    finally:
        os._exit(70)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _fork_what_is_asked()
