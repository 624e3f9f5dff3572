"""A sink whose landing times are whole hours, or the midnights of somebody's days."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from shardaudit.model.verdict import State
from shardaudit.store.warehouse import Warehouse
from tests.history import Question, SinkRow, Trace
from tests.spark.trial import Trial

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
EARLY, LATE = NOON + 51 * MINUTE, NOON + 3 * HOUR
HOURS = {"hour": NOON, "day": NOON - 12 * HOUR, "day in Delhi": NOON - 17.5 * HOUR}
NO_SHARD = frozenset({"shard_id"})


def traces() -> list[Trace]:
    return [
        Trace(f"m{n}", "shard-0", str(1_000 + n), NOON + n * MINUTE + SECOND) for n in range(51)
    ]


def rows(numbers: range | list[int], *, landed_at: datetime) -> list[SinkRow]:
    return [
        SinkRow(t.message_id, t.shard_id, t.sequence_number, t.sent_at, landed_at)
        for t in (traces()[n] for n in numbers)
    ]


@pytest.mark.parametrize(
    ("unit", "lacks"),
    [
        ("hour", NO_SHARD),
        ("day", frozenset()),
        ("day in Delhi", NO_SHARD),
        pytest.param("hour", frozenset(), marks=pytest.mark.drill),
        pytest.param("day", NO_SHARD, marks=pytest.mark.drill),
        pytest.param("day in Delhi", frozenset(), marks=pytest.mark.drill),
    ],
)
def test_what_another_writer_still_has_is_on_its_way_and_what_never_comes_is_lost(
    warehouse: Warehouse, tmp_path: Path, unit: str, lacks: frozenset[str]
) -> None:
    ask = Question(NOON - HOUR, NOON + HOUR, EARLY, bucket=MINUTE)
    trial = Trial(warehouse, tmp_path, ask, sink_lacks=lacks)
    trial.log(traces())
    trial.land(rows([n for n in range(51) if n not in {40, 45}], landed_at=HOURS[unit]))
    trial.ingest(now=EARLY)
    published = trial.audit()
    assert (published.audit.pending, published.findings) == (2, {})
    trial.land(rows([40], landed_at=HOURS[unit]))
    trial.ingest(now=EARLY + 5 * MINUTE)
    found = trial.audit(Question(NOON - HOUR, NOON + HOUR, LATE, bucket=MINUTE))
    states = {message_id: finding.state for (message_id, _), finding in found.findings.items()}
    assert (found.audit.verdict, states) == ("loss", {"m45": State.OPEN})


@pytest.mark.parametrize("unit", ["hour", "day in Delhi"])
def test_what_landed_before_the_window_by_its_cut_time_is_no_loss_in_a_sink_without_places(
    warehouse: Warehouse, tmp_path: Path, unit: str
) -> None:
    # It begins later than the settle grace after the hour.
    ask = Question(NOON + 20 * MINUTE, NOON + 51 * MINUTE, LATE, bucket=MINUTE)
    trial = Trial(warehouse, tmp_path, ask, sink_lacks=NO_SHARD)
    trial.log(traces())
    trial.land(rows([n for n in range(51) if n != 45], landed_at=HOURS[unit]))
    trial.land(rows([45], landed_at=NOON + HOUR))
    trial.ingest()
    published = trial.audit()
    assert (published.findings, published.audit.matched) == ({}, 31)


def test_shard_with_other_times_leaves_the_others_on_their_way(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    ask = Question(NOON - HOUR, NOON + HOUR, EARLY, bucket=MINUTE)
    trial = Trial(warehouse, tmp_path, ask)
    fine = Trace("fine", "shard-1", "1", NOON)
    local = [replace(t, message_id=f"local {t.message_id}", shard_id="shard-2") for t in traces()]
    trial.log([*traces(), fine, *local])
    landed = rows([n for n in range(51) if n != 45], landed_at=NOON)
    trial.land([*landed, SinkRow("fine", "shard-1", "1", NOON, NOON + SECOND)])
    # Its consumer says the time of New York.
    trial.land(
        [
            SinkRow(t.message_id, t.shard_id, t.sequence_number, t.sent_at, t.sent_at - 5 * HOUR)
            for t in local
            if t.message_id != "local m45"
        ]
    )
    trial.ingest(now=EARLY)
    assert (trial.audit().audit.pending, trial.findings()) == (2, {})
