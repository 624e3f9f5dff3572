"""The warehouse of 0.1, brought here and audited: what was found and said still is."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from shardaudit.adapters.engine.door import Engine
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.gates import open_gates
from shardaudit.audit.job import audit
from shardaudit.ingest.job import ingest
from shardaudit.model.config.settings import load_settings
from shardaudit.model.errors import WarehouseVersionError
from shardaudit.model.retention import Retention
from shardaudit.model.tables.audit_tables import FINDINGS, TRANSITIONS
from shardaudit.model.window import Window
from shardaudit.store.migrations import migrate
from shardaudit.store.warehouse import Warehouse
from tests.older_warehouses import found_then, stored, unpacked

VERSION_0_1 = 2
START = datetime(2026, 11, 1, tzinfo=UTC)
SAME = ("message_id", "kind", "cause", "state", "state_reason", "sent_count", "first_audit_id")


def test_same_findings_states_and_transitions_after_the_upgrade(
    engine: Engine, tmp_path: Path
) -> None:
    config = unpacked(VERSION_0_1, tmp_path)
    settings = load_settings(config)
    stream = settings.stream("events")
    warehouse = Warehouse(engine.session, settings.warehouse, engine=engine.version)
    as_of = START + timedelta(hours=6)
    with pytest.raises(WarehouseVersionError, match="shardaudit migrate"):
        ingest(warehouse, "events", stream, now=as_of)

    said = {tuple(row.items()) for row in stored(config, TRANSITIONS)}
    migrate(settings, check=lambda: None)
    again = ingest(warehouse, "events", stream, now=as_of)
    assert (again.trace_files, again.sink_rows, again.batches) == (0, 0, ())

    assert stream.retention is not None
    window = Window(START, START + timedelta(hours=2))
    request = AuditRequest("events", stream, window, as_of, Retention(stream.retention))
    report = audit(warehouse, request, open_gates(None), now=as_of)
    assert (report.status, report.self_check) == ("published", "passed")

    then = found_then(config)
    found = {tuple(row[name] for name in SAME) for row in stored(config, FINDINGS)}
    assert found == {tuple(row[name] for name in SAME) for row in then}
    assert "accepted" in {row["state"] for row in then}
    assert {tuple(row.items()) for row in stored(config, TRANSITIONS)} == said
