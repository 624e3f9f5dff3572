"""The published incident, scaled down: the cells of a stream of which one shard stops for days."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from shardaudit.model.tables.table import LATENCY_BINS

MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Incident:
    """One of `shards` stops at `stops_at`, behind a job that goes on; nobody acts.

    `per_minute`: messages of each shard. Rows land two minutes after their minute's begin.
    """

    shards: int = 8
    per_minute: int = 40
    retention: timedelta = timedelta(days=7)
    starts_at: datetime = datetime(2026, 11, 1, tzinfo=UTC)
    stops_at: datetime = datetime(2026, 11, 1, 18, 7, tzinfo=UTC)
    stuck: int = 3

    @property
    def stuck_shard(self) -> str:
        """The shard that stops."""
        return drill_shard(self.stuck)

    def cells(self, since: datetime, until: datetime) -> Iterator[dict[str, object]]:
        """The fingerprints that an ingest at `until` would add to those of `since`."""
        for number in range(self.shards):
            yield from self._side("traces", number, since=since, until=until, after=MINUTE)
            yield from self._side("sink", number, since=since, until=until, after=2 * MINUTE)

    def _side(
        self, side: str, number: int, *, since: datetime, until: datetime, after: timedelta
    ) -> Iterator[dict[str, object]]:
        minute = self.starts_at
        if since > self.starts_at:
            minute = since - after + MINUTE
        while minute + after <= until:
            is_stuck = side == "sink" and number == self.stuck and minute >= self.stops_at
            if not is_stuck:
                yield self._cell(side, number, minute, after=after)
            minute += MINUTE

    def _cell(
        self, side: str, number: int, minute: datetime, *, after: timedelta
    ) -> dict[str, object]:
        bins = [0] * LATENCY_BINS
        bins[7] = self.per_minute  # within 128 s
        return {
            "batch_id": f"drill/{side}/1",
            "side": side,
            "location": "producer" if side == "traces" else "sink",
            "shard_id": drill_shard(number),
            "bucket_start": minute,
            "n": self.per_minute,
            "sum_lo": 0,
            "sum_hi": 0,
            "max_sequence_number": f"{(minute - self.starts_at) // MINUTE + 10**55}",
            "last_at": minute + after - timedelta(seconds=1),
            "latency_counts": bins if side == "sink" else None,
            "sent_day": minute.date(),
            "own_n": 0,
            "without_landed_at": 0,
            "unnumbered_at": None,
        }


def drill_shard(number: int) -> str:
    """As Kinesis writes it."""
    return f"shardId-{number:012d}"
