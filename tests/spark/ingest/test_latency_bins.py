"""The ledger's sketch of latencies: bins of powers of two, which add up without any error."""

import math
import random
from datetime import timedelta

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from shardaudit.ingest.rules.fingerprint import latency_bin
from shardaudit.model.tables.table import LATENCY_BINS
from shardaudit.store.cell_grid import quantile
from tests.builders import T0

MINUTES = 1440  # of a day: a bucket each
SHARES = (0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0)
LARGEST_S = 2 ** (LATENCY_BINS - 2)  # of all bins but the last, which is open


def drawn(draw: random.Random) -> list[timedelta]:
    """Up to 20 latencies of a minute, from milliseconds to days, and those at edges of bins."""
    seconds = [2 ** draw.uniform(-10, LATENCY_BINS - 2) for _ in range(draw.randint(0, 18))]
    edges = [float(2 ** draw.randint(0, LATENCY_BINS - 2)) for _ in range(2)]
    return [timedelta(seconds=one) for one in (*seconds, *edges)]


def test_quantile_of_a_day_of_minutes_is_the_exact_one_s_upper_end_of_bin(
    spark: SparkSession,
) -> None:
    draw = random.Random(16)  # noqa: S311 - to be repeated, not to be secret
    minutes = [drawn(draw) for _ in range(MINUTES)]
    rows = [(minute, T0, T0 + one) for minute, each in enumerate(minutes) for one in each]
    landed = spark.createDataFrame(rows, "minute int, sent_at timestamp, landed_at timestamp")
    sketch = landed.groupBy(
        "minute", latency_bin(F.col("sent_at"), F.col("landed_at")).alias("bin")
    )
    counts = [[0] * LATENCY_BINS for _ in range(MINUTES)]
    for row in sketch.count().collect():
        counts[row.minute][row.bin] = row["count"]
    merged = [sum(column) for column in zip(*counts, strict=True)]
    ordered = sorted(one.total_seconds() for each in minutes for one in each)
    assert sum(merged) == len(ordered)
    for share in SHARES:
        exact = ordered[math.ceil(share * len(ordered)) - 1]
        told = quantile(merged, share)
        assert told is not None
        # No rank is missed; the value is at most twice the exact one, 1 s where that is less.
        assert exact <= told <= max(1.0, 2 * exact)
        assert exact <= LARGEST_S
