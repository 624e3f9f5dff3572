"""What a user's own job is asked for: a plan's windows as JSON."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime

_WINDOW = (
    *("window_id", "shard_id", "window_start", "window_end", "start_sequence_number"),
    *("end_sequence_number", "expected_ids", "deadline"),
)


def request_document(windows: Sequence[Mapping[str, object]], *, stream_name: str) -> str:
    """The request. It is the same each time, and so may be sent twice: `plan_id` is its key.

    Input:
        windows: rows of BACKFILLS, of one plan, at least one.
    """
    document = {
        "plan_id": windows[0]["plan_id"],
        "stream_name": stream_name,
        "iterator_type": "AT_TIMESTAMP",
        "windows": [{name: _plain(row[name]) for name in _WINDOW} for row in windows],
    }
    return json.dumps(document, indent=2) + "\n"


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value
