"""What a record's message is called and when it was sent; added to the payload where it is absent.

A payload that gets something added keeps all else as it was written, byte by byte. All of this is
done in the producer's own threads, for every record: plain code is quick code here.
"""

import os
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from typing import Any  # of payloads, as the caller has them

from shardaudit.model.input_columns import CANARY, MAX_ID_BYTES, are_given_times, given_time_fault
from shardaudit.producer.payload_keys import ABSENT, HeldKeys, PayloadKeys, UntraceableError
from shardaudit.producer.prepared_records import PreparedRecords, PutRecord

FieldSource = str | Callable[[PutRecord], object] | None  # a path in the payload, or a function

_ENVELOPE_ID, _ENVELOPE_TIME = "message_id", "sent_at"
_SHORT = MAX_ID_BYTES // 4  # characters: no more bytes than that, whichever they are
_EMPTY = re.compile(r"[ \t\n\r]*\{[ \t\n\r]*\}")
_EMPTY_BYTES = re.compile(_EMPTY.pattern.encode())

_Reader = Callable[[PutRecord, HeldKeys], object]


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
        keys = list(dict.fromkeys(path.partition(".")[0] for path in paths))
        self._keys = PayloadKeys(keys) if paths else None
        self._are_held = keys == [message_id or _ENVELOPE_ID, sent_at or _ENVELOPE_TIME]
        self._by_column = self._keys if self._are_held and parent_ids is None else None
        self._id, self._adds_id = _reader(message_id, _ENVELOPE_ID, keys), message_id is None
        self._time, self._adds_time = _reader(sent_at, _ENVELOPE_TIME, keys), sent_at is None
        self._parents = None if parent_ids is None else _reader(parent_ids, "", keys)

    def prepared(self, records: Iterable[PutRecord], at: str) -> PreparedRecords:
        """The records with both, whatever is wrong with one: no error comes out of here.

        Input:
            at: the time to be added, where there is none.
        """
        put = list(records)
        found = None
        if self._by_column is not None:
            with suppress(Exception):  # one by one it is told of which record
                found = self._at_once(put, self._by_column, at)
        return self._one_by_one(put, at) if found is None else found

    def _at_once(self, put: list[PutRecord], keys: PayloadKeys, at: str) -> PreparedRecords | None:
        """As nearly all calls have it: ids and times in each payload, or in none; None: not so."""
        contents = [record["Data"] for record in put]
        columns = keys.columns(contents)
        if columns is None:
            return None
        message_ids, sent_ats = columns
        added = [""] * len(put)
        if self._adds_id and _are_absent(message_ids):
            chance = os.urandom(12).hex()
            message_ids = [chance + place for place in _places(len(put))]
            added = [f'"{_ENVELOPE_ID}":"{message_id}",' for message_id in message_ids]
        elif not _are_ids(message_ids):
            return None
        if self._adds_time and _are_absent(sent_ats) and given_time_fault(at) is None:
            sent_ats = [at] * len(put)
            added = [f'{each}"{_ENVELOPE_TIME}":"{at}",' for each in added]
        elif not are_given_times(sent_ats):
            return None
        if any(added):
            longer = _all_with_added(contents, added)
            put = [{**record, "Data": it} for record, it in zip(put, longer, strict=True)]
        return PreparedRecords(put, message_ids, sent_ats, [], {})

    def _one_by_one(self, put: list[PutRecord], at: str) -> PreparedRecords:
        """The same of any records: each may be without a trace."""
        message_ids, sent_ats = list[str](), list[str | int]()
        parent_ids, faults = list[tuple[str, ...]](), dict[int, str]()
        keys, are_held = self._keys, self._are_held
        take_id, take_time, take_parents = self._id, self._time, self._parents
        chance = ""  # what the ids of one call begin with; a process that is forked off asks anew
        for place, record in enumerate(put):
            added = ""
            try:
                held = () if keys is None else keys.held(record["Data"])
                found = held if are_held else (take_id(record, held), take_time(record, held))
                message_id, sent_at = found
                if message_id is ABSENT and self._adds_id:
                    chance = chance or os.urandom(12).hex()
                    message_id = f"{chance}{place:08x}"
                    added = f'"{_ENVELOPE_ID}":"{message_id}",'
                if sent_at is ABSENT and self._adds_time:
                    sent_at, added = at, f'{added}"{_ENVELOPE_TIME}":"{at}",'
                are_texts = type(message_id) is type(sent_at) is str
                if not (are_texts and _is_usual(message_id) and given_time_fault(sent_at) is None):
                    message_id, sent_at = _checked(message_id, sent_at)  # few have it so
                parents = _ids(take_parents(record, held), of=message_id) if take_parents else ()
                if added:
                    put[place] = {**record, "Data": _with_added(record["Data"], added)}
            except Exception as error:  # noqa: BLE001 - the caller's function, or no record at all
                message_id, sent_at, parents = "", "", ()
                faults[place] = _why(error)
            message_ids.append(message_id)
            sent_ats.append(sent_at)
            parent_ids.append(parents)
        return PreparedRecords(
            put, message_ids, sent_ats, parent_ids if take_parents else [], faults
        )


def instant_with_ms(instant: datetime) -> str:
    """An instant in UTC as ISO 8601, to the millisecond."""
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def is_utf8(text: str) -> bool:
    """Not where it holds half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _reader(source: FieldSource, standard: str, keys: Sequence[str]) -> _Reader:
    """What reads a field of a record and its payload.

    Of a top key that is not there it gives ABSENT; within an object, None.
    """
    if callable(source):
        return lambda record, _held: source(record)
    first, *others = (source or standard).split(".")
    at = keys.index(first)
    if not others:
        return lambda _record, held: held[at]

    def within(_record: PutRecord, held: HeldKeys) -> object:
        found: object = held[at]
        for key in others:
            found = found.get(key) if isinstance(found, dict) else None
        return found

    return within


def _are_absent(column: Iterable[object]) -> bool:
    return {*map(type, column)} == {object}  # as only ABSENT is


def _are_ids(column: Collection[Any]) -> bool:
    """Whether each can be an id for sure: a text, not empty, short, and none of the audit's."""
    if {*map(type, column)} != {str}:
        return False
    sizes, joined = {*map(len, column)}, "".join(column)
    are_plain = joined.isascii() or is_utf8(joined)
    return min(sizes) > 0 and max(sizes) <= _SHORT and are_plain and CANARY not in joined


def _is_usual(message_id: str) -> bool:
    """Whether it can be an id for sure."""
    is_plain = message_id.isascii() and not message_id.startswith(CANARY)
    return 0 < len(message_id) <= _SHORT and is_plain


@lru_cache(maxsize=8)
def _places(count: int) -> list[str]:
    """What the ids of one call end with."""
    return [f"{place:08x}" for place in range(count)]


def _checked(message_id: object, sent_at: object) -> tuple[str, str | int]:
    """Both, where they are of another kind than most, or none."""
    if type(message_id) is int:
        message_id = str(message_id)
    if isinstance(sent_at, datetime) and sent_at.tzinfo is not None:
        sent_at = sent_at.isoformat()
    # An empty one is none: all messages that have it would be the same.
    if not message_id or not isinstance(message_id, str):
        raise UntraceableError("the message id is missing, or no text")
    if type(sent_at) is not int and not (sent_at and isinstance(sent_at, str)):
        raise UntraceableError("sent_at is missing, or no time with a zone")
    _check_id("message_id", message_id)
    if fault := given_time_fault(sent_at):
        raise UntraceableError(f"sent_at {fault}")
    return message_id, sent_at


def _check_id(name: str, text: str) -> None:
    """No ingest takes others, and what waits for the log is bounded in traces, not in bytes."""
    if text.startswith(CANARY):
        raise UntraceableError(f"{name} begins with {CANARY}, which is shardaudit's own")
    if not is_utf8(text):
        raise UntraceableError(f"{name} holds half of a surrogate pair")
    if len(text.encode()) > MAX_ID_BYTES:
        raise UntraceableError(f"{name} is longer than {MAX_ID_BYTES} bytes")


def _why(error: Exception) -> str:
    if isinstance(error, UntraceableError):
        return str(error)
    return f"the record could not be read: {type(error).__name__}"


def _ids(parents: object, *, of: str) -> tuple[str, ...]:
    """The ids of a message's parents."""
    has_none = parents is None or parents is ABSENT
    listed = () if has_none else parents if isinstance(parents, list | tuple) else (parents,)
    if not all((one and isinstance(one, str)) or type(one) is int for one in listed):
        raise UntraceableError("parent_ids is neither an id nor a list of ids")
    ids = tuple(dict.fromkeys(map(str, listed)))
    if of in ids:
        raise UntraceableError("parent_ids names the message itself")
    for one in ids:
        _check_id("parent_ids", one)
    return ids


def _all_with_added(contents: list[Any], added: list[str]) -> list[str | bytes]:
    """The objects, each with its keys at its front."""
    each = zip(contents, added, strict=True)
    if {content[:2] for content in contents} != {b'{"'}:
        return [_with_added(content, keys) for content, keys in each]
    return [content.replace(b"{", f"{{{keys}".encode(), 1) for content, keys in each]  # as most


def _with_added(content: str | bytes | bytearray, added: str) -> str | bytes:
    """The object with more keys at its front; each ends with a comma."""
    if isinstance(content, str):
        if not content.startswith('{"') and _EMPTY.match(content):
            added = added[:-1]
        return content.replace("{", f"{{{added}", 1)
    if not content.startswith(b'{"') and _EMPTY_BYTES.match(content):
        added = added[:-1]
    return bytes(content).replace(b"{", b"{" + added.encode(), 1)
