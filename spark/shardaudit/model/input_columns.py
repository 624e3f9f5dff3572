"""The standard names of what comes in, and the columns of a sink."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

TRACE_COLUMNS = (
    "message_id",
    "stream",
    "shard_id",
    "sequence_number",
    "sent_at",
    "location",
    "event",
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
EVENT = "event"  # of a trace of another place: it says which
RECEIVED, SENT = "received", "sent"
CANARY = "shardaudit-canary/"  # what each audit plants among its inputs, to find it again


def trace_columns(mapped: Mapping[str, str], *, with_event: bool) -> dict[str, str]:
    """Standard name -> key or column of a trace, for all names that are read.

    Input:
        with_event: of a stream without places it is not read: the name may mean anything.
    """
    names = (name for name in TRACE_COLUMNS if with_event or name != EVENT)
    return {name: mapped.get(name, name) for name in names}


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
