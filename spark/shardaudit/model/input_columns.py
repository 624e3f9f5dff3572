"""The standard names of what comes in, the columns of a sink, the times that a trace may have.

For producers, too: it loads nothing.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any  # whatever a payload holds

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
MAX_SHARD_CHARS = 128  # Kinesis API, pattern of ShardId
CANARY = "shardaudit-canary/"  # what each audit plants among its inputs, to find it again

# Date and time to at least the minute, with a zone. Spelled out: `\d` and `.` mean other
# characters to other engines.
_DATE, _TWO, _ZONE = "[0-9]{4}-[0-9]{2}-[0-9]{2}", "[0-9]{2}", "([Zz]|[+-][0-9]{2}(:?[0-9]{2})?)"
ISO_WITH_ZONE = rf"{_DATE}[Tt ]{_TWO}:{_TWO}(:{_TWO}([.,][0-9]{{1,9}})?)?{_ZONE}"
MAX_MS = 10**14  # year 5138; beyond it is no time, and must not overflow as microseconds

NO_TIME = "is not an ISO 8601 time with a zone, nor epoch milliseconds"
TOO_OLD = "is before 2000"
DAY_AHEAD = "is over a day ahead"

# In whatever zone: where 2000 has not begun, on the last day of 1999, the ingest knows.
_EARLIEST, _EARLIEST_MS = "1999-12-31", 946_684_800_000
_has_form = re.compile(ISO_WITH_ZONE).fullmatch
_AS_NULLS = str.maketrans("123456789", "000000000")


def trace_columns(
    mapped: Mapping[str, str], *, with_event: bool, with_parents: bool
) -> dict[str, str]:
    """Standard name -> key or column of a trace, for all names that are read.

    Input:
        with_event: of a stream without places it is not read: the name may mean anything.
        with_parents: the same of `parent_ids` and streams that neither are made from another one
            nor end at a place.
    """
    read = {EVENT: with_event, PARENT_IDS: with_parents}
    return {name: mapped.get(name, name) for name in TRACE_COLUMNS if read.get(name, True)}


def given_time_fault(sent_at: str | int) -> str | None:
    """Why a trace cannot have been sent then; None: nothing is known against it.

    The ingest knows two things more: that no calendar has a day, and that a time is over a day
    ahead when it reads it.
    """
    if isinstance(sent_at, str):
        if not _has_form(sent_at):
            return NO_TIME
        return TOO_OLD if sent_at < _EARLIEST else None
    if sent_at < _EARLIEST_MS:
        return TOO_OLD
    return None if sent_at <= MAX_MS else DAY_AHEAD


def are_given_times(sent_ats: Collection[Any]) -> bool:
    """Whether there are some, all of one type, and nothing is known against any; quick for many."""
    kinds = {*map(type, sent_ats)}
    if kinds == {int}:
        return bool(min(sent_ats) >= _EARLIEST_MS and max(sent_ats) <= MAX_MS)
    if kinds != {str} or min(sent_ats) < _EARLIEST:
        return False
    # Of a thousand times there are few forms.
    forms = "\n".join(sent_ats).translate(_AS_NULLS).split("\n")
    return len(forms) == len(sent_ats) and all(map(_has_form, {*forms}))


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
