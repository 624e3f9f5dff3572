"""Addresses of the page and texts of messages, as hostile as they come, as people get them."""

import csv
import io
import re
import unicodedata
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from shardaudit.model.errors import ConfigError
from shardaudit.page.page_findings import CSV_COLUMNS, csv_lines
from shardaudit.page.page_state import PageState
from shardaudit.report.plain import harmless
from tests.fuzz.hostile import BOUNDED, TEXT

_KEYS = st.sampled_from(["stream", "from", "to", "metric", "first", "last", "kind", "state", "id"])
_TIMES = st.sampled_from(["2026-11-20T00:00:00Z", "2026-11-21T00:00:00+14:00", "2026-11-20", "now"])
QUERY = st.dictionaries(_KEYS, TEXT | _TIMES | st.sampled_from(["x" * 5000, "verdict", "missing"]))


@BOUNDED
@given(QUERY)
def test_an_address_is_a_state_or_refused_in_a_sentence(given_by: dict[str, str]) -> None:
    try:
        state = PageState.parse(given_by)
    except ConfigError as error:
        assert len(str(error)) < 20_000
        return
    link = state.link("stream")
    assert re.fullmatch(r"[\x21-\x7e]+", link)
    assert not re.search(r"[\"'<>]", link)


@BOUNDED
@given(TEXT)
def test_nothing_in_a_text_turns_a_line_or_its_direction(text: str) -> None:
    shown = harmless(text)
    assert all(c == " " or unicodedata.category(c)[0] not in "CZ" for c in shown)
    shown.encode()


@BOUNDED
@given(st.lists(TEXT, min_size=len(CSV_COLUMNS), max_size=len(CSV_COLUMNS)), st.none() | TEXT)
def test_no_cell_of_the_download_is_a_formula(texts: list[str], value: str | None) -> None:
    row: dict[str, object] = dict(zip(CSV_COLUMNS, texts, strict=True))
    row |= {"attributes": [(texts[0], value)], "sent_at": datetime(2026, 11, 20, tzinfo=UTC)}
    content = "".join(csv_lines([row]))
    rows = list(csv.reader(io.StringIO(content, newline=""), strict=True))
    assert [len(cells) for cells in rows] == [len(CSV_COLUMNS)] * 2
    for cell in rows[1]:
        assert not re.match(r"[\s\0\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]", cell), repr(
            cell
        )
    content.encode()
