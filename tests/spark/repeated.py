"""A stream with losses, audited, whose backfill is then run again and again, or twice at once."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from shardaudit.simulate.job import Endpoints, simulate_stream
from shardaudit.simulate.scenario import Scenario
from shardaudit.simulate.stand_in_process import StandInControl, kinesis_stand_in
from tests.conftest import SPARK_KEYS
from tests.spark.commands import EMBEDDED, audit
from tests.unit.simulate.simulated import Simulated

SCENARIO = Scenario(
    stream="events",
    seed=5,
    messages=2000,
    shards=5,
    start=datetime(2026, 11, 1, tzinfo=UTC),
    hours=24,
    faults={"lost": 30, "replay": 3, "stuck_shard": 1},
)
AS_OF = ["--as-of", SCENARIO.as_of.isoformat()]
PLAN = [EMBEDDED, "backfill", "plan", "--stream", "events", "--include-stuck", *AS_OF, "--json"]


@contextmanager
def audited_losses(folder: Path) -> Iterator[None]:
    """The simulation in the folder; its stream can be read within the block."""
    with kinesis_stand_in() as url:
        simulate_stream(SCENARIO, folder, endpoints=Endpoints(url))
        StandInControl(url).hold(SCENARIO.as_of)  # or the first messages would expire meanwhile
        with (folder / "shardaudit.toml").open("a") as config:
            config.write(f"[spark]\n{SPARK_KEYS}")
        audit(folder, SCENARIO)
        yield


def backfill_words(plan_id: str) -> list[str]:
    """The command that runs the plan."""
    return ["backfill", "run", "--plan", plan_id, "--approve-as", "ann", *AS_OF]


def landed(folder: Path) -> Counter[object]:
    """How often each message stands in the sink."""
    return Counter(row["message_id"] for row in Simulated(folder).sink)


def missing(folder: Path) -> set[object]:
    """The messages that a backfill must bring."""
    return set(Simulated(folder).planted_ids("lost", "stuck_shard"))
