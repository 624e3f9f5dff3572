"""Rows of the sink that have neither a shard nor a trace: what they are in the verdict."""

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
    [(40, Verdict.OK), (39, Verdict.UNTRACED), (36, Verdict.UNTRACED), (35, Verdict.INCONCLUSIVE)],
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
