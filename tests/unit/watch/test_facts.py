"""What is known of a shard: what follows from a watch and the one before it."""

from datetime import datetime, timedelta

import pytest

from shardaudit.model.config.eras import always
from shardaudit.watch.rules.facts import LedgerProgress, Rules, Span
from tests.builders import NOW, SHARD
from tests.unit.watch.witnesses import HOUR, MINUTE, RULES, before, position, witness

A, B, C = (NOW - n * HOUR for n in (3, 2, 1))


@pytest.mark.parametrize(
    ("waits", "produced", "landed", "newest"),
    [
        (None, None, None, None),
        (None, A, None, A),
        (None, A, B, B),
        (Span(1, A, C), B, None, C),
        (Span(1, A, B, arrived_until=C), None, A, C),  # its producer held it back
        (Span(1, A, B, arrived_until=A), None, None, B),
    ],
)
def test_the_newest_is_the_latest_of_what_was_sent_landed_and_waits(
    waits: Span | None, produced: datetime | None, landed: datetime | None, newest: datetime | None
) -> None:
    seen = LedgerProgress(SHARD, produced_until=produced, landed_until=landed, ahead=waits)
    assert seen.newest == newest


@pytest.mark.parametrize(
    ("now", "then", "since"),
    [
        (("7", C), None, C),
        (("7", C), ("7", B), B),  # the same row landed again
        (("7", B), ("7", C), B),
        (("8", C), ("7", B), C),
        (("7", C), ("7", None), C),
        (("7", None), ("7", B), B),
        ((None, C), (None, B), C),  # without numbers nobody knows that a row landed twice
    ],
)
def test_a_frontier_rests_since_the_first_landing_of_its_number(
    now: tuple[str | None, datetime | None],
    then: tuple[str | None, datetime | None] | None,
    since: datetime,
) -> None:
    seen = LedgerProgress(SHARD, frontier=now[0], frontier_at=now[1])
    old = then and before(HOUR, frontier=then[0], frontier_at=then[1])
    assert witness(seen, before=old).resting_since == since


@pytest.mark.parametrize(
    ("now", "then", "is_back"),
    [
        ("99", "100", True),  # by length first
        ("100", "99", False),
        ("100", "100", False),
        ("LATEST", "100", False),
        ("99", "TRIM_HORIZON", False),
        ("99", None, False),
        (None, "100", False),
    ],
)
def test_a_consumer_went_back_where_its_number_is_before_the_one_it_had(
    now: str | None, then: str | None, is_back: bool
) -> None:
    at, was = (None if text is None else position(text) for text in (now, then))
    found = witness(LedgerProgress(SHARD), position=at, before=before(HOUR, position=was))
    assert found.went_back is is_back


def test_another_consumer_went_nowhere() -> None:
    other = position("100", consumer="others")
    seen = witness(
        LedgerProgress(SHARD), position=position("99"), before=before(HOUR, position=other)
    )
    assert not seen.went_back


def test_rules_as_of_when_the_ledger_was_read_are_older_by_its_age_and_nothing_else() -> None:
    assert RULES.when_read == RULES
    aged = Rules(
        as_of=NOW,
        retention=timedelta(days=1),
        cells=always(MINUTE),
        read_share=0.5,
        ledger_age=5 * MINUTE,
    )
    read = aged.when_read
    assert (read.as_of, read.ledger_age) == (NOW - 5 * MINUTE, timedelta(0))
    assert (read.retention, read.bucket, read.read_share) == (timedelta(days=1), MINUTE, 0.5)
