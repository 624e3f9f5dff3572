"""The door to published results for those without Spark: delta-rs reads the warehouse.

Only reads, and only as much as is asked for: a week of 1,800 shards has 18 million cells.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from shardaudit.model.config import Aws, Settings
from shardaudit.model.errors import RetryableError
from shardaudit.model.table import Table
from shardaudit.model.tables import AUDITS, CELLS, FINDINGS, QUARANTINE
from shardaudit.model.verdict import Cause, Kind, State, Verdict

SHARD_SUMS = ("sent", "landed", "missing", "pending", "duplicated", "untraced", "moved")
_NOT_HERE = [State.OPEN, State.PLANNED, State.REPLAYED, State.EXPIRED]
_BY_RANK = list(Verdict)

Row = dict[str, Any]  # Any: a column's type is what model/tables.py says


class WarehouseUnreadableError(RetryableError, OSError):
    """The warehouse did not answer, or not properly."""

    def __init__(self, place: str, error: Exception) -> None:
        super().__init__(f"cannot read {place}: {error}")


@dataclass(frozen=True, slots=True)
class ShardSums:
    """A shard's cells in one audit: the sums of `SHARD_SUMS` and the worst verdict of a cell."""

    shard_id: str
    verdict: Verdict
    sums: dict[str, int]


@dataclass(frozen=True, slots=True)
class MissingIds:
    """Missing ids of one shard and cause, and when the first of them leaves or left the stream."""

    shard_id: str
    cause: Cause
    is_expired: bool
    ids: int
    recoverable_until: datetime


def audit_row(settings: Settings, audit_id: str) -> Row | None:
    """The row of the audit, by the names of the audits table; None when there is none."""
    found = read_rows(settings, AUDITS, where=pc.field("audit_id") == audit_id)
    return found[0] if found else None


def shard_sums(settings: Settings, audit_id: str) -> list[ShardSums]:
    """One value per shard of the audit, the worst first."""
    cells = _dataset(settings, CELLS)
    if cells is None:
        return []
    batches = cells.to_batches(
        columns=["shard_id", "verdict", *SHARD_SUMS], filter=pc.field("audit_id") == audit_id
    )
    partial = [_summed(_ranked(pa.Table.from_batches([batch]))) for batch in batches]
    if not partial:
        return []
    shards = [
        ShardSums(row["shard_id"], _BY_RANK[row["rank"]], {name: row[name] for name in SHARD_SUMS})
        for row in _summed(pa.concat_tables(partial)).to_pylist()
    ]
    return sorted(shards, key=lambda s: (_BY_RANK.index(s.verdict), -s.sums["missing"], s.shard_id))


def missing_ids(settings: Settings, audit_id: str) -> list[MissingIds]:
    """What the audit missed and nobody accepted, the nearest deadline first."""
    findings = _dataset(settings, FINDINGS)
    if findings is None:
        return []
    wanted = (
        (pc.field("last_audit_id") == audit_id)
        & (pc.field("kind") == Kind.MISSING.value)
        & pc.field("state").isin([state.value for state in _NOT_HERE])
    )
    grouped = (
        findings.to_table(
            columns=["shard_id", "cause", "state", "recoverable_until"], filter=wanted
        )
        .group_by(["shard_id", "cause", "state"])
        .aggregate([("recoverable_until", "min"), ([], "count_all")])
    )
    found = [
        MissingIds(
            shard_id=row["shard_id"],
            cause=Cause(row["cause"]),
            is_expired=row["state"] == State.EXPIRED,
            ids=row["count_all"],
            recoverable_until=row["recoverable_until_min"],
        )
        for row in grouped.to_pylist()
    ]
    return sorted(found, key=lambda missing: (missing.recoverable_until, missing.shard_id))


def quarantined(settings: Settings, stream: str) -> int:
    """How many lines and files of the stream's inputs were set aside so far."""
    rows = _dataset(settings, QUARANTINE)
    return 0 if rows is None else int(rows.count_rows(filter=pc.field("stream") == stream))


def read_rows(settings: Settings, table: Table, *, where: pc.Expression) -> list[Row]:
    """The rows of a table of the warehouse that meet a condition; none when it was never written.

    Raises:
        WarehouseUnreadableError: the place does not answer.
    """
    dataset = _dataset(settings, table)
    rows: list[Row] = [] if dataset is None else dataset.to_table(filter=where).to_pylist()
    return rows


def _dataset(settings: Settings, table: Table) -> ds.Dataset | None:
    place = f"{settings.warehouse}/{table.name}"
    address = place.replace("s3a://", "s3://", 1)
    try:
        return DeltaTable(address, storage_options=_storage(settings.aws)).to_pyarrow_dataset()
    except TableNotFoundError:
        return None
    except (OSError, DeltaError) as error:
        raise WarehouseUnreadableError(place, error) from error


def _storage(aws: Aws) -> dict[str, str]:
    """What delta-rs needs to find S3; credentials come from the usual chain."""
    options = {"max_retries": "3", "retry_timeout": "30s", "connect_timeout": "5s"}
    if aws.region:
        options["AWS_REGION"] = aws.region
    endpoint = aws.endpoint("s3")
    if endpoint:
        options["AWS_ENDPOINT_URL"] = endpoint
        options["AWS_ALLOW_HTTP"] = str(endpoint.startswith("http://")).lower()
    return options


def _ranked(cells: pa.Table) -> pa.Table:
    known = pa.array([verdict.value for verdict in _BY_RANK])
    ranks = pc.index_in(cells["verdict"], value_set=known)
    return cells.drop_columns(["verdict"]).append_column("rank", ranks)


def _summed(cells: pa.Table) -> pa.Table:
    """Per shard; the result has the columns of the input, so that it can be summed again."""
    sums = [(name, "sum") for name in SHARD_SUMS]
    grouped = cells.group_by("shard_id").aggregate([*sums, ("rank", "min")])
    return grouped.rename_columns(["shard_id", *SHARD_SUMS, "rank"])
