"""What an audit stores to be told: what it changed, once, also when it is run again."""

from datetime import timedelta

import pytest
from pyspark.sql import Row

from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.job import audit
from shardaudit.model.retention import Retention
from shardaudit.model.tables.watch_tables import NOTIFICATIONS
from shardaudit.model.window import Window
from tests.builders import NOW, T0, sink_row, trace_line
from tests.spark.lake import Lake
from tests.spark.ungated import ungated

EVIL = "<!channel>\n<script>alert(1)</script>=cmd()\x1b[2J"


def audited(
    lake: Lake, *, hours: int = 0, minutes: tuple[int, int] = (0, 5), late_of: str | None = None
) -> list[Row]:
    """What is stored to be told after an audit that many hours later, oldest first."""
    as_of = NOW + timedelta(hours=hours)
    lake.ingest(now=as_of)
    window = Window(*(T0 + timedelta(minutes=minute) for minute in minutes))
    request = AuditRequest(
        lake.name, lake.stream, window, as_of, Retention(timedelta(days=7)), late_of
    )
    audit(lake.warehouse, request, ungated(), now=as_of)
    return sorted(lake.rows(NOTIFICATIONS), key=lambda row: row.observed_at)


def test_losses_and_their_return_are_told_once_and_nothing_when_nothing_changed(lake: Lake) -> None:
    ids = {1: "m1", 2: EVIL}
    lake.log("a.jsonl", [trace_line(n, message_id=ids.get(n, f"m{n}")) for n in range(9)])
    lake.land([sink_row(n) for n in range(9) if n not in ids])
    (told,) = audited(lake)
    assert told.text.splitlines()[:2] == [
        "shardaudit: events is LOSS: 2 messages newly missing",
        "2 messages newly missing",
    ]
    examples = "for example m1"
    deadline = "nearest deadline: 2 messages of shardId-000000000000 leave"
    assert [words for words in (examples, deadline) if words not in told.text] == []
    assert "\x1b" not in told.text
    assert (told.state, told.kind, told.level, told.shard_id) == ("pending", "audit", "warn", None)
    sent = told.asDict() | {"state": "sent"}
    lake.warehouse.upsert([sent], NOTIFICATIONS)
    assert [row.state for row in audited(lake)] == ["sent"]  # the same audit, run again
    assert len(audited(lake, hours=1)) == 1
    lake.land([sink_row(1)])
    _, back = audited(lake, hours=2)
    assert back.text.splitlines()[0] == "shardaudit: events is LOSS: 1 message arrived after all"


@pytest.mark.drill
def test_verdict_of_minutes_is_compared_with_what_was_said_of_these_minutes(lake: Lake) -> None:
    lake.log("a.jsonl", [trace_line(n) for n in (0, 60, 400)])
    lake.land([sink_row(n) for n in (0, 60)])
    assert audited(lake) == []
    assert len(audited(lake, hours=1, minutes=(5, 10))) == 1  # a loss
    # Others of the same length went before, of the same minutes, and one of more minutes.
    assert len(audited(lake, hours=2, late_of="another")) == 1
    assert len(audited(lake, hours=3, minutes=(0, 10))) == 1
    assert len(audited(lake, hours=4, minutes=(0, 2), late_of="another")) == 1
    # Nobody had looked at all of these.
    assert len(audited(lake, hours=5, minutes=(8, 13), late_of="another")) == 1

    lake.log("b.jsonl", [trace_line(30)])
    news = audited(lake, hours=6, minutes=(0, 2), late_of="another")
    assert "\nthe verdict was ok and is loss\n" in news[-1].text
