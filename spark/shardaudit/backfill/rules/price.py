"""What a range costs to read, at most: nothing of the stream is read to find out."""

import math
from datetime import timedelta

from shardaudit.backfill.rules.planned import Price
from shardaudit.backfill.rules.windows import Range
from shardaudit.model.retention import (
    PAGE_BYTES,
    PAGE_RECORDS,
    PUT_BYTES_PER_S,
    PUT_RECORDS_PER_S,
    RECORD_BYTES,
    seconds_to_read,
)

# GetShardIterator and a call that brings nothing; behind the end of a time, the batches that must
# lie past it, because arrival times are not in order.
CALLS_AROUND = 2
PAGES_PAST_THE_END = 3
# Between two sequence numbers pages grow: the last one reaches past the end, and is paid for as
# the others are.
LIMITS = (500, 2_000, 8_000, PAGE_RECORDS)


def price(wanted: Range, *, read_share: float) -> Price:
    """The most that a shard can hold in the range and a page past it, and how long that takes."""
    seconds_of_stream = _seconds_of_stream(wanted)
    if wanted.is_one_record:
        records, size_bytes = 1, RECORD_BYTES
    else:
        records = math.ceil(seconds_of_stream * PUT_RECORDS_PER_S)
        size_bytes = math.ceil(seconds_of_stream * PUT_BYTES_PER_S) + PAGE_BYTES
    pages = max(math.ceil(records / PAGE_RECORDS), math.ceil(size_bytes / PAGE_BYTES))
    past = len(LIMITS) if wanted.start_sequence else PAGES_PAST_THE_END
    calls = pages + past + CALLS_AROUND
    seconds = seconds_to_read(size_bytes, calls=calls, share=read_share)
    return Price(records, size_bytes, calls, math.ceil(seconds * 10) / 10)


def _seconds_of_stream(wanted: Range) -> float:
    """The time that is read: with sequence numbers, without the margins."""
    if wanted.start_sequence is None:
        length = wanted.window.end - wanted.window.start
    else:
        since = min(s.arrives_from for s in wanted.stretches)
        until = max(s.arrives_until for s in wanted.stretches)
        length = until - since + timedelta(seconds=1)
    return length.total_seconds()
