"""A plan's windows in rounds: read and landed together, one round after the other."""

import logging
from collections.abc import Callable, Sequence

from shardaudit.adapters.lake.delta_rs import Row
from shardaudit.report.plain import counted, harmless, instant

# What one round may hold at most: the executors keep it on disk until it is merged.
ROUND_BYTES = 4 * 2**30

log = logging.getLogger(__name__)


def in_rounds(
    windows: Sequence[Row], read: Callable[[list[Row]], int], *, max_bytes: int = ROUND_BYTES
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


def first_round(windows: Sequence[Row], *, max_bytes: int) -> list[Row]:
    """The first windows, one at least, of at most so many estimated bytes."""
    found: list[Row] = []
    size = 0
    for row in windows:
        size += int(row["estimated_bytes"])
        if found and size > max_bytes:
            break
        found.append(row)
    return found


def next_limit(limit: int, windows: Sequence[Row], *, read_bytes: int, at_most: int) -> int:
    """How many estimated bytes the next round may have, when these windows brought so many.

    An estimate is what a full shard would hold. A round holds at most `at_most` bytes when the next
    windows are as full as these; they may be fuller: so it grows tenfold at most.
    """
    estimated = sum(int(row["estimated_bytes"]) for row in windows)
    fitting = at_most * estimated // max(read_bytes, 1)
    return max(at_most, min(10 * limit, fitting))


def _named(windows: Sequence[Row]) -> str:
    """Windows by their shards and first deadline."""
    shards = sorted({str(row["shard_id"]) for row in windows})
    where = harmless(shards[0]) if len(shards) == 1 else counted(len(shards), "shard")
    until = instant(min(row["deadline"] for row in windows))
    return f"{counted(len(windows), 'window')} of {where} until {until}"
