"""One engine in a process of its own: PySpark's two kinds of session do not mix in one.

It is told line by line which function of the tests to call, with values that JSON can hold; the
function gets the engine first. What it gives back comes as one line.
"""

import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self

from shardaudit.adapters.engine.door import started
from tests.conftest import engine_settings

_ANSWER = "answer: "


class EngineProcess(AbstractContextManager["EngineProcess"]):
    """A process with one engine, for as long as the block."""

    def __init__(self, engine: str) -> None:
        self.engine = engine

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.engines.process", self.engine],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
        self._process.stdout.close()

    def call(self, function: Callable[..., object], **values: object) -> Any:  # Any: JSON
        """What the function gives back in that process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = {"module": function.__module__, "name": function.__name__, "values": values}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith(_ANSWER):
                return json.loads(line.removeprefix(_ANSWER))
        raise AssertionError(f"{self.engine}: no answer to {order}; its words are on stderr")


def main(name: str) -> None:
    """Does what it is told until its input ends."""
    with started(engine_settings(name), app="tests") as engine:
        for line in sys.stdin:
            order = json.loads(line)
            function = getattr(importlib.import_module(order["module"]), order["name"])
            answer = json.dumps(function(engine, **order["values"]))
            sys.stdout.write(f"{_ANSWER}{answer}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
