"""The page behind Airflow's login: who sees what, and that nobody sees anything without one."""

import re
import threading
import time
import warnings
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from shardaudit.adapters.clock import now
from shardaudit.model.config.settings import Settings
from shardaudit.model.tables.watch_tables import POSITIONS, SHARDS
from tests.page_warehouse import (
    HOSTILE,
    STREAM,
    shard_name,
    write_rejected,
    write_rows,
    write_warehouse,
)

SHARD = {"stream": STREAM, "first": shard_name(5), "last": shard_name(5)}
ADDRESSES = ("/", f"/stream?stream={STREAM}", "/findings.csv?stream=events", "/page.js")

pytestmark = pytest.mark.usefixtures("_airflow_warns")


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("warehouse")
    write_warehouse(folder, now=now(), shards=24, days=7, bucket=timedelta(minutes=30))
    stream = {
        "stream_name": STREAM,
        "bucket": "30m",
        "traces": {"path": "traces"},
        "sink": {"path": "sink"},
        "backfill": {"read_share": 0.05},
    }
    return Settings.model_validate({"warehouse": str(folder), "streams": {STREAM: stream}})


class Visitor:
    """A browser of somebody with a role, or of nobody."""

    def __init__(self, app: Any, token: str | None) -> None:  # Any: FastAPI, imported late
        from fastapi.testclient import TestClient  # noqa: PLC0415 - warns when it is imported

        self.app, self.token = app, token
        cookies = {} if token is None else {"_token": token}
        self._client = TestClient(app, cookies=cookies, raise_server_exceptions=True)

    def get(self, path: str, **query: str) -> Any:
        """The answer."""
        return self._client.get(path, params=query or None)


@pytest.fixture(scope="module")
def visitors(settings: Settings, _database: None) -> Iterator[dict[str, Visitor]]:
    """Nobody, a viewer and an admin at the door of the same app."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from airflow.api_fastapi.app import create_auth_manager  # noqa: PLC0415 - as above
        from airflow.api_fastapi.auth.managers.simple.user import (  # noqa: PLC0415
            SimpleAuthManagerUser,
        )

        from shardaudit.page.airflow_door import page_app  # noqa: PLC0415
        from shardaudit.page.site import Site  # noqa: PLC0415

        manager = create_auth_manager()
        app = page_app(Site(lambda: settings, now).pages())
        tokens = {
            role: manager.generate_jwt(SimpleAuthManagerUser(username=role, role=role))
            for role in ("viewer", "admin")
        }
        yield {
            "nobody": Visitor(app, None),
            "forger": Visitor(app, "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9."),
            **{role: Visitor(app, token) for role, token in tokens.items()},
        }


def test_no_route_answers_without_a_login(visitors: dict[str, Visitor]) -> None:
    paths = [route.path for route in visitors["nobody"].app.routes]
    assert set(paths) == {"/", "/stream", "/shard", "/findings.csv", "/page.css", "/page.js"}
    for path in paths:
        assert visitors["nobody"].get(path).status_code == 401
        assert visitors["forger"].get(path).status_code in {401, 403}


def test_what_is_no_route_tells_nothing(visitors: dict[str, Visitor]) -> None:
    for path in ("/docs", "/openapi.json", "/../shardaudit.toml", "/page.css/../../x"):
        assert visitors["admin"].get(path).status_code == 404


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_viewer_sees_the_pages_under_a_strict_policy(
    visitors: dict[str, Visitor], address: str
) -> None:
    answer = visitors["viewer"].get(address)
    assert answer.status_code == 200
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_what_was_never_read_says_so_and_a_watch_says_how_long_ago(
    visitors: dict[str, Visitor],
) -> None:
    page = visitors["viewer"].get("/").text
    assert "never read" in page
    assert re.search(r"level-of-urgent.*?\d+ (s|min) ago", page)


@pytest.mark.usefixtures("_database")
def test_that_all_shards_are_well_is_said_by_a_recent_watch_alone(
    settings: Settings, tmp_path: Path
) -> None:
    """While another run holds the ledger no watch reads anything, and sees what stops."""
    from shardaudit.page.airflow_door import Rights  # noqa: PLC0415 - it loads Airflow's web server
    from shardaudit.page.site import Site  # noqa: PLC0415

    own, at = settings.model_copy(update={"warehouse": str(tmp_path)}), now()
    row = {"stream": STREAM, "shard_id": "s", "observed_at": at, "state": "ok", "level": "none"}
    write_rows(tmp_path, SHARDS, [row | {"opened": True}])
    # By a clock that was ahead: no later watch.
    ahead = {"stream": STREAM, "source": "sink", "observed_at": at + timedelta(days=2)}
    write_rows(tmp_path, POSITIONS, [ahead])
    rights = Rights(may_backfill=False, may_see=lambda _: True)

    def said(later: timedelta) -> tuple[bool, bool]:
        page = str(Site(lambda: own, lambda: at + later).stream({"stream": STREAM}, rights).body)
        return "every shard of the newest watch is well" in page, "Nobody knows" in page

    assert said(timedelta(minutes=50)) == (True, False)
    assert said(timedelta(hours=3)) == (False, True)
    write_rows(tmp_path, SHARDS, [row | {"observed_at": at + timedelta(minutes=30)}])
    assert said(timedelta(minutes=50)) == (False, False)
    page = str(Site(lambda: own, lambda: at + timedelta(minutes=50)).streams({}, rights).body)
    assert "Kinesis did not say which shards there are" in page
    assert "ok by what is known</span>" in page
    last = at + timedelta(hours=1)
    write_rows(tmp_path, SHARDS, [row | {"observed_at": last, "state": "stalled", "level": "warn"}])
    of_shard = {"stream": STREAM, "first": "s", "last": "s"}
    page = str(Site(lambda: own, lambda: at + timedelta(hours=3)).shard(of_shard, rights).body)
    assert f"What the watch of {last:%Y-%m-%d %H:%M} UTC says" in page


def test_a_retention_that_is_shorter_than_a_repair_is_told(visitors: dict[str, Visitor]) -> None:
    page = visitors["viewer"].get("/stream", stream=STREAM).text
    assert "Time to repair: the stream keeps records for 7 d" in page
    assert "(backfill.read_share = 0.05)" in page


def test_only_who_may_start_a_backfill_is_offered_one(visitors: dict[str, Visitor]) -> None:
    assert "Backfill this" in visitors["admin"].get("/shard", **SHARD).text
    for path, query in (("/shard", SHARD), ("/stream", {"stream": STREAM})):
        assert "ackfill this" not in visitors["viewer"].get(path, **query).text


def test_a_stream_with_a_resource_is_seen_by_who_may_get_it(
    visitors: dict[str, Visitor], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.api_fastapi.auth.managers.simple import simple_auth_manager  # noqa: PLC0415

    from shardaudit.page.airflow_door import page_app  # noqa: PLC0415
    from shardaudit.page.site import Site  # noqa: PLC0415

    asked = []

    def is_authorized(_manager: object, *, method: str, resource_name: str, user: Any) -> bool:
        asked.append((method, resource_name))
        return bool(user.role == "admin")

    monkeypatch.setattr(
        simple_auth_manager.SimpleAuthManager, "is_authorized_custom_view", is_authorized
    )
    hidden = settings.streams[STREAM].model_copy(update={"page_resource": "payments"})
    own = settings.model_copy(
        update={"streams": {STREAM: hidden, "open": settings.streams[STREAM]}}
    )
    app = page_app(Site(lambda: own, now).pages())
    viewer, admin = (Visitor(app, visitors[role].token) for role in ("viewer", "admin"))
    listed = f'href="stream?stream={STREAM}"'
    assert listed in admin.get("/").text
    page = viewer.get("/").text
    assert listed not in page
    assert 'href="stream?stream=open"' in page
    for path, query in (
        ("/stream", {"stream": STREAM}),
        ("/shard", SHARD),
        ("/findings.csv", SHARD),
    ):
        assert viewer.get(path, **query).status_code == 403
        assert admin.get(path, **query).status_code == 200
    assert set(asked) == {("GET", "payments")}


def test_no_answer_names_a_stream_to_whom_it_is_hidden(
    visitors: dict[str, Visitor], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.api_fastapi.auth.managers.simple import simple_auth_manager  # noqa: PLC0415

    from shardaudit.page.airflow_door import page_app  # noqa: PLC0415
    from shardaudit.page.site import Site  # noqa: PLC0415

    monkeypatch.setattr(
        simple_auth_manager.SimpleAuthManager,
        "is_authorized_custom_view",
        lambda *_, user, **__: user.role == "admin",
    )
    hidden = settings.streams[STREAM].model_copy(update={"page_resource": "payments"})
    own = settings.model_copy(update={"streams": {STREAM: hidden}})
    app = page_app(Site(lambda: own, now).pages())
    viewer, admin = (Visitor(app, visitors[role].token) for role in ("viewer", "admin"))
    for path in ("/stream", "/shard", "/findings.csv"):
        for name in (STREAM, "nothing"):
            answer = viewer.get(path, **SHARD | {"stream": name})
            assert answer.status_code == 403
            said = f"There is no stream &#39;{name}&#39; that your roles in Airflow show you."
            assert said in answer.text
            assert STREAM not in answer.text.replace(said, "")
    page = viewer.get("/").text
    assert "There is no stream that your roles in Airflow show you" in page
    assert STREAM not in page
    answer = admin.get("/stream", stream="nothing")
    assert (answer.status_code, f"one of {STREAM}" in answer.text) == (400, True)


def test_hostile_ids_are_texts_in_the_page_and_in_the_download(
    visitors: dict[str, Visitor],
) -> None:
    page = visitors["viewer"].get("/shard", **SHARD).text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<script>alert" not in page
    assert HOSTILE[2] in page  # whole, in the title
    saved = visitors["viewer"].get("/findings.csv", **SHARD)
    assert "attachment" in saved.headers["Content-Disposition"]
    assert "\"'=cmd()" in saved.text
    assert '"=cmd()' not in saved.text


def test_what_gates_say_is_text_on_the_page(visitors: dict[str, Visitor]) -> None:
    page = visitors["viewer"].get("/stream", stream=STREAM).text
    assert "sink: rows of no trace, as &lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert f"sink: rows of no trace, as {HOSTILE[2]}" in page
    assert "<script>alert" not in page
    assert page.count('class="gate gate-passed"') == 3
    assert page.count('class="gate gate-warned"') == 1 + len(HOSTILE)  # the suite, and each note
    assert 'class="refused"' not in page


def test_a_rejected_audit_is_told_with_its_reasons_and_marks_the_verdict_old(
    visitors: dict[str, Visitor], settings: Settings, tmp_path: Path
) -> None:
    from shardaudit.page.airflow_door import page_app  # noqa: PLC0415
    from shardaudit.page.site import Site  # noqa: PLC0415

    write_warehouse(tmp_path, now=now(), shards=2, days=1, bucket=timedelta(minutes=30))
    write_rejected(tmp_path, now=now(), said=HOSTILE[0])
    own = settings.model_copy(update={"warehouse": str(tmp_path)})
    visitor = Visitor(page_app(Site(lambda: own, now).pages()), visitors["viewer"].token)
    page = visitor.get("/stream", stream=STREAM).text
    assert "was rejected and published nothing" in page
    for reason in (
        "traces: too many refused lines: &lt;script&gt;alert(1)&lt;/script&gt;",
        "sink: cannot be judged: &lt;script&gt;alert(1)&lt;/script&gt;",
        "it did not find the discrepancies that it planted itself",
    ):
        assert f"<li>{reason}</li>" in page
    assert "<li>traces: some lines are of another stream</li>" not in page  # it only warns
    for look in ("failed", "broken", "warned"):
        assert f'class="gate gate-{look}"' in page
    assert '<em title="a later audit was rejected">old</em>' in page
    assert "<script>alert" not in page
    assert "the newest audit was rejected: what is shown is older" in visitor.get("/").text


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"stream": "nothing"}, "found &#39;nothing&#39;"),
        ({"stream": STREAM, "metric": "<b>"}, "found &#39;&lt;b&gt;&#39;"),
        ({"stream": STREAM, "from": "2026-11-01"}, "both, or neither"),
        ({"stream": STREAM, "from": "x", "to": "y"}, "ISO 8601"),
        ({"stream": STREAM, "state": "' OR 1=1"}, "recovered"),
        ({"stream": STREAM, "id": "x" * 5000}, "at most 4096"),
        ({"stream": STREAM, "from": "0002-01-01T00:00Z", "to": "9998-01-01T00:00Z"}, "year 2000"),
        ({"stream": STREAM, "from": "0001-01-01T00:00+05:00", "to": "0001-02-01T00:00Z"}, "ISO"),
        ({"stream": STREAM, "from": "2024-01-01T00:00Z", "to": "2026-01-01T00:00Z"}, "366 days"),
        ({"stream": STREAM, "from": "2199-01-01T00:00Z", "to": "9999-12-31T23:59Z"}, "to 2199"),
    ],
)
def test_an_address_that_cannot_be_is_refused_in_words(
    visitors: dict[str, Visitor], query: dict[str, str], said: str
) -> None:
    answer = visitors["viewer"].get("/stream", **query)
    assert answer.status_code == 400
    assert said in answer.text
    assert "<b>" not in answer.text


@pytest.mark.parametrize("year", [2000, 2199])
def test_a_time_of_which_nothing_is_known_is_shown_empty(
    visitors: dict[str, Visitor], year: int
) -> None:
    span = {"from": f"{year}-01-01T00:00Z", "to": f"{year}-12-31T00:00Z"}
    for page in ("/stream", "/findings.csv"):
        for metric in ("verdict", "p99", "skew"):
            answer = visitors["viewer"].get(page, stream=STREAM, metric=metric, **span)
            assert answer.status_code == 200


def test_a_shard_page_wants_one_shard(visitors: dict[str, Visitor]) -> None:
    answer = visitors["viewer"].get("/shard", stream=STREAM, first="a", last="b")
    assert (answer.status_code, "one shard" in answer.text) == (400, True)


def test_the_filter_of_findings_holds_for_page_and_download(visitors: dict[str, Visitor]) -> None:
    query = SHARD | {"state": "recovered"}
    page = visitors["viewer"].get("/shard", **query).text
    assert "message-0175" in page
    assert "message-0001" not in page
    assert visitors["viewer"].get("/findings.csv", **query).text.count("\r\n") == 21


def test_a_warehouse_that_does_not_answer_is_said_so(
    visitors: dict[str, Visitor],
    tmp_path: Path,
    settings: Settings,
    caplog: pytest.LogCaptureFixture,
) -> None:
    from shardaudit.page.airflow_door import page_app  # noqa: PLC0415
    from shardaudit.page.site import Site  # noqa: PLC0415

    log = tmp_path / "audits" / "_delta_log"
    log.mkdir(parents=True)
    (log / "00000000000000000000.json").write_text("cut off AKIAIOSFODNN7EXAMPLE in the mid")
    broken = settings.model_copy(update={"warehouse": str(tmp_path)})
    app = page_app(Site(lambda: broken, now).pages())
    answer = Visitor(app, visitors["viewer"].token).get("/")
    assert answer.status_code == 503
    assert "does not answer" in answer.text
    assert str(tmp_path) not in answer.text
    [number] = re.findall("error ([0-9a-f]{8}) in the server", answer.text)
    assert f"error {number}: the page cannot be shown: {tmp_path}/audits does not" in caplog.text
    assert "AKIAIOSFODNN7EXAMPLE" not in caplog.text


def test_slow_storage_keeps_neither_the_page_nor_airflow_waiting(
    visitors: dict[str, Visitor],
) -> None:
    from shardaudit.page import airflow_door as airflow_page  # noqa: PLC0415

    hangs = threading.Event()

    def slow(_given: object, _rights: object) -> airflow_page.PageAnswer:
        hangs.wait(30)
        return airflow_page.PageAnswer("late")

    pages = airflow_page.Pages(
        {"/slow": slow}, lambda _title, words: airflow_page.PageAnswer(words), longest_s=0.2
    )
    visitor = Visitor(airflow_page.page_app(pages), visitors["viewer"].token)
    began = time.monotonic()
    answers = [visitor.get("/slow") for _ in range(6)]  # two more than there are threads
    assert time.monotonic() - began < 10
    hangs.set()
    assert {answer.status_code for answer in answers} == {503}
    assert "has not answered within" in answers[0].text


def test_the_page_is_imported_when_the_api_server_starts() -> None:
    from starlette.applications import Starlette  # noqa: PLC0415
    from starlette.testclient import TestClient  # noqa: PLC0415

    from shardaudit.page import plugin as airflow_plugin  # noqa: PLC0415

    airflow_plugin.made_app.cache_clear()
    app = Starlette()
    for added in airflow_plugin.ShardauditPlugin.fastapi_root_middlewares:
        app.add_middleware(added["middleware"])
    with TestClient(app) as client:
        for thread in threading.enumerate():
            if thread.name == "shardaudit page":
                thread.join(30)
        assert airflow_plugin.made_app.cache_info().currsize == 1
        assert client.get("/nothing").status_code == 404  # the app is as it was


def test_airflow_finds_the_plugin_with_its_menu_entry_and_tab() -> None:
    from shardaudit.page.plugin import ShardauditPlugin  # noqa: PLC0415

    views = {view["destination"]: view for view in ShardauditPlugin.external_views}
    assert views["nav"]["href"] == "shardaudit/"
    assert set(views) == {"nav", "dag"}
