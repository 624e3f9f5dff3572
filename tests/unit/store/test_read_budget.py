"""The month of a budget, from audits that overlap, findings and gaps: nothing counts twice."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from shardaudit.model.config.settings import Settings
from shardaudit.model.loss_budget import LossBudget, month_of
from shardaudit.model.tables.audit_tables import AUDITS, CELLS, FINDINGS
from shardaudit.model.tables.gap_tables import GAPS
from shardaudit.store.read_budget import read_budget
from tests.page_warehouse import Row, write_rows

HOUR = timedelta(hours=1)
START = datetime(2026, 11, 1, tzinfo=UTC)
NOW = START + 10 * HOUR


def settings(folder: Path, loss_budget: float | None) -> Settings:
    place = {"path": str(folder)}
    events = {"stream_name": "e", "bucket": HOUR, "traces": place, "sink": place}
    streams = {"events": events | {"loss_budget": loss_budget}}
    return Settings.model_validate({"warehouse": str(folder), "streams": streams})


def audit(audit_id: str, first: int, last: int, **more: object) -> Row:
    return {
        "audit_id": audit_id,
        "stream": "events",
        "window_start": START + first * HOUR,
        "window_end": START + last * HOUR,
        "as_of": START + last * HOUR,
        "status": "published",
        **more,
    }


def cells(audit_id: str, first: int, last: int, *, sent: int, verdict: str = "ok") -> list[Row]:
    return [
        {
            "audit_id": audit_id,
            "stream": "events",
            "shard_id": shard_id,
            "bucket_start": START + n * HOUR,
            "sent": sent,
            "verdict": verdict,
        }
        for n in range(first, last)
        for shard_id in ("s1", "s2")
    ]


def finding(message_id: str, sent_at: datetime = START, **more: object) -> Row:
    kind = {"kind": "missing", "cause": "lost", "state": "open"}
    key = {"stream": "events", "message_id": message_id, "shard_id": "s1"}
    return {**key, **kind, "sent_at": sent_at, **more}


def test_no_minute_and_no_message_counts_twice_or_of_another_month(tmp_path: Path) -> None:
    again = {"as_of": NOW}  # a later look at two hours, as after a backfill
    write_rows(
        tmp_path,
        AUDITS,
        [
            audit("before", -4, 3),
            audit("night", 1, 6),
            audit("again", 2, 4, **again),
            audit("failed", 6, 9, status="failed"),
            audit("other", 0, 9, stream="orders"),
        ],
    )
    write_rows(
        tmp_path,
        CELLS,
        [
            *cells("before", -4, 3, sent=1000),
            *cells("night", 1, 6, sent=100),
            *cells("again", 2, 3, sent=10),
            *cells("again", 3, 4, sent=10, verdict="inconclusive"),
            *cells("failed", 6, 9, sent=5),
            *cells("other", 0, 9, sent=7),
        ],
    )
    write_rows(
        tmp_path,
        FINDINGS,
        [
            finding("lost"),
            finding("gone while it was stuck", cause="stuck", state="expired"),
            finding("known", state="accepted"),
            finding("known, and behind", cause="stuck", state="accepted"),
            finding("waits", cause="stuck"),
            finding("back", state="recovered"),
            finding("came", state="false_alarm"),
            finding("twice", kind="duplicated", cause="consumer_replay"),
            finding("in October", START - timedelta(microseconds=1)),
            finding("of others", stream="orders"),
        ],
    )
    gap = {"stream": "events", "bucket_start": START, "state": "open"}
    write_rows(
        tmp_path,
        GAPS,
        [
            {**gap, "shard_id": "s1", "cause": "lost", "count": 40},
            {**gap, "shard_id": "s2", "cause": "stuck", "count": 500},
            {**gap, "shard_id": "s3", "cause": "lost", "count": 9, "state": "recovered"},
        ],
    )
    # Of both shards: one hour of the audit before, three of the night, two of the later look.
    assert read_budget(settings(tmp_path, 0.001), "events", now=NOW) == LossBudget(
        allowed=0.001,
        month=month_of(NOW),
        as_of=NOW,
        sent=2 * (1000 + 3 * 100 + 2 * 10),
        lost=4 + 40,
        stuck=1 + 500,
        unaudited=4 * HOUR,
        inconclusive=HOUR,
    )


def test_without_a_budget_nothing_is_said_and_without_an_audit_nothing_is_known(
    tmp_path: Path,
) -> None:
    assert read_budget(settings(tmp_path, None), "events", now=NOW) is None
    for now in (START, NOW):
        found = read_budget(settings(tmp_path, 0.001), "events", now=now)
        assert found is not None
        assert (found.used, found.unaudited) == (None, now - START)
