"""What the page of a stream is given beside its map."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from shardaudit.model.config.settings import load_settings
from shardaudit.page.page_of_stream import stream_values
from shardaudit.page.page_state import PageState

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
