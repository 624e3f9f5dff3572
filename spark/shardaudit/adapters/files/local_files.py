"""The files of a folder on this machine, and which of any folder's files are hidden."""

import logging
import os
import stat
from collections.abc import Iterator
from contextlib import suppress

from shardaudit.model.source import SourceFile

log = logging.getLogger(__name__)


def local_files(root: str) -> Iterator[SourceFile]:
    """The files below a folder. Links in it are told and left out: they lead out or back."""
    links: list[str] = []
    for place, folders, names in os.walk(root.rstrip("/") or "/", onerror=_unless_gone):
        folders[:] = [name for name in folders if not is_hidden(name)]
        for path in (f"{place}/{name}" for name in (*folders, *names) if not is_hidden(name)):
            with suppress(FileNotFoundError):  # it is gone by now
                found = os.lstat(path)
                if stat.S_ISREG(found.st_mode):
                    yield SourceFile(path, found.st_size, found.st_mtime_ns // 1_000_000)
                elif stat.S_ISLNK(found.st_mode):
                    links.append(path)
    if links:
        log.warning("%s: %d links are not followed, as %s", root, len(links), min(links))


def _unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def is_hidden(relative: str) -> bool:
    """As Spark sees it: `_col=1` is a partition of a column with an odd name."""
    return any(
        part.startswith(".") or (part.startswith("_") and "=" not in part)
        for part in relative.split("/")
    )
