"""Reports as JSON: the same values under the same names."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from pathlib import Path


def plain_value(value: object) -> object:
    """The value as JSON knows it: dataclasses become objects, times ISO 8601 texts in UTC."""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Mapping):
        return {str(key): plain_value(inner) for key, inner in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain_value(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain_value(inner) for inner in value]
    return str(value) if isinstance(value, Path) else value


def as_json(value: object) -> str:
    """One JSON document, in ASCII: ids with line ends or escape codes reach no terminal raw."""
    return json.dumps(plain_value(value), indent=2, ensure_ascii=True, allow_nan=False)
