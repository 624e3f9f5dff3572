"""One warm-up, then the median of three."""

import statistics
import time
from collections.abc import Callable


def median_seconds(work: Callable[[], object]) -> float:
    """Wall time of the work, warm."""
    work()
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)
