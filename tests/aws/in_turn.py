"""One command after the other in one process, as quick as one: `python -m tests.aws.in_turn`.

A line of its input is the words of a command, as JSON. What the command prints comes first, then
a line with its exit code.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self

from shardaudit.cli.main import main

_ENDED = "ended with "


class InTurn(AbstractContextManager["InTurn"]):
    """The process, for as long as the block. PySpark's two kinds of session do not mix in one."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.aws.in_turn"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=self._environment,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate(timeout=60)

    def call(self, words: Sequence[str]) -> Any:  # Any: JSON
        """What the command says of its work, which it ended well."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(list(words)) + "\n")
        self._process.stdin.flush()
        said = ""
        for line in self._process.stdout:
            if line.startswith(_ENDED):
                assert line == f"{_ENDED}0\n", f"{line}{words}"
                return json.loads(said)
            said += line
        raise AssertionError(f"no answer to {words}; its words are on stderr")


def _serve() -> None:
    for line in sys.stdin:
        code = main(json.loads(line))
        sys.stdout.write(f"{_ENDED}{int(code)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve()
