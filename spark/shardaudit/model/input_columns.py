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
    "parent_ids",
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
PARENT_IDS = "parent_ids"  # of a message that was made from others; an attribute, once it is read
RECEIVED, SENT, LEFT_OUT = "received", "sent", "left_out"
MAX_ID_BYTES = 1024  # of a message's id
CANARY = "shardaudit-canary/"  # what each audit plants among its inputs, to find it again


def trace_columns(
    mapped: Mapping[str, str], *, with_event: bool, with_parents: bool = False
) -> dict[str, str]:
    """Standard name -> key or column of a trace, for all names that are read.

    Input:
        with_event: of a stream without places it is not read: the name may mean anything.
        with_parents: the same of `parent_ids` and streams that neither are made from another one
            nor end at a place.
    """
    read = {EVENT: with_event, PARENT_IDS: with_parents}
    return {name: mapped.get(name, name) for name in TRACE_COLUMNS if read.get(name, True)}


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
