"""Small scenarios of the simulator."""

from datetime import UTC, datetime

from shardaudit.simulate.scenario import Scenario

MESSAGES = 4000
FAULTS = {
    "lost": 9,
    "expired": 4,
    "replay": 8,
    "retry": 7,
    "late": 6,
    "untraced": 5,
    "moved": 4,
    "cancel": 3,
    "silent_shard": 1,
    "stuck_shard": 2,
    "reshard": 1,
}


def scenario(**changes: object) -> Scenario:
    values = {
        "stream": "events",
        "seed": 5,
        "messages": MESSAGES,
        "shards": 9,
        "start": datetime(2026, 11, 1, tzinfo=UTC),
        "hours": 3,
        "faults": FAULTS,
    }
    return Scenario(**{**values, **changes})  # type: ignore[arg-type] # of the fields' types
