"""How long a landing may take before somebody asks: per shard, from what it usually takes.

Not the audit's allowance (a p99): one stop of two hours a day would raise that to two hours, and
the next stop of an hour would pass. The median holds until half of all messages come late, and the
stream's own median holds where a single shard was late for days.
"""

import math
from collections.abc import Mapping, Sequence
from datetime import timedelta
from statistics import median_low

# The median of a consumer that flushes every T seconds is T/2: twice that is one flush.
FLUSHES = 2
# As the audit: there has to be time for a repair.
SHARE_OF_RETENTION = 10


def patiences(
    bins: Mapping[str, Sequence[int]], *, settle_grace: timedelta, retention: timedelta
) -> dict[str, timedelta]:
    """Per shard of `bins` (rows per latency bin, bin i up to 2^i s) its patience.

    At least the settle grace; a shard that is not there has the grace.
    """
    medians = {shard: _median_s(counts) for shard, counts in bins.items() if sum(counts) > 0}
    if not medians:
        return {}
    of_stream = median_low(medians.values())
    cap = retention / SHARE_OF_RETENTION
    return {
        shard: max(settle_grace, min(FLUSHES * timedelta(seconds=min(own, of_stream)), cap))
        for shard, own in medians.items()
    }


def _median_s(counts: Sequence[int]) -> int:
    """The upper edge of the bin in which the median lies, in seconds."""
    rank = math.ceil(sum(counts) / 2)
    running = 0
    for number, count in enumerate(counts):
        running += count
        if running >= rank:
            return int(2**number)
    raise AssertionError("counts of zero rows")
