"""What people are told besides the numbers."""

from datetime import UTC, datetime, timedelta

import pytest

from shardaudit.report.next_steps import retention_note, stamping_note, vanished_note

DAY = timedelta(days=1)


@pytest.mark.parametrize(("kept_s", "configured"), [(86400, DAY), (86400, None), (None, DAY)])
def test_nothing_is_said_of_a_retention_that_is_as_configured(
    kept_s: int | None, configured: timedelta | None
) -> None:
    assert retention_note(kept_s, configured) is None


@pytest.mark.parametrize("configured", [DAY / 2, 7 * DAY])
def test_another_retention_than_the_configured_one_is_told(configured: timedelta) -> None:
    note = retention_note(86400, configured)
    assert note is not None
    assert note.startswith("Kinesis keeps records for 1 d 0 h, configured is a retention of ")


@pytest.mark.parametrize("stamped_anew", [None, 0, 9])
def test_a_retry_with_another_time_now_and_then_is_no_habit(stamped_anew: int | None) -> None:
    assert stamping_note(stamped_anew) is None


def test_a_habit_of_stamping_retries_anew_is_told() -> None:
    note = stamping_note(10)
    assert note is not None
    assert note.startswith("10 messages were acknowledged more than once, in different minutes")
    assert "other messages whose ids were used before, none of them that is lost is found" in note


@pytest.mark.parametrize("vanished", [None, 0])
def test_nothing_is_said_of_a_sink_that_keeps_what_landed(vanished: int | None) -> None:
    assert vanished_note(vanished, None) is None


def test_rows_that_left_the_sink_are_told_in_a_sentence() -> None:
    until = datetime(2026, 11, 20, 12, 3, tzinfo=UTC)
    assert vanished_note(2292, until) == (
        "2,292 messages, the last sent before 2026-11-20T12:03:00Z, landed and left the sink when "
        "the stream no longer had them: no loss, and nothing that a backfill could bring back"
    )
