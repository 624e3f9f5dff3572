"""Messages that a producer sent again, which land long after their minutes were audited."""

import pyarrow.compute as pc
import pytest

from shardaudit.model.tables.audit_tables import FINDINGS
from shardaudit.model.verdict import Verdict
from shardaudit.model.window import Window
from tests.builders import T0, Line, shard, sink_row, trace_line
from tests.spark.audit.nights import (
    DAY,
    DAY_S,
    MINUTE,
    audited,
    of_day,
    on_second_shard,
    told,
)
from tests.spark.lake import Lake

HOURLY = range(0, DAY_S, 3600)
RETRY: Line = {"shard_id": shard(1), "message_id": "m600"}


def states(lake: Lake, message_id: str) -> dict[str, str]:
    rows = lake.warehouse.rows(FINDINGS, where=pc.field("message_id") == message_id)
    return {row["kind"]: row["state"] for row in rows}


def minute_of(second: int) -> Window:
    start = T0 + second // 60 * MINUTE
    return Window(start, start + MINUTE)


# Of the retry on the second shard; the second is the minute of the first attempt.
@pytest.mark.drill
@pytest.mark.parametrize("stamped", [610, 700])
def test_what_a_shard_that_stood_still_lands_once_more_is_told(lake: Lake, stamped: int) -> None:
    lake.log("attempts.jsonl", [trace_line(600), trace_line(stamped, **RETRY)])
    lake.land([sink_row(stamped, **RETRY)])
    for day in range(3):  # nothing of the first shard lands
        lake.log(f"first-{day}.jsonl", [trace_line(day * DAY_S + n) for n in HOURLY])
        on_second_shard(lake, day)
        audited(lake, day, kept=7 * DAY)
    assert states(lake, "m600") == {}

    held_back = [600, *(day * DAY_S + n for day in range(3) for n in HOURLY)]
    lake.land([sink_row(n, landed_at=T0 + 3.5 * DAY) for n in held_back])
    of_day(lake, 3, *HOURLY)
    on_second_shard(lake, 3)
    late = audited(lake, 3, kept=7 * DAY)
    assert told(late) == [(minute_of(stamped), Verdict.DUPLICATION, 0)]
    assert states(lake, "m600") == {"duplicated": "open"}


@pytest.mark.parametrize("stamped", [pytest.param(610, marks=pytest.mark.drill), 700])
def test_what_landed_by_its_retry_after_all_is_not_lost(lake: Lake, stamped: int) -> None:
    lake.log("attempts.jsonl", [trace_line(600), trace_line(stamped, **RETRY)])
    for day in range(2):
        of_day(lake, day, *HOURLY)
        on_second_shard(lake, day)
        audited(lake, day)
    assert states(lake, "m600") == {"missing": "expired"}

    lake.land([sink_row(stamped, landed_at=T0 + 2.5 * DAY, **RETRY)])
    of_day(lake, 2, *HOURLY)
    on_second_shard(lake, 2)
    assert audited(lake, 2).watermark == T0 + 3 * DAY
    assert states(lake, "m600") == {"missing": "false_alarm"}


@pytest.mark.drill
def test_what_was_sent_again_after_midnight_and_landed_is_not_lost(lake: Lake) -> None:
    last, again = DAY_S - 100, DAY_S + 100
    of_day(lake, 0, *HOURLY, DAY_S - 1)
    lake.log("first.jsonl", [trace_line(last)])
    audited(lake, 0)
    assert states(lake, f"m{last}") == {"missing": "open"}

    lake.log("retry.jsonl", [trace_line(again, message_id=f"m{last}")])
    lake.land([sink_row(again, message_id=f"m{last}")])
    of_day(lake, 1, *HOURLY)
    report = audited(lake, 1)
    assert told(report) == [(minute_of(last), Verdict.OK, 0)]
    assert states(lake, f"m{last}") == {"missing": "false_alarm"}


def test_what_an_own_job_lands_without_its_place_and_takes_out_again_is_lost(lake: Lake) -> None:
    lake.log("lost.jsonl", [trace_line(600), trace_line(1200)])
    of_day(lake, 0, *HOURLY)
    audited(lake, 0, kept=7 * DAY)
    back = T0 + 1.1 * DAY
    lake.land([sink_row(600, landed_at=back, shard_id=None), sink_row(1200, landed_at=back)])
    of_day(lake, 1, *HOURLY)
    audited(lake, 1, kept=7 * DAY)
    assert states(lake, "m600") == {"missing": "false_alarm"}

    for day in (2, 3):
        of_day(lake, day, 0, 3600)
    audited(lake, 3, since=2, kept=7 * DAY)
    of_day(lake, 4, 0, 3600)
    lake.sql("DELETE FROM SINK WHERE shard_id IS NULL")
    report = audited(lake, 4, kept=7 * DAY)
    assert (told(report), report.watermark) == (
        [(minute_of(600), Verdict.LOSS, 1)],
        minute_of(600).start,
    )
    assert states(lake, "m600") == {"missing": "open"}


def test_what_an_own_job_lands_from_elsewhere_without_its_place_is_not_untraced(
    lake: Lake,
) -> None:
    lake.log("lost.jsonl", [trace_line(600)])
    for day in range(3):
        of_day(lake, day, 0, 3600)
        audited(lake, day)
    assert states(lake, "m600") == {"missing": "expired"}

    lacks = dict.fromkeys(("shard_id", "sent_at", "sequence_number"))
    lake.land([sink_row(600, landed_at=T0 + 3.1 * DAY, **lacks)])
    of_day(lake, 3, 0, 3600)
    report = audited(lake, 3)
    assert (report.verdict, report.watermark) == (Verdict.OK, T0 + 4 * DAY)
    assert states(lake, "m600") == {"missing": "false_alarm"}
