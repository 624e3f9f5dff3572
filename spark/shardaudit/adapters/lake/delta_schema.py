"""A table of the warehouse as Delta declares it, and how an older one becomes like it."""

import json

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable, Schema

from shardaudit.model.errors import WarehouseVersionError
from shardaudit.model.tables.table import OLDER_VERSIONS, WAREHOUSE_VERSION, Table

_VERSION_PROPERTY = "shardaudit.warehouseVersion"
CONFIGURATION = {_VERSION_PROPERTY: WAREHOUSE_VERSION}

_DELTA_NAMES = {"bigint": "long", "int": "integer"}  # where Delta's differ from Spark SQL's


def delta_schema(table: Table) -> Schema:
    """The table's columns as Delta declares them, all of them nullable."""
    fields = [
        _field(name, kind) | {"metadata": {"comment": meaning}}
        for name, kind, meaning in table.columns
    ]
    return Schema.from_json(json.dumps({"type": "struct", "fields": fields}))


def with_all_columns(rows: ds.Dataset, table: Table) -> ds.Dataset:
    """The rows of a table that may be older: a column that it lacks is NULL."""
    wanted = pa.schema(delta_schema(table).to_arrow())
    lacking = [field for field in wanted if field.name not in rows.schema.names]
    return rows.replace_schema(pa.schema([*rows.schema, *lacking])) if lacking else rows


def upgrade(found: DeltaTable, table: Table, *, place: str) -> None:
    """Adds what a table of an older version lacks; its rows stay as they are.

    Killed in between, it is still the older one, and is done again.

    Raises:
        WarehouseVersionError: it was written by a version that cannot become this one.
    """
    version = found.metadata().configuration.get(_VERSION_PROPERTY, "none")
    if version not in {WAREHOUSE_VERSION, *OLDER_VERSIONS}:
        raise WarehouseVersionError(table=place, found=version, wanted=WAREHOUSE_VERSION)
    known = {field.name for field in found.schema().fields}
    lacking = [field for field in delta_schema(table).fields if field.name not in known]
    if lacking:
        found.alter.add_columns(lacking)
    if version != WAREHOUSE_VERSION:
        found.alter.set_table_properties(CONFIGURATION, raise_if_not_exists=False)


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
