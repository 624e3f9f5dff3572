"""What a person said may stay inconclusive holds a watermark no more."""

from collections.abc import Sequence
from dataclasses import replace

from shardaudit.audit.rules.watermark import ShardRecord, without
from shardaudit.model.watermark import Held
from shardaudit.model.window import Window

_DOUBTS = (Held.DAMAGED, Held.THIN)


def accepted(record: ShardRecord, times: Sequence[Window]) -> ShardRecord:
    """The record without what is inconclusive in these times.

    By a file that cannot be read, or for want of traces; a silence is another thing.
    """
    doubts = [hold for hold in record.holds if hold.why in _DOUBTS]
    others = [hold for hold in record.holds if hold.why not in _DOUBTS]
    holds = [*others, *without(doubts, times)]
    return replace(record, holds=tuple(sorted(holds, key=lambda h: (h.start, h.why.value))))
