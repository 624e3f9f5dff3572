"""An address says what a page shows: it reads back, and what cannot be is refused."""

from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardaudit.model.errors import ConfigError
from shardaudit.model.verdict import Kind, State
from shardaudit.model.window import Window
from shardaudit.page.page_state import PageState
from shardaudit.page.page_words import Metric
from shardaudit.store.cell_grid import ShardRange

NAME = st.text(min_size=1, max_size=40).map(str.strip)
INSTANT = st.datetimes(
    datetime(2020, 1, 1),  # noqa: DTZ001 - hypothesis wants it so
    datetime(2040, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
)
STATES = st.builds(
    PageState,
    stream=NAME,
    window=st.none() | INSTANT.map(lambda at: Window(at, at + timedelta(hours=1))),
    metric=st.sampled_from(Metric),
    shards=st.builds(ShardRange, NAME.map(lambda n: n or None), NAME.map(lambda n: n or None)),
    kind=st.sampled_from(["", *Kind]),
    state=st.sampled_from(["", *State]),
    part=NAME,
)


@given(STATES)
def test_an_address_leads_back_to_its_state(state: PageState) -> None:
    link = state.link("stream")
    assert PageState.parse(dict(parse_qsl(urlsplit(link).query))) == state


def test_a_link_changes_what_it_is_asked_to() -> None:
    state = PageState(stream="events", metric=Metric.P99, part="a b&c=<d>")
    assert state.link("shard", metric=Metric.VERDICT) == "shard?stream=events&id=a+b%26c%3D%3Cd%3E"


@pytest.mark.parametrize(
    "given",
    [
        {"metric": "speed"},
        {"kind": "gone"},
        {"state": "closed"},
        {"from": "2026-11-01T00:00:00Z"},
        {"from": "2026-11-01T00:00:00", "to": "2026-11-02T00:00:00"},
        {"from": "2026-11-02T00:00:00Z", "to": "2026-11-01T00:00:00Z"},
        {"id": "x" * 5000},
    ],
)
def test_an_address_that_cannot_be_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        PageState.parse(given)


def test_keys_of_others_are_left_alone() -> None:
    assert PageState.parse({"stream": "events", "utm_source": "mail"}).stream == "events"
