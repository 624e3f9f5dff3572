"""The embedded engine's temporary folder: gone at the end, or with the next start after a kill."""

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

_PREFIX, _LOCK = "shardaudit-engine-", "held"


@contextmanager
def scratch_folder() -> Iterator[str]:
    """A folder of our own; those that killed processes left behind are removed."""
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        _remove_if_left(left)
    # The kernel gives the lock back when the process ends.
    folder, lock = _held_folder()
    with lock:
        try:
            yield str(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _held_folder() -> tuple[Path, TextIO]:
    """A new folder and its lock, held; another one where a process that starts now removed it."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        lock = (folder / _LOCK).open("w")
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (folder / _LOCK).exists():
            return folder, lock
        lock.close()


def _remove_if_left(folder: Path) -> None:
    """Removes a folder whose process has ended; one without a lock yet is just being made."""
    try:
        with (folder / _LOCK).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    except OSError:  # held, of another user, or not there (any more)
        return
