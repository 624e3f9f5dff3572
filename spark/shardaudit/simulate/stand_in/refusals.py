"""What Kinesis answers when it refuses: an error's type, its text and the HTTP status."""

from shardaudit.model.errors import FinalError

ACCOUNT = "000000000000"


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
