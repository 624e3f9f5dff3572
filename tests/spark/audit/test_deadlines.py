"""Deadlines: from the arrival, with Kinesis' own retention, the same for everybody who asks."""

from datetime import datetime, timedelta

import pyarrow.compute as pc
import pytest

from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.job import audit
from shardaudit.ingest.ask_kinesis import retention_of
from shardaudit.model.config.settings import Settings
from shardaudit.model.errors import ConfigError
from shardaudit.model.retention import Longer, Retention, Shorter
from shardaudit.model.tables.audit_tables import AUDITS, EVIDENCE, FINDINGS, TRANSITIONS
from shardaudit.model.tables.watch_tables import SHARDS
from shardaudit.model.window import Window
from shardaudit.report.next_steps import next_steps
from shardaudit.report.summary import AuditReport
from shardaudit.store.published import published_audit
from tests.builders import T0, sink_row, trace_line, write_lines, write_parquet
from tests.builders import shard as shard_id
from tests.spark.lake import Lake
from tests.spark.ungated import ungated

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
LATER = T0 + 3 * DAY


def store_retention(lake: Lake, hours: int, *, at: datetime) -> None:
    row = {"stream": lake.name, "shard_id": "s", "retention_hours": hours, "observed_at": at}
    lake.warehouse.upsert([row], SHARDS)


def audited(
    lake: Lake, *, as_of: datetime, start: datetime = T0, clock: datetime | None = None
) -> AuditReport:
    lake.ingest(now=as_of)
    kept = retention_of(lake.warehouse, lake.name, lake.stream, as_of=as_of)
    window = Window(start, start + HOUR)
    request = AuditRequest(lake.name, lake.stream, window, as_of, kept)
    return audit(lake.warehouse, request, ungated(), now=clock or as_of)


def findings(lake: Lake) -> dict[str, tuple[str, datetime, str]]:
    rows = lake.warehouse.rows(FINDINGS, where=pc.scalar(True))
    return {
        row["message_id"]: (row["state"], row["recoverable_until"], row["state_reason"])
        for row in rows
    }


@pytest.fixture
def lossy(lake: Lake) -> Lake:
    """m0 and m9 land; m1 went out at once, m2 was held back for three days; both are lost."""
    acked = {2: LATER - HOUR, 9: LATER - HOUR}
    times = {n: (acked.get(n) or T0 + timedelta(seconds=n)).isoformat() for n in (0, 1, 2, 9)}
    lake.log("a.jsonl", [trace_line(n, acked_at=at) for n, at in times.items()])
    lake.land([sink_row(0), sink_row(9, landed_at=LATER - HOUR + timedelta(seconds=7))])
    return lake


def test_kinesis_says_the_retention_and_the_configuration_where_it_was_never_asked(
    lake: Lake,
) -> None:
    def kept() -> Retention:
        return retention_of(lake.warehouse, lake.name, lake.stream)

    with pytest.raises(ConfigError, match="Kinesis was not asked yet"):
        kept()
    lake.settings["retention"] = timedelta(hours=12)
    assert kept() == Retention(12 * HOUR)
    for audit_id, hours, started_at in (("a", 168, T0), ("b", 3, T0 + HOUR)):
        row = {"audit_id": audit_id, "stream": lake.name, "retention_s": hours * 3600}
        lake.warehouse.upsert([row | {"started_at": started_at}], AUDITS)
    assert kept() == Retention(12 * HOUR, longer=(Longer(7 * DAY, T0 + HOUR),))
    store_retention(lake, 720, at=T0 + 36_500 * DAY)  # a clock that is ahead: better than nothing
    assert kept() == Retention(30 * DAY)
    store_retention(lake, 24, at=T0)
    assert kept() == Retention(DAY)
    store_retention(lake, 168, at=T0 + HOUR)
    assert kept() == Retention(7 * DAY, Shorter(DAY, T0))


def test_deadline_moves_both_ways_with_the_retention_also_outside_of_the_window(
    lossy: Lake,
) -> None:
    store_retention(lossy, 24, at=LATER)
    audited(lossy, as_of=LATER)
    found = findings(lossy)
    gone = "the stream's retention has run out"
    assert found["m1"] == ("expired", T0 + DAY + timedelta(seconds=1), gone)
    assert found["m2"] == ("open", LATER - HOUR + DAY, "found by the audit")
    elsewhere = T0 + DAY
    audited(lossy, as_of=LATER + DAY, start=elsewhere)
    assert findings(lossy)["m2"] == ("expired", LATER - HOUR + DAY, gone)
    store_retention(lossy, 168, at=LATER + 2 * DAY)
    audited(lossy, as_of=LATER + 2 * DAY, start=elsewhere)
    again = "the stream keeps it for longer than was known"
    assert findings(lossy)["m2"] == ("open", LATER - HOUR + 7 * DAY, again)
    # It had left the stream when that was last seen to keep a day: nothing brings it back.
    assert findings(lossy)["m1"] == found["m1"]
    transitions = lossy.warehouse.rows(TRANSITIONS, where=pc.field("message_id") == "m2")
    assert sorted((row["changed_at"], row["to_state"], row["reason"]) for row in transitions) == [
        (LATER, "open", "found by the audit"),
        (LATER + DAY, "expired", gone),
        (LATER + 2 * DAY, "open", again),
    ]


@pytest.mark.parametrize("traces_format", ["json", "parquet"])
def test_a_clock_that_is_ahead_makes_no_deadline_later_than_the_ingest_of_its_trace(
    lake: Lake, traces_format: str
) -> None:
    """m1 is acknowledged, and m3 was sent, by a clock that is hours ahead; neither landed."""
    ahead = (T0 + 20 * HOUR).isoformat()
    sent_at, at = (T0 + 50 * MINUTE).isoformat(), T0 + 30 * MINUTE
    lines = [
        trace_line(0, acked_at=T0.isoformat()),
        trace_line(1, acked_at=ahead),
        trace_line(3, sent_at=sent_at),
    ]
    lake.traces_format = traces_format
    write = write_lines if traces_format == "json" else write_parquet
    write(lake.traces / f"a.{traces_format}", lines)
    lake.land([sink_row(0), sink_row(9)])
    store_retention(lake, 24, at=at)
    audited(lake, as_of=at)
    assert {name: until for name, (_, until, _) in findings(lake).items() if name != "m9"} == {
        "m1": at + DAY,
        "m3": at + DAY,
    }


def test_audit_about_the_past_opens_nothing_that_a_later_one_saw_run_out(lossy: Lake) -> None:
    store_retention(lossy, 24, at=LATER)
    audited(lossy, as_of=LATER + DAY + HOUR)
    seen = findings(lossy)
    assert {state for state, _, _ in seen.values()} == {"expired"}
    audited(lossy, as_of=T0 + 12 * HOUR)
    assert findings(lossy) == seen
    # Kept for longer since then, but not for so long.
    store_retention(lossy, 25, at=LATER)
    audited(lossy, as_of=T0 + 12 * HOUR)
    assert {state for state, _, _ in findings(lossy).values()} == {"expired"}


def test_audit_of_a_time_that_was_not_there_yet_binds_no_later_one(lossy: Lake) -> None:
    """Somebody typed the local time as UTC: hours ahead of the clock."""
    store_retention(lossy, 24, at=LATER)
    audited(lossy, as_of=LATER)
    assert findings(lossy)["m2"][0] == "open"
    report = audited(lossy, as_of=LATER + DAY, clock=LATER)
    # Given up until the next night it would be in no plan meanwhile, and be lost.
    assert {name: state for name, (state, _, _) in findings(lossy).items() if name != "m9"} == {
        "m1": "expired",
        "m2": "open",
    }
    assert "m2" not in str(report.notes)
    assert "(23 h 0 min left)" in str(next_steps(report))
    audited(lossy, as_of=LATER + HOUR)
    assert findings(lossy)["m2"][0] == "open"


def test_evidence_of_an_earlier_version_is_read_again(lossy: Lake) -> None:
    store_retention(lossy, 24, at=LATER)
    audited(lossy, as_of=LATER)
    rows = lossy.warehouse.rows(EVIDENCE, where=pc.scalar(True))
    lossy.warehouse.upsert([row | {"arrived_at": None} for row in rows], EVIDENCE)
    audited(lossy, as_of=LATER + HOUR)
    assert findings(lossy)["m2"][:2] == ("open", LATER - HOUR + DAY)


def test_a_run_and_who_reads_it_later_say_the_same(lake: Lake) -> None:
    """Over ten shards, findings that a person accepted, some that are gone, another retention."""
    lost = [(number, 10 * number + n) for number in range(12) for n in (1, 2, 3)]
    everything = [
        *lost,
        *((number, 10 * number) for number in range(12)),
        *((n, 10 * n + 9) for n in range(12)),
    ]
    lake.log("a.jsonl", [trace_line(n, shard_id=shard_id(s)) for s, n in everything])
    lake.land([sink_row(n, shard_id=shard_id(s)) for s, n in everything if (s, n) not in lost])
    lake.settings["retention"] = timedelta(hours=36)
    store_retention(lake, 24, at=T0 + HOUR)
    audited(lake, as_of=T0 + HOUR)
    rows = lake.warehouse.rows(FINDINGS, where=pc.scalar(True))
    accepted = [row | {"state": "accepted"} for row in rows if row["shard_id"] == shard_id(3)]
    lake.warehouse.upsert(accepted, FINDINGS)
    report = audited(lake, as_of=T0 + DAY + timedelta(seconds=12))
    streams = {lake.name: lake.stream.model_dump()}
    settings = Settings.model_validate(
        {"warehouse": str(lake.folder / "warehouse"), "streams": streams}
    )
    read = published_audit(settings, lake.name, report.audit_id)
    assert read == report
    assert len(report.worst_shards) == 12
    assert [line.shard_id for line in report.deadlines] == [
        shard_id(n) for n in range(1, 12) if n != 3
    ]
    assert "3 messages of shardId-000000000000 left the stream" in report.notes[0]
    assert report.notes[-1].startswith("Kinesis keeps records for 1 d 0 h, configured is")
