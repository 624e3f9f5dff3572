"""Answers that were cut off are errors: botocore takes what is left of JSON for an empty answer.

A connection that ends too early then looks like a stream without shards, or a table without rows.
"""

from typing import Any, TypeVar  # Any: botocore's events, and the answers

from botocore.exceptions import IncompleteReadError

SomeClient = TypeVar("SomeClient")


def with_whole_answers(client: SomeClient) -> SomeClient:
    """The client of botocore, whose calls raise `IncompleteReadError` (a BotoCoreError) then."""
    made: Any = client
    made.meta.events.register("before-parse", _require_whole)
    return client


def _require_whole(operation_model: Any, response_dict: dict[str, Any], **_: object) -> None:
    told, content = response_dict["headers"].get("content-length"), response_dict["body"]
    # What streams has no bytes yet; HEAD tells the length of what it does not send.
    is_read = isinstance(content, bytes) and operation_model.http.get("method") != "HEAD"
    if told is not None and is_read and len(content) < int(told):
        raise IncompleteReadError(actual_bytes=len(content), expected_bytes=int(told))
