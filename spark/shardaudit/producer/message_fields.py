"""What a record's message is called and when it was sent; added to the payload where it is absent.

A payload that gets something added keeps all else as it was written, byte by byte. All of this is
done in the producer's own threads, for every record: plain code is quick code here.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

PutRecord = Mapping[str, Any]  # as boto3 takes it; Any: its values are the caller's
FieldSource = str | Callable[[PutRecord], object] | None  # a path in the payload, or a function

NO_ROOM = "no room for an id or a time"

_ENVELOPE_ID, _ENVELOPE_TIME = "message_id", "sent_at"
_IDS_AT_ONCE, _DIGITS = 64, 32
_BLANKS = " \t\n\r"  # of JSON
_read = json.JSONDecoder().raw_decode  # loads() takes twice the time of a small payload

_Payload = dict[str, Any]  # Any: whatever JSON holds
_Reader = Callable[[PutRecord, _Payload], object]


class Prepared(NamedTuple):
    """A record as it is put, and what its trace will say; or why there cannot be one."""

    record: PutRecord
    message_id: str = ""
    sent_at: str | int = ""
    parent_ids: tuple[str, ...] = ()
    fault: str | None = None


def as_given(prepared: Prepared, record: PutRecord) -> Prepared:
    """The caller's own record; there is no trace of it, if something had been added."""
    return prepared if prepared.record is record else Prepared(record, fault=NO_ROOM)


class _UntraceableError(Exception):
    """Why there can be no trace of a record. Never leaves this module."""


class MessageFields:
    """Where the two are. None: in the payload under the standard names, added where absent.

    `parent_ids`: where the ids are from which a message was made; None: of none.
    """

    def __init__(
        self,
        message_id: FieldSource = None,
        sent_at: FieldSource = None,
        parent_ids: FieldSource = None,
    ) -> None:
        self._id, self._adds_id = _reader(message_id, _ENVELOPE_ID), message_id is None
        self._time, self._adds_time = _reader(sent_at, _ENVELOPE_TIME), sent_at is None
        self._parents = None if parent_ids is None else _reader(parent_ids, "")
        sources = (message_id, sent_at, *([] if parent_ids is None else [parent_ids]))
        self._reads_payload = not all(map(callable, sources))

    def prepared(self, records: Iterable[PutRecord], at: str) -> list[Prepared]:
        """The records with both, whatever is wrong with one: no error comes out of here.

        Input:
            at: the time to be added, where there is none.
        """
        new_ids = _new_ids()
        return [self._prepared_or_not(record, at, new_ids) for record in records]

    def _prepared_or_not(self, record: PutRecord, at: str, new_ids: Iterator[str]) -> Prepared:
        try:
            return self._prepared(record, at, new_ids)
        except _UntraceableError as error:
            return Prepared(record, fault=str(error))
        except Exception as error:  # noqa: BLE001 - the caller's function, or no record at all
            return Prepared(record, fault=f"the record could not be read: {type(error).__name__}")

    def _prepared(self, record: PutRecord, at: str, new_ids: Iterator[str]) -> Prepared:
        payload = _payload(record["Data"]) if self._reads_payload else {}
        message_id, sent_at = self._id(record, payload), self._time(record, payload)
        added = {}
        if message_id is None and self._adds_id and _ENVELOPE_ID not in payload:
            message_id = added[_ENVELOPE_ID] = next(new_ids)
        elif type(message_id) is int:
            message_id = str(message_id)
        if sent_at is None and self._adds_time and _ENVELOPE_TIME not in payload:
            sent_at = added[_ENVELOPE_TIME] = at
        elif isinstance(sent_at, datetime) and sent_at.tzinfo is not None:
            sent_at = sent_at.isoformat()
        if not isinstance(message_id, str):
            raise _UntraceableError("the message id is missing, or no text")
        if type(sent_at) is not int and not isinstance(sent_at, str):
            raise _UntraceableError("sent_at is missing, or no time with a zone")
        parents = self._parents
        parent_ids = () if parents is None else _ids(parents(record, payload), of=message_id)
        if added:
            record = {**record, "Data": _with_added(record["Data"], added, is_only=not payload)}
        return Prepared(record, message_id, sent_at, parent_ids)


def _new_ids() -> Iterator[str]:
    """Ids of 32 digits. The system is asked for many: to ask costs as much as all else of a record.

    For one call alone: a process that is forked off has the same ones before it.
    """
    while True:
        digits = os.urandom(_IDS_AT_ONCE * _DIGITS // 2).hex()
        for at in range(0, len(digits), _DIGITS):
            yield digits[at : at + _DIGITS]


def instant_with_ms(instant: datetime) -> str:
    """An instant in UTC as ISO 8601, to the millisecond."""
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _reader(source: FieldSource, standard: str) -> _Reader:
    """What reads a field of a record and its payload; None where there is none."""
    if callable(source):
        return lambda record, _payload: source(record)
    first, *others = (source or standard).split(".")

    def within(_record: PutRecord, payload: _Payload) -> object:
        found: object = payload.get(first)
        for key in others:
            found = found.get(key) if isinstance(found, dict) else None
        return found

    return within


def _ids(parents: object, *, of: str) -> tuple[str, ...]:
    """The ids of a message's parents."""
    listed = () if parents is None else parents if isinstance(parents, list | tuple) else (parents,)
    if not all((one and isinstance(one, str)) or type(one) is int for one in listed):
        raise _UntraceableError("parent_ids is neither an id nor a list of ids")
    ids = tuple(dict.fromkeys(map(str, listed)))
    if of in ids:
        raise _UntraceableError("parent_ids names the message itself")
    return ids


def _payload(content: str | bytes | bytearray) -> _Payload:
    text = ""
    try:
        text = (content if isinstance(content, str) else content.decode()).strip(_BLANKS)
        payload, end = _read(text)
    except (ValueError, RecursionError):
        payload, end = None, 0
    if type(payload) is not dict or end < len(text):
        raise _UntraceableError("the payload is no JSON object")
    return payload


def _with_added(
    content: str | bytes | bytearray, added: dict[str, str], *, is_only: bool
) -> str | bytes:
    """The object with more keys at its front."""
    text = ",".join(f'"{name}":"{value}"' for name, value in added.items())
    text = f"{{{text}{'' if is_only else ','}"
    if isinstance(content, str):
        return content.replace("{", text, 1)
    return bytes(content).replace(b"{", text.encode(), 1)
