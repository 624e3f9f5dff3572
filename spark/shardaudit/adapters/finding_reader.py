"""Reads findings for people, without Spark: a list must not wait for a JVM."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

from shardaudit.adapters.delta_rs import DeltaRs
from shardaudit.model.config import Settings
from shardaudit.model.tables import FINDINGS

Row = Mapping[str, Any]  # Any: a column's type is what model/tables.py says


@dataclass(frozen=True, slots=True)
class Findings:
    """The first rows of a list, by the names of the findings table, and how long it is."""

    rows: tuple[Row, ...]
    total: int


def read_findings(settings: Settings, wanted: Mapping[str, str], *, limit: int) -> Findings:
    """Findings whose columns have the wanted values, the soonest `recoverable_until` first.

    Raises:
        WarehouseUnreadableError: the warehouse does not answer.
    """
    dataset = DeltaRs(settings.warehouse, settings.aws).dataset(FINDINGS)
    if dataset is None:
        return Findings((), 0)
    found = dataset.to_table(columns=FINDINGS.names, filter=_where(wanted))
    order = [
        ("recoverable_until", "ascending"),
        *((name, "ascending") for name in ("stream", "shard_id", "message_id", "kind")),
    ]
    first = pc.sort_indices(found, sort_keys=order)[:limit]  # NULLs last
    return Findings(tuple(found.take(first).to_pylist()), found.num_rows)


def _where(wanted: Mapping[str, str]) -> pc.Expression | None:
    where = None
    for column, value in wanted.items():
        is_value = pc.field(column) == value
        where = is_value if where is None else where & is_value
    return where
