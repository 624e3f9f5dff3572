"""Kinesis sequence numbers: decimal strings, compared inside one shard only."""

import re

PATTERN = r"^(0|[1-9][0-9]{0,128})$"  # of SequenceNumber in Kinesis' API
MAX_DIGITS = 129  # as it says

# Engines sort them by a text: LENGTHS + the length, which has 4 digits, then the number.
LENGTHS = 1000
NUMBER_AT = 5  # the number's first character, counted from 1


def is_sequence_number(text: str) -> bool:
    """Whether the text is a sequence number as Kinesis writes them."""
    return re.fullmatch(PATTERN[1:-1], text) is not None


def sequence_order(sequence_number: str) -> tuple[int, str]:
    """The key by which sequence numbers of one shard sort as the numbers that they are."""
    return len(sequence_number), sequence_number
