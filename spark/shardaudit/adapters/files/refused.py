"""Whether storage said no: who asks again gets the same answer."""

import re

from shardaudit.model.errors import FinalError

# S3's codes as boto3, pyarrow, delta-rs and s3a write them, and the words of a local disk.
_NO = re.compile(
    r"\b403\b|Access ?Denied|ACCESS_DENIED|Permission ?denied|PermissionDenied|ExpiredToken|"
    r"InvalidToken|InvalidAccessKeyId|SignatureDoesNotMatch",
    re.IGNORECASE,
)


class AccessRefusedError(FinalError, PermissionError):
    """Storage may not be read, or written, with what we have."""

    def __init__(self, path: str, said: object) -> None:
        super().__init__(
            f"{path} is refused: {said}; give this role, or this user, access to it, "
            "or credentials that are still good"
        )


def is_refused(said: object) -> bool:
    """Whether an error's words say no, rather than nothing."""
    return _NO.search(str(said)) is not None
