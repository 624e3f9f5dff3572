"""The sentence that says why a stream is not complete any further."""

from datetime import UTC, datetime, timedelta

import pytest

from shardaudit.model.verdict import Kind
from shardaudit.model.watermark import Held, Hold
from shardaudit.model.window import Window
from shardaudit.report.held_back import Holding, complete_until, held_because, quiet_notes

ONE = datetime(2026, 11, 20, 13, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
EARLY, LATE = Window(ONE, ONE + 5 * MINUTE), Window(ONE + 5 * MINUTE, ONE + 60 * MINUTE)
AGAIN = (
    "to be looked at again by `shardaudit audit --stream events --from 2026-11-20T13:00:00Z "
    "--to 2026-11-20T13:01:00Z`"
)
ACCEPTED = (
    "; where that stays so, to be accepted by `shardaudit findings accept --inconclusive --stream "
    'events --from 2026-11-20T13:00:00Z --to 2026-11-20T13:01:00Z --shard shard-7 --reason "…"`'
)


def because(
    why: Held, *, window: Window = EARLY, counts: dict[tuple[Kind, bool], int] | None = None
) -> str:
    holding = Holding("events", "shard-7", Hold(ONE, ONE + MINUTE, why), counts or {})
    return held_because(holding, window=window)


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ({(Kind.MISSING, False): 3}, "3 messages missing, sent from 2026-11-20T13:00:00Z on: "
         "not repaired or accepted"),
        ({(Kind.MISSING, True): 1}, "1 message missing for good, sent from 2026-11-20T13:00:00Z "
         "on: not accepted"),
        ({(Kind.DUPLICATED, False): 2, (Kind.MISSING, True): 1}, "2 messages landed more than "
         "once, 1 message missing for good, sent from 2026-11-20T13:00:00Z on: "
         "not repaired or accepted"),
    ],
)  # fmt: skip
def test_messages_are_counted_when_findings_hold(
    counts: dict[tuple[Kind, bool], int], text: str
) -> None:
    assert because(Held.FINDINGS, window=LATE, counts=counts) == f"shard-7 has {text}"


def test_audit_that_moves_it_is_named_when_the_window_was_another() -> None:
    span = "2026-11-20T13:00:00Z to 2026-11-20T13:01:00Z"
    assert because(Held.DAMAGED) == f"shard-7: a file that cannot be read may have fed it ({span})"
    assert because(Held.CHANGED, window=LATE).endswith(AGAIN)
    for why in (Held.DAMAGED, Held.THIN, Held.UNSENT):  # an audit may find the same for ever
        assert because(why, window=LATE).endswith(AGAIN + ACCEPTED)
    told = because(Held.UNAUDITED, window=LATE)
    assert told == f"nobody audited it ({span}); {AGAIN.replace(' again', '')}"


def test_stream_is_complete_until_its_watermark() -> None:
    assert complete_until(ONE, None) == "the stream is complete until 2026-11-20T13:00:00Z"
    assert complete_until(ONE, "why").endswith("13:00:00Z: why")
    never = "nobody knows until when: nothing of the stream was ever seen"
    assert complete_until(None, None) == never
    assert complete_until(None, "why") == "nobody knows until when: why"


def test_each_time_of_silence_has_a_command_of_its_own() -> None:
    """Who says that one shard was quiet must not say so of another one, or of another time."""
    holds = {
        "shard-1": [Hold(ONE, ONE + MINUTE, Held.QUIET)],
        "shard-2": [Hold(ONE, ONE + MINUTE, Held.QUIET), Hold(ONE, ONE + MINUTE, Held.THIN)],
        "shard-3": [Hold(ONE + 3 * MINUTE, ONE + 4 * MINUTE, Held.QUIET)],
        "shard-4": [Hold(LATE.start, LATE.end, Held.QUIET)],
    }
    first, second = quiet_notes("events", EARLY, holds)
    assert "--from 2026-11-20T13:00:00Z --to 2026-11-20T13:01:00Z --shard shard-1 shard-2 " in first
    assert "--from 2026-11-20T13:03:00Z --to 2026-11-20T13:04:00Z --shard shard-3 " in second
    assert quiet_notes("events", EARLY, holds, named=1)[1:] == [
        "1 more time of silence: see the page"
    ]
