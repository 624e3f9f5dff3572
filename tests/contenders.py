"""Other processes that want a warehouse, for the tests of the lock."""

import subprocess
import sys
from types import TracebackType
from typing import Self

from shardaudit.model.config.settings import Settings

# Tries to hold the warehouse at each "take", until "give"; says how that went.
_PROGRAM = """
import sys
from shardaudit.store.lock import warehouse_lock
from shardaudit.model.config.settings import Settings
from shardaudit.model.errors import WarehouseBusyError
settings = Settings.model_validate_json(sys.argv[1])
print("ready", flush=True)
for line in sys.stdin:
    if line == "take\\n":
        try:
            with warehouse_lock(settings, owner="other"):
                print("held", flush=True)
                sys.stdin.readline()
        except WarehouseBusyError:
            print("busy", flush=True)
            sys.stdin.readline()
        print("gave", flush=True)
"""


class Contender:
    """One such process, with the environment of this one."""

    def __init__(self, settings: Settings) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, settings.model_dump_json(exclude_defaults=True)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        assert self.answer() == "ready"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.communicate(timeout=20)

    @property
    def pid(self) -> int:
        return self._process.pid

    def take(self) -> str:
        """Makes it try; `held` or `busy`."""
        self.tell("take")
        return self.answer()

    def give(self) -> None:
        """Makes it give the warehouse back."""
        self.tell("give")
        assert self.answer() == "gave"

    def race(self, other: Self) -> list[str]:
        """Both try at once and give back what they got; how it went, sorted."""
        for racer in (self, other):
            racer.tell("take")
        answers = sorted(racer.answer() for racer in (self, other))
        for racer in (self, other):
            racer.give()
        return answers

    def kill(self) -> None:
        """SIGKILL, and waits until it is gone."""
        self._process.kill()
        self._process.wait()

    def tell(self, line: str) -> None:
        """Says a line to it."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        """Its next line."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()
