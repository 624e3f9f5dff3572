"""What of a stream a plan is about: by this, questions for the same are told from others."""

from dataclasses import replace
from datetime import timedelta

from shardaudit.backfill.plan_job import PlanRequest
from shardaudit.model.config.settings import Stream
from shardaudit.model.retention import Retention
from shardaudit.model.window import Window
from tests.builders import T0

HOUR = timedelta(hours=1)
STREAM = Stream.model_validate(
    {"stream_name": "events", "traces": {"path": "traces"}, "sink": {"path": "sink"}}
)
ALL = PlanRequest("events", STREAM, as_of=T0, retention=Retention(24 * HOUR))


def test_all_that_is_open_has_no_scope_whenever_it_is_asked_for() -> None:
    assert (ALL.scope, replace(ALL, as_of=T0 + HOUR).scope) == ("", "")


def test_times_shards_and_the_stuck_tail_are_a_scope() -> None:
    window = Window(T0, T0 + HOUR)
    mine = replace(ALL, window=window, shard_ids=("b", "a a"), include_stuck=True)
    ends = f"--from={T0.isoformat()} --to={(T0 + HOUR).isoformat()}"
    assert mine.scope == f"{ends} '--shard=a a' --shard=b --include-stuck"
    assert replace(ALL, shard_ids=("b",)).scope == "--shard=b"
    assert replace(ALL, include_stuck=True).scope == "--include-stuck"


def test_the_order_of_shards_changes_nothing() -> None:
    one, other = replace(ALL, shard_ids=("a", "b")), replace(ALL, shard_ids=("b", "a", "b"))
    assert one.scope == other.scope
