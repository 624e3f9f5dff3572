"""Records as a place between the producer and the sink has them."""

import json
from typing import Any  # of records

SHARD = "shardId-000000000000"
SENT_AT = "2026-11-24T11:59:59.000Z"


def record(number: int, **changed: object) -> dict[str, Any]:
    """A record with a payload of JSON that has an id and a time."""
    payload = {"message_id": f"m{number}", "sent_at": SENT_AT}
    return {
        "Data": json.dumps(payload).encode(),
        "ShardId": SHARD,
        "SequenceNumber": str(number),
    } | changed
