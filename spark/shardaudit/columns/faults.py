"""Why a value cannot be used: each function gives the reason as a text, NULL when all is well."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from pyspark.sql import Column
from pyspark.sql import functions as F

from shardaudit.columns.instants import any_of
from shardaudit.model.input_columns import (
    CANARY,
    DAY_AHEAD,
    LEFT_OUT,
    MAX_ID_BYTES,
    MAX_SHARD_CHARS,
    NO_TIME,
    PRODUCER,
    RECEIVED,
    SENT,
    TOO_OLD,
)
from shardaudit.model.sequence import PATTERN
from shardaudit.model.trace_line import GAP_REASON, OF_PRODUCER
from shardaudit.model.window import EARLIEST

MAX_AHEAD = timedelta(days=1)
_RAW_BYTES = 4096

_FOREIGN = "the trace is of another"
OF_NO_PLACE = f"{_FOREIGN} location than"  # and then those that are known

_CONTROLS = "\x0b\x0e\x0f\x1a\x1b\x1c\x1d\x1e\x1f"
_PICTURES = "".join(chr(0x2400 + ord(control)) for control in _CONTROLS)

# To Java `$` would let a line break pass at the end.
_WHOLE_SEQUENCE_NUMBER = PATTERN.removesuffix("$") + r"\z"


def first_fault(*faults: Column) -> Column:
    """The first reason that there is; NULL when there is none."""
    return F.coalesce(*faults)


def fault(condition: Column, reason: str) -> Column:
    """The reason where the condition holds."""
    return F.when(condition, F.lit(reason))


def message_id_fault(message_id: Column) -> Column:
    """An id is any text to 1 KiB, the empty one too; but none of the canary's."""
    return first_fault(
        fault(message_id.isNull(), "message_id is missing"),
        fault(
            F.octet_length(message_id) > MAX_ID_BYTES,
            f"message_id is longer than {MAX_ID_BYTES} bytes",
        ),
        _reserved_fault("message_id", message_id),
    )


def shard_id_fault(shard_id: Column) -> Column:
    """A shard has a name; but none of the canary's."""
    length = F.length(shard_id)
    return first_fault(
        fault(shard_id.isNull(), "shard_id is missing"),
        fault(
            (length == 0) | (length > MAX_SHARD_CHARS),
            f"shard_id is not a text of 1 to {MAX_SHARD_CHARS} characters",
        ),
        _reserved_fault("shard_id", shard_id),
    )


def _reserved_fault(name: str, text: Column) -> Column:
    return fault(text.startswith(CANARY), f"{name} begins with {CANARY}, which is shardaudit's own")


def sequence_number_fault(sequence_number: Column) -> Column:
    """A sequence number may be absent, but not be anything else than Kinesis writes."""
    return fault(
        ~sequence_number.rlike(_WHOLE_SEQUENCE_NUMBER),
        "sequence_number is not a text of 1 to 129 decimal digits",
    )


def time_fault(name: str, instant: Column, *, is_given: Column) -> Column:
    """A time that was given must be one, and not before 2000."""
    return first_fault(
        fault(
            is_given & instant.isNull(),
            f"{name} {NO_TIME}",
        ),
        fault(instant < F.lit(EARLIEST), f"{name} {TOO_OLD}"),
    )


def ahead_fault(name: str, instant: Column, *, of: Column, what: str) -> Column:
    """A time may not be over a day ahead of another."""
    return fault(instant > of + F.lit(MAX_AHEAD), f"{name} {DAY_AHEAD} of {what}")


def foreign_fault(stream: Column, streams: Sequence[str]) -> Column:
    """A trace that names a stream must name this one."""
    is_ours = any_of([stream == F.lit(name) for name in streams])
    return fault(~is_ours, f"{_FOREIGN} stream than {' or '.join(streams)}")


def location_fault(location: Column, places: Sequence[str]) -> Column:
    """A trace is of the producer, or of a place of the stream's route."""
    known = (PRODUCER, *places)
    is_known = any_of([location == F.lit(name) for name in known])
    return fault(~is_known, f"{OF_NO_PLACE} {' or '.join(known)}")


def event_fault(location: Column, event: Column) -> Column:
    """A place says that it received a message, sent it on, or left it out; else it received it."""
    is_known = any_of([event == name for name in (RECEIVED, SENT, LEFT_OUT)])
    return fault(
        (location != PRODUCER) & ~is_known, f"event is none of {RECEIVED}, {SENT} and {LEFT_OUT}"
    )


def is_clock_fault(reason: Column) -> Column:
    """Whether somebody's clock is the reason."""
    return reason.contains(TOO_OLD) | reason.contains(DAY_AHEAD)


def is_foreign_fault(reason: Column) -> Column:
    """Whether another stream or location is the reason: nothing is wrong with the row."""
    return reason.startswith(_FOREIGN)


def is_location_fault(reason: Column) -> Column:
    """Whether another location is the reason."""
    return reason.startswith(f"{_FOREIGN} location")


def is_gap(reason: Column) -> Column:
    """Whether a log tells of traces that it dropped: nothing is wrong with the line."""
    return reason.startswith(GAP_REASON)


def is_gap_of_producer(reason: Column) -> Column:
    """Whether it is a producer's log that tells so."""
    return is_gap(reason) & reason.endswith(OF_PRODUCER)


def cut(raw: Column) -> Column:
    """The text cut to 4 KiB, never through a character."""
    # By its hex digits: no two engines agree on a part of bytes. 4096 characters hold 4096 bytes.
    digits = F.hex(F.substring(raw, 1, _RAW_BYTES))

    def is_begun(size_bytes: int) -> Column:
        """Whether a character goes on behind so many bytes: its further bytes begin with 10."""
        return F.substring(digits, 2 * size_bytes + 1, 1).isin("8", "9", "A", "B")

    # A character has at most four bytes.
    kept = [F.when(~is_begun(_RAW_BYTES - less), _RAW_BYTES - less) for less in range(4)]
    return F.unhex(F.substring(digits, F.lit(1), 2 * F.coalesce(*kept))).cast("string")


def shown_texts(texts: Mapping[str, Column]) -> Column:
    """An object of those texts that are not NULL, for people to read."""
    # The engines' writers spell these characters with hex digits of different case.
    shown = {name: F.translate(text, _CONTROLS, _PICTURES) for name, text in texts.items()}
    return F.to_json(F.struct(*(text.alias(name) for name, text in shown.items())))
