"""How delta-rs updates rows of our tables and inserts others: by key, beside other commits."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from shardaudit.model.tables.table import Table

_TRIES = 4


def same_key(table: Table) -> list[str]:
    """That two rows have the same key, NULL being equal to NULL."""
    return [f"(t.`{name}` IS NOT DISTINCT FROM s.`{name}`)" for name in table.key]


def merge_rows(
    rows: pa.Table, target: DeltaTable, same: Sequence[str], *, check: Callable[[], None]
) -> None:
    """Updates the rows of a table that are the same by these conditions, inserts the others.

    Anew where another commit came first, as an audit's news beside a watch, while `check` holds.
    """
    for tries in range(_TRIES):
        merge = target.merge(rows, " AND ".join(same), source_alias="s", target_alias="t")
        try:
            merge.when_matched_update_all().when_not_matched_insert_all().execute()
            return
        except CommitFailedError:
            if tries + 1 == _TRIES:
                raise
        check()
        target.update_incremental()


def since(values: Sequence[Mapping[str, Any]], table: Table) -> list[str]:
    """What is older than all of the rows has none of their keys: delta-rs passes over its files.

    Without it each write reads the whole table: of ten days of 1,800 shards in 2.6 s, not 0.1 s.
    """
    times = [name for name, kind, _ in table.columns if kind == "timestamp" and name in table.key]
    found = []
    for name in times:
        known = [value[name] for value in values if value[name] is not None]
        if known and len(known) == len(values):
            first = min(known).astimezone(UTC).isoformat()
            found.append(f"t.`{name}` >= TIMESTAMP '{first}'")
    return found
