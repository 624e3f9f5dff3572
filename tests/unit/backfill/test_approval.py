"""Nothing is read before somebody lets it."""

import tomllib
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from shardaudit.audit.gates import open_gates
from shardaudit.backfill.ledger import Ledger
from shardaudit.backfill.rules.approval import (
    approver,
    check_dedupe,
    configured_for,
    why_not_run,
)
from shardaudit.backfill.rules.planned import StoredWindow, WindowState
from shardaudit.backfill.run import ACTIONS, Running, run_backfill, stream_of
from shardaudit.model.config.choices import Approval
from shardaudit.model.config.parts import Backfill
from shardaudit.model.config.settings import Settings
from shardaudit.model.errors import ConfigError
from shardaudit.model.tables.backfill_tables import BACKFILLS
from tests.builders import T0
from tests.configurations import LEAST
from tests.page_warehouse import write_rows
from tests.unit.backfill.windows import stored_window


def windows(*states: str, by: str | None = None) -> list[StoredWindow]:
    return [stored_window(state=WindowState(state), approved_by=by) for state in states]


def test_plan_is_not_run_without_an_approval() -> None:
    with pytest.raises(ConfigError, match="--approve-as"):
        approver(windows("planned"), Backfill(), asked=None)


@pytest.mark.parametrize("name", ["ann", " ann "])
def test_person_approves(name: str) -> None:
    assert approver(windows("planned"), Backfill(), asked=name) == "ann"


def test_first_approval_stays_when_the_plan_is_run_again() -> None:
    before = windows("merged", "incomplete", by="ann")
    assert approver(before, Backfill(), asked="bob") == "ann"


@pytest.mark.parametrize(("limit", "is_let"), [(1200, True), (1199, False)])
def test_policy_approves_up_to_its_size(limit: int, is_let: bool) -> None:
    policy = Backfill(approve=Approval.AUTO, auto_max_bytes=limit)
    asked = windows("planned", "planned")
    if is_let:
        assert approver(asked, policy, asked=None).startswith("policy")
    else:
        with pytest.raises(ConfigError):
            approver(asked, policy, asked=None)


def test_policy_goes_by_what_is_still_to_be_read() -> None:
    """As the question does: what is over was approved when it was read."""
    policy = Backfill(approve=Approval.AUTO, auto_max_bytes=600)
    asked = [*windows("verified", by="ann"), *windows("planned")]
    assert approver(asked, policy, asked=None).startswith("policy")


def test_cancelled_plan_stays_cancelled() -> None:
    with pytest.raises(ConfigError, match="cancelled"):
        approver(windows("cancelled", "planned"), Backfill(), asked="ann")


@pytest.mark.parametrize("action", ACTIONS)
def test_cancelled_plan_is_refused_and_not_over(action: str) -> None:
    settings = Settings.model_validate(tomllib.loads(LEAST))
    # Any: it is refused before it asks for more.
    ledger = Ledger(cast(Any, None), windows("cancelled", "cancelled"), "test")
    replay: Any = SimpleNamespace(ledger=ledger, name="events", plan_id="p", now=lambda: T0)
    with pytest.raises(ConfigError, match=r"cancelled|approved"):
        run_backfill(Running(replay, settings, open_gates(None), "ann"), ACTIONS[action])


def test_plan_that_was_cancelled_while_its_run_waited_is_not_approved() -> None:
    """For the warehouse, which an audit holds for an hour."""
    settings = Settings.model_validate(tomllib.loads(LEAST))
    rows = [window.row() for window in windows("cancelled")]
    warehouse: Any = SimpleNamespace(rows=lambda *_, **__: rows)  # Any: it does not write
    ledger = Ledger(warehouse, windows("planned"), "test")
    replay: Any = SimpleNamespace(ledger=ledger, name="events", now=lambda: T0, writing=nullcontext)
    with pytest.raises(ConfigError, match="cancelled"):
        Running(replay, settings, open_gates(None), "ann").approve()


@pytest.mark.parametrize("backfill", [{}, {"mode": "republish", "republish_to": "orders"}])
def test_nothing_is_merged_into_or_removed_from_what_a_place_hands_over(
    backfill: dict[str, str],
) -> None:
    orders = {
        "stream_name": "orders",
        "traces": {"path": "traces"},
        "sink": {"place": "splitter"},
        "locations": {"splitter": {"after": ["producer"]}},
        "backfill": backfill,
    }
    settings = Settings.model_validate({"warehouse": "w", "streams": {"orders": orders}})
    stream = settings.stream("orders")
    why = why_not_run("orders", stream, spark_settings={})
    assert why is None if backfill else "backfill.mode: found 'nothing'" in str(why)
    with pytest.raises(ConfigError, match=r"orders\.sink\.place"):
        check_dedupe("orders", stream, spark_settings={})


CONFIGURED = """
warehouse = "lake"
aws = { region = "eu-west-1", endpoints = { kinesis = "http://kinesis:1" } }
[streams.events]
stream_name = "live"
traces = { path = "traces" }
sink = { path = "file:///sink", columns = { message_id = "id" } }
backfill = { mode = "request", request_to_env = "ASKED" }
"""


@pytest.mark.parametrize(
    ("was", "now", "key"),
    [
        ("file:///sink", "file:///other", "streams.events.sink.path"),
        ('"request", request_to_env = "ASKED"', '"merge"', "streams.events.backfill.mode"),
        ("live", "test", "streams.events.stream_name"),
        ("eu-west-1", "us-east-1", "aws.region"),
        ('"id"', '"key"', "streams.events.sink.columns"),
        ('"ASKED"', '"OTHERS"', "streams.events.backfill.request_to_env"),
    ],
)
def test_a_plan_is_not_run_with_other_settings_than_it_was_approved_with(
    tmp_path: Path, was: str, now: str, key: str
) -> None:
    planned = configured_for(read(CONFIGURED), "events")
    window = stored_window(configured=planned)
    settings = read(CONFIGURED.replace(was, now).replace("lake", str(tmp_path / "lake")))
    write_rows(Path(settings.warehouse), BACKFILLS, [window.row()])
    with pytest.raises(ConfigError, match=rf"plan events-1: found {{'{key}'.+, with which"):
        stream_of(settings, window.plan_id, writes=True)
    assert stream_of(settings, window.plan_id, writes=False) == "events"


@pytest.mark.parametrize(
    ("state", "by", "cure"),
    [
        ("planned", None, "backfill plan` again$"),
        ("incomplete", "ann", "again, after .*verify --plan events-1`"),
    ],
)
def test_a_plan_of_an_earlier_version_is_not_run_as_configured_now(
    tmp_path: Path, state: str, by: str | None, cure: str
) -> None:
    settings = stored(tmp_path, *windows(state, by=by))
    with pytest.raises(ConfigError, match=rf"plan events-1: found .+earlier version.+{cure}"):
        stream_of(settings, "events-1", writes=True)
    assert stream_of(settings, "events-1", writes=False) == "events"


@pytest.mark.parametrize("configured", ["{}", None])
def test_a_plan_with_nothing_to_read_goes_on(tmp_path: Path, configured: str | None) -> None:
    window = stored_window(state=WindowState.MERGED, configured=configured)
    assert stream_of(stored(tmp_path, window), "events-1", writes=True) == "events"


def stored(tmp_path: Path, *windows: StoredWindow) -> Settings:
    settings = read(CONFIGURED.replace("lake", str(tmp_path / "lake")))
    write_rows(Path(settings.warehouse), BACKFILLS, [window.row() for window in windows])
    return settings


def read(text: str) -> Settings:
    return Settings.model_validate(tomllib.loads(text))
