"""Keeps a reader of one shard below its share of calls and bytes."""

import time
from collections.abc import Callable

from shardaudit.model.retention import seconds_to_read

_LONGEST_SILENCE_S = 120.0  # with the call and the pause that follow, below three minutes


class Pace:
    """A token bucket that holds one call and owes bytes: what was read is waited for afterwards.

    It also knows for how long the shard has answered nothing: `given_up` says why nobody waits any
    more, in this window or a later one.

    Kinesis tells the size of a page only by giving it; so the wait comes before the next call.
    """

    def __init__(
        self,
        read_share: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._read_share = read_share
        self._clock, self._sleep = clock, sleep
        self._free_at = clock()
        self._silent_since: float | None = None
        self.given_up: str | None = None

    def wait(self) -> None:
        """Returns when the next call may be made."""
        left = self._free_at - self._clock()
        if left > 0:
            self._sleep(left)

    def called(self, size_bytes: int) -> None:
        """Counts a call that was made, and what it brought."""
        cost = seconds_to_read(size_bytes, calls=1, share=self._read_share)
        self._free_at = max(self._free_at, self._clock()) + cost

    def answered(self) -> None:
        """Notes that a call brought something, be it an empty page."""
        self._silent_since = None

    def is_silent(self) -> bool:
        """Notes a call that brought nothing: whether that has lasted for too long by now."""
        now = self._clock()
        self._silent_since = now if self._silent_since is None else self._silent_since
        return now - self._silent_since >= _LONGEST_SILENCE_S

    def pause(self, seconds: float) -> None:
        """Waits longer: the shard is throttled."""
        self._sleep(seconds)
