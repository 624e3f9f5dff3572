"""What was never looked at, or too long ago, never looks fine."""

from datetime import UTC, datetime, timedelta

import pytest

from shardaudit.report.figures import health_figures
from shardaudit.report.health import Health, not_known

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
H = timedelta(hours=1)
FINE = Health(read_at=NOW - H, audited_at=NOW - 10 * H, watched_at=NOW - H / 4)


@pytest.mark.parametrize(
    ("health", "troubles"),
    [
        (FINE, []),
        (Health(NOW - 26 * H, NOW - 26 * H, NOW - H), []),
        (Health(None, None, None), ["never read", "never audited", "never watched"]),
        (Health(NOW - 99 * H, NOW - H, NOW), []),
        (Health(NOW, NOW - 50 * H, NOW), ["audited 2 d 2 h ago"]),
        (Health(NOW, NOW, NOW - 2 * H), ["watched 2 h 0 min ago"]),
        (Health(NOW, NOW, NOW, ("the audit a is of 2027",)), ["the audit a is of 2027"]),
    ],
)
def test_what_is_old_or_never_was_is_trouble(health: Health, troubles: list[str]) -> None:
    assert health.troubles(NOW) == troubles


def test_all_of_it_is_one_sentence() -> None:
    assert FINE.sentence(NOW) == "read 1 h 0 min ago, audited 10 h 0 min ago, watched 15 min ago"
    assert Health(None, None, None).sentence(NOW) == "never read, never audited, never watched"


def test_what_never_was_is_as_old_as_can_be() -> None:
    assert health_figures(Health(NOW, None, NOW)) == {
        "read_timestamp": NOW.timestamp(),
        "audited_timestamp": 0.0,
        "watched_timestamp": NOW.timestamp(),
    }


SEEN = {"observed_at": NOW, "opened": True, "level": "none", "unnamed_since": None}
UNLISTED = SEEN | {"opened": None}  # Kinesis has forgotten it, or did not answer
BOTH = {"sink": NOW, "kcl": NOW}


@pytest.mark.parametrize(
    ("shards", "positions", "is_consumer_asked", "begins"),
    [
        ([], {}, True, []),
        ([SEEN, UNLISTED], {"sink": NOW}, False, []),
        ([SEEN], {}, False, []),
        ([SEEN], BOTH, True, []),
        ([UNLISTED], BOTH, True, ["Kinesis did not say"]),
        ([SEEN], {"sink": NOW}, True, ["how far the consumer"]),
        (
            [SEEN],
            BOTH | {"sink": NOW + H / 4},
            True,
            ["what landed since: the watch of 2026-11-20"],
        ),
        ([SEEN, SEEN | {"unnamed_since": NOW - H}], BOTH, True, ["in 1 shard from 2026-11-20T11"]),
        ([SEEN | {"level": "warn", "unnamed_since": NOW - H}], BOTH, True, []),
    ],
)
def test_what_a_stored_watch_does_not_know_is_said_in_its_words(
    shards: list[dict[str, object]],
    positions: dict[str, datetime],
    is_consumer_asked: bool,
    begins: list[str],
) -> None:
    said = not_known(shards, positions, is_consumer_asked=is_consumer_asked)
    assert len(said) == len(begins)
    assert all(one.startswith(words) for one, words in zip(said, begins, strict=True))
