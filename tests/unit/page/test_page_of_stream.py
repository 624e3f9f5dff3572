"""What the page of a stream is given beside its map."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from shardaudit.model.config.settings import load_settings
from shardaudit.model.tables.audit_tables import AUDITS, FINDINGS
from shardaudit.model.tables.route_tables import SIGHTING_COUNTS
from shardaudit.page.page_of_stream import stream_values
from shardaudit.page.page_report import stream_report
from shardaudit.page.page_state import PageState
from shardaudit.store.audits import audits_of
from shardaudit.store.cell_grid import ShardRange
from tests.page_warehouse import HOUR, STREAM, shard_name, write_rows, write_warehouse

FIRST = datetime(2026, 12, 1, 2, tzinfo=UTC)
CONFIG = """
warehouse = "warehouse"
[streams.events]
stream_name = "events"
loss_budget = 0.01
traces = { path = "traces" }
sink = { path = "sink" }
"""


@pytest.mark.parametrize(("now", "months"), [(FIRST, [12, 11]), (FIRST + timedelta(days=7), [12])])
def test_the_month_before_is_told_in_the_first_week_of_a_month(
    tmp_path: Path, now: datetime, months: list[int]
) -> None:
    config = tmp_path / "shardaudit.toml"
    config.write_text(CONFIG)
    found = stream_values(load_settings(config), PageState(stream="events"), [], now=now)
    assert [budget.month.start.month for budget in found["budgets"]] == months


def test_places_are_shown_below_the_map_of_all_shards_alone(tmp_path: Path) -> None:
    config, now = tmp_path / "shardaudit.toml", FIRST + timedelta(days=7)
    config.write_text(f"{CONFIG}[streams.events.locations.router]\nafter = ['producer']\n")
    write_warehouse(tmp_path / "warehouse", now=now, days=1, bucket=HOUR)
    traced = {"stream": STREAM, "location": "router", "received": 8, "sent": 8}
    starts = [now.replace(minute=0) - hours * HOUR for hours in range(1, 24)]
    counts = [{**traced, "bucket_start": at, "sent_day": at.date()} for at in starts]
    write_rows(tmp_path / "warehouse", SIGHTING_COUNTS, counts)
    lost = {"after": "producer", "before": "router", "probability": 1.0}
    finding = {"stream": STREAM, "message_id": "m", "kind": "missing", "state": "open"}
    found = [{**finding, "hops": json.dumps([lost]), "sent_at": starts[0]}]
    write_rows(tmp_path / "warehouse", FINDINGS, found)
    ahead = now + timedelta(days=365)  # by a clock that was wrong
    span = {"window_start": ahead - HOUR, "window_end": ahead, "as_of": ahead, "started_at": ahead}
    of_ahead = {"audit_id": "ahead", "stream": STREAM, "status": "published", "verdict": "ok"}
    write_rows(tmp_path / "warehouse", AUDITS, [{**of_ahead, **span}])
    settings = load_settings(config)
    page = stream_report(settings, PageState(stream=STREAM), audit_id=None, now=now).html
    assert f"the audit ahead is of {ahead:%Y-%m-%dT%H:%M:%SZ}, which is still to come" in page
    assert f"router, {starts[0]:%Y-%m-%d %H:%M} UTC: 1 lost before it" in page
    assert "missing of no known hop; 8 received, 8 sent on</title>" in page  # a shard is silent
    some = PageState(stream=STREAM, shards=ShardRange(shard_name(1), shard_name(2)))
    assert (
        stream_values(settings, some, audits_of(settings, STREAM, now=now), now=now)["places"]
        is None
    )
