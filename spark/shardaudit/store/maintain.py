"""The upkeep of the warehouse: what nothing reads any more goes, and many small files become few.

A stream's rows are old when they are `keep.history` older than the newest of their table, so that a
stream to which nothing is added keeps what it has; where its retention is longer than that, later.
All other tables keep theirs for ever: docs/configuration.md says why, table by table. Each delete
is one commit. Killed at any moment, run it again.

An ingest every quarter of an hour leaves a hundred files a day, which every audit has to open.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow.compute as pc
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.adapters.engine.held import bare
from shardaudit.adapters.lake.delta_rs import Row
from shardaudit.adapters.lake.delta_schema import has_values, is_before
from shardaudit.columns.shard_listings import says_closed
from shardaudit.model.audit_id import ended_at
from shardaudit.model.config.keep import BESIDE
from shardaudit.model.config.settings import Settings
from shardaudit.model.tables.audit_tables import AUDITS, CELLS, FINDINGS, GATES, QUARANTINE
from shardaudit.model.tables.table import Table
from shardaudit.model.tables.watch_tables import NOTIFICATIONS, POSITIONS, SHARDS
from shardaudit.store.audits import published_of
from shardaudit.store.found.keep_counts import keep_finding_counts
from shardaudit.store.superseded_cells import delete_superseded_cells
from shardaudit.store.warehouse import Warehouse

MANY_FILES = 16  # in one partition: fewer are not worth a rewrite
Deleted = Counter[str]  # by table how many rows
_CLEAR = "clear"  # of `notifications.kind`: people know that the shard is well


def delete_audit_history(warehouse: Warehouse, settings: Settings, *, now: datetime) -> Deleted:
    """Of `cells`, `gates` and `quarantine`; under the warehouse's lock."""
    gone = Deleted()
    for name in settings.streams:
        audits = warehouse.rows(AUDITS, where=published_of(name))
        if not audits:
            continue
        newest = max(map(ended_at, audits))
        before = min(now, newest) - _kept(warehouse, settings, name)
        gone[CELLS.name] += delete_superseded_cells(warehouse, audits, over_by=before)
        mine = has_values({"stream": [name]})
        judged = f"{mine} AND {is_before('judged_at', before)} AND plan_id IS NULL"
        gone[GATES.name] += warehouse.delete(GATES, where=judged)
        refused = f"{mine} AND {is_before('quarantined_at', before)} AND source <> 'backfill'"
        gone[QUARANTINE.name] += warehouse.delete(QUARANTINE, where=refused)
    return gone


def delete_watch_history(warehouse: Warehouse, settings: Settings, *, now: datetime) -> Deleted:
    """Of `shards`, `positions` and `notifications`; under the watch's lock."""
    gone = Deleted()
    for name in settings.streams:
        kept = _kept(warehouse, settings, name)
        newest = _newest_watch(warehouse, name)
        if newest is not None:
            before = min(now, newest) - kept
            gone[SHARDS.name] += _delete_observations(warehouse, name, before)
            watched = f"{has_values({'stream': [name]})} AND {is_before('observed_at', before)}"
            gone[POSITIONS.name] += warehouse.delete(POSITIONS, where=watched)
        gone[NOTIFICATIONS.name] += _delete_told(warehouse, name, now=now, kept=kept)
    return gone


def _kept(warehouse: Warehouse, settings: Settings, name: str) -> timedelta:
    """How long a stream's histories are kept: no less than the longest retention it had needs."""
    said = warehouse.counts(SHARDS, by=["retention_hours"], having={"stream": name})
    hours = [hours for (hours,) in said if hours is not None]
    return max(settings.keep.history, timedelta(hours=max(hours, default=0)) + BESIDE)


def _newest_watch(warehouse: Warehouse, name: str) -> datetime | None:
    """When the last watch was, or the last look at Kinesis where that is longer ago."""
    seen = warehouse.read(SHARDS).where(F.col("stream") == name)
    at = (F.when(F.col(name).isNotNull(), F.col("observed_at")) for name in ("state", "opened"))
    [newest] = collected(seen.agg(*map(F.max, at)))
    return min((then for then in newest if then is not None), default=None)


def _delete_observations(warehouse: Warehouse, name: str, before: datetime) -> int:
    """Deletes the old rows of `shards` that say what those before and after them say."""
    of_stream = F.col("stream") == name
    old = bare(warehouse.read(SHARDS).where(of_stream & (F.col("observed_at") < F.lit(before))))
    kept = turning_points(old).localCheckpoint()
    gone = old.count() - kept.count()
    if gone:
        where = f"{has_values({'stream': [name]})} AND {is_before('observed_at', before)}"
        warehouse.replace_by_few(kept, SHARDS, where=where)
    return gone


def turning_points(observations: DataFrame) -> DataFrame:
    """Where observations of a shard that follow one another say the same, the first and the last.

    By what is asked of old ones: how long the stream kept records from when to when, and whether
    the shard was closed; each says who its parents are. Those of watches that Kinesis did not
    answer are compared among themselves.

    Input:
        observations: rows of SHARDS of one stream.
    """
    by_shard = Window.partitionBy("shard_id", F.col("retention_hours").isNotNull())
    said = F.concat_ws(" ", says_closed().cast("string"), F.col("retention_hours").cast("string"))
    before, after = (
        F.lag(said, 1).over(by_shard.orderBy(order))
        for order in (F.col("observed_at"), F.desc("observed_at"))
    )
    marked = observations.withColumn("is_between", before.eqNullSafe(said) & after.eqNullSafe(said))
    return marked.where(~F.col("is_between")).select(SHARDS.names)


def _delete_told(warehouse: Warehouse, name: str, *, now: datetime, kept: timedelta) -> int:
    """Deletes old notifications that were sent: of a shard where the newest says that it is well.

    That one stays, as the next is chained to it.
    """
    rows = warehouse.rows(NOTIFICATIONS, where=pc.field("stream") == name)
    rows.sort(key=lambda row: row["observed_at"])
    newest = {row["shard_id"]: row for row in rows}
    before = min([now, *(row["observed_at"] for row in rows[-1:])]) - kept
    over = [
        row["notification_id"]
        for row in rows
        if row["state"] == "sent" and row["observed_at"] < before and _is_over(row, newest)
    ]
    where = has_values({"notification_id": over})
    return warehouse.delete(NOTIFICATIONS, where=where) if over else 0


def _is_over(row: Row, newest: Mapping[str | None, Row]) -> bool:
    last = newest[row["shard_id"]]
    return row["shard_id"] is None or (last["kind"] == _CLEAR and last is not row)


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What was done to one table: rows deleted, small files that became few, files deleted."""

    table: str
    rows_deleted: int
    files_merged: int
    files_made: int
    files_deleted: int


def maintain(
    warehouse: Warehouse,
    tables: Iterable[Table],
    *,
    gone: Mapping[str, int],
    many_files: int = MANY_FILES,
) -> list[Upkeep]:
    """Merges files and deletes old ones; no row changes. Killed at any moment, run it again.

    Input:
        gone: by table how many rows were deleted before.
        many_files: a partition of more is rewritten.
    """
    done = []
    for table in tables:
        merged, made = warehouse.compact(table, above=many_files)
        if table is FINDINGS:
            keep_finding_counts(warehouse)
        rows = gone.get(table.name, 0)
        done.append(Upkeep(table.name, rows, merged, made, warehouse.vacuum(table)))
    return done
