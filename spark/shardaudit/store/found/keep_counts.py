"""Keeps what the files of findings add up to, where counting them anew would be felt."""

import pyarrow as pa
import pyarrow.compute as pc

from shardaudit.adapters.engine.held import given_rows
from shardaudit.adapters.lake.delta_schema import has_values
from shardaudit.adapters.lake.table_files import table_files
from shardaudit.model.tables.audit_tables import FINDINGS
from shardaudit.model.tables.ledger_tables import FINDING_COUNTS
from shardaudit.store.found.finding_counts import count_file
from shardaudit.store.warehouse import Warehouse

_FEW = 200_000  # findings: a page counts them in a fifth of a second


def keep_finding_counts(warehouse: Warehouse, *, few: int = _FEW) -> None:
    """After each change of FINDINGS: counts its new files, where these have many findings.

    In one commit; what is kept of files that are gone goes in another.
    """
    tables = warehouse.reader
    files = {file.path: file for file in table_files(tables, FINDINGS)}
    if not files or tables.is_within(FINDINGS, rows=few):
        return
    kept = tables.columns(FINDING_COUNTS, names=["file"], where=pc.scalar(True))
    known = set() if kept is None else set(pc.unique(kept["file"]).to_pylist())
    new = [file for path, file in files.items() if path not in known]
    if sum(file.num_rows for file in new) <= few:
        return
    counts = [
        (counted := count_file(file)).add_column(0, "file", pa.repeat(file.path, counted.num_rows))
        for file in new
    ]
    rows = pa.concat_tables(counts)
    frame = given_rows(warehouse.spark, rows, FINDING_COUNTS.ddl)
    warehouse.append(frame, FINDING_COUNTS, most=rows.num_rows)
    gone = sorted(known - files.keys())
    if gone:
        warehouse.delete(FINDING_COUNTS, where=has_values({"file": gone}))
