"""A line of JSON → what a trace's fields are in it. The one parser, whatever engine runs the rest.

orjson reads. It keeps whole numbers to 64 bits, and others as the nearest double: where digits may
be lost, or it refuses a line, the standard library's parser reads the line once more.

What JSON's grammar leaves open is settled so: of a key that occurs twice, here or further within,
the last value counts; a number beyond every double is one, and stays as it was written; what is
nested deeper than 1024 levels is no JSON.
"""

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import orjson

from shardaudit.model.input_columns import PARENT_IDS, PRODUCER
from shardaudit.model.tables.table import INTERNAL_PREFIX

TEXTS = (
    "message_id",
    "stream",
    "shard_id",
    "sequence_number",
    "location",
    "event",
    "producer_id",
    "session",
)
NUMBERS = ("attempt", "session_seq", "sample_rate")
TIMES = ("sent_at", "acked_at")

# Keys of lines in which a producer's log tells of itself; such a line has none of a trace's own.
GAP, HEALTH = "gap", "health"
_ONLY_OF_TRACES = ("message_id", "shard_id", "sequence_number")
GAP_REASON = "gap: "
OF_PRODUCER = "by the producer"
PASSED_OVER = "the line tells of the log itself"  # it is neither a trace nor a bad one

# Why a line is no object, whatever it holds.
NO_OBJECT = "the line is "
NOT_JSON = f"{NO_OBJECT}not JSON"
_NOT_AN_OBJECT = "attributes is not an object"
_TOO_DEEP = "a value is nested too deep"  # orjson writes 254 levels
_NO_PARENTS = "parent_ids is neither an id nor a list of ids"
_LEAST_BIGINT, _BEYOND_BIGINT = -(2**63), 2**63
_BEYOND_ORJSON = 2**64
_PLAIN_LEVELS = 100
_MOST_DIGITS = 20  # of a whole number that orjson keeps

Json = Any  # whatever JSON holds; an orjson.Fragment is a number as it was written
Texts = dict[str, str | None]


class Fields(NamedTuple):
    """What a line says by the standard names, or with `fault` why it is no trace at all.

    `values`: all but `attributes`. Texts; of a time also whole milliseconds, however many.
    """

    values: Mapping[str, str | int | None]
    attributes: Texts | None = None
    attributes_fault: str | None = None
    fault: str | None = None


_NOTHING: Mapping[str, None] = dict.fromkeys(TEXTS + NUMBERS + TIMES)


def read_object(line: bytes) -> tuple[dict[str, Json], str | None]:
    """The object that a line is; an empty one and the reason, where it is none."""
    try:
        value, has_half = _read(line)
    except UnicodeDecodeError:
        return {}, f"{NO_OBJECT}not UTF-8"
    except (ValueError, RecursionError):
        return {}, NOT_JSON
    if type(value) is not dict:
        return {}, f"{NO_OBJECT}not a JSON object"
    if fault := key_fault(value):
        return {}, fault
    if has_half:
        # As a question mark it would make different ids the same.
        return {}, "the line holds half of a surrogate pair"
    return value, None


def key_fault(keys: Iterable[str]) -> str | None:
    """Our own columns' names may not come from outside."""
    if any(key.startswith(INTERNAL_PREFIX) for key in keys):
        return f"a key begins with {INTERNAL_PREFIX}, which is reserved"
    return None


def trace_fields(trace: Mapping[str, Json], line: bytes, columns: Mapping[str, str]) -> Fields:
    """The fields of an object: texts as they are, what else is there as compact JSON.

    Input:
        trace, line: what `read_object` made of which line.
        columns: standard name -> key in the object, for every standard name.
    Output:
        `fault` is PASSED_OVER where the line is to be left out like a blank one.
    """
    given = {name: trace.get(key) for name, key in columns.items()}
    if told := told_by_the_log(trace, columns):
        return Fields(_NOTHING, fault=told)
    try:
        fields = _fields(given)
        if any(map(may_be_rounded, given.values())):
            exact = _read_exactly(line)
            fields = _fields({name: exact.get(key) for name, key in columns.items()})
    except (orjson.JSONEncodeError, RecursionError):
        return Fields(_NOTHING, fault=_TOO_DEEP)
    return fields


def told_by_the_log(line: Mapping[str, Json], columns: Mapping[str, str]) -> str | None:
    """PASSED_OVER where an object tells of the log's health; of a gap its sentence; else None."""
    if any(columns[name] in line for name in _ONLY_OF_TRACES):
        return None
    if type(line.get(HEALTH)) is dict:
        return PASSED_OVER
    gap = line.get(GAP)
    if type(gap) is not int or gap < 1:
        return None
    location = as_text(line.get(columns["location"]))
    whose = OF_PRODUCER if location in {None, PRODUCER} else f"by the location {location}"
    return f"{GAP_REASON}{gap} traces were dropped {whose}"


def attributes_in(text: str) -> tuple[Texts | None, str | None]:
    """The attributes of a text that holds an object, and why it does not."""
    line = text.encode()
    try:
        value, has_half = _read(line)
        if type(value) is not dict or has_half:
            return None, _NOT_AN_OBJECT
        if may_be_rounded(value):
            value = _read_exactly(line)
        return _texts(value), None
    except (ValueError, RecursionError, orjson.JSONEncodeError):
        return None, _NOT_AN_OBJECT


def with_parents(
    attributes: Texts | None, parents: Json, *, message_id: str | None, location: str | None
) -> tuple[Texts | None, str | None]:
    """The attributes and, as one more, what a message was made from; and why it cannot be that.

    Input:
        parents: an id, or a list of them; None, or an empty list: it is made from no other.
    """
    if parents is None or parents == []:
        return attributes, None
    listed = parents if type(parents) is list else [parents]
    ids = list(dict.fromkeys(as_text(one) for one in listed if is_id(one)))
    if not ids or None in ids or "" in ids or not all(map(is_id, listed)):
        return attributes, _NO_PARENTS
    if message_id in ids:
        return attributes, "parent_ids names the message itself"
    if location not in {None, PRODUCER}:
        return attributes, f"parent_ids at {location}: the producer's traces alone have it"
    if PARENT_IDS in (attributes or {}):
        return attributes, "attributes has parent_ids of its own"
    return {**(attributes or {}), PARENT_IDS: orjson.dumps(ids).decode()}, None


def as_text(value: Json) -> str | None:
    """A text as it is; what else there is, as compact JSON."""
    if value is None or type(value) is str:
        return value
    return repr(value) if type(value) is float else orjson.dumps(value).decode()


def is_id(value: Json) -> bool:
    """Whether a value may be an id, or there is none: a text, a whole number that fits a bigint."""
    if type(value) is int:
        return _LEAST_BIGINT <= value < _BEYOND_BIGINT
    return value is None or type(value) is str


def may_be_rounded(value: Json, levels: int = _PLAIN_LEVELS) -> bool:
    """Whether orjson may have rounded a number in a value, or the value is too deep to tell."""
    if type(value) is float:
        return abs(value) >= _BEYOND_BIGINT
    if type(value) not in {list, dict}:
        return False
    within = value if type(value) is list else value.values()
    return levels == 0 or any(may_be_rounded(each, levels - 1) for each in within)


def _read(line: bytes) -> tuple[Json, bool]:
    """The value, and whether half of a surrogate pair is somewhere in it.

    Raises:
        UnicodeDecodeError, ValueError, RecursionError: the line is no JSON.
    """
    try:
        return orjson.loads(line), False
    except orjson.JSONDecodeError:
        value = _read_exactly(line)
    try:
        json.dumps(value, ensure_ascii=False, default=repr).encode()
    except UnicodeEncodeError:
        return value, True
    return value, False


def _read_exactly(line: bytes) -> Json:
    """What the standard library reads, which takes half pairs, with the numbers of orjson.

    A number that orjson would round or refuse stays as it was written.
    """
    return json.loads(
        line.decode(), parse_int=_whole, parse_float=_fraction, parse_constant=_refused
    )


def _whole(digits: str) -> int | orjson.Fragment:
    if len(digits) <= _MOST_DIGITS and _LEAST_BIGINT <= (number := int(digits)) < _BEYOND_ORJSON:
        return number
    return orjson.Fragment(digits)


def _fraction(digits: str) -> float | orjson.Fragment:
    number = float(digits)
    return number if math.isfinite(number) else orjson.Fragment(digits)


def _refused(constant: str) -> Json:
    raise ValueError(constant)  # NaN, Infinity: no JSON


def _fields(given: Mapping[str, Json]) -> Fields:
    if fault := _type_fault(given):
        return Fields(_NOTHING, fault=fault)
    attributes = given["attributes"]
    if type(attributes) is str:
        texts, attributes_fault = attributes_in(attributes)
    elif attributes is None or type(attributes) is dict:
        texts, attributes_fault = attributes and _texts(attributes), None
    else:
        texts, attributes_fault = None, _NOT_AN_OBJECT
    values = {name: as_text(given[name]) for name in TEXTS + NUMBERS}
    times = {name: _time(given[name]) for name in TIMES}
    who = {name: values[name] for name in ("message_id", "location")}
    texts, parents_fault = with_parents(texts, given.get(PARENT_IDS), **who)
    return Fields(values | times, texts, attributes_fault or parents_fault)


def _type_fault(given: Mapping[str, Json]) -> str | None:
    if not is_id(given["message_id"]):
        return "message_id is neither a text nor a whole number"
    if given["sequence_number"] is not None and type(given["sequence_number"]) is not str:
        return "sequence_number is not a text: as a JSON number it may have lost digits"
    return None


def _texts(values: Mapping[str, Json]) -> Texts:
    return {key: as_text(value) for key, value in values.items()}


def _time(value: Json) -> str | int | None:
    return value if type(value) is int else as_text(value)
