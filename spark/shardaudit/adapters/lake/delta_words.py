"""What storage says of an error, for people: a line, without colours or secrets."""

import re

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_MOST = 300
# A key id of AWS, and what stands behind a word for a secret: S3 repeats what it was sent.
_SECRETS = re.compile(
    r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}"
    r"|(?<=Token>)[^<]+|(?<=Token-0>)[^<]+|(?<=AWSAccessKeyId>)[^<]+|(?<=StringToSign>)[^<]+"
    r"|(?i:(?<=security-token=)|(?<=signature=)|(?<=credential=)|(?<=password=))[^\s&\"'<>]+"
)


def plain_words(said: object) -> str:
    """The words in one line, without their colours and without what nobody else is to know."""
    return _SECRETS.sub("…", " ".join(_COLOURS.sub("", str(said)).split()))[:_MOST]
