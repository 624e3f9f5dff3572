"""Whether anybody still looks at a stream: how long ago it was read, audited and watched."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any  # a column's type is what model/tables/watch_tables.py says

from shardaudit.model.config.choices import PositionSource
from shardaudit.model.verdict import Level
from shardaudit.model.words import counted, length
from shardaudit.report.plain import instant

# Older: nobody looks any more. Every night, and two hours for the run itself; every 15 minutes.
OLD_AUDIT, OLD_WATCH = timedelta(hours=26), timedelta(hours=1)
# What the last watch said of shards counts for longer: an alarm does not end as the watch stops.
WATCH_COUNTS_FOR = timedelta(days=1)
# What a watch says where it has nothing bad to tell, and does not know everything.
OK_IN_PART = "ok by what is known"
SUMS_CANNOT_TELL = (
    "sums cannot tell whether something is missing: more landed than was sent, or more comes to "
    "them all the time, or what lacks may be among the sink's rows that lack their own time or "
    "shard; an audit says"
)
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


def not_known(
    shards: Sequence[Mapping[str, Any]],
    positions: Mapping[str, datetime],
    *,
    is_consumer_asked: bool,
) -> tuple[str, ...]:
    """What a stored watch does not know of its shards, a phrase each; none: it knows everything.

    Input:
        shards: its rows of `shards`; none: there was no watch.
        positions: by source of `positions` when that was seen last, at this watch or since.
    """
    if not shards:
        return ()
    watched_at = max(row["observed_at"] for row in shards)
    said = []
    if all(row["opened"] is None for row in shards):
        said.append(
            "Kinesis did not say which shards there are: they are known from before, or from the "
            "traces and the sink alone"
        )
    if is_consumer_asked and not set(positions) - {PositionSource.SINK}:
        said.append("how far the consumer itself says it is")
    last = max(positions.values(), default=watched_at)
    if last > watched_at:
        said.append(f"what landed since: the watch of {instant(last)} could not read the ledger")
    # An audit of holes is wanted, too; but these have a level.
    doubted = [row for row in shards if row["level"] == Level.NONE and row["unnamed_since"]]
    if doubted:
        since = instant(min(row["unnamed_since"] for row in doubted))
        said.append(f"in {counted(len(doubted), 'shard')} from {since} on {SUMS_CANNOT_TELL}")
    return tuple(said)
