"""The fields of a request and the refusals, with the checks and the words of the Kinesis API."""

import json
from collections.abc import Mapping

from shardaudit.model.errors import FinalError

ACCOUNT = "000000000000"

# PutRecords and GetRecords bring records as text that is ready; the rest are mappings.
Response = Mapping[str, object] | str


class ApiError(FinalError):
    """A refusal, to be sent to the client as AWS would word it."""

    def __init__(self, code: str, text: str, *, status: int = 400) -> None:
        super().__init__(f"{code}: {text}")
        self.code, self.text, self.status = code, text, status


def invalid_argument(text: str) -> ApiError:
    """The request is well formed and cannot be done."""
    return ApiError("InvalidArgumentException", text)


def invalid_field(field: str, constraint: str) -> ApiError:
    """A field of the request breaks a constraint of the API's model."""
    return ApiError(
        "ValidationException",
        f"1 validation error detected: Value at '{field}' failed to satisfy constraint: "
        f"Member must {constraint}",
    )


def not_found(text: str) -> ApiError:
    """A stream or a shard that is not there, or no longer."""
    return ApiError("ResourceNotFoundException", text)


def in_use(text: str) -> ApiError:
    """The stream is not in a state that allows it."""
    return ApiError("ResourceInUseException", text)


def throttled(shard_id: str, stream: str) -> ApiError:
    """The shard's share of calls or bytes is used up."""
    return ApiError(
        "ProvisionedThroughputExceededException",
        f"Rate exceeded for shard {shard_id} in stream {stream} under account {ACCOUNT}.",
    )


class Request:
    """One call's fields. Each getter refuses what the API's model would refuse."""

    def __init__(self, fields: Mapping[str, object]) -> None:
        self.fields = fields

    @classmethod
    def from_body(cls, body: bytes) -> "Request":
        """The request that a JSON body holds."""
        try:
            fields = json.loads(body or b"{}")
        except ValueError as error:
            raise ApiError("SerializationException", "the body is not JSON") from error
        if not isinstance(fields, dict):
            raise ApiError("SerializationException", "the body is not an object")
        return cls(fields)

    def has(self, name: str) -> bool:
        """Whether the field is there and not null."""
        return self.fields.get(name) is not None

    def optional_text(self, name: str) -> str | None:
        """A text, or None when absent."""
        value = self.fields.get(name)
        if value is not None and not isinstance(value, str):
            raise ApiError("SerializationException", f"{name} is not a text")
        return value

    def text(self, name: str) -> str:
        """A text that must be there."""
        value = self.optional_text(name)
        if value is None:
            raise invalid_field(_camel(name), "not be null")
        return value

    def optional_whole(self, name: str, *, at_least: int, at_most: int) -> int | None:
        """A whole number inside the bounds, or None when absent."""
        value = self.fields.get(name)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool):
            raise ApiError("SerializationException", f"{name} is not a whole number")
        if value < at_least:
            raise invalid_field(_camel(name), f"have value greater than or equal to {at_least}")
        if value > at_most:
            raise invalid_field(_camel(name), f"have value less than or equal to {at_most}")
        return value

    def whole(self, name: str, *, at_least: int = 0, at_most: int = 2**31 - 1) -> int:
        """A whole number that must be there."""
        value = self.optional_whole(name, at_least=at_least, at_most=at_most)
        if value is None:
            raise invalid_field(_camel(name), "not be null")
        return value

    def optional_ms(self, name: str) -> float | None:
        """An instant in milliseconds (the wire has seconds), or None when absent."""
        value = self.fields.get(name)
        if value is None:
            return None
        if not isinstance(value, int | float):
            raise ApiError("SerializationException", f"{name} is not a time")
        return round(value * 1000, 3)

    def optional_part(self, name: str) -> "Request | None":
        """A nested object as a request of its own, or None when absent."""
        value = self.fields.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise ApiError("SerializationException", f"{name} is not an object")
        return Request(value)

    def parts(self, name: str, *, at_most: int) -> "list[Request]":
        """A list of nested objects, at least one."""
        values = self.fields.get(name)
        if not isinstance(values, list) or not values:
            raise invalid_field(_camel(name), "have length greater than or equal to 1")
        if len(values) > at_most:
            raise invalid_field(_camel(name), f"have length less than or equal to {at_most}")
        if not all(isinstance(value, dict) for value in values):
            raise ApiError("SerializationException", f"{name} holds something that is no object")
        return [Request(value) for value in values]


def _camel(name: str) -> str:
    return name[0].lower() + name[1:]
