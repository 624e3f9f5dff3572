"""The embedded engine's temporary folder: gone at the end, or with the next start after a kill."""

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PREFIX, _LOCK = "shardaudit-engine-", "held"


@contextmanager
def scratch_folder() -> Iterator[str]:
    """A folder of our own; those that killed processes left behind are removed."""
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        _remove_if_left(left)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    with (folder / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the kernel gives it back when the process ends
        try:
            yield str(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _remove_if_left(folder: Path) -> None:
    """Removes a folder whose process has ended; one without a lock yet is just being made."""
    try:
        with (folder / _LOCK).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    except OSError:  # held, of another user, or not there (any more)
        return
