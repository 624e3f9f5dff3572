"""`deploy/iam/`: every call of a full run is granted, and every grant is used."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from shardaudit.simulate.s3proxy import REGION
from shardaudit.simulate.stand_in.requests import ACCOUNT
from tests.aws.full_run import STREAM, Run, embedded, judged, landed_by, looked_at, repaired
from tests.aws.recorded_world import (
    AGAIN,
    OLDER,
    PARQUET,
    WAREHOUSE,
    World,
    world,
    write_parquet_sink,
)
from tests.policies import Grant, granted, needed, unused_grants

pytestmark = pytest.mark.aws

STREAM_ARN = f"arn:aws:kinesis:{REGION}:{ACCOUNT}:stream/events"
VALUES = {
    "REGION": REGION,
    "ACCOUNT": ACCOUNT,
    "STREAM": "events",
    "OTHER_STREAM": AGAIN,
    "TRACES_BUCKET": "logs",
    "TRACES_FOLDER": "traces",
    "SINK_BUCKET": "lake",
    "SINK_FOLDER": "sink",
    "WAREHOUSE_BUCKET": "tables",
    "WAREHOUSE_FOLDER": WAREHOUSE,
    "REQUESTS_BUCKET": "requests",
    "REQUESTS_FOLDER": "asked",
    "LEASE_TABLE": "consumer",
}
# What a configuration adds to a command's own policy.
ALSO = {"watch": ["watch-kcl"], "backfill-run": ["backfill-merge"]}
MODES = {
    "backfill-request": 'mode = "request"\nrequest_to = "s3a://requests/asked"',
    "backfill-republish": f'mode = "republish"\nrepublish_to = "{AGAIN}"',
    "backfill-append": "",
    "backfill-fan-out": "fanout = true",
}
ON_SPARK = "apache-spark"


def differences(
    made: World, actor: str, policies: Iterable[str], **values: str
) -> tuple[list[Grant], list[Grant]]:
    """The calls that nothing grants, and the grants that no call uses and no reason excuses."""
    names, filled = list(policies), VALUES | values
    asked = needed(made.calls[actor], stream_arn=STREAM_ARN)
    given = {name: granted(name, filled) for name in names}
    everything = {grant for grants in given.values() for grant in grants}
    idle = {
        grant
        for name, grants in given.items()
        for grant in grants - unused_grants(name, filled)
        if not any(grant.covers(one) for one in asked)
    }
    bare = [one for one in asked if not any(grant.covers(one) for grant in everything)]
    return sorted(bare), sorted(idle)


def found_by_actor(made: World) -> dict[str, tuple[list[Grant], list[Grant]]]:
    """The differences of each actor from its policies."""
    return {
        actor: differences(
            made,
            actor,
            [actor, *ALSO.get(actor, [])],
            WAREHOUSE_FOLDER=OLDER if actor == "migrate" else WAREHOUSE,
        )
        for actor in made.calls
    }


@pytest.mark.drill
def test_calls_and_grants_are_the_same_when_every_command_ran(tmp_path: Path) -> None:
    with world(tmp_path) as made, embedded(made) as run:
        looked_at(run)
        repaired(run)
    assert {a: one for a, one in found_by_actor(made).items() if one != ([], [])} == {}


@pytest.mark.drill
def test_calls_and_grants_are_the_same_on_apache_spark(tmp_path: Path) -> None:
    with world(tmp_path) as made:
        run = Run(made)
        run.command("ingest", "ingest", *STREAM)  # leaves a lock to be deleted
        judged(run)
        for command in ("backfill", "dedupe"):
            run.command(f"{command}-plan", command, "plan", *STREAM)
    # What Spark writes by itself in them: up to 50,000 rows, as `findings accept` has here, the
    # driver writes.
    asked = {"audit", "backfill-plan"}
    found = {
        actor: differences(made, actor, [actor, *ALSO.get(actor, []), ON_SPARK])
        for actor in made.calls
    }
    assert {actor: bare for actor, (bare, _) in found.items() if bare} == {}
    assert {actor: idle for actor, (_, idle) in found.items() if actor in asked and idle} == {}


@pytest.mark.drill
@pytest.mark.parametrize("mode", MODES)
def test_calls_and_grants_are_the_same_in_each_mode(mode: str, tmp_path: Path) -> None:
    is_append = mode == "backfill-append"
    with world(tmp_path) as made, embedded(made) as run:
        if is_append:
            write_parquet_sink(made)
        with made.client("kinesis", made.urls["kinesis"]) as kinesis:
            kinesis.create_stream(StreamName=AGAIN, ShardCount=1)
        sink = {"sink": PARQUET} if is_append else {}
        landed_by(run, mode, backfill=MODES[mode], **sink)
    also = ["backfill-merge"] if mode == "backfill-fan-out" else []
    values = {"WAREHOUSE_FOLDER": mode, "SINK_FOLDER": "files" if is_append else "sink"}
    bare, _ = differences(made, mode, ["backfill-run", mode, *also], **values)
    _, idle = differences(made, mode, [mode], **values)
    assert (bare, idle) == ([], [])
