"""What a warehouse's tables hold, to be compared with those of another one."""

from collections.abc import Collection
from pathlib import Path

from deltalake import DeltaTable

from shardaudit.model.tables.audit_tables import (
    AUDITS,
    CELLS,
    EVIDENCE,
    FINDINGS,
    FINGERPRINTS,
    QUARANTINE,
    TRACES,
    TRANSITIONS,
)
from shardaudit.model.tables.table import Table
from tests.engines.lakes import shown

TABLES = (TRACES, QUARANTINE, FINGERPRINTS, EVIDENCE, CELLS, FINDINGS, TRANSITIONS, AUDITS)
# By the clock, or the very thing in which they differ.
OF_THE_RUN = frozenset({"finished_at", "engine", "inputs"})


def contents(warehouse: Path, table: Table, *, without: Collection[str] = OF_THE_RUN) -> list[str]:
    """The rows of a table as texts, in an order of their own; none where there is no table."""
    place = str(warehouse / table.name)
    if not DeltaTable.is_deltatable(place):
        return []
    rows = DeltaTable(place).to_pyarrow_table().to_pylist()
    return shown({n: v for n, v in row.items() if n not in without} for row in rows)
