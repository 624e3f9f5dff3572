"""A table of the warehouse as Delta declares it."""

import json

from deltalake import Schema

from shardaudit.model.table import Table

_DELTA_NAMES = {"bigint": "long", "int": "integer"}  # where Delta's differ from Spark SQL's


def delta_schema(table: Table) -> Schema:
    """The table's columns as Delta declares them, all of them nullable."""
    fields = [
        _field(name, kind) | {"metadata": {"comment": meaning}}
        for name, kind, meaning in table.columns
    ]
    return Schema.from_json(json.dumps({"type": "struct", "fields": fields}))


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
