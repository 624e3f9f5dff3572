"""The Kinesis stand-in in a process of its own, and the client of its control."""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from shardaudit.model.errors import FinalError

_CONTROL_PATH = "/_control"
STOP_SECONDS = 10
_SOURCES = Path(__file__).parents[2]


class StandInFailedError(FinalError, ChildProcessError):
    """The stand-in did not start."""

    def __init__(self, said: str) -> None:
        super().__init__(f"the Kinesis stand-in did not start: {said.strip() or 'no word of it'}")


class ControlRefusedError(FinalError, ValueError):
    """The endpoint has no control, or refuses what was asked."""

    def __init__(self, url: str, found: str) -> None:
        super().__init__(f"{url}{_CONTROL_PATH}: {found}; only `shardaudit simulate serve` has it")


@contextmanager
def kinesis_stand_in() -> Iterator[str]:
    """The address of a stand-in that lives as long as the block, on a free port of 127.0.0.1.

    Its standard input is a pipe from here: if this process is killed, the pipe closes and it ends.
    """
    command = [sys.executable, "-m", "shardaudit.simulate.serve", "--until-input-ends"]
    paths = (str(_SOURCES), os.environ.get("PYTHONPATH"))
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )
    try:
        said = process.stdout.readline() if process.stdout else ""
        if not said.startswith("http://"):
            raise StandInFailedError(said)
        yield said.strip()
    finally:
        stop(process)


def stop(process: "subprocess.Popen[str]") -> None:
    """Asks a process to end, and makes it when it does not; closes the pipes to it."""
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


class StandInControl:
    """Moves a stand-in's clock and switches its faults (keys: `simulate/stand_in/control.py`)."""

    def __init__(self, url: str) -> None:
        self.url = url

    def is_there(self) -> bool:
        """Whether the endpoint has such a control."""
        try:
            return "held" in self.change({})
        except ControlRefusedError:
            return False

    def hold(self, at: datetime, *, step_ms: float = 0.0) -> None:
        """Time stands still, but for a step after each record that is put."""
        self.change({"clock": {"hold": at.isoformat(), "step_ms": step_ms}})

    def run_from(self, at: datetime) -> None:
        """Time runs from there on."""
        self.change({"clock": {"run_from": at.isoformat()}})

    def change(self, wanted: Mapping[str, object]) -> dict[str, object]:
        """What holds after the change.

        Raises:
            ControlRefusedError: it is no stand-in of ours, or it refused.
        """
        request = urllib.request.Request(  # noqa: S310 - the caller's own endpoint
            self.url + _CONTROL_PATH, data=json.dumps(wanted).encode(), method="POST"
        )
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - as above
                holds: dict[str, object] = json.load(answer)
        except urllib.error.HTTPError as error:
            said = error.read(500).decode(errors="replace")
            raise ControlRefusedError(self.url, said) from error
        except (OSError, ValueError) as error:
            raise ControlRefusedError(self.url, str(error)) from error
        return holds
