"""`findings list` and `findings accept`, on a warehouse with a few findings."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from shardaudit.adapters.lake.delta_rs import Row
from shardaudit.adapters.lake.table_files import table_files
from shardaudit.model.config.settings import Settings
from shardaudit.model.tables.audit_tables import AUDITS, FINDINGS, TRANSITIONS
from shardaudit.model.tables.ledger_tables import FINDING_COUNTS
from shardaudit.store.cell_grid import ALL_SHARDS
from shardaudit.store.found.finding_counts import count_file, kept_counts
from shardaudit.store.found.keep_counts import keep_finding_counts
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


def test_an_audit_is_asked_for_what_lacks_where_none_looked_later(
    warehouse: Warehouse, settings: Settings
) -> None:
    hour = timedelta(hours=1)
    sent: dict[str, dict[str, object]] = {
        "before": {"sent_at": NOON - timedelta(microseconds=1)},
        "first": {"last_audit_id": "years ago"},
        "accepted": {"state": "accepted"},
        "over": {"state": "recovered"},
        "twice": {"kind": "duplicated"},
        "elsewhere": {"stream": "orders"},
        "of both": {"sent_at": NOON + hour, "shard_id": "shard-2"},
        "of neither": {"sent_at": NOON + 2 * hour},
    }
    rows = [finding(name, **fields) for name, fields in sent.items()]
    warehouse.merge(warehouse.spark.createDataFrame(rows, FINDINGS.ddl), FINDINGS)
    audits = [
        {"audit_id": name, "window_start": start, "window_end": NOON + 2 * hour, "status": status}
        | {"stream": "events", "as_of": at, "started_at": at, "finished_at": at}
        for name, start, status, at in (
            ("wide", NOON, "published", NOON + 3 * hour),
            ("later", NOON + hour, "published", NOON + 4 * hour),
            ("refused", NOON, "rejected", NOON + 5 * hour),
        )
    ]
    warehouse.upsert(audits, AUDITS)
    found = {
        str(row["audit_id"]): sorted(
            (one.shard_id, one.state, one.ids) for one in missing_of_audit(settings, row)
        )
        for row in audits
    }
    wide = [("shard-1", "accepted", 1), ("shard-1", "open", 1)]
    assert found == {"wide": wide, "later": [("shard-2", "open", 1)], "refused": []}


def test_findings_that_were_accepted_are_read_by_every_reader(
    filled: Warehouse, settings: Settings
) -> None:
    """What was merged without an engine has texts of another kind in its files."""
    rows = filled.rows(FINDINGS, where=pc.field("message_id") == "later")
    filled.upsert([rows[0] | {"state": "accepted"}], FINDINGS)
    counts = {(count.stream, count.kind): count.ids for count in open_counts(settings)}
    assert counts == {
        ("events", "missing"): 1,
        ("events", "duplicated"): 1,
        ("orders", "missing"): 1,
    }
    assert open_missing(settings, "events", shards=ALL_SHARDS).ids == 1
    assert read_findings(settings, WantedFindings({"state": "accepted"}), limit=9).total == 1


def test_what_is_kept_of_findings_is_of_the_files_that_are_there(filled: Warehouse) -> None:
    def kept() -> dict[str, int]:
        rows = filled.rows(FINDING_COUNTS, where=pc.scalar(True))
        return {path: sum(r["ids"] for r in rows if r["file"] == path) for path in paths(rows)}

    def paths(rows: list[Row]) -> set[str]:
        return {row["file"] for row in rows}

    keep_finding_counts(filled)
    assert kept() == {}  # they are few: whoever asks counts them
    keep_finding_counts(filled, few=0)
    before = kept()
    assert sum(before.values()) == 5
    accept_findings(filled, "events", ["later"], reason="a test", now=NOON)
    assert kept() == before
    keep_finding_counts(filled, few=0)
    files = table_files(filled.reader, FINDINGS)
    assert kept() == {file.path: file.num_rows for file in files}
    stored = kept_counts(filled.reader, [file.path for file in files])
    for file in files:
        assert as_rows(stored[file.path]) == as_rows(count_file(file))


def as_rows(counts: pa.Table) -> list[str]:
    return sorted(map(str, counts.to_pylist()))
