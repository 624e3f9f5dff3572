"""What storage says: whether it will say so again, and an error's words, for people."""

import re

from shardaudit.model.errors import FinalError

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_MOST = 300
# Behind the host: the path is told already, a query may be long, and a key; and how long it took.
_BEHIND_HOST = re.compile(r"(https?://[^/\s()<>\"',]+)/[^\s()<>\"',]*(?: in [\d.]+[a-zµ]+)?")
# A key id of AWS, and what stands behind a word for a secret: S3 repeats what it was sent.
_SECRETS = re.compile(
    r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}"
    r"|(?<=Token>)[^<]+|(?<=Token-0>)[^<]+|(?<=AWSAccessKeyId>)[^<]+|(?<=StringToSign>)[^<]+"
    r"|(?i:(?<=security-token=)|(?<=signature=)|(?<=credential=)|(?<=password=))[^\s&\"'<>]+"
)

# S3's codes as boto3, pyarrow, delta-rs and s3a write them, and the words of a local disk.
_NO = re.compile(
    r"\(403\)|\b403 Forbidden|status(?: ?code)?:? ?403\b|^403$|Access ?Denied|ACCESS_DENIED|"
    r"Permission ?denied|PermissionDenied|ExpiredToken|"
    r"InvalidToken|InvalidAccessKeyId|SignatureDoesNotMatch",
    re.IGNORECASE,
)


# What a file system says of a folder where it wanted a file, or of a file where a folder.
_OTHER_KIND = re.compile(r"\b(?:is|not) (?:a )?directory\b", re.IGNORECASE)


def one_line(said: object) -> str:
    """The words in one line, without their colours; not for people: they may hold secrets."""
    return " ".join(_COLOURS.sub("", str(said)).split())


def plain_words(said: object) -> str:
    """The first words, in one line, without what nobody else is to know."""
    return _SECRETS.sub("…", _BEHIND_HOST.sub(r"\1/…", one_line(said)))[:_MOST]


class LastingError(FinalError, OSError):
    """Storage says what it will say again."""


class MisplacedError(LastingError):
    """A folder is where a file should be, or a file where a folder."""

    def __init__(self, path: str, said: object) -> None:
        super().__init__(
            f"{path} is a folder in the place of a file, or a file in that of a folder: {said}; "
            "move it away, or correct the path"
        )


class AccessRefusedError(LastingError, PermissionError):
    """Storage may not be read, or written, with what we have."""

    def __init__(self, path: str, said: object) -> None:
        super().__init__(
            f"{path} is refused: {said}; give this role, or this user, access to it, "
            "or credentials that are still good"
        )


def is_refused(said: object) -> bool:
    """Whether an error's words, all of them, say no, rather than nothing."""
    return _NO.search(one_line(said)) is not None


def is_misplaced(said: object) -> bool:
    """Whether they say that a folder is where a file should be, or the other way round."""
    return _OTHER_KIND.search(one_line(said)) is not None
