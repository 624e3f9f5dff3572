"""Whether another process of this machine still lives."""

import os
import platform
import subprocess
from pathlib import Path

_PROC = Path("/proc")


def machine() -> str:
    """A name of this machine's process numbers: the same pid on an equal name is the same process.

    The host name alone would not do: containers share names, and each has a pid 1.
    """
    if not (_PROC / "self/ns/pid").exists():
        return platform.node()
    boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    return f"{platform.node()} {boot} {(_PROC / 'self/ns/pid').stat().st_ino}"


def started(pid: int) -> str | None:
    """When the process started, as a text to compare; None when it is gone or only not yet buried.

    A pid is used again: an equal start time tells that it is the same process.
    """
    if not (_PROC / "self/stat").exists():
        return _started_by_ps(pid)
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()  # the name before it may hold anything
    state, ticks = fields[0], fields[19]  # proc(5): fields 3 and 22
    return None if state in "ZX" else ticks


def own_start() -> str:
    """When this process started."""
    return started(os.getpid()) or "unknown"


def _started_by_ps(pid: int) -> str | None:
    """The same on macOS, which has no /proc."""
    answer = subprocess.run(
        ["/bin/ps", "-o", "state=,lstart=", "-p", str(pid)],
        capture_output=True,
        text=True,
        check=False,
    )
    state, _, start = answer.stdout.strip().partition(" ")
    return None if not start or state.startswith("Z") else start.strip()
