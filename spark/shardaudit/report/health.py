"""Whether anybody still looks at a stream: how long ago it was read, audited and watched."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from shardaudit.model.words import length

# Older: nobody looks any more. Every night, and two hours for the run itself; every 15 minutes.
OLD_AUDIT, OLD_WATCH = timedelta(hours=26), timedelta(hours=1)
# What the last watch said of shards counts for longer: an alarm does not end as the watch stops.
WATCH_COUNTS_FOR = timedelta(days=1)
# Not of what was read: a stream may be silent for days, and is looked at all the same.
_LIMITS = {"audited": OLD_AUDIT, "watched": OLD_WATCH}


@dataclass(frozen=True, slots=True)
class Health:
    """When a stream was last looked at; None: never.

    `read_at`: when something new was last read, of the side (traces, sink) for which that is longer
    ago; `audited_at`: the "now" of the published audit that reaches furthest. `to_come`: what was
    done at a time that has not come yet, a phrase each; none of these times is of it.
    """

    read_at: datetime | None
    audited_at: datetime | None
    watched_at: datetime | None
    to_come: tuple[str, ...] = ()

    @property
    def times(self) -> Mapping[str, datetime | None]:
        """The times by what was done then."""
        return {"read": self.read_at, "audited": self.audited_at, "watched": self.watched_at}

    def troubles(self, now: datetime) -> list[str]:
        """What was never done or too long ago, a phrase each; none when all is recent."""
        old = [
            _said(what, at, now)
            for what, at in self.times.items()
            if at is None or (what in _LIMITS and is_old(at, now, limit=_LIMITS[what]))
        ]
        return [*old, *self.to_come]

    def sentence(self, now: datetime) -> str:
        """All of it in one sentence."""
        said = [_said(what, at, now) for what, at in self.times.items()]
        return ", ".join([*said, *self.to_come])


def _said(what: str, at: datetime | None, now: datetime) -> str:
    return f"never {what}" if at is None else f"{what} {length(now - at)} ago"


def is_old(at: datetime | None, now: datetime, *, limit: timedelta) -> bool:
    """Whether the last look was too long ago, or never was."""
    return at is None or now - at > limit
