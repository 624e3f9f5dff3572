"""What goes of the histories, as the page tells it, and how short they may be."""

import re
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from shardaudit.model.config.keep import Keep
from shardaudit.model.config.settings import Settings
from shardaudit.model.retention import MAX_RETENTION
from shardaudit.model.tables.all_tables import OF_LEDGER, OF_WATCH
from shardaudit.model.window import LONGEST

PAGE = (Path(__file__).parents[3] / "docs" / "configuration.md").read_text()
STREAM = {"stream_name": "e", "traces": {"path": "t"}, "sink": {"path": "s"}}


def kept(history: str | None, **stream: str) -> timedelta:
    keep = {} if history is None else {"keep": {"history": history}}
    raw = {"warehouse": "w", "streams": {"events": STREAM | stream}, **keep}
    return Settings.model_validate(raw).keep.history


@pytest.mark.parametrize(
    ("history", "stream"),
    [
        ("37d", {}),
        ("60d", {"audit_window": "30d"}),
        ("71d", {"retention": "1000h"}),
    ],
)
def test_a_history_is_longer_than_what_a_stream_still_reads(
    history: str, stream: dict[str, str]
) -> None:
    with pytest.raises(ValidationError, match="31 days more than the audit_window and the ret"):
        kept(history, **stream)
    longer = f"{int(history[:-1]) + 2}d"
    assert kept(longer, **stream) == timedelta(days=int(longer[:-1]))


def test_the_default_is_long_enough_for_every_stream() -> None:
    assert kept(None, audit_window=f"{LONGEST.days}d", retention="8760h") == Keep().history
    assert Keep().history > MAX_RETENTION


def test_the_page_says_of_each_table_what_becomes_of_its_rows() -> None:
    section = PAGE.partition("## `[keep]`\n")[2].partition("\n## ")[0]
    rows = re.findall(r"(?m)^\| (`\w+`.*?) \| (?:goes|stays)", section)
    told = [name for cell in rows for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(told) == sorted([*(t.name for t in OF_LEDGER + OF_WATCH), "handed_over"])
