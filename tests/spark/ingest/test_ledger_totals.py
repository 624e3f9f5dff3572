"""A ledger that lost or doubled a cell on both sides alike: no cell differs, but the totals do."""

from datetime import timedelta
from pathlib import Path

import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake

from shardaudit.model.errors import InvariantError
from shardaudit.model.tables.audit_tables import BATCHES
from shardaudit.store.warehouse import Warehouse
from tests.builders import NOW, T0, sequence
from tests.history import Question, SinkRow, Trace
from tests.spark.trial import Trial

MINUTE = timedelta(minutes=1)
CELL = "bucket_start = '2026-11-20T12:02:00Z'"


@pytest.fixture
def clean(warehouse: Warehouse, tmp_path: Path) -> Trial:
    """A stream of a message in each of four minutes, all of them landed, in two batches."""
    stream = Trial(warehouse, tmp_path, Question(T0, T0 + 4 * MINUTE, NOW))
    sent = [Trace(f"m{i}", "shard-0", sequence(i), T0 + i * MINUTE) for i in range(4)]
    for part in (sent[:2], sent[2:]):
        stream.log(part)
        stream.land(
            [
                SinkRow(t.message_id, t.shard_id, t.sequence_number, t.sent_at, t.sent_at + MINUTE)
                for t in part
            ]
        )
        stream.ingest()
    return stream


def fingerprints(trial: Trial) -> DeltaTable:
    return DeltaTable(trial.folder / "warehouse" / "fingerprints")


def test_audit_is_published_when_ledger_and_batches_agree(clean: Trial) -> None:
    assert clean.audit().audit.status == "published"
    clean.remove([SinkRow("m1", "shard-0", sequence(1), T0 + MINUTE, T0 + 2 * MINUTE)])
    clean.ingest()
    assert clean.audit().audit.missing == 1


def test_audit_is_rejected_when_the_ledger_lost_a_cell_on_both_sides(clean: Trial) -> None:
    fingerprints(clean).delete(CELL)
    with pytest.raises(InvariantError, match="the ledger counts 3 of the traces, the batches"):
        clean.audit()


def test_audit_is_rejected_when_another_batch_is_too_old_to_say_what_it_counted(
    clean: Trial,
) -> None:
    first = (pc.field("side") == "traces") & (pc.field("number") == 1)
    [old] = clean.warehouse.rows(BATCHES, where=first)
    clean.warehouse.upsert([old | {"counted": None}], BATCHES)
    assert clean.audit().audit.status == "published"
    fingerprints(clean).delete(CELL)
    with pytest.raises(InvariantError, match="the ledger counts 3 of the traces, the batches"):
        clean.audit()


def test_audit_is_rejected_when_the_ledger_has_a_cell_twice(clean: Trial) -> None:
    table = fingerprints(clean)
    rows = table.to_pyarrow_table()
    twice = rows.filter([start.minute == 2 for start in rows["bucket_start"].to_pylist()])
    write_deltalake(table, twice, mode="append")
    with pytest.raises(InvariantError, match="of the sink, the batches that were ingested say 4"):
        clean.audit()
