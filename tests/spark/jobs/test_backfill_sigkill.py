"""Thirty kills at random moments of plan and run, then a last run: each message stands once."""

import json
import random
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from shardaudit.adapters.stand_in import StandInControl, kinesis_stand_in
from shardaudit.jobs.simulate import Endpoints, simulate_stream
from shardaudit.simulate.scenario import Scenario
from tests.spark.jobs.commands import killed, run
from tests.unit.simulate.simulated import Simulated

KILLS = 30
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


@pytest.mark.drill
def test_every_message_lands_once_when_the_backfill_was_killed_again_and_again(
    tmp_path: Path,
) -> None:
    moment = random.Random(20261121)  # noqa: S311 - moments, not secrets
    folder = tmp_path / "demo"
    with kinesis_stand_in() as url:
        simulate_stream(SCENARIO, folder, endpoints=Endpoints(url))
        StandInControl(url).hold(SCENARIO.as_of)  # or the first messages would expire meanwhile
        window = SCENARIO.window
        times = ["--from", window.start.isoformat(), "--to", window.end.isoformat()]
        run(folder, ["audit", "--stream", "events", *times, *AS_OF])
        plan = ["backfill", "plan", "--stream", "events", "--include-stuck", *AS_OF]
        for kill in range(3):
            killed(folder, plan, after_s=moment.uniform(4, 20) if kill else 8)
        planned = json.loads(run(folder, [*plan, "--json"]))
        assert sum(line["expected_ids"] for line in planned["windows"]) > 100
        words = ["backfill", "run", "--plan", planned["plan_id"], "--approve-as", "ann", *AS_OF]
        before = Counter(row["message_id"] for row in Simulated(folder).sink)
        for _ in range(KILLS - 3):
            killed(folder, words, after_s=moment.uniform(5, 45))
        run(folder, words)
        run(folder, words)
    landed = Counter(row["message_id"] for row in Simulated(folder).sink)
    missing = Simulated(folder).planted_ids("lost", "stuck_shard")
    assert {landed[one] for one in missing} == {1}
    assert {one: n for one, n in landed.items() if one not in missing} == before
