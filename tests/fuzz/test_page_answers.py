"""Addresses of the page as a browser, a person or a scanner sends them: a page, or a sentence."""

import re
import resource
import warnings
from collections.abc import Callable
from datetime import timedelta
from urllib.parse import quote_from_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import QueryParams

from shardaudit.adapters.clock import now
from shardaudit.model.config.settings import Settings
from shardaudit.model.errors import ConfigError
from shardaudit.model.verdict import Kind, State
from shardaudit.page.page_words import METRICS
from tests.fuzz.hostile import BOUNDED, TEXT
from tests.page_warehouse import HOSTILE, STREAM, shard_name, write_warehouse

Asked = Callable[[str, str], tuple[bool, str]]
PATHS = ["/", "/stream", "/shard", "/findings.csv"]
_SHARDS = st.sampled_from([shard_name(5), shard_name(9), shard_name(99), "", "shard"])
_AT = now()
_TIMES = st.sampled_from(
    [
        *((_AT - timedelta(hours=hours)).isoformat() for hours in (0, 1, 5, 30, 9000)),
        *(
            "0001-01-01T00:00:00Z",
            "9999-12-31T23:59:59Z",
            "0001-01-01T00:00:00+14:00",
            "2026-11-20",
        ),
        *("2026-11-20T00:00:00.000001Z", "2026-11-21T00:00:00+14:00", "1969-12-31T00:00:00Z"),
    ]
)
_USUAL: dict[str, st.SearchStrategy[str]] = {
    "stream": st.just(STREAM),
    "from": _TIMES,
    "to": _TIMES,
    "metric": st.sampled_from([*METRICS]),
    "first": _SHARDS,
    "last": _SHARDS,
    "kind": st.sampled_from([*Kind]),
    "state": st.sampled_from([*State]),
    "id": st.sampled_from([*HOSTILE, "message", "%", "_", ".*"]),
}
_LONG = st.sampled_from(["x" * 5000, "\N{PILE OF POO}" * 1024, "&" * 300, "=" * 300])
_ONE_SHARD = st.sampled_from(
    [[], [("stream", STREAM), ("first", shard_name(5)), ("last", shard_name(5))]]
)


@st.composite
def addresses(draw: st.DrawFn) -> str:
    """What stands behind the `?`: as our pages write it, but for a value or a byte or two."""
    names = draw(st.lists(st.sampled_from([*_USUAL]), max_size=4))
    pairs = [*draw(_ONE_SHARD), *((name, draw(_USUAL[name])) for name in names)]
    for _ in range(draw(st.integers(0, 2))):
        odd = (draw(st.sampled_from([*_USUAL]) | TEXT), draw(TEXT | _LONG))
        pairs.insert(draw(st.integers(0, len(pairs))), odd)
    plain = [[part.encode("utf-8", "surrogatepass") for part in pair] for pair in pairs]
    query = "&".join("=".join(map(quote_from_bytes, pair)) for pair in plain)
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 3]))):
        at = draw(st.integers(0, len(query)))
        query = (
            query[:at]
            + draw(st.sampled_from(["%ff", "%00", "%", "&&", "+", "=", ";", "%C0%80"]))
            + query[at:]
        )
    return query


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    """All of a small warehouse, by their paths."""
    folder = tmp_path_factory.mktemp("warehouse")
    write_warehouse(folder, now=_AT, shards=24, days=1, bucket=timedelta(hours=1))
    stream = {
        "stream_name": STREAM,
        "bucket": "1h",
        "loss_budget": 0.01,
        "traces": {"path": "traces"},
        "sink": {"path": "sink"},
        "locations": {"router": {"after": ["producer"]}},
    }
    settings = Settings.model_validate({"warehouse": str(folder), "streams": {STREAM: stream}})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Airflow, when its door is imported
        from shardaudit.page.airflow_door import HiddenStreamError, Rights  # noqa: PLC0415 - as above
        from shardaudit.page.site import Site  # noqa: PLC0415 - as above

    site = Site(lambda: settings, lambda: _AT)
    rights = Rights(may_backfill=True, may_see=lambda _: True)

    def asked(path: str, query: str) -> tuple[bool, str]:
        """Whether it is a page, and what stands on it, as `routes` would answer."""
        try:
            answer = site.pages().by_path[path](QueryParams(query), rights)
        except (ConfigError, HiddenStreamError) as error:
            return False, str(site.problem("This cannot be shown", str(error)).body)
        return True, "".join(answer.body)

    return asked


@BOUNDED
@given(st.sampled_from(PATHS), addresses())
def test_every_address_is_a_page_or_a_sentence(pages: Asked, path: str, query: str) -> None:
    is_page, body = pages(path, query)
    assert len(body.encode()) < 2_000_000
    if path != "/findings.csv" or not is_page:
        assert body.rstrip().endswith("</html>")
        scripts = re.findall(r"<script\b[^>]*>", body)
        assert all('src="' in one or "application/json" in one for one in scripts), scripts
        assert not re.search(r"<[^>]*\son\w+=", body)  # no handler has got in
    used_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert used_kib < 2 * 2**20
