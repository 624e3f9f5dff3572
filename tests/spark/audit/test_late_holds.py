"""Minutes before the window that hold the watermark, and that an audit can settle by now."""

import os

from shardaudit.model.verdict import Verdict
from shardaudit.model.window import Window
from tests.builders import T0, cut_off, sink_row, trace_line
from tests.spark.audit.nights import DAY, DAY_S, MINUTE, audited, of_day, told
from tests.spark.lake import Lake

HOURLY = range(0, DAY_S, 3600)


def test_a_night_that_was_left_out_is_made_up_for(lake: Lake) -> None:
    of_day(lake, 0, *HOURLY)
    audited(lake, 0)
    for day in (1, 2):
        of_day(lake, day, *HOURLY)
    lake.log("lost.jsonl", [trace_line(DAY_S + 600)])
    report = audited(lake, 2, kept=7 * DAY)
    assert told(report) == [(Window(T0 + DAY, T0 + 2 * DAY), Verdict.LOSS, 1)]
    assert report.watermark == T0 + DAY + 10 * MINUTE
    assert "missing" in str(report.watermark_reason)


def test_minutes_of_a_broken_file_are_looked_at_once_it_is_whole(lake: Lake) -> None:
    minutes = range(0, 1200, 60)
    of_day(lake, 0, *HOURLY[1:])
    traces = [trace_line(n) for n in minutes]
    lake.land([sink_row(n) for n in minutes])
    path = cut_off(lake.log("broken.jsonl.gz", traces))
    written = (T0 + 20 * MINUTE).timestamp()
    os.utime(path, (written, written))
    assert audited(lake, 0).verdict is Verdict.INCONCLUSIVE
    of_day(lake, 1, *HOURLY)
    broken = audited(lake, 1)
    assert (broken.late, broken.verdict, broken.watermark) == ((), Verdict.OK, T0)

    lake.log("broken.jsonl.gz", traces)
    of_day(lake, 2, *HOURLY)
    report = audited(lake, 2)
    [(window, verdict, missing)] = told(report)
    assert (verdict, missing) == (Verdict.OK, 0)
    assert window.covers(T0)
    assert report.watermark == T0 + 3 * DAY
