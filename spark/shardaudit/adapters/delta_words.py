"""What delta-rs says of an error, for people."""

import re

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_MOST = 300


def plain_words(error: Exception) -> str:
    """Its words in one line and without their colours."""
    return " ".join(_COLOURS.sub("", str(error)).split())[:_MOST]
