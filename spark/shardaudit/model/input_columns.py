"""The standard names of what comes in, and the columns of a sink."""

from dataclasses import dataclass
from enum import StrEnum

TRACE_COLUMNS = (
    "message_id",
    "stream",
    "shard_id",
    "sequence_number",
    "sent_at",
    "location",
    "attempt",
    "producer_id",
    "session",
    "session_seq",
    "sample_rate",
    "acked_at",
    "attributes",
)

SINK_COLUMNS = (
    "message_id",
    "shard_id",
    "sequence_number",
    "sent_at",
    "landed_at",
    "arrived_at",
)
REQUIRED = ("message_id", "landed_at")  # of a sink
OPTIONAL = tuple(name for name in SINK_COLUMNS if name not in REQUIRED)

PRODUCER = "producer"  # the location whose traces say what was acknowledged; of a line without one
CANARY = "shardaudit-canary/"  # what each audit plants among its inputs, to find it again


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
