"""What a record's message is called and when it was sent; added to the payload where it is absent.

A payload that gets something added keeps all else as it was written, byte by byte. All of this is
done in the producer's own threads, for every record: plain code is quick code here.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from shardaudit.producer.payload_keys import ABSENT, HeldKeys, PayloadKeys, UntraceableError

PutRecord = Mapping[str, Any]  # as boto3 takes it; Any: its values are the caller's
FieldSource = str | Callable[[PutRecord], object] | None  # a path in the payload, or a function

NO_ROOM = "no room for an id or a time"

_ENVELOPE_ID, _ENVELOPE_TIME = "message_id", "sent_at"
_EMPTY = re.compile(r"[ \t\n\r]*\{[ \t\n\r]*\}")
_EMPTY_BYTES = re.compile(_EMPTY.pattern.encode())

_Reader = Callable[[PutRecord, HeldKeys], object]

# What the trace of a record says of its message: id, sent_at, and the ids of its parents; a text:
# why there can be no trace. Plain, as a trace is.
Message = tuple[str, str | int, tuple[str, ...]] | str


class PreparedRecords(NamedTuple):
    """Records as they are put, and the message of each."""

    records: list[PutRecord]
    messages: list[Message]

    def as_given(self, records: Sequence[PutRecord]) -> "PreparedRecords":
        """The caller's own; there is no trace of one to which something had been added."""
        each = zip(*self, records, strict=True)
        messages = [message if put is own else NO_ROOM for put, message, own in each]
        return PreparedRecords(list(records), messages)

    def ids(self) -> list[str]:
        """Of each record; an empty text where there can be no trace of it."""
        return ["" if isinstance(each, str) else each[0] for each in self.messages]


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
        sources = [(message_id, _ENVELOPE_ID), (sent_at, _ENVELOPE_TIME)]
        if parent_ids is not None:
            sources.append((parent_ids, ""))
        paths = [source or own for source, own in sources if not callable(source)]
        keys = PayloadKeys(list(dict.fromkeys(path.partition(".")[0] for path in paths)))
        self._keys = keys if paths else None
        self._id, self._adds_id = _reader(message_id, _ENVELOPE_ID, keys), message_id is None
        self._time, self._adds_time = _reader(sent_at, _ENVELOPE_TIME, keys), sent_at is None
        self._parents = None if parent_ids is None else _reader(parent_ids, "", keys)

    def prepared(self, records: Iterable[PutRecord], at: str) -> PreparedRecords:
        """The records with both, whatever is wrong with one: no error comes out of here.

        Input:
            at: the time to be added, where there is none.
        """
        put, messages = list(records), list[Message]()
        keys, take_id, take_time = self._keys, self._id, self._time
        chance = ""  # what the ids of one call begin with; a process that is forked off asks anew
        for place, record in enumerate(put):
            message: Message
            added = ""
            try:
                held = None if keys is None else keys.held(record["Data"])
                message_id, sent_at = take_id(record, held), take_time(record, held)
                if message_id is ABSENT and self._adds_id:
                    chance = chance or os.urandom(12).hex()
                    message_id = f"{chance}{place:08x}"
                    added = f'"{_ENVELOPE_ID}":"{message_id}",'
                if sent_at is ABSENT and self._adds_time:
                    sent_at, added = at, f'{added}"{_ENVELOPE_TIME}":"{at}",'
                if (
                    type(message_id) is type(sent_at) is str
                    and message_id
                    and sent_at
                    and self._parents is None
                ):
                    message = (message_id, sent_at, ())  # as most have it
                else:
                    message = self._message(record, held, message_id, sent_at)
                if added:
                    put[place] = {**record, "Data": _with_added(record["Data"], added)}
            except UntraceableError as error:
                message = str(error)
            except Exception as error:  # noqa: BLE001 - the caller's function, or no record at all
                message = f"the record could not be read: {type(error).__name__}"
            messages.append(message)
        return PreparedRecords(put, messages)

    def _message(
        self, record: PutRecord, held: HeldKeys, message_id: object, sent_at: object
    ) -> Message:
        if type(message_id) is int:
            message_id = str(message_id)
        if isinstance(sent_at, datetime) and sent_at.tzinfo is not None:
            sent_at = sent_at.isoformat()
        # An empty one is none: all messages that have it would be the same.
        if not message_id or not isinstance(message_id, str):
            raise UntraceableError("the message id is missing, or no text")
        if type(sent_at) is not int and not (sent_at and isinstance(sent_at, str)):
            raise UntraceableError("sent_at is missing, or no time with a zone")
        parents = self._parents
        parent_ids = () if parents is None else _ids(parents(record, held), of=message_id)
        return message_id, sent_at, parent_ids


def instant_with_ms(instant: datetime) -> str:
    """An instant in UTC as ISO 8601, to the millisecond."""
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _reader(source: FieldSource, standard: str, keys: PayloadKeys) -> _Reader:
    """What reads a field of a record and its payload.

    Of a top key that is not there it gives ABSENT; within an object, None.
    """
    if callable(source):
        return lambda record, _held: source(record)
    first, *others = (source or standard).split(".")
    name = keys.name(first)
    if not others:
        return lambda _record, held: getattr(held, name)

    def within(_record: PutRecord, held: HeldKeys) -> object:
        found: object = getattr(held, name)
        for key in others:
            found = found.get(key) if isinstance(found, dict) else None
        return found

    return within


def _ids(parents: object, *, of: str) -> tuple[str, ...]:
    """The ids of a message's parents."""
    has_none = parents is None or parents is ABSENT
    listed = () if has_none else parents if isinstance(parents, list | tuple) else (parents,)
    if not all((one and isinstance(one, str)) or type(one) is int for one in listed):
        raise UntraceableError("parent_ids is neither an id nor a list of ids")
    ids = tuple(dict.fromkeys(map(str, listed)))
    if of in ids:
        raise UntraceableError("parent_ids names the message itself")
    return ids


def _with_added(content: str | bytes | bytearray, added: str) -> str | bytes:
    """The object with more keys at its front; each ends with a comma."""
    if isinstance(content, str):
        if not content.startswith('{"') and _EMPTY.match(content):
            added = added[:-1]
        return content.replace("{", f"{{{added}", 1)
    if isinstance(content, bytearray):
        content = bytes(content)
    if not content.startswith(b'{"') and _EMPTY_BYTES.match(content):
        added = added[:-1]
    return content.replace(b"{", f"{{{added}".encode(), 1)
