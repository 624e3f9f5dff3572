"""What Delta tables declare: what they ask of readers, and the schema and key of our own."""

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable, Schema, write_deltalake
from deltalake.exceptions import CommitFailedError

from shardaudit.adapters.clock import now
from shardaudit.adapters.files.access_refused import one_line
from shardaudit.adapters.files.files import storage_error
from shardaudit.columns.sql_name import Having, has_one_of
from shardaudit.model.errors import ConfigError, WarehouseVersionError
from shardaudit.model.tables.table import OLDEST_VERSION, WAREHOUSE_VERSION, Table

# By the names of Delta's protocol, "Table Features".
READABLE = {
    "columnMapping",
    "deletionVectors",
    "timestampNtz",
    "typeWidening",
    "typeWidening-preview",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    # Columns of such a type are never among those that are read.
    "variantType",
    "variantType-preview",
    "variantShredding-preview",
}
# What delta-rs (1.6) says of a table that it does not open for its features.
_UNKNOWN = re.compile(r"Feature '(?P<feature>[^']+)' is not supported")
_CATALOG = re.compile(r"catalog-managed")
_VERSION = re.compile(r"Unsupported minimum reader version (?P<version>[0-9]+)")

_VERSION_PROPERTY = "shardaudit.warehouseVersion"
_FENCE_PROPERTY = "shardaudit.lockGeneration"
_FENCED_AT = "shardaudit.fencedAt"
_FENCE_TRIES = 4
_UNSAID = "none"
CONFIGURATION = {_VERSION_PROPERTY: str(WAREHOUSE_VERSION)}

_DELTA_NAMES = {"bigint": "long", "int": "integer"}  # where Delta's differ from Spark SQL's


_LOOK: ContextVar[dict[str, ds.Dataset | None] | None] = ContextVar("look", default=None)


class TableFeatureError(ConfigError):
    """A table asks something of its readers that shardaudit cannot do."""

    def __init__(self, path: str, features: Collection[str]) -> None:
        super().__init__(
            f"sink.path {path}",
            f"a Delta table that asks {', '.join(sorted(features))} of its readers",
            f"one that asks nothing but {', '.join(sorted(READABLE))}: take the feature away with "
            "ALTER TABLE … DROP FEATURE, or give a table without it",
        )


def check_features(path: str, features: Iterable[str]) -> None:
    """Returns when a table that asks these features of its readers can be read.

    Raises:
        TableFeatureError: it cannot.
    """
    unknown = set(features) - READABLE
    if unknown:
        raise TableFeatureError(path, unknown)


def opening_error(path: str, error: Exception) -> Exception:
    """Our error for one that delta-rs raised when it opened a table, to be raised from it."""
    said = one_line(error)
    if found := _UNKNOWN.search(said):
        return TableFeatureError(path, [found["feature"]])
    if _CATALOG.search(said):
        return TableFeatureError(path, ["catalogManaged"])
    if found := _VERSION.search(said):
        return TableFeatureError(path, [f"reader version {found['version']}"])
    return storage_error(path, error)


def delta_schema(table: Table) -> Schema:
    """The table's columns as Delta declares them, all of them nullable."""
    fields = [
        _field(name, kind) | {"metadata": {"comment": meaning}}
        for name, kind, meaning in table.columns
    ]
    return Schema.from_json(json.dumps({"type": "struct", "fields": fields}))


@contextmanager
def one_look() -> Iterator[None]:
    """In this block each table is opened once: what is committed meanwhile is not seen."""
    token = _LOOK.set({})
    try:
        yield
    finally:
        _LOOK.reset(token)


def seen_once(
    address: str, table: Table, find: Callable[[], DeltaTable | None]
) -> ds.Dataset | None:
    """What a table holds as it is now; within `one_look` as it was when it was opened."""
    look = {} if (inside := _LOOK.get()) is None else inside
    if address not in look:
        found = find()
        rows = None if found is None else found.to_pyarrow_dataset()
        look[address] = None if rows is None else with_all_columns(rows, table)
    return look[address]


def with_all_columns(rows: ds.Dataset, table: Table) -> ds.Dataset:
    """The rows of a table that may be older: a column that it lacks is NULL."""
    wanted = pa.schema(delta_schema(table).to_arrow())
    lacking = [field for field in wanted if field.name not in rows.schema.names]
    return rows.replace_schema(pa.schema([*rows.schema, *lacking])) if lacking else rows


def files_among(
    found: DeltaTable,
    table: Table,
    among: Mapping[str, Collection[str]],
    *,
    dictionaries: Collection[str],
) -> ds.Dataset:
    """The files whose partition columns have one of these values; some texts as dictionaries.

    The log tells which they are: to make a dataset takes 2 ms for each file that it has.
    """
    rows = found.to_pyarrow_dataset(
        parquet_read_options=ds.ParquetReadOptions(dictionary_columns=set(dictionaries)),
        file_pruning_predicate=[(name, "in", [*values]) for name, values in among.items()] or None,
    )
    return with_all_columns(rows, table)


def check_version(found: DeltaTable, table: Table) -> None:
    """Returns when a table can be read: it is of no other version.

    Raises:
        WarehouseVersionError: it is.
    """
    version = _version(found)
    if version not in {_UNSAID, str(WAREHOUSE_VERSION)}:
        raise _of_another_version(table, version)


def known_version(found: DeltaTable, table: Table) -> int:
    """The version of a table, at most this one.

    Raises:
        WarehouseVersionError: a later one, one before the oldest, or none wrote it.
    """
    version = _version(found)
    if not (version.isdecimal() and OLDEST_VERSION <= int(version) <= WAREHOUSE_VERSION):
        raise _of_another_version(table, version)
    return int(version)


def stamp(found: DeltaTable, version: int) -> None:
    """Says of a table which version it is of."""
    found.alter.set_table_properties({_VERSION_PROPERTY: str(version)}, raise_if_not_exists=False)


def fence(found: DeltaTable, generation: int) -> None:
    """Makes every commit fail that was begun before, under an older generation of the lock."""
    said = {_FENCE_PROPERTY: str(generation), _FENCED_AT: now().isoformat()}
    for _ in range(_FENCE_TRIES):
        with suppress(CommitFailedError):  # as when just that commit came between
            return found.alter.set_table_properties(said, raise_if_not_exists=False)
        found.update_incremental()
    return found.alter.set_table_properties(said, raise_if_not_exists=False)


def fenced_at(found: DeltaTable | None) -> datetime | None:
    """When a table was fenced last, by the clock of who did; None: never."""
    said = found.metadata().configuration.get(_FENCED_AT) if found else None
    return None if said is None else datetime.fromisoformat(said)


def add_columns(found: DeltaTable, table: Table) -> list[str]:
    """Adds the columns that a table lacks, NULL in its rows; returns their names."""
    known = {field.name for field in found.schema().fields}
    lacking = [field for field in delta_schema(table).fields if field.name not in known]
    if lacking:
        found.alter.add_columns(lacking)
    return [field.name for field in lacking]


def repartition_by_day(found: DeltaTable, table: Table, *, day: str, of: str) -> None:
    """Writes all rows again, partitioned as their table is today, in one commit.

    Input:
        day: a new column of the partitions: it gets the UTC days of the times in `of`.
    """
    if found.metadata().partition_columns == [*table.partitions]:
        return
    schema = pa.schema(found.schema().to_arrow())
    parts = (
        part
        for batch in found.to_pyarrow_dataset().to_batches(batch_readahead=2)
        for part in fitted(_with_days(batch, day=day, of=of), found).to_batches()
    )
    rows = pa.RecordBatchReader.from_batches(schema, parts)
    write_deltalake(
        found,
        rows,
        mode="overwrite",
        schema_mode="overwrite",
        partition_by=[*table.partitions],
    )


def _with_days(rows: pa.RecordBatch, *, day: str, of: str) -> pa.Table:
    table = pa.Table.from_batches([rows])
    return table.set_column(table.column_names.index(day), day, table[of].cast(pa.date32()))


def _of_another_version(table: Table, version: str) -> WarehouseVersionError:
    return WarehouseVersionError(
        table=table.name, found=version, oldest=OLDEST_VERSION, wanted=WAREHOUSE_VERSION
    )


def _version(found: DeltaTable) -> str:
    return str(found.metadata().configuration.get(_VERSION_PROPERTY, _UNSAID))


def _field(name: str, kind: str) -> dict[str, object]:
    return {"name": name, "type": _delta_type(kind), "nullable": True, "metadata": {}}


def _delta_type(kind: str) -> object:
    """A type of Spark SQL as Delta's schema has it; nothing in it is nested twice."""
    outer, _, inner = kind.removesuffix(">").partition("<")
    parts = inner.split(",")
    match outer:
        case "array":
            element = _delta_type(inner)
            return {"type": "array", "elementType": element, "containsNull": True}
        case "map":
            key, value = map(_delta_type, parts)
            return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
        case "struct":
            fields = [_field(*part.split(":")) for part in parts]
            return {"type": "struct", "fields": fields}
    return _DELTA_NAMES.get(kind, kind)


def is_within(table: DeltaTable, *, rows: int, files: int | None = None) -> bool:
    """Whether a table has at most so many rows, in at most so many files, as its log says."""
    counts = pa.table(table.get_add_actions(flatten=True))["num_records"]
    are_few = files is None or len(counts) <= files
    return are_few and not counts.null_count and (pc.sum(counts).as_py() or 0) <= rows


def fitted(rows: pa.Table, target: DeltaTable) -> pa.Table:
    """The rows in the table's order and types, copied.

    Spark leaves the offsets of empty arrays out; delta-rs takes whatever lies there for them.
    """
    schema = pa.schema(target.schema().to_arrow())
    if not rows.num_rows:
        return schema.empty_table()
    return rows.select(schema.names).cast(schema).take(pa.array(range(rows.num_rows)))


def crowded(
    files: Iterable[Mapping[str, Any]], table: Table, *, above: int
) -> list[dict[str, str]]:
    """The partitions of more than `above` files, as texts by column; {} is a whole table."""
    names = [f"partition.{name}" for name in table.partitions]
    counts = Counter(tuple(str(file[name]) for name in names) for file in files)
    return [
        dict(zip(table.partitions, values, strict=True))
        for values, count in sorted(counts.items())
        if count > above
    ]


def has_values(having: Having) -> str:
    """That each of some columns has one of its values, as delta-rs wants to be told."""

    def text(value: str) -> str:
        return "'" + value.replace("'", "''") + "'"

    return has_one_of(having, literal=text)


def is_before(column: str, then: datetime) -> str:
    """That a time is before another one, as delta-rs wants to be told.

    As a text, of which it makes the column's type: 1.6 compares no TIMESTAMP with what Delta has.
    """
    return f"`{column}` < '{then.astimezone(UTC).isoformat()}'"


def counts_by_value(
    rows: ds.Dataset, *, by: Sequence[str], having: Mapping[str, str]
) -> Counter[tuple[Any, ...]]:  # Any: a column's type is what model/tables/audit_tables.py says
    """How many rows have which values of the columns `by`: those that have the texts `having`."""
    where = pc.scalar(True)
    for name, text in having.items():
        where = where & (pc.field(name) == text)
    found: Counter[tuple[Any, ...]] = Counter()
    for batch in near(rows, where).to_batches(columns=list({*by, *having}), batch_readahead=2):
        chosen = pa.Table.from_batches([batch]).filter(where)
        groups = chosen.group_by(list(by)).aggregate([([], "count_all")])
        for row in map(in_utc, groups.to_pylist()):
            found[tuple(row[name] for name in by)] += row["count_all"]
    return found


def near(rows: ds.Dataset, where: pc.Expression) -> ds.Dataset:
    """The files that may have rows which meet a condition; what is read is still to be chosen from.

    delta-rs merges texts as string_view, and pyarrow compares no such column of a file with a text
    (26.0; "no kernel matching").
    """
    files = list(rows.get_fragments(filter=where))
    return ds.FileSystemDataset(files, rows.schema, rows.format, rows.filesystem)


def in_utc(row: dict[str, Any]) -> dict[str, Any]:
    """The row, its times in UTC as Python itself writes it."""
    return {
        name: value.astimezone(UTC) if isinstance(value, datetime) else value
        for name, value in row.items()
    }
