"""Another bucket or sample rate from a day on: what was before is audited as before."""

from datetime import UTC, datetime, timedelta

import pytest

from shardaudit.model.tables.audit_tables import FINDINGS
from shardaudit.model.verdict import Verdict
from shardaudit.model.window import Window
from shardaudit.producer.sample import is_sampled
from shardaudit.store.transitions import accept_findings
from tests.builders import T0, sink_row, trace_line
from tests.spark.audit.nights import DAY, DAY_S, HOUR, audited, of_day, published, told
from tests.spark.lake import Lake

# The nights look from noon to noon. Said on the second, another shape holds from here on.
EDGE = datetime(2026, 11, 23, tzinfo=UTC)
BEFORE, AFTER = range(9 * 3600, 12 * 3600, 60), range(12 * 3600, 15 * 3600, 60)


def sampled_of(day: int, numbers: range, rate: object) -> list[int]:
    """The messages of a part of a day that count."""
    assert isinstance(rate, float)
    return [n for n in (day * DAY_S + s for s in numbers) if is_sampled(f"m{n}", rate)]


def send(lake: Lake, day: int, *, lost: set[int]) -> None:
    """A message each minute of six hours around midnight; some of them do not land."""
    seconds = [day * DAY_S + n for of in (BEFORE, AFTER) for n in of]
    lake.log(f"day-{day}.jsonl", map(trace_line, seconds))
    lake.land(sink_row(n) for n in seconds if n not in lost)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"bucket": "60s", "sample_rate": 1.0}, {"bucket": "5m", "sample_rate": 0.5}),
        ({"bucket": "5m", "sample_rate": 0.5}, {"bucket": "60s", "sample_rate": 1.0}),
    ],
    ids=["less", "more"],
)
def test_both_sides_of_the_day_are_audited_and_what_was_decided_stays(
    lake: Lake, first: dict[str, object], second: dict[str, object]
) -> None:
    lake.settings |= first
    known = sampled_of(0, BEFORE, first["sample_rate"])[5]
    send(lake, 0, lost={known})
    assert audited(lake, 0, kept=4 * DAY).counts["missing"] == 1
    accept_findings(lake.warehouse, lake.name, [f"m{known}"], reason="known", now=T0 + DAY + HOUR)

    lake.settings |= second
    send(lake, 1, lost=set())
    assert lake.ingest(now=T0 + DAY + HOUR).notes == (
        f"{of_settings(second)} from 2026-11-23 on (UTC, by sent_at); "
        f"{of_settings(first)} until then",
    )
    old_lost, new_lost = (
        sampled_of(2, part, of["sample_rate"])[7] for part, of in ((BEFORE, first), (AFTER, second))
    )
    send(lake, 2, lost={old_lost, new_lost})
    report = audited(lake, 2, since=1, kept=4 * DAY)
    assert told(report) == [(Window(T0 + DAY, EDGE), Verdict.LOSS, 1)]
    counts = [report.counts[name] for name in ("missing", "sent")]
    assert counts == [1, len(sampled_of(2, AFTER, second["sample_rate"]))]
    assert published(lake, report) == report
    found = {row.message_id: row.state for row in lake.rows(FINDINGS)}
    assert found == {f"m{known}": "accepted", f"m{old_lost}": "open", f"m{new_lost}": "open"}

    # What comes late of before is judged by the cells of then.
    lake.land([sink_row(old_lost)])
    came = range(BEFORE.start + 30, BEFORE.start + 200, 17)
    lake.log("late.jsonl", [trace_line(n) for n in sampled_of(2, came, 1.0)])
    send(lake, 3, lost=set())
    after = audited(lake, 3, kept=4 * DAY)
    lacking = sampled_of(2, came, first["sample_rate"])
    assert (after.verdict, sum(n for *_, n in told(after))) == (Verdict.OK, len(lacking))
    found |= dict.fromkeys((f"m{n}" for n in lacking), "open") | {f"m{old_lost}": "false_alarm"}
    assert {row.message_id: row.state for row in lake.rows(FINDINGS)} == found


@pytest.mark.parametrize(("first", "second"), [(1.0, 0.5), (0.5, 1.0)], ids=["fewer", "more"])
def test_a_message_that_is_of_the_one_day_by_its_trace_and_of_the_other_by_its_row(
    lake: Lake, first: float, second: float
) -> None:
    lake.settings["sample_rate"] = first
    of_day(lake, 0, *range(0, DAY_S, 3600))
    lake.ingest(now=T0 + HOUR)
    lake.settings["sample_rate"] = second
    of_day(lake, 1, *range(0, DAY_S, 3600))
    lake.ingest(now=T0 + DAY + HOUR)
    of_day(lake, 2, *range(0, DAY_S, 3600))
    # A sink that rounds to the second.
    known, unknown = (
        [f"{way}-{n}" for n in range(30) if is_sampled(f"{way}-{n}", 0.5) is so]
        for way, so in (("sampled", True), ("not", False))
    )
    at, rounded = EDGE - timedelta(seconds=0.4), {"sent_at": EDGE, "landed_at": EDGE + HOUR}
    number = int((EDGE - T0).total_seconds())
    ids = [(number + n, name) for n, name in enumerate(known + unknown)]
    lines = [trace_line(n, message_id=m, sent_at=at.isoformat()) for n, m in ids]
    rows = [sink_row(n, message_id=m, **rounded) for n, m in ids]
    # A producer that tries again after half an hour, as of another time.
    for side in (-900, 900):
        tried = [(number + n, f"{side}-{m}") for n, m in enumerate(known + unknown)]
        lines += [trace_line(n + at, message_id=m) for n, m in tried for at in (-900, 900)]
        rows += [sink_row(n + side, message_id=m) for n, m in tried]
    lake.log("edge.jsonl", lines)
    lake.land(rows)
    audited(lake, 2)
    report = audited(lake, 2)  # by what the first one kept
    found = {row.message_id: row.kind for row in lake.rows(FINDINGS)}
    assert found == ({} if first > second else dict.fromkeys(unknown, "untraced"))
    assert [lost for *_, lost in told(report)] == [0]


def test_rows_without_a_time_are_of_the_sample_in_which_they_may_have_been_sent(
    lake: Lake,
) -> None:
    lake.settings["sample_rate"] = 0.5
    of_day(lake, 0, *range(0, DAY_S, 3600))
    lake.ingest(now=T0 + HOUR)
    lake.settings["sample_rate"] = 1.0
    of_day(lake, 1, *range(0, DAY_S, 3600))
    lake.ingest(now=T0 + DAY + HOUR)
    of_day(lake, 2, *range(0, DAY_S, 3600))
    ids = [(int((EDGE - T0).total_seconds()) - 10 * (n + 1), f"late-{n}") for n in range(20)]
    lake.log("edge.jsonl", [trace_line(n, message_id=m) for n, m in ids])
    landed = {"sent_at": None, "landed_at": EDGE + HOUR}
    lake.land([sink_row(n, message_id=m, **landed) for n, m in ids[1:]])
    audited(lake, 2)
    lost = [m for _, m in ids[:1] if is_sampled(m, 0.5)]
    assert [row.message_id for row in lake.rows(FINDINGS)] == lost


def of_settings(of: dict[str, object]) -> str:
    seconds = {"5m": 300}.get(str(of.get("bucket")), 60)
    return f"bucket {seconds}s, sample_rate {of['sample_rate']:g}"
