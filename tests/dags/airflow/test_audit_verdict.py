import logging
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from shardaudit.airflow.audit_verdict import event_extra, judge
from shardaudit.airflow.planned_jobs import PlannedAudit
from shardaudit.model.waiting import Waiting, WaitingSpan
from shardaudit.model.window import Window
from shardaudit.report.plain import instant
from tests.dags.warehouses import START, audit, cell, missing, write_result


@pytest.fixture
def warehouse(config: Path) -> Path:
    """The warehouse of the configuration."""
    return config.with_name("warehouse")


def planned(audit_id: str, stream: str = "events") -> PlannedAudit:
    return {"stream": stream, "audit_id": audit_id, "driver": {}, "arguments": {}, "engines": {}}


def write_loss(warehouse: Path) -> None:
    """Three lost ids on shard 1, two stuck ones on shard 2, and an older audit that was clean."""
    stuck = {"shard_id": "shard-2", "cause": "stuck"}
    later = START + timedelta(days=8)
    write_result(
        warehouse,
        audits=[
            audit("old"),
            audit(
                "new", verdict="stalled", sent=100, matched=95, landed=97, missing=5, duplicated=1
            ),
        ],
        cells=[
            cell("old", "shard-1", sent=60),
            cell("new", "shard-1", verdict="loss", sent=30, missing=3, duplicated=1),
            cell("new", "shard-1", minute=1, sent=30),
            cell("new", "shard-2", verdict="stalled", sent=40, missing=2),
            cell("new", "shard-3", sent=0),
        ],
        findings=[
            missing("new", "a", shard_id="shard-1"),
            missing("new", "b", shard_id="shard-1"),
            missing("new", "c", shard_id="shard-1", recoverable_until=later),
            missing("new", "d", recoverable_until=later, **stuck),
            missing("new", "e", recoverable_until=later, **stuck),
            missing("old", "f", shard_id="shard-1", recoverable_until=START, state="accepted"),
        ],
    )


def test_the_task_turns_red_and_says_shards_counts_and_deadline(
    warehouse: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_loss(warehouse)
    with caplog.at_level(logging.INFO), pytest.raises(AirflowFailException) as red:
        judge(planned("new"))
    headline = (
        "events is STALLED: 5 messages missing on 2 of its shards, 1 message landed more than "
        "once; the first leave the stream at 2026-11-08T00:00:00Z (6 d 23 h left)"
    )
    assert str(red.value) == headline
    assert caplog.messages[0] == headline
    assert caplog.messages[2].startswith("100 sent, 97 landed, 5 missing, 0 pending, 1 duplicated")
    assert caplog.messages[3:5] == [
        "shard-2 is stalled: 2 missing, 0 duplicated, 0 untraced, 0 moved of 40 sent",
        "shard-1 is loss: 3 missing, 1 duplicated, 0 untraced, 0 moved of 60 sent",
    ]
    steps = [line for line in caplog.messages if line.startswith("next: ")]
    assert "shard-1: 3 messages were passed over" in steps[0]
    assert "shard-2: its consumer stands still before 2 messages" in steps[1]
    assert any("shardaudit findings list --stream events --kind missing" in s for s in steps)


@pytest.mark.parametrize(
    "verdict", ["silent", "stalled", "mixed", "loss", "duplication", "inconclusive"]
)
def test_every_bad_verdict_is_red(warehouse: Path, verdict: str) -> None:
    write_result(warehouse, audits=[audit("a", verdict=verdict)])
    with pytest.raises(AirflowFailException, match=f"events is {verdict.upper()}"):
        judge(planned("a"))


def test_a_loss_before_the_window_is_red(warehouse: Path, caplog: pytest.LogCaptureFixture) -> None:
    since, until = START - timedelta(hours=9), START - timedelta(hours=8)
    late = audit(
        "late",
        verdict="loss",
        missing=2,
        window_start=since,
        window_end=until,
        inputs='{"batches": {}, "late_of": "a"}',
    )
    other = {**late, "audit_id": "other", "inputs": '{"batches": {}}'}
    write_result(warehouse, audits=[audit("a"), late, other])
    with caplog.at_level(logging.INFO), pytest.raises(AirflowFailException) as red:
        judge(planned("a"))
    assert (
        str(red.value)
        == "events is OK; 2 messages missing in minutes before its window, audited with it"
    )
    told = [line for line in caplog.messages if "not proven" in line]
    assert told == [
        "2026-10-31T15:00:00Z to 2026-10-31T16:00:00Z was not proven complete: audited, too: "
        "loss, 2 messages missing"
    ]


@pytest.mark.parametrize(
    ("age", "hours", "is_red"), [(20, 11, False), (20, 12, True), (30, 12, False)]
)
def test_minutes_before_the_window_that_wait_for_too_long_are_red(
    warehouse: Path, caplog: pytest.LogCaptureFixture, *, age: int, hours: int, is_red: bool
) -> None:
    start = START - timedelta(hours=age)
    minute = Window(start, start + timedelta(hours=1))
    as_of = START + timedelta(hours=1)
    waiting = Waiting(
        timedelta(hours=1), (WaitingSpan(minute, as_of - timedelta(hours=hours), minute.end),)
    )
    row = audit("a", waiting=waiting.as_json(), retention_s=86_400)
    write_result(warehouse, audits=[row])
    with caplog.at_level(logging.INFO):
        if is_red:
            with pytest.raises(AirflowFailException, match="wait to be audited since 2026-10-31T"):
                judge(planned("a"))
        else:
            judge(planned("a"))
    [told] = [line for line in caplog.messages if " before the window, from " in line]
    assert told.startswith(f"1 h 0 min before the window, from {instant(start)} on, wait to be")
    assert ("audit them by hand" in told) is is_red


@pytest.mark.parametrize(("hours", "is_red"), [(23, True), (24, False)])
def test_what_was_given_up_is_red_as_long_as_the_stream_may_have_it(
    warehouse: Path, caplog: pytest.LogCaptureFixture, *, hours: int, is_red: bool
) -> None:
    as_of = START + timedelta(hours=1)
    night = Window(START - timedelta(hours=40), START - timedelta(hours=30))
    waiting = Waiting(given_up=((night, as_of - timedelta(hours=hours)),))
    row = audit("a", waiting=waiting.as_json(), retention_s=86_400)
    write_result(warehouse, audits=[row])
    red = pytest.raises(AirflowFailException, match="are audited no more: none came to its end")
    with caplog.at_level(logging.INFO), red if is_red else nullcontext():
        judge(planned("a"))
    asked = f"--from {instant(night.start)} --to {instant(night.end)}"
    assert asked in caplog.text


@pytest.mark.parametrize("verdict", ["ok", "pending"])
def test_a_good_verdict_is_green(
    warehouse: Path, verdict: str, caplog: pytest.LogCaptureFixture
) -> None:
    write_result(warehouse, audits=[audit("a", verdict=verdict, sent=7)])
    with caplog.at_level(logging.INFO):
        judge(planned("a"))
    assert {record.levelno for record in caplog.records} == {logging.INFO}
    assert caplog.messages[0].startswith(f"events is {verdict.upper()}")


def test_lost_traces_within_the_floor_are_a_warning(
    warehouse: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_result(
        warehouse,
        audits=[audit("a", verdict="untraced", untraced=4)],
        cells=[cell("a", "shard-1", verdict="untraced", untraced=4)],
    )
    judge(planned("a"))
    assert {record.levelno for record in caplog.records} == {logging.WARNING}
    assert "shard-1 is untraced: 0 missing, 0 duplicated, 4 untraced" in caplog.text


def test_a_loss_within_the_tolerance_is_green_and_still_told(
    config: Path, warehouse: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config.write_text(config.read_text().replace('"2d"', '"2d"\ntolerance = 0.01'))
    write_result(
        warehouse,
        audits=[audit("a", verdict="ok", missing=1)],
        cells=[cell("a", "shard-1", verdict="loss", sent=100, missing=1)],
        findings=[missing("a", "x", shard_id="shard-1")],
    )
    with caplog.at_level(logging.INFO):
        judge(planned("a"))
    assert caplog.messages[0].startswith(
        "events is OK: 1 message missing, as many as are tolerated; the first leave the stream at"
    )


def test_what_already_left_the_stream_is_told_and_is_no_deadline(
    warehouse: Path, caplog: pytest.LogCaptureFixture
) -> None:
    gone = {"state": "expired", "recoverable_until": START + timedelta(minutes=5)}
    write_result(
        warehouse,
        audits=[audit("a", verdict="loss", missing=2)],
        cells=[cell("a", "shard-1", verdict="loss", missing=2)],
        findings=[
            missing("a", "x", shard_id="shard-1", **gone),
            missing("a", "y", shard_id="shard-1"),
        ],
    )
    with pytest.raises(AirflowFailException, match="leave the stream at 2026-11-08T00:00:00Z"):
        judge(planned("a"))
    assert "1 message of shard-1 left the stream, the first at 2026-11-01T00:05:00Z" in caplog.text


@pytest.mark.parametrize("status", ["running", "rejected", "failed"])
def test_an_audit_that_was_not_published_is_red(warehouse: Path, status: str) -> None:
    write_result(warehouse, audits=[audit("a", status=status)])
    with pytest.raises(AirflowFailException, match=f"has the status '{status}'"):
        judge(planned("a"))


@pytest.mark.usefixtures("config")
def test_an_audit_that_never_was_is_red_even_when_nothing_was_ever_written() -> None:
    with pytest.raises(AirflowFailException, match="did not happen"):
        judge(planned("a"))


def test_names_from_outside_cannot_forge_log_lines(
    warehouse: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shard = "shard\nevents is OK\x1b[2J"
    write_result(
        warehouse,
        audits=[audit("a", verdict="loss", missing=1)],
        cells=[cell("a", shard, verdict="loss", missing=1)],
        findings=[missing("a", "x", shard_id=shard)],
    )
    with pytest.raises(AirflowFailException):
        judge(planned("a"))
    assert not any("\n" in message or "\x1b" in message for message in caplog.messages)


def test_the_event_tells_of_each_audit_and_of_the_streams_without_one(warehouse: Path) -> None:
    write_loss(warehouse)
    extra = event_extra([planned("new"), planned("none", "orders")])
    assert extra["unpublished"] == ["orders"]
    (told,) = extra["audits"]
    assert (told["stream"], told["audit_id"], told["verdict"]) == ("events", "new", "stalled")
    assert (told["missing"], told["recoverable_until"]) == (5, "2026-11-08T00:00:00Z")


@pytest.mark.usefixtures("config")
def test_there_is_no_event_when_no_audit_was_published() -> None:
    with pytest.raises(AirflowSkipException):
        event_extra([planned("none")])
