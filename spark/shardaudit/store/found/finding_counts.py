"""How many findings there are of what: what is kept of each of their files, added up.

Delta never changes a file, so what was counted of one holds as long as it is part of the table, and
one of which nothing is kept is counted now. No count is older than the findings themselves: a
writer that is killed before it keeps its counts costs the next reader time, and nothing else. What
is kept, in the table `finding_counts`, is a copy that may be deleted.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from shardaudit.adapters.lake.delta_rs import DeltaRs, Row
from shardaudit.adapters.lake.delta_schema import in_utc
from shardaudit.adapters.lake.table_files import TableFile, table_files
from shardaudit.model.tables.audit_tables import FINDINGS
from shardaudit.model.tables.ledger_tables import FINDING_COUNTS

COUNTED_BY = ("stream", "shard_id", "kind", "cause", "state", "sent_month")
_READ = (*COUNTED_BY[:-1], "sent_at", "recoverable_until")
_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in COUNTED_BY[:-1]),
        ("sent_month", pa.date32()),
        ("ids", pa.int64()),
        ("first_deadline", pa.timestamp("us", tz="UTC")),
    ]
)
# By warehouse and file: a server opens the same ones for each page.
_KNOWN: dict[str, dict[str, pa.Table]] = {}
_MOST_WAREHOUSES = 20


@dataclass(frozen=True, slots=True)
class CountedFile:
    """A file of FINDINGS, with the rows of FINDING_COUNTS that are its sum, but for its name."""

    file: TableFile
    counts: pa.Table

    @property
    def rows(self) -> int:
        """How many findings are in it."""
        return pc.sum(self.counts["ids"]).as_py() or 0

    def within(self, where: pc.Expression) -> tuple[int, datetime | None]:
        """Findings of those that meet a condition on COUNTED_BY, and their nearest deadline."""
        counts = self.counts.filter(where)
        return pc.sum(counts["ids"]).as_py() or 0, pc.min(counts["first_deadline"]).as_py()


def counted_findings(tables: DeltaRs) -> list[CountedFile]:
    """All files of FINDINGS as they are now.

    Raises:
        WarehouseUnreadableError: the warehouse does not answer.
    """
    files = table_files(tables, FINDINGS)
    if len(_KNOWN) > _MOST_WAREHOUSES:
        _KNOWN.clear()
    known = dict(_KNOWN.get(tables.path, {}))
    known |= kept_counts(tables, [file.path for file in files if file.path not in known])
    for file in files:
        if file.path not in known:
            known[file.path] = count_file(file)
            _KNOWN[tables.path] = dict(known)  # whoever gave up waiting for all finds what is done
    found = [CountedFile(file, known[file.path]) for file in files]
    _KNOWN[tables.path] = {one.file.path: one.counts for one in found}
    return found


def sums_of(
    counted: Iterable[CountedFile], where: pc.Expression, *, by: Collection[str]
) -> list[Row]:
    """Findings that meet a condition on COUNTED_BY: `ids` and `first_deadline` by some of these."""
    return [*map(in_utc, _added((file.counts.filter(where) for file in counted), by).to_pylist())]


def kept_counts(tables: DeltaRs, paths: Collection[str]) -> dict[str, pa.Table]:
    """What is kept of these files, by path."""
    if not paths:
        return {}
    where = pc.field("file").isin(pa.array(paths, pa.string()))
    found = tables.columns(FINDING_COUNTS, names=["file", *_SCHEMA.names], where=where)
    return {} if found is None else by_file(found)


def by_file(kept: pa.Table) -> dict[str, pa.Table]:
    """The counts of each file, by its path."""
    paths = pc.unique(kept["file"]).to_pylist()
    rows = {path: kept.filter(pc.field("file") == path) for path in paths}
    return {path: of.select(_SCHEMA.names).cast(_SCHEMA) for path, of in rows.items()}


def count_file(file: TableFile) -> pa.Table:
    """What the findings of a file add up to: it is read, a part at a time."""
    found = _SCHEMA.empty_table()
    for batch in file.batches(_READ):
        rows = pa.Table.from_batches([batch])
        month = pc.floor_temporal(rows["sent_at"], unit="month").cast(pa.date32())
        each = (
            rows.append_column("sent_month", month)
            .append_column("ids", pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows))
            .append_column("first_deadline", rows["recoverable_until"])
            .select(_SCHEMA.names)
        )
        found = _added([found, each.cast(_SCHEMA)], COUNTED_BY)
    return found


def _added(counts: Iterable[pa.Table], by: Collection[str]) -> pa.Table:
    all_counts = pa.concat_tables([_SCHEMA.empty_table(), *counts])
    sums = all_counts.group_by([*by]).aggregate([("ids", "sum"), ("first_deadline", "min")])
    return sums.select([*by, "ids_sum", "first_deadline_min"]).rename_columns(
        [*by, "ids", "first_deadline"]
    )
