"""The figures as Airflow's own metrics send them: over UDP, to a StatsD that listens here."""

import gc
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from airflow.sdk._shared.observability.metrics.base_stats_logger import NoStatsLogger
from airflow.sdk.exceptions import AirflowFailException
from airflow.sdk.observability.metrics.stats_utils import get_stats_factory
from airflow.sdk.observability.stats import Stats
from deltalake import write_deltalake

from shardaudit.airflow.audit_verdict import judge
from shardaudit.airflow.planned_jobs import PlannedAudit
from shardaudit.airflow.telemetry import emit
from shardaudit.airflow.watch_news import tell, tell_audits
from shardaudit.model.tables.watch_tables import SHARDS
from tests.dags.news import news
from tests.dags.warehouses import START, Row, arrow, audit, cell, missing, write_result


class Listener:
    """What came, as `name -> value`."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.settimeout(0.2)
        self.port = self._socket.getsockname()[1]

    def received(self) -> dict[str, float]:
        found = {}
        try:
            while True:
                name, _, rest = self._socket.recv(2**16).decode().partition(":")
                value, _, kind = rest.partition("|")
                assert kind == "g"
                found[name] = float(value)
        except TimeoutError:
            return found

    def close(self) -> None:
        self._socket.close()


pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture
def statsd(monkeypatch: pytest.MonkeyPatch) -> Iterator[Listener]:
    """A StatsD that airflow.cfg names; Airflow set up as its task runner does it."""
    listener = Listener()
    monkeypatch.setenv("AIRFLOW__METRICS__STATSD_ON", "True")
    monkeypatch.setenv("AIRFLOW__METRICS__STATSD_HOST", "127.0.0.1")
    monkeypatch.setenv("AIRFLOW__METRICS__STATSD_PORT", str(listener.port))
    Stats.initialize(factory=get_stats_factory(), export_legacy_names=True)
    yield listener
    Stats.initialize(factory=NoStatsLogger, export_legacy_names=True)
    listener.close()
    gc.collect()  # here, where the warning is expected: Airflow leaves its socket open


def planned(audit_id: str) -> PlannedAudit:
    return {"stream": "events", "audit_id": audit_id, "driver": {}, "arguments": {}, "engines": {}}


def batch(side: str, number: int, done_at: datetime | None, *, state: str = "done") -> Row:
    return {
        "batch_id": f"events/{side}/{number}",
        "stream": "events",
        "side": side,
        "number": number,
        "state": state,
        "done_at": done_at,
    }


def test_an_audit_sends_its_figures_also_when_it_is_red(config: Path, statsd: Listener) -> None:
    write_result(
        config.with_name("warehouse"),
        audits=[audit("a", verdict="loss", sent=5, missing=1), audit("b", status="rejected")],
        cells=[cell("a", "shard-1", verdict="loss", missing=1)],
        findings=[missing("a", "x", shard_id="shard-1")],
    )
    with pytest.raises(AirflowFailException):
        judge(planned("a"))
    received = statsd.received()
    assert received["airflow.shardaudit.audit.missing.events"] == 1
    assert received["airflow.shardaudit.audit.verdict_good.events"] == 0
    assert received["airflow.shardaudit.audit.published.events"] == 1
    with pytest.raises(AirflowFailException):
        judge(planned("b"))
    assert statsd.received() == {"airflow.shardaudit.audit.published.events": 0}


def test_a_loss_before_the_window_is_not_good(config: Path, statsd: Listener) -> None:
    since, until = START - timedelta(hours=2), START - timedelta(hours=1)
    late = audit("late", verdict="loss", missing=1, window_start=since, window_end=until)
    late = {**late, "inputs": '{"batches": {}, "late_of": "a"}'}
    write_result(config.with_name("warehouse"), audits=[audit("a"), late])
    with pytest.raises(AirflowFailException):
        judge(planned("a"))
    received = statsd.received()
    assert received["airflow.shardaudit.audit.verdict_good.events"] == 0
    assert received["airflow.shardaudit.audit.verdict_rank.events"] == 5
    assert received["airflow.shardaudit.audit.missing.events"] == 0  # as in `audits`


def test_a_watch_sends_its_figures(config: Path, statsd: Listener) -> None:
    now = datetime.now(UTC)
    shards = [
        {
            "stream": "events",
            "shard_id": f"s{n}",
            "observed_at": now,
            "state": state,
            "level": level,
        }
        for n, (state, level) in enumerate([("ok", "none"), ("stalled", "warn")])
    ]
    place = config.with_name("warehouse") / SHARDS.name
    write_deltalake(str(place), arrow(SHARDS, shards))
    tell({"stream": "events", "driver": {}, "arguments": {}, "engines": {}})
    received = statsd.received()
    assert received["airflow.shardaudit.watch.shards.events"] == 2
    assert received["airflow.shardaudit.watch.shards_warn.events"] == 1
    assert received["airflow.shardaudit.watch.observed_timestamp.events"] == pytest.approx(
        now.timestamp(), abs=1
    )


def test_health_and_budget_are_sent_with_the_news_also_of_what_never_was(
    config: Path, statsd: Listener
) -> None:
    limited = config.read_text().replace("audit_window", "loss_budget = 0.01\naudit_window", 1)
    config.write_text(limited)
    write_result(
        config.with_name("warehouse"),
        audits=[
            audit("a"),
            audit("later", as_of=START + timedelta(hours=9), status="rejected"),
        ],
        batches=[
            batch("traces", 1, START),
            batch("traces", 2, START + timedelta(hours=3)),
            batch("sink", 1, START + timedelta(hours=2)),
            batch("sink", 2, None, state="planned"),
        ],
    )
    tell_audits(planned("a"))
    wanted = {
        "read": START + timedelta(hours=2),
        "audited": START + timedelta(hours=1),
    }
    received = statsd.received()
    assert {
        what: received[f"airflow.shardaudit.health.{what}_timestamp.events"] for what in wanted
    } == {what: at.timestamp() for what, at in wanted.items()}
    assert received["airflow.shardaudit.health.watched_timestamp.events"] == 0
    assert "airflow.shardaudit.budget.unaudited_seconds.events" in received


def test_a_health_that_cannot_be_read_loses_no_alarm(
    config: Path, caplog: pytest.LogCaptureFixture
) -> None:
    warehouse = config.with_name("warehouse")
    news(warehouse, "shard-1")
    news(warehouse, "", notification_id="of an audit", shard_id=None, text="LOSS\nof some")
    config.write_text(
        config.read_text().replace("[streams.events]", "[streams.events]\nloss_budget = 0.01")
    )
    for table in ("batches", "gaps"):
        log = warehouse / table / "_delta_log"
        log.mkdir(parents=True)
        (log / "00000000000000000000.json").write_text("cut off")
    # A task that failed here would find nothing to tell when it is tried again.
    assert [tell(planned("a")), tell_audits(planned("a"))] == [1, 1]
    assert caplog.text.count("the health of events is not sent: ") == 2
    assert caplog.text.count("the loss budget of events is not sent: ") == 1


def test_a_streams_name_is_one_part_of_the_metrics_name(statsd: Listener) -> None:
    emit("audit", "eu.events-1_x", {"missing": 3})
    assert statsd.received() == {"airflow.shardaudit.audit.missing.eu__events-1_x": 3}


def test_nothing_is_sent_when_airflow_is_not_told_to(
    statsd: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AIRFLOW__METRICS__STATSD_ON")
    Stats.initialize(factory=get_stats_factory(), export_legacy_names=True)
    emit("audit", "events", {"missing": 3})
    assert statsd.received() == {}
