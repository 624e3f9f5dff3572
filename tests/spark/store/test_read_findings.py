"""`findings list` and `findings accept`, on a warehouse with a few findings."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.compute as pc
import pytest

from shardaudit.model.config.settings import Settings
from shardaudit.model.tables.audit_tables import FINDINGS, TRANSITIONS
from shardaudit.store.cell_grid import ALL_SHARDS
from shardaudit.store.read_findings import (
    WantedFindings,
    missing_of_audit,
    open_counts,
    open_missing,
    read_findings,
)
from shardaudit.store.transitions import Accepted, NoFindingError, accept_findings
from shardaudit.store.warehouse import Warehouse

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
ODD = 'o\'dd "id"; --\n\x1b[2J%日'


def finding(message_id: str, **fields: object) -> tuple[object, ...]:
    row: dict[str, object] = {
        "stream": "events",
        "shard_id": "shard-1",
        "message_id": message_id,
        "kind": "missing",
        "cause": "lost",
        "state": "open",
        "sent_at": NOON,
        "recoverable_until": NOON + timedelta(days=1),
        "updated_at": NOON,
    }
    row |= fields
    return tuple(row.get(name) for name in FINDINGS.names)


@pytest.fixture
def filled(warehouse: Warehouse) -> Warehouse:
    """Five findings of two streams."""
    rows = [
        finding("later", recoverable_until=NOON + timedelta(days=2)),
        finding(ODD),
        finding("twice", kind="duplicated", cause="consumer_replay", recoverable_until=None),
        finding("over", state="recovered"),
        finding("elsewhere", stream="orders"),
    ]
    warehouse.merge(warehouse.spark.createDataFrame(rows, FINDINGS.ddl), FINDINGS)
    return warehouse


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(warehouse=str(tmp_path / "warehouse"), streams={})


@pytest.mark.usefixtures("filled")
def test_list_is_filtered_sorted_by_deadline_and_cut(settings: Settings) -> None:
    everything = read_findings(settings, WantedFindings({}), limit=50)
    assert [row["message_id"] for row in everything.rows][-2:] == ["later", "twice"]
    missing = read_findings(
        settings, WantedFindings({"stream": "events", "state": "open"}), limit=1
    )
    assert ([row["message_id"] for row in missing.rows], missing.total) == ([ODD], 3)


def test_list_is_empty_when_nothing_was_ever_audited(settings: Settings) -> None:
    assert read_findings(settings, WantedFindings({"kind": "missing"}), limit=5).total == 0


def test_findings_are_accepted_once_with_their_reason(
    filled: Warehouse, settings: Settings
) -> None:
    asked = [ODD, "over", "twice"]
    later = NOON + timedelta(hours=1)
    first = accept_findings(filled, "events", asked, reason="a test", now=later)
    second = accept_findings(filled, "events", asked, reason="again", now=later)
    assert (first, second) == (Accepted("events", 2, 1), Accepted("events", 0, 3))
    accepted = read_findings(settings, WantedFindings({"state": "accepted"}), limit=5).rows
    assert {row["message_id"]: row["state_reason"] for row in accepted} == {
        ODD: "a test",
        "twice": "a test",
    }
    assert {row["updated_at"] for row in accepted} == {later}
    transitions = filled.read(TRANSITIONS).select("message_id", "from_state", "to_state", "reason")
    assert sorted(tuple(row) for row in transitions.collect()) == [
        (ODD, "open", "accepted", "a test"),
        ("twice", "open", "accepted", "a test"),
    ]


def test_nothing_is_accepted_when_one_id_has_no_finding(
    filled: Warehouse, settings: Settings
) -> None:
    with pytest.raises(NoFindingError, match="'elsewhere'"):
        accept_findings(filled, "events", ["later", "elsewhere"], reason="x", now=NOON)
    assert read_findings(settings, WantedFindings({"state": "accepted"}), limit=5).total == 0


def test_findings_that_were_accepted_are_read_by_every_reader(
    filled: Warehouse, settings: Settings
) -> None:
    """What was merged without an engine has texts of another kind in its files."""
    rows = filled.rows(FINDINGS, where=pc.field("message_id") == "later")
    filled.upsert([rows[0] | {"state": "accepted", "last_audit_id": "a1"}], FINDINGS)
    assert [found.ids for found in missing_of_audit(settings, "a1")] == [1]
    counts = {(count.stream, count.kind): count.ids for count in open_counts(settings)}
    assert counts == {
        ("events", "missing"): 1,
        ("events", "duplicated"): 1,
        ("orders", "missing"): 1,
    }
    assert open_missing(settings, "events", shards=ALL_SHARDS).ids == 1
    assert read_findings(settings, WantedFindings({"state": "accepted"}), limit=9).total == 1
