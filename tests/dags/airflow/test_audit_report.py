"""The night's report lies beside the tables, and its absence never hides the verdict."""

import logging
from pathlib import Path

import pytest

from shardaudit.airflow.audit_verdict import keep_report
from shardaudit.airflow.planned_jobs import PlannedAudit
from tests.dags.warehouses import audit, cell, missing, write_result


@pytest.fixture
def warehouse(config: Path) -> Path:
    return config.with_name("warehouse")


def planned(audit_id: str) -> PlannedAudit:
    return {"stream": "events", "audit_id": audit_id, "driver": {}, "arguments": {}, "engines": {}}


def test_the_report_is_kept_under_the_audits_name_and_said(
    warehouse: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lost = missing("new", "<script>alert(1)</script>", shard_id="shard-1")
    cells = [cell("new", "shard-1", verdict="loss", sent=3, missing=1), cell("new", "s2", minute=1)]
    write_result(warehouse, audits=[audit("new", verdict="loss")], cells=cells, findings=[lost])
    with caplog.at_level(logging.INFO):
        keep_report(planned("new"))
        keep_report(planned("new"))
    (kept,) = (warehouse / "reports").iterdir()
    assert kept.name == "new.html"
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in kept.read_text()
    assert f"report: {kept}" in caplog.messages
    assert any("/shardaudit/stream?stream=events&from=2026-11-01" in m for m in caplog.messages)


def test_an_audit_without_a_result_has_no_report_and_a_warning(
    warehouse: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_result(warehouse, audits=[audit("new", status="rejected")])
    keep_report(planned("new"))
    assert not (warehouse / "reports").exists()
    assert "there is no report of new" in caplog.text


def test_a_place_that_cannot_be_written_is_only_a_warning(
    warehouse: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_result(warehouse, audits=[audit("new")], cells=[cell("new", "shard-1")])
    (warehouse / "reports").write_text("a file")
    keep_report(planned("new"))
    assert "does not answer" in caplog.text
