"""Trace files that the storage does not give, as for a permission, while it gives others.

One such file ends no ingest: it is set aside by its name, what it may have fed is inconclusive, and
each later ingest tries it again. Where the storage gives nothing at all, nothing is set aside.
"""

import logging
from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

from shardaudit.adapters.files.access_refused import LastingError
from shardaudit.adapters.files.files import FileStore, S3Access, StorageError, at_once, list_files
from shardaudit.ingest.rules.batch_inputs import TraceInputs
from shardaudit.model.source import SourceFile

log = logging.getLogger(__name__)

_ASKED = 16  # files, the newest first, of which the storage must give one

_Result = TypeVar("_Result")


def still_kept_back(done: Iterable[TraceInputs]) -> list[SourceFile]:
    """The files that the last batch which read them had to do without."""
    is_kept_back: dict[SourceFile, bool] = {}
    for inputs in done:
        is_kept_back |= dict.fromkeys(inputs.files, False)
        is_kept_back |= {damage.file: True for damage in inputs.damaged if damage.is_kept_back}
    return [file for file, is_it in is_kept_back.items() if is_it]


def given_again(kept_back: Collection[SourceFile], access: S3Access) -> set[SourceFile]:
    """Those of the files that can be read by now."""
    given = at_once(FileStore(access).gives, [file.path for file in kept_back])
    return {file for file, is_given in zip(kept_back, given, strict=True) if is_given}


def going_on(
    read: Callable[[bool], _Result], *, is_tried_before: bool, gives_others: Callable[[], bool]
) -> _Result:
    """What was read; if need be without the files that the storage does not give.

    Input:
        read: reads all, or with True what is given.
        is_tried_before: whether an earlier run failed already: until then only what is refused is
            done without, and what may pass is left to the next run.
        gives_others: whether the storage gives any file.

    Raises:
        StorageError, LastingError: the storage gives nothing, or may give all of it later.
    """
    try:
        return read(False)
    except (StorageError, LastingError) as error:
        is_final = isinstance(error, LastingError)
        if not (is_final or is_tried_before) or not gives_others():
            raise
        log.warning("set aside by name and tried again by each ingest: %s", error)
    return read(True)


def gives_any(folder: str, access: S3Access) -> bool:
    """Whether the storage gives any file of the folder."""
    listed = list_files(folder, access)
    newest = sorted(listed, key=lambda file: file.modified_ms, reverse=True)[:_ASKED]
    return any(at_once(FileStore(access).gives, [file.path for file in newest]))
