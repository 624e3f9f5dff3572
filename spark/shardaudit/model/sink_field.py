"""A column of a sink, and where a backfill takes its value from."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class SinkField:
    """A column as the table declares it; `kind` is a Spark SQL type.

    `computes`: the table fills it itself (a generated or an identity column).
    """

    name: str
    kind: str
    nullable: bool = True
    partitions: bool = False
    computes: bool = False


class Origin(StrEnum):
    """Where a value comes from."""

    RECORD = "record"
    DERIVED = "derived"
    TABLE = "table"
    PAYLOAD = "payload"


@dataclass(frozen=True, slots=True)
class Source:
    """A column and its source: the standard name, the SQL text, nothing, or the JSON path."""

    field: SinkField
    origin: Origin
    text: str
