"""What came too late for the window of any audit: which cells, and what people are told."""

from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from shardaudit.audit.rules.classify import Damage
from shardaudit.audit.rules.vanished import Deadlines
from shardaudit.audit.unseen import less_the_audited, unseen_cells
from shardaudit.model.retention import Longer, Retention
from shardaudit.model.verdict import Kind, State, Verdict
from shardaudit.model.window import Window
from shardaudit.store.warehouse import Warehouse
from tests.builders import T0
from tests.history import Question, SinkRow, Trace
from tests.spark.audit.frames import frame
from tests.spark.trial import Trial

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
WINDOW = Window(T0, T0 + 2 * HOUR)
NOW = T0 + 2 * HOUR
SUMS = ("n", "sum_lo", "sum_hi")
DDL = (
    "shard_id string, bucket_start timestamp, arrived_until timestamp, has_lost_rows boolean, "
    "sent_key string, "
    + ", ".join(f"{side}_{name} bigint" for side in ("sent", "landed") for name in SUMS)
)
FACTS_DDL = (
    "shard_id string, settled_frontier string, has_position boolean, patience double, "
    "shard_state string"
)

Row = dict[str, object]
# What differs from a cell of two messages, held back for nine days, of which one lacks.
CASES: dict[str, tuple[Row, int | None]] = {
    "held back": ({}, 1),
    "all lack": ({"landed_n": 0}, 2),
    "doubled": ({"landed_n": 3}, 1),
    "others": ({"landed_n": 2}, 1),
    "landed": ({"landed_n": 2, "landed_sum_lo": 5}, None),
    "in the window": ({"bucket_start": T0}, None),
    "just before": ({"bucket_start": T0 - MINUTE}, 1),
    "came on the edge": ({"arrived_until": T0}, None),
    "came before": ({"arrived_until": T0 - MINUTE}, None),
    "came behind the edge": ({"arrived_until": T0 + MINUTE}, 1),
    "never sent": ({"arrived_until": None, "sent_n": 0}, None),
    "behind the consumer": ({"sent_key": "k20", "arrived_until": NOW}, 1),
    "on its way": ({"sent_key": "k21"}, None),
    "ahead of a stop": ({"sent_key": "k21", "shard_state": "stalled"}, 1),
    "ahead of a stop, but new": (
        {"sent_key": "k21", "shard_state": "stalled", "arrived_until": NOW - 10 * MINUTE},
        None,
    ),
    "of a silent shard": ({"settled_frontier": None, "shard_state": "silent"}, 1),
    "without position": ({"sent_key": "k21", "has_position": False}, 1),
    "without number": ({"sent_key": None, "arrived_until": NOW - 11 * MINUTE}, 1),
    "without number, new": ({"sent_key": None, "arrived_until": NOW - 10 * MINUTE}, None),
    "cleared": ({"has_lost_rows": True}, 1),
    "in the dark": ({"bucket_start": T0 - 20 * DAY}, None),
}


def cells(spark: SparkSession, *, by: Deadlines | None = None) -> dict[str, int]:
    usual: Row = {"bucket_start": T0 - 9 * DAY, "arrived_until": T0 + HOUR, "has_lost_rows": False}
    usual |= {"sent_n": 2, "sent_sum_lo": 5, "sent_sum_hi": 0, "sent_key": "k10"}
    usual |= {"landed_n": 1, "landed_sum_lo": 2, "landed_sum_hi": 0}
    usual |= {"settled_frontier": "k20", "has_position": True, "patience": 600.0}
    usual |= {"shard_state": "advancing"}
    rows = [usual | {"shard_id": name} | changed for name, (changed, _) in CASES.items()]
    names = [part.split()[0] for part in FACTS_DDL.split(", ")]
    facts = [{name: row[name] for name in names} for row in rows]
    sums = [{n: v for n, v in row.items() if n == "shard_id" or n not in names} for row in rows]
    dark = ((T0 - 20 * DAY, T0 - 20 * DAY + MINUTE),)
    by = by or Deadlines(MINUTE, Retention(DAY), NOW, Damage(sink=dark))
    found = unseen_cells(
        frame(spark, DDL, sums), frame(spark, FACTS_DDL, facts), by, window=WINDOW
    ).collect()
    return {row.shard_id: row.lacking for row in found}


def test_cells_before_the_window_are_told_that_lack_what_came_within_it(
    spark: SparkSession,
) -> None:
    assert cells(spark) == {name: lacking for name, (_, lacking) in CASES.items() if lacking}


@pytest.mark.parametrize(
    ("kept", "is_told"),
    [
        (Retention(HOUR - MINUTE), True),
        (Retention(HOUR - 2 * MINUTE), False),
        (Retention(MINUTE, longer=(Longer(DAY, NOW),)), False),
        (Retention(MINUTE, longer=(Longer(DAY, NOW + MINUTE),)), True),
    ],
)
def test_what_a_lake_drops_is_not_told_when_the_stream_has_none_of_it(
    spark: SparkSession, kept: Retention, is_told: bool
) -> None:
    by = Deadlines(MINUTE, kept, NOW, Damage())
    assert ("cleared" in cells(spark, by=by)) is is_told


def test_what_an_audit_saw_as_it_is_is_not_told_again(spark: SparkSession) -> None:
    cell = {"bucket_start": T0, "lacking": 1, "digest": 7}
    named = [{"shard_id": name} | cell for name in ("seen", "changed", "on its way", "never")]
    seen = {"bucket_start": T0, "pending": 0, "sums_digest": 7}
    audited = [
        {"shard_id": "seen"} | seen,
        {"shard_id": "changed"} | seen | {"sums_digest": 8},
        {"shard_id": "on its way"} | seen | {"pending": 1},
        {"shard_id": "another"} | seen,
    ]
    left = less_the_audited(
        frame(
            spark, "shard_id string, bucket_start timestamp, lacking bigint, digest bigint", named
        ),
        frame(
            spark,
            "shard_id string, bucket_start timestamp, pending bigint, sums_digest bigint",
            audited,
        ),
    )
    assert {row.shard_id for row in left.collect()} == {"changed", "on its way", "never"}


def test_a_message_that_was_held_back_for_longer_than_an_audit_looks_back_is_not_forgotten(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    """Sent nine days ago by two devices, acknowledged now; the window has seven days."""
    old, noon = T0 - 9 * DAY, T0
    question = Question(noon - 7 * DAY, noon, noon + HOUR, bucket=HOUR)
    trial = Trial(warehouse, tmp_path, question)
    numbers = {"here": (old, "1"), "lost": (old, "2"), "now": (noon - HOUR, "3")}
    trial.log(
        Trace(name, "shard-0", number, at, acked_at=noon - HOUR)
        for name, (at, number) in numbers.items()
    )
    trial.land([SinkRow(n, "shard-0", numbers[n][1], numbers[n][0], noon) for n in ("here", "now")])
    trial.ingest()
    first = trial.audit()
    assert Verdict(first.audit.verdict) is Verdict.OK
    assert (first.audit.unseen, first.audit.unseen_from) == (1, old)
    assert first.watermark == old
    assert "nobody audited it" in first.audit.watermark_reason
    again = trial.audit(Question(noon - DAY, noon, noon + HOUR, bucket=HOUR))
    assert (again.audit.unseen, again.watermark) == (1, old)

    by_hand = Question(old, old + HOUR, noon + HOUR, bucket=HOUR)
    found = trial.audit(by_hand).findings
    assert found["lost", Kind.MISSING].state is State.OPEN
    told = trial.audit()
    assert (told.audit.unseen, told.audit.unseen_from) == (0, None)
    assert "1 message missing" in told.audit.watermark_reason
    trial.set_states({("lost", Kind.MISSING): State.ACCEPTED})
    assert trial.audit().watermark == noon
