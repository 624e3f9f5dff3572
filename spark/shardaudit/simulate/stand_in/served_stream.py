"""One stream: its shards, its consumers, which shard takes a hash key, resharding, retention."""

import threading
from bisect import bisect_right
from dataclasses import dataclass, field
from enum import StrEnum

from shardaudit.simulate.stand_in.requests import ACCOUNT, in_use, invalid_argument, not_found
from shardaudit.simulate.stand_in.shard import ServedShard

HASH_SPACE = 2**128
DEFAULT_RETENTION_HOURS = 24  # Kinesis: a new stream keeps a day
MS_PER_HOUR = 3_600_000


class ConsumerStatus(StrEnum):
    """A consumer's life."""

    CREATING = "CREATING"
    ACTIVE = "ACTIVE"
    DELETING = "DELETING"


@dataclass(slots=True)
class Consumer:
    """It belongs to one stream. `subscribed_ms`: by shard, when it last did, machine's time."""

    name: str
    arn: str
    created_ms: int
    busy_until_machine_ms: int
    status: ConsumerStatus = ConsumerStatus.CREATING
    subscribed_ms: dict[str, int] = field(default_factory=dict)


class Status(StrEnum):
    """A stream's life."""

    CREATING = "CREATING"
    ACTIVE = "ACTIVE"
    UPDATING = "UPDATING"


@dataclass(slots=True)
class ServedStream:
    """A named list of shards, open and closed, in the order of their creation."""

    name: str
    mode: str
    created_ms: int
    shards: list[ServedShard]
    retention_hours: int = DEFAULT_RETENTION_HOURS
    status: Status = Status.CREATING
    busy_until_machine_ms: int = 0
    lock: threading.RLock = field(default_factory=threading.RLock)
    open_shards: list[ServedShard] = field(default_factory=list)
    consumers: list[Consumer] = field(default_factory=list)
    _starts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._index_open()

    @property
    def arn(self) -> str:
        """Its name in AWS' own notation."""
        return f"arn:aws:kinesis:us-east-1:{ACCOUNT}:stream/{self.name}"

    def status_at(self, machine_ms: int) -> Status:
        """CREATING and UPDATING end by themselves, by the machine's clock: ours may stand still."""
        if machine_ms >= self.busy_until_machine_ms:
            self.status = Status.ACTIVE
        return self.status

    def require_active(self, machine_ms: int) -> None:
        """Refuses while the stream is being created or resharded."""
        status = self.status_at(machine_ms)
        if status is not Status.ACTIVE:
            raise in_use(
                f"Stream {self.name} under account {ACCOUNT} not ACTIVE, instead in state {status}"
            )

    def horizon_ms(self, now_ms: int) -> int:
        """The arrival time before which nothing is kept."""
        return now_ms - self.retention_hours * MS_PER_HOUR

    def kept_shards(self, now_ms: int) -> list[ServedShard]:
        """The shards that still exist: closed ones leave when the retention has passed."""
        horizon_ms = self.horizon_ms(now_ms)
        return [s for s in self.shards if s.closed_ms is None or s.closed_ms >= horizon_ms]

    def shard(self, shard_id: str, now_ms: int) -> ServedShard:
        """The shard of that id, its expired records trimmed."""
        for shard in self.kept_shards(now_ms):
            if shard.shard_id == shard_id:
                shard.trim(self.horizon_ms(now_ms))
                return shard
        raise not_found(
            f"Shard {shard_id} in stream {self.name} under account {ACCOUNT} does not exist"
        )

    def shard_of(self, hash_key: int) -> ServedShard:
        """The open shard that takes this hash key."""
        return self.open_shards[bisect_right(self._starts, hash_key) - 1]

    def children(self, shard_id: str) -> list[ServedShard]:
        """The shards that came out of splitting or merging this one."""
        return [shard for shard in self.shards if shard_id in shard.parents]

    def keep_for(self, hours: int, now_ms: int) -> None:
        """Changes the retention. What was already out of reach stays so: it is not retroactive."""
        for shard in self.shards:
            shard.trim(self.horizon_ms(now_ms))
        self.retention_hours = hours

    def split(self, shard: ServedShard, new_start: int, now_ms: int) -> None:
        """Closes a shard and opens two, the upper from `new_start` on."""
        self._require_open(shard)
        if not shard.hash_start + 1 <= new_start <= shard.hash_end:
            raise invalid_argument(
                f"NewStartingHashKey {new_start} used in SplitShard() on shard {shard.shard_id} "
                f"in stream {self.name} under account {ACCOUNT} is not both greater than the "
                f"shard's StartingHashKey {shard.hash_start} and at most its EndingHashKey "
                f"{shard.hash_end}."
            )
        shard.close(now_ms)
        parents = (shard.shard_id,)
        self._open(shard.hash_start, new_start - 1, parents=parents, now_ms=now_ms)
        self._open(new_start, shard.hash_end, parents=parents, now_ms=now_ms)

    def merge(self, shard: ServedShard, adjacent: ServedShard, now_ms: int) -> None:
        """Closes two neighbours and opens one over both ranges."""
        self._require_open(shard)
        self._require_open(adjacent)
        if shard.hash_end + 1 != adjacent.hash_start and adjacent.hash_end + 1 != shard.hash_start:
            raise invalid_argument(
                f"Shards {shard.shard_id} and {adjacent.shard_id} in stream {self.name} under "
                f"account {ACCOUNT} are not an adjacent pair of shards eligible for merging"
            )
        shard.close(now_ms)
        adjacent.close(now_ms)
        self._open(
            min(shard.hash_start, adjacent.hash_start),
            max(shard.hash_end, adjacent.hash_end),
            parents=(shard.shard_id, adjacent.shard_id),
            now_ms=now_ms,
        )

    def scale(self, target: int, now_ms: int) -> None:
        """Reshards to so many equal ranges: cuts where a range must end, then merges the pieces."""
        starts = hash_starts(target)
        for start in starts[1:]:
            shard = self.shard_of(start)
            if shard.hash_start != start:
                self.split(shard, start, now_ms)
        for start, end in zip(starts, [*starts[1:], HASH_SPACE], strict=True):
            while (shard := self.shard_of(start)).hash_end + 1 < end:
                self.merge(shard, self.shard_of(shard.hash_end + 1), now_ms)

    def _open(
        self, hash_start: int, hash_end: int, *, parents: tuple[str, ...], now_ms: int
    ) -> None:
        self.shards.append(ServedShard(len(self.shards), hash_start, hash_end, now_ms, parents))
        self._index_open()

    def _index_open(self) -> None:
        self.open_shards = sorted(
            (shard for shard in self.shards if shard.is_open), key=lambda shard: shard.hash_start
        )
        self._starts = [shard.hash_start for shard in self.open_shards]

    def _require_open(self, shard: ServedShard) -> None:
        if not shard.is_open:
            raise invalid_argument(
                f"Shard {shard.shard_id} in stream {self.name} under account {ACCOUNT} has already "
                "been merged or split, and thus is not eligible for merging or splitting."
            )


def hash_starts(count: int) -> list[int]:
    """Where the hash ranges of so many equal shards begin."""
    return [HASH_SPACE // count * index for index in range(count)]


def new_shards(count: int, now_ms: int) -> list[ServedShard]:
    """The shards of a new stream."""
    starts = hash_starts(count)
    ends = [*starts[1:], HASH_SPACE]
    return [
        ServedShard(index, start, end - 1, now_ms)
        for index, (start, end) in enumerate(zip(starts, ends, strict=True))
    ]
