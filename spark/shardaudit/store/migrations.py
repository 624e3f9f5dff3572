"""The versions of a warehouse: a numbered step from each to the next, run by `shardaudit migrate`.

A new column needs no step: a table that lacks it gets it when it is opened to be written, and is
read as NULL before. A step is for rows that would be misread as they are. Whatever steps change is
done before any table is stamped with their numbers: of a table's version are all of the others,
and a step that was cut off is done again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from shardaudit.adapters.lake.delta_rs import DeltaRs
from shardaudit.model.config.settings import Settings
from shardaudit.model.tables.all_tables import OF_LEDGER, OF_WATCH
from shardaudit.model.tables.audit_tables import EVIDENCE
from shardaudit.model.tables.route_tables import handed_over
from shardaudit.model.tables.table import WAREHOUSE_VERSION, Table

_TABLES = (*OF_LEDGER, *OF_WATCH)


@dataclass(frozen=True, slots=True)
class Migration:
    """The step to a version from the one before it.

    `rewrite`: what is to be changed in rows, once or twice alike; tables have all of today's
    columns by then. None: columns came, and that was all.
    """

    version: int
    does: str
    rewrite: Callable[[DeltaRs], None] | None = None


def _repartition_evidence(tables: DeltaRs) -> None:
    if tables.dataset(EVIDENCE) is not None:
        tables.repartition_by_day(EVIDENCE, day="sent_day", of="bucket_start")


MIGRATIONS = (
    Migration(3, "audits keep what ran them"),
    Migration(4, "a backfill's windows keep what the stream still has of them"),
    Migration(5, "a cell of which nothing landed may be a gap, without findings"),
    Migration(6, "evidence lies by day", _repartition_evidence),
)


@dataclass(frozen=True, slots=True)
class MigrationStep:
    """A step that was taken."""

    version: int
    does: str


@dataclass(frozen=True, slots=True)
class Migrated:
    """What became of a warehouse. `from_version`: NULL when it has no table yet.

    `columns`: those that came, by table.
    """

    warehouse: str
    from_version: int | None
    to_version: int
    steps: tuple[MigrationStep, ...]
    columns: Mapping[str, list[str]]


def migrate(
    settings: Settings,
    *,
    check: Callable[[], None],
    migrations: Sequence[Migration] = MIGRATIONS,
) -> Migrated:
    """Brings the warehouse to this version; no row is lost. Killed at any moment, run it again.

    Input:
        check: called before each change; raises when the warehouse is not held any more.

    Raises:
        WarehouseVersionError: a later version of shardaudit wrote it.
    """
    tables = DeltaRs(settings.warehouse, settings.aws, is_migrating=True)
    known = (*_TABLES, *tables_of_places(settings))
    versions = {t: found for t in known if (found := tables.version(t)) is not None}
    first = min(versions.values(), default=None)
    due = [step for step in migrations if first is not None and step.version > first]
    columns = _add_columns(tables, list(versions), check) if due else {}
    for step in due:
        if step.rewrite is not None:
            check()
            step.rewrite(tables)
        for table in [table for table, found in versions.items() if found < step.version]:
            check()
            tables.stamp(table, step.version)
    steps = tuple(MigrationStep(step.version, step.does) for step in due)
    return Migrated(settings.warehouse, first, WAREHOUSE_VERSION, steps, columns)


def check_versions(settings: Settings) -> None:
    """Returns when every table that there is has this version.

    Raises:
        WarehouseVersionError: one has not.
    """
    tables = DeltaRs(settings.warehouse, settings.aws)
    for table in (*_TABLES, *tables_of_places(settings)):
        tables.version(table)


def tables_of_places(settings: Settings) -> list[Table]:
    """What the places hand over at which streams of the configuration end."""
    return [
        handed_over(name, stream.sink.place)
        for name, stream in settings.streams.items()
        if stream.sink.place is not None
    ]


def _add_columns(
    tables: DeltaRs, found: Sequence[Table], check: Callable[[], None]
) -> dict[str, list[str]]:
    """Adds the columns that came; they are returned by the names of the tables that lacked them."""
    came = {}
    for table in found:
        check()
        came[table.name] = tables.add_columns(table)
    return {name: columns for name, columns in came.items() if columns}
