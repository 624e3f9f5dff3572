"""In which rounds the windows of a plan are read: so large that disks hold one."""

import logging
from collections.abc import Callable, Sequence

from shardaudit.backfill.rules.planned import StoredWindow
from shardaudit.model.words import counted
from shardaudit.report.plain import harmless, instant

# What one round may hold at most: the executors keep it on disk until it is merged.
ROUND_BYTES = 4 * 2**30

log = logging.getLogger(__name__)


def in_rounds(
    windows: Sequence[StoredWindow],
    read: Callable[[list[StoredWindow]], int],
    *,
    max_bytes: int = ROUND_BYTES,
) -> None:
    """Has all windows read, in their order.

    A round that fails stops no other, and fails all of it at the end. The second one that fails
    does so at once: it is not the windows' fault then.

    Input:
        read: reads some windows and says how many bytes they held.
    """
    waiting, limit = list(windows), max_bytes
    failure: Exception | None = None
    while waiting:
        these = first_round(waiting, max_bytes=limit)
        waiting = waiting[len(these) :]
        log.info("reads %s; after them %d", _named(these), len(waiting))
        try:
            read_bytes = read(these)
        except Exception as error:
            if failure:
                raise
            failure = error
            said = type(error).__name__  # its words are the run's last
            log.warning("%s failed (%s); the next run reads it again", _named(these), said)
        else:
            limit = next_limit(limit, these, read_bytes=read_bytes, at_most=max_bytes)
    if failure:
        raise failure


def first_round(windows: Sequence[StoredWindow], *, max_bytes: int) -> list[StoredWindow]:
    """The first windows, one at least, of at most so many estimated bytes."""
    found: list[StoredWindow] = []
    size = 0
    for window in windows:
        size += window.estimated_bytes
        if found and size > max_bytes:
            break
        found.append(window)
    return found


def next_limit(
    limit: int, windows: Sequence[StoredWindow], *, read_bytes: int, at_most: int
) -> int:
    """How many estimated bytes the next round may have, when these windows brought so many.

    An estimate is what a full shard would hold. A round holds at most `at_most` bytes when the next
    windows are as full as these; they may be fuller: so it grows tenfold at most.
    """
    estimated = sum(window.estimated_bytes for window in windows)
    fitting = at_most * estimated // max(read_bytes, 1)
    return max(at_most, min(10 * limit, fitting))


def _named(windows: Sequence[StoredWindow]) -> str:
    """Windows by their shards and first deadline."""
    shards = sorted({window.shard_id for window in windows})
    where = harmless(shards[0]) if len(shards) == 1 else counted(len(shards), "shard")
    until = instant(min(window.deadline for window in windows))
    return f"{counted(len(windows), 'window')} of {where} until {until}"
