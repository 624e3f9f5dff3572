"""The commands as people run them: processes of their own, to be watched and killed."""

import signal
import subprocess
import sys
import time
from pathlib import Path

from shardaudit.simulate.scenario import Scenario

EMBEDDED = "--engine=embedded"  # of what is no repair


def command(folder: Path, words: list[str]) -> list[str]:
    """The command line for the simulation in a folder."""
    config = str(folder / "shardaudit.toml")
    return [sys.executable, "-m", "shardaudit.cli.main", "--config", config, *words]


def run(folder: Path, words: list[str], *, exit_code: int = 0) -> str:
    """What the command prints."""
    done = subprocess.run(command(folder, words), capture_output=True, text=True, check=False)
    assert done.returncode == exit_code, done.stderr[-2000:]
    return done.stdout


def audit(folder: Path, scenario: Scenario) -> None:
    """Audits all of a simulation, by the embedded engine."""
    window = scenario.window
    times = {"--from": window.start, "--to": window.end, "--as-of": scenario.as_of}
    said = [word for name, at in times.items() for word in (name, at.isoformat())]
    run(folder, [EMBEDDED, "audit", "--stream", scenario.stream, *said])


def started(folder: Path, words: list[str]) -> "subprocess.Popen[str]":
    """The command at work, in a session of its own."""
    return subprocess.Popen(
        command(folder, words),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def killed(folder: Path, words: list[str], *, after_s: float) -> None:
    """Starts the command and kills it, unless it is done before."""
    process = started(folder, words)
    until = time.monotonic() + after_s
    while process.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate()
