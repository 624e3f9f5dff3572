"""Late minutes, judged by the totals of the night of which they are a part."""

from dataclasses import replace

import pytest

from shardaudit.audit import window_ledger
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.job import audit
from shardaudit.audit.rules.late_windows import judged_over
from shardaudit.model.retention import Retention
from shardaudit.model.verdict import Verdict
from shardaudit.model.window import Window
from tests.builders import T0, sink_row, trace_line
from tests.spark.audit.nights import DAY, DAY_S, HOUR, audited, landed, of_day, published
from tests.spark.lake import Lake
from tests.spark.ungated import ungated

HOURLY = range(0, DAY_S, 3600)


@pytest.mark.drill
def test_what_nobody_audited_of_a_night_does_not_count_as_traced(lake: Lake) -> None:
    lake.settings["trace_coverage_floor"] = 0.99
    of_day(lake, 0, *HOURLY)
    audited(lake, 0)
    left_out = range(DAY_S, 2 * DAY_S, 432)  # in each quarter one of fifty has no trace
    lake.land(map(sink_row, left_out))
    lake.log("left-out.jsonl", [trace_line(n) for i, n in enumerate(left_out) if i % 50 != 25])
    of_day(lake, 2, *HOURLY)
    now = T0 + 3 * DAY + HOUR
    lake.ingest(now=now)
    own, quarter = Window(T0 + 2 * DAY, T0 + 3 * DAY), Window(T0 + DAY, T0 + 1.25 * DAY)
    request = AuditRequest(lake.name, lake.stream, own, now, Retention(7 * DAY))
    night = audit(lake.warehouse, request, ungated(), now=now)
    assert (night.verdict, night.watermark) == (Verdict.OK, T0 + DAY)

    over = judged_over(quarter, own)
    late = replace(request, window=quarter, late_of=request.audit_id, judged_over=over)
    report = audit(lake.warehouse, late, ungated(), now=now)
    assert (report.verdict, report.watermark) == (Verdict.INCONCLUSIVE, T0 + 1.125 * DAY)
    assert published(lake, report) == report


@pytest.mark.parametrize(
    ("lost", "verdict", "most_named"),
    [
        pytest.param(3, Verdict.UNTRACED, 100, marks=pytest.mark.drill),
        pytest.param(12, Verdict.INCONCLUSIVE, 100, marks=pytest.mark.drill),
        (12, Verdict.INCONCLUSIVE, 1),  # so they are only counted
    ],
)
def test_what_had_no_trace_in_other_minutes_of_the_night_counts(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, lost: int, verdict: Verdict, most_named: int
) -> None:
    monkeypatch.setattr(window_ledger, "MOST_NAMED", most_named)
    lake.settings["trace_coverage_floor"] = 0.9
    sent = [HOUR.seconds + 400 * n for n in range(30)]
    lake.log("sent.jsonl", map(trace_line, sent))
    lake.land([*map(sink_row, sent[lost:]), sink_row(7210), sink_row(10_810)])
    assert audited(lake, 0).verdict is Verdict.LOSS
    lake.land([landed(600, 1.5)])  # its trace was lost: the third of thirty, or of 21
    of_day(lake, 1, *HOURLY)
    report = audited(lake, 1)
    assert [(one.verdict, one.is_red) for one in report.late] == [
        (verdict, verdict is Verdict.INCONCLUSIVE)
    ]
