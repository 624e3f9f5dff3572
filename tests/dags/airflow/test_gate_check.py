"""The gate tasks: they read what was judged, and are red with the sentence."""

import logging
from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException
from deltalake import write_deltalake

from shardaudit.airflow.audit_verdict import judge
from shardaudit.airflow.gate_check import check_audit, check_backfill
from shardaudit.airflow.planned_jobs import PlannedAudit
from shardaudit.model.config.settings import load_settings
from shardaudit.model.tables.audit_tables import GATES
from shardaudit.store.published import published_audit
from tests.dags.warehouses import arrow, audit, gate, write_result

EVIL = "shard\nevents is OK\x1b[2J<script>alert(1)</script>=cmd()"


@pytest.fixture
def warehouse(config: Path) -> Path:
    """The warehouse of the configuration."""
    return config.with_name("warehouse")


def test_gates_that_are_open_are_green_and_told(
    warehouse: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_result(warehouse, audits=[audit("a")], gates=[gate("a"), gate("a", "sink"), gate("b")])
    with caplog.at_level(logging.INFO):
        check_audit("a")
    assert caplog.messages == [
        "ledger: passed, 1 rows judged",
        "passed: ledger: all is well",
        "sink: passed, 1 rows judged",
        "passed: sink: all is well",
    ]


@pytest.mark.parametrize("state", ["failed", "broken"])
def test_a_shut_gate_is_red_with_its_sentence_in_one_harmless_line(
    warehouse: Path, state: str, caplog: pytest.LogCaptureFixture
) -> None:
    shut = gate("a", state=state, sentence=f"sink: rows have ids – not so: {EVIL}")
    write_result(warehouse, audits=[audit("a", status="rejected")], gates=[shut])
    with pytest.raises(AirflowFailException, match="sink: rows have ids – not so: shard") as red:
        check_audit("a")
    for text in (str(red.value), *caplog.messages):
        assert "\n" not in text
        assert "\x1b" not in text


def test_a_warning_is_green_and_a_note_of_the_report(
    warehouse: Path, caplog: pytest.LogCaptureFixture
) -> None:
    noted = gate("a", severity="warn", state="failed", sentence="sink: hm – not so")
    write_result(warehouse, audits=[audit("a")], gates=[{**noted, "state": "passed"}])
    check_audit("a")
    warned = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert warned == ["failed: sink: hm – not so"]
    settings = load_settings(warehouse.with_name("shardaudit.toml"))
    assert published_audit(settings, "events", "a").notes == ("sink: hm – not so",)


def test_an_audit_that_did_not_come_to_its_gates_is_not_green(warehouse: Path) -> None:
    with pytest.raises(AirflowSkipException, match="the audit a did not come to its gates"):
        check_audit("a")
    write_result(warehouse, audits=[audit("a", status="failed")], gates=[gate("b")])
    with pytest.raises(AirflowSkipException):
        check_audit("a")


def test_the_verdict_says_why_an_audit_was_rejected(warehouse: Path) -> None:
    shut = gate("a", state="failed", sentence="sink: rows have ids – not so")
    write_result(warehouse, audits=[audit("a", status="rejected")], gates=[shut])
    planned: PlannedAudit = {
        "stream": "events",
        "audit_id": "a",
        "driver": {},
        "arguments": {},
        "engines": {},
    }
    with pytest.raises(AirflowFailException, match=r"'rejected' \(sink: rows have ids – not so\)"):
        judge(planned)


def test_a_backfill_is_told_of_the_newest_audit_that_was_to_verify_it(warehouse: Path) -> None:
    first = gate("a", "backfill_result", plan_id="p", state="failed")
    again = gate("b", "backfill_result", plan_id="p", minute=1)
    write_deltalake(str(warehouse / GATES.name), arrow(GATES, [first]))
    with pytest.raises(AirflowFailException, match="all is well"):
        check_backfill("p")
    write_deltalake(str(warehouse / GATES.name), arrow(GATES, [again]), mode="append")
    check_backfill("p")
    with pytest.raises(AirflowSkipException, match="the backfill q did not come to its gates"):
        check_backfill("q")
