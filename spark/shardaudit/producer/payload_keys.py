"""What some top keys of a JSON object hold, of a payload that may be large: no more is looked at.

msgspec makes objects of nothing else, and takes a third to a tenth of json's time; it comes with
`shardaudit[producer]`. Where it is not there, or refuses what json takes (NaN, half a surrogate),
json reads all of the payload: the answer is the same. But where a number that nobody asks for has
more than 4,300 digits: Python makes none of those, so json alone takes the payload for no object.
"""

import json
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Final, cast

try:
    import msgspec
    from msgspec.structs import astuple
except ImportError:
    msgspec = None  # type: ignore[assignment] # the package alone is enough

ABSENT: Final = object()  # of a key that is not there; None is JSON's null

HeldKeys = tuple[Any, ...]  # of each key, in their order. Any: whatever JSON holds
_NO_OBJECT = "the payload is no JSON object"
_BLANKS = " \t\n\r"  # of JSON
_read = json.JSONDecoder().raw_decode  # loads() takes twice the time of a small payload


class UntraceableError(ValueError):
    """Why there can be no trace of a record. Never leaves this package."""


class PayloadKeys:
    """Reads the same keys of each payload."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = keys
        self._decode = _decoder(keys)

    def held(self, content: str | bytes | bytearray) -> HeldKeys:
        """What the keys hold.

        Raises:
            UntraceableError: it is none.
        """
        if self._decode is not None and not isinstance(content, bytearray):
            try:
                if not content.isascii() and isinstance(content, bytes):
                    content.decode()  # what msgspec skips it does not check for being UTF-8
                return astuple(self._decode(content))
            except (msgspec.MsgspecError, ValueError, RecursionError):
                pass  # json has the last word
        try:
            text = (content if isinstance(content, str) else content.decode()).strip(_BLANKS)
            payload, end = _read(text)
        except (ValueError, RecursionError) as error:
            raise UntraceableError(_NO_OBJECT) from error
        if type(payload) is not dict or end < len(text):
            raise UntraceableError(_NO_OBJECT)
        return tuple(payload.get(key, ABSENT) for key in self._keys)

    def columns(self, contents: Sequence[object]) -> list[list[Any]] | None:
        """Of each key what the payloads hold, a third quicker than one by one; None: ask `held`."""
        if self._decode is None or {*map(type, contents)} not in ({bytes}, {str}):
            return None
        payloads = cast("Sequence[bytes]", contents)  # or str, which has the same for our use
        try:
            if type(contents[0]) is bytes:
                _ = [payload.decode() for payload in payloads if not payload.isascii()]
            found = [*map(self._decode, payloads)]
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None
        return [[*map(attrgetter(f"key_{at}"), found)] for at in range(len(self._keys))]


def _decoder(keys: Sequence[str]) -> Callable[[str | bytes], Any] | None:
    if msgspec is None:
        return None
    fields = [
        (f"key_{at}", Any, msgspec.field(name=key, default=ABSENT)) for at, key in enumerate(keys)
    ]
    try:
        return msgspec.json.Decoder(msgspec.defstruct("HeldKeys", fields, gc=False)).decode
    except ValueError:  # a key with a quote or the like
        return None
