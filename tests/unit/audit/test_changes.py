"""What an audit tells people."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from shardaudit.audit.audit_news import (
    AuditNews,
    StateChange,
    published_news,
    rejected_news,
)
from shardaudit.model.verdict import Cause, Kind, Level, State, Verdict
from shardaudit.report.summary import AuditReport, DeadlineLine
from tests.unit.report.reports import report

NEW_LOSS: StateChange = (Kind.MISSING, None, State.OPEN)
EVIL = "<!channel> <script>alert(1)</script>\n=cmd()\x1b[2J@here *b* \u202e"


def told(
    changes: dict[StateChange, int],
    *,
    of: AuditReport | None = None,
    before: Verdict | None = Verdict.LOSS,
    examples: tuple[str, ...] = (),
) -> AuditNews:
    news = published_news(
        of or report(verdict=Verdict.LOSS), changes, before=before, examples=examples, gaps=()
    )
    assert news is not None
    return news


@pytest.mark.parametrize(
    ("verdict", "before"),
    [
        (Verdict.LOSS, Verdict.LOSS),
        (Verdict.OK, Verdict.PENDING),
        (Verdict.PENDING, Verdict.OK),
        (Verdict.OK, None),
    ],
)
def test_it_is_silent_when_nothing_changed(verdict: Verdict, before: Verdict | None) -> None:
    assert published_news(report(verdict=verdict), {}, before=before, examples=(), gaps=()) is None


@pytest.mark.parametrize(
    ("verdict", "before", "said"),
    [
        (Verdict.INCONCLUSIVE, Verdict.OK, "the verdict was ok and is inconclusive"),
        (Verdict.OK, Verdict.LOSS, "the verdict was loss and is ok"),
        (Verdict.STALLED, None, "the verdict is stalled"),
    ],
)
def test_another_verdict_alone_is_told(verdict: Verdict, before: Verdict | None, said: str) -> None:
    news = told({}, of=report(verdict=verdict), before=before)
    assert news.title == f"shardaudit: events is {verdict.upper()}: {said}"


def test_losses_come_first_then_what_came_back_then_the_nearest_deadline() -> None:
    as_of = datetime(2026, 11, 20, tzinfo=UTC)
    until = as_of + timedelta(hours=50)
    near = DeadlineLine("shard-7", Kind.MISSING, Cause.LOST, 3, until)
    far = replace(near, shard_id="shard-8", recoverable_until=until + timedelta(hours=1))
    changes: dict[StateChange, int] = {
        NEW_LOSS: 3,
        (Kind.DUPLICATED, None, State.OPEN): 1,
        (Kind.MISSING, State.FALSE_ALARM, State.OPEN): 2,
        (Kind.MISSING, State.REPLAYED, State.RECOVERED): 12,
        (Kind.DUPLICATED, State.OPEN, State.RECOVERED): 1,
        (Kind.MISSING, State.OPEN, State.FALSE_ALARM): 4,
        (Kind.MISSING, State.OPEN, State.EXPIRED): 5,
        (Kind.MISSING, None, State.EXPIRED): 6,
        (Kind.MISSING, State.EXPIRED, State.OPEN): 7,
    }
    news = told(
        changes,
        of=report(verdict=Verdict.LOSS, as_of=as_of, deadlines=(far, near)),
        examples=("a",),
    )
    assert news.text.splitlines()[:-2] == [
        "3 messages newly missing",
        "6 messages newly missing, and gone from the stream",
        "2 messages missing again",
        "1 message newly landed more than once",
        "5 messages left the stream for good",
        "for example a",
        "13 messages recovered",
        "4 messages arrived after all",
        "7 messages can be read again after all",
        "nearest deadline: 3 messages of shard-7 leave the stream from 2026-11-22T02:00:00Z on "
        "(2 d 2 h left)",
    ]
    assert news.title.startswith("shardaudit: events is LOSS: 3 messages newly missing, 6 messages")


def test_a_gap_of_which_the_first_are_gone_has_no_time_left() -> None:
    """Of a whole minute the first have left the stream, and the last are still there."""
    as_of = datetime(2026, 11, 20, tzinfo=UTC)
    line = DeadlineLine("s", Kind.MISSING, Cause.LOST, 3, as_of - timedelta(hours=2))
    of = report(verdict=Verdict.LOSS, as_of=as_of, deadlines=(line,))
    assert "from 2026-11-19T22:00:00Z on (the first are gone)" in told({NEW_LOSS: 3}, of=of).text


def test_how_loud_it_is_hangs_on_the_verdict() -> None:
    better: dict[StateChange, int] = {(Kind.MISSING, State.REPLAYED, State.RECOVERED): 1}
    fine = report(verdict=Verdict.OK)
    assert told({NEW_LOSS: 1}).level is Level.WARN
    assert told({NEW_LOSS: 1}, of=fine).level is Level.NOTICE  # tolerated
    assert told(better, of=fine).level is Level.NONE


def test_the_same_news_have_the_same_id_and_others_another() -> None:
    first, again = told({NEW_LOSS: 1}), told({NEW_LOSS: 1})
    assert first.news_id == again.news_id
    other = told({NEW_LOSS: 1}, of=report(verdict=Verdict.LOSS, audit_id="other"))
    rejected = rejected_news("events", first.text.split("audit ")[1].split(":")[0], "why")
    assert len({first.news_id, other.news_id, rejected.news_id}) == 3


def test_hostile_ids_stay_text_of_one_line() -> None:
    examples = (EVIL, "\U0001f4a9" * 1024)
    news = told({NEW_LOSS: 2}, examples=examples)
    lines = [line for line in news.text.splitlines() if line.startswith("for example")]
    assert len(lines) == 2
    assert "\x1b" not in news.text
    assert "\u202e" not in news.text
    assert max(map(len, lines)) < 80
    assert EVIL[:10] not in news.title
    assert "\x1b" not in rejected_news("events", "a", EVIL).text
