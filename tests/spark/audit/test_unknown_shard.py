"""Rows of the sink that have neither a shard nor a trace: what they are in the verdict."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from shardaudit.model.verdict import Verdict
from shardaudit.store.warehouse import Warehouse
from tests.history import History, Question, SinkRow, Trace
from tests.oracle import reconcile
from tests.spark.trial import Trial

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
ASK = Question(NOON, NOON + HOUR, NOON + 3 * HOUR, bucket=MINUTE, trace_coverage_floor=0.9)


def history(*, landed: int, traced: int) -> History:
    """Messages that landed in rows without a shard; the first of them have a trace."""
    times = [NOON + n * MINUTE for n in range(landed)]
    return History(
        traces=tuple(
            Trace(f"m{n}", "shard-0", str(1_000 + n), at) for n, at in enumerate(times[:traced])
        ),
        rows=tuple(
            SinkRow(f"m{n}", "-", None, at, at + MINUTE, lacks=frozenset({"shard_id"}))
            for n, at in enumerate(times)
        ),
    )


@pytest.mark.parametrize(
    ("traced", "verdict"),
    [
        pytest.param(40, Verdict.OK, marks=pytest.mark.drill),
        pytest.param(39, Verdict.UNTRACED, marks=pytest.mark.drill),
        (36, Verdict.UNTRACED),
        (35, Verdict.INCONCLUSIVE),
    ],
)
def test_they_are_inconclusive_when_the_stream_has_too_few_traces(
    warehouse: Warehouse, tmp_path: Path, traced: int, verdict: Verdict
) -> None:
    of_all = history(landed=40, traced=traced)
    trial = Trial(warehouse, tmp_path, ASK, sink_lacks=frozenset({"shard_id"}))
    trial.log(of_all.traces)
    trial.land(of_all.rows)
    trial.ingest()
    published, expected = trial.audit(), reconcile(of_all, ASK)
    assert (published.audit.verdict, expected.verdict) == (verdict, verdict)
    assert published.cells == expected.cells


@pytest.mark.parametrize(
    ("held_back", "is_acked"),
    [
        pytest.param(5 * HOUR, False, marks=pytest.mark.drill),
        (30 * HOUR, True),
        pytest.param(24 * 40 * HOUR, False, marks=pytest.mark.drill),
        pytest.param(5 * HOUR, True, marks=pytest.mark.drill),
        pytest.param(30 * HOUR, False, marks=pytest.mark.drill),
        pytest.param(24 * 40 * HOUR, True, marks=pytest.mark.drill),
    ],
)
def test_message_that_was_held_back_is_not_untraced_in_a_sink_without_its_time(
    warehouse: Warehouse, tmp_path: Path, held_back: timedelta, *, is_acked: bool
) -> None:
    acked_at = NOON + HOUR / 2
    late = Trace(
        "late", "shard-0", "5", acked_at - held_back, acked_at=acked_at if is_acked else None
    )
    lacks = frozenset({"sent_at"})
    rows = [SinkRow("late", "shard-0", "5", late.sent_at, acked_at + MINUTE, lacks=lacks)]
    rows += [SinkRow("none", "shard-0", "6", acked_at, acked_at + MINUTE, lacks=lacks)]
    trial = Trial(warehouse, tmp_path, ASK, sink_lacks=lacks)
    # Long ago an ingest read a trace of that minute; the message's own comes today.
    trial.log([Trace("old", "shard-0", "4", late.sent_at)])
    trial.land([])
    trial.ingest(now=late.sent_at + HOUR)
    trial.log([late])
    trial.land(rows)
    trial.ingest()
    published = trial.audit()
    assert {name for name, _ in published.findings} == {"none"}
    window = replace(
        ASK, start=late.sent_at.replace(minute=0), end=late.sent_at.replace(minute=0) + HOUR
    )
    published = trial.audit(replace(window, as_of=ASK.as_of + HOUR))
    assert published.audit.matched == 1
