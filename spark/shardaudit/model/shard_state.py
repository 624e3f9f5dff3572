"""The words of the watch: what a shard is doing, and how urgent that is."""

from datetime import timedelta
from enum import StrEnum

URGENT_WITHIN = timedelta(hours=6)  # of the time by which a repair must begin


class ShardState(StrEnum):
    """What a shard is doing, the first that holds. Declared in that order (docs/watch.md)."""

    CLOSED = "closed"
    SILENT = "silent"
    REWOUND = "rewound"
    STALLED = "stalled"
    LAGGING = "lagging"
    IDLE = "idle"
    OK = "ok"


class Level(StrEnum):
    """How urgent it is. Declared from the least to the most urgent."""

    NONE = "none"
    NOTICE = "notice"
    WARN = "warn"
    URGENT = "urgent"
    LOST = "lost"

    @property
    def rank(self) -> int:
        """Greater is more urgent."""
        return list(Level).index(self)

    @property
    def is_alarm(self) -> bool:
        """Whether `--check` ends with 3: warn or worse."""
        return self.rank >= Level.WARN.rank
