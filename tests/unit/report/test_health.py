"""What was never looked at, or too long ago, never looks fine."""

from datetime import UTC, datetime, timedelta

import pytest

from shardaudit.report.figures import health_figures
from shardaudit.report.health import Health

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
