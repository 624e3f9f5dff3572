"""A plan in other hands: records put into a stream again, or windows as JSON for a user's job."""

import json
from collections.abc import Sequence
from datetime import datetime

from shardaudit.backfill.rules.planned import StoredWindow

ATTRIBUTE = "replayed_by"
# Of a window that a run had put, wholly or in part, without an end of it; and of its next run.
PUT_IN_PART = "a run ended while it put records: to put them again may land some twice"
PUT_AGAIN = "put again after a run that had not come to its end: some may land twice"

_WINDOW = (
    *("window_id", "shard_id", "window_start", "window_end", "start_sequence_number"),
    *("end_sequence_number", "expected_ids", "deadline"),
)


def marked(content: bytes, plan_id: str) -> bytes:
    """The JSON object with one attribute more at its end; any other content as it is.

    The text is not written anew: numbers and their digits stay as their producer wrote them.
    """
    text = content.rstrip()
    try:
        message = json.loads(text)
    except ValueError:  # also of bytes that are no UTF-8
        return content
    if not isinstance(message, dict) or ATTRIBUTE in message:
        return content
    comma = b"," if message else b""
    return text[:-1].rstrip() + comma + f' "{ATTRIBUTE}": {json.dumps(plan_id)}}}'.encode()


def request_document(windows: Sequence[StoredWindow], *, stream_name: str) -> str:
    """The request. It is the same each time, and so may be sent twice: `plan_id` is its key.

    Input:
        windows: of one plan, at least one.
    """
    document = {
        "plan_id": windows[0].plan_id,
        "stream_name": stream_name,
        "iterator_type": "AT_TIMESTAMP",
        "windows": [{name: json_value(getattr(one, name)) for name in _WINDOW} for one in windows],
    }
    return json.dumps(document, indent=2) + "\n"


def json_value(value: object) -> object:
    """A field as a JSON document holds it: an instant in ISO 8601."""
    return value.isoformat() if isinstance(value, datetime) else value
