"""The upkeep: no row changes, nothing is read twice, what was many files is few."""

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest
from deltalake import DeltaTable

from shardaudit.model import tables
from shardaudit.model.tables.all_tables import OF_LEDGER, OF_WATCH
from shardaudit.model.tables.audit_tables import CELLS, FINDINGS, FINGERPRINTS, TRACES, TRANSITIONS
from shardaudit.model.tables.table import Table
from shardaudit.store.maintain import maintain
from shardaudit.store.warehouse import Warehouse
from tests.cases import MS, START
from tests.history import SinkRow, Trace
from tests.spark.lines import lines, some_terms
from tests.spark.trial import Trial

BATCHES = 4
MANY = BATCHES - 1


def files(folder: Path, table: Table) -> int:
    return len(DeltaTable(folder / "warehouse" / table.name).file_uris())


def sent(number: int) -> Trace:
    at = START + number * MS
    return Trace(f"m-{number}", f"shard-{number % 2}", str(100 + number), at, batch=number)


def landed(trace: Trace) -> SinkRow:
    at = trace.sent_at
    return SinkRow(trace.message_id, trace.shard_id, trace.sequence_number, at, at + MS)


@pytest.fixture
def trial(warehouse: Warehouse, tmp_path: Path) -> Trial:
    """Four ingests, each of which brought a message that landed and one that did not."""
    of = replace(some_terms(800), buckets=1, retention_ms=86_400_000, as_of_ms=7_200_000)
    trial = Trial(warehouse, tmp_path, of.question)
    for number in range(BATCHES):
        trial.log([sent(2 * number), sent(2 * number + 1)])
        trial.land([landed(sent(2 * number))])
        trial.ingest()
    return trial


def test_no_row_changes_and_nothing_is_counted_twice(trial: Trial) -> None:
    warehouse = trial.warehouse
    trial.audit()
    judged = (CELLS, FINDINGS, TRANSITIONS, TRACES, FINGERPRINTS)
    before = [lines(warehouse, table) for table in judged]
    assert (files(trial.folder, TRACES), files(trial.folder, FINGERPRINTS)) >= (BATCHES, BATCHES)

    done = {line.table: line for line in maintain(warehouse, OF_LEDGER, gone={}, many_files=MANY)}
    assert (files(trial.folder, TRACES), files(trial.folder, FINGERPRINTS)) == (1, 1)
    assert done["traces"].files_merged >= BATCHES
    assert sum(line.files_deleted for line in done.values()) == 0  # they are younger than a week
    again = maintain(warehouse, OF_LEDGER, gone={}, many_files=MANY)
    assert all((line.files_merged, line.files_made) == (0, 0) for line in again)
    trial.ingest()
    trial.audit()
    assert [lines(warehouse, table) for table in judged] == before

    trial.land([landed(sent(1))])
    trial.ingest()
    [arrived] = [f for key, f in trial.audit().findings.items() if key[0] == "m-1"]
    assert arrived.state.value == "false_alarm"


def test_a_warehouse_that_was_never_written_stays_empty(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    assert {
        line.files_merged for line in maintain(warehouse, OF_LEDGER, gone={}, many_files=MANY)
    } == {0}
    assert not (tmp_path / "warehouse").exists()


def test_every_table_is_looked_after() -> None:
    names = (f"{tables.__name__}.{found.name}" for found in iter_modules(tables.__path__))
    known = {
        value.name
        for name in names
        for value in vars(import_module(name)).values()
        if isinstance(value, Table)
    }
    assert {table.name for table in OF_LEDGER + OF_WATCH} == known
