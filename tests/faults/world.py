"""What nights have in common: a stream, S3 with a lake for each, and who starts commands."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue
from uuid import uuid4

from shardaudit.simulate.job import Endpoints, simulate_stream
from shardaudit.simulate.output import BUCKET
from shardaudit.simulate.s3proxy import S3Endpoint, s3_proxy
from shardaudit.simulate.scenario import Scenario
from shardaudit.simulate.stand_in_process import StandInControl, kinesis_stand_in
from tests.faults.forks import Forks
from tests.lease_table import lease_table

# Each waits four fifths of its time: for what the dead hold, and before it tries again.
NIGHTS_AT_ONCE = 5
PLANTED = {"lost": 5, "replay": 3}
SCENARIO = Scenario(
    stream="events",
    seed=5,
    messages=600,
    shards=2,
    start=datetime(2026, 11, 1, tzinfo=UTC),
    hours=6,
    faults=PLANTED,
)


@dataclass(frozen=True, slots=True)
class World:
    """What nights only read: a stream, a lease table; the S3 server of all, a lake for each.

    `idle`: who starts commands, for a night that begins; `opened`: what ends with the world.
    """

    folder: Path
    kinesis_url: str
    dynamodb_url: str
    s3: S3Endpoint
    idle: SimpleQueue[Forks]
    opened: ExitStack

    @contextmanager
    def forks(self) -> Iterator[Forks]:
        """Who starts the commands of one night, which is the block; waits until one is idle.

        Of a night that failed nobody knows what it has still to say: that one starts no other.
        """
        forks = self.idle.get()
        try:
            yield forks
        except BaseException:
            forks = self.opened.enter_context(Forks())
            raise
        finally:
            self.idle.put(forks)

    @contextmanager
    def bucket(self) -> Iterator[Path]:
        """The folder of a bucket with a copy of the lake, as long as nothing fails in the block."""
        bucket = self.folder / "s3" / f"night-{uuid4()}"
        shutil.copytree(self.folder / "lake" / "s3" / BUCKET, bucket)
        yield bucket
        shutil.rmtree(bucket)


@contextmanager
def world_in(folder: Path) -> Iterator[World]:
    """A world, made anew: the dearest part of a night without a repair."""
    with (
        kinesis_stand_in() as url,
        lease_table() as leases,
        s3_proxy(folder / "s3") as s3,
        ExitStack() as stack,
    ):
        idle: SimpleQueue[Forks] = SimpleQueue()
        for _ in range(NIGHTS_AT_ONCE):
            idle.put(stack.enter_context(Forks()))
        simulate_stream(SCENARIO, folder / "lake", endpoints=Endpoints(url, s3=True))
        # Or the first messages would expire meanwhile.
        StandInControl(url).hold(SCENARIO.as_of)
        yield World(folder, url, leases, s3, idle, stack)
