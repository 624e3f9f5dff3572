"""How long a landing may take, as the hours of a shard's last week make it usual."""

from collections.abc import Iterable
from datetime import timedelta

import pytest
from pyspark.sql import SparkSession

from shardaudit.compare.patience import patiences
from shardaudit.model.table import LATENCY_BINS
from shardaudit.model.tables import FINGERPRINTS
from tests.builders import T0
from tests.oracle_shards import usual_patience
from tests.unit.watch.aggregated import ShardLedger
from tests.unit.watch.simulated import events, history

pytestmark = pytest.mark.both_engines

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
GRACE = timedelta(minutes=10)
NOW = T0 + 30 * DAY
WELL, SLOW = 5, 11  # bins: within half a minute, half an hour

Hours = Iterable[tuple[float, int, int]]  # how long ago it was sent, bin, rows


def patience(
    spark: SparkSession, hours: Hours, *, retention: timedelta = 7 * DAY
) -> timedelta | None:
    rows = []
    for ago, late, count in hours:
        start = NOW - ago * HOUR
        bins = [count * (i == late) for i in range(LATENCY_BINS)]
        row = {"side": "sink", "shard_id": "s", "bucket_start": start, "sent_day": start.date()}
        row |= {"n": count, "latency_counts": bins}
        rows.append(tuple(row.get(name) for name in FINGERPRINTS.names))
    found = patiences(
        spark.createDataFrame(rows, FINGERPRINTS.ddl),
        as_of=NOW,
        bucket=timedelta(minutes=1),
        settle_grace=GRACE,
        retention=retention,
    ).collect()
    return timedelta(seconds=found[0].patience) if found else None


def week(late: int = WELL, *, hours: Iterable[int] = range(1, 169)) -> list[tuple[float, int, int]]:
    return [(ago, late, 100) for ago in hours]


def seconds(late: int) -> timedelta:
    return timedelta(seconds=2**late)


def test_a_shard_that_is_well_has_the_grace(spark: SparkSession) -> None:
    assert patience(spark, week()) == GRACE
    assert patience(spark, []) is None


def test_a_shard_that_is_slow_as_a_habit_is_given_the_time(spark: SparkSession) -> None:
    assert patience(spark, week(SLOW)) == seconds(SLOW)
    nightly_quick = [(a, WELL if a % 24 < 7 else SLOW, 100) for a in range(1, 169)]
    assert patience(spark, nightly_quick) == seconds(SLOW)


def test_one_message_in_a_hundred_may_be_slower(spark: SparkSession) -> None:
    tail = [(float(ago), late, n) for ago in range(1, 169) for late, n in ((WELL, 99), (15, 1))]
    assert patience(spark, tail) == GRACE
    longer = [(float(ago), late, n) for ago in range(1, 169) for late, n in ((WELL, 98), (12, 2))]
    assert patience(spark, longer) == seconds(12)


@pytest.mark.parametrize("ended", [1, 20, 40])
@pytest.mark.parametrize("lasted", [2, 12, 30, 120])
def test_an_outage_of_hours_or_of_days_does_not_raise_it(
    spark: SparkSession, ended: int, lasted: int
) -> None:
    """What was sent in it landed when it ended: so the first of it last for as long as it did."""
    late = {
        ago: next(i for i in range(LATENCY_BINS) if (ago - ended + 1) * HOUR <= seconds(i))
        for ago in range(ended, ended + lasted)
    }
    hours = [(ago, late.get(ago, WELL), 100) for ago in range(1, 169)]
    assert patience(spark, hours) == GRACE
    assert patience(spark, hours, retention=DAY) == GRACE


def test_what_a_burst_of_an_outage_landed_counts_by_its_hours(spark: SparkSession) -> None:
    assert patience(spark, [*week(), (3, 16, 10**9)]) == GRACE


def test_a_day_is_enough_to_know_a_stream(spark: SparkSession) -> None:
    first_day = [(ago, 13 if ago in range(5, 9) else WELL, 100) for ago in range(1, 24)]
    assert patience(spark, first_day) == GRACE
    assert patience(spark, [(2, SLOW, 1)]) == seconds(SLOW)


def test_only_the_last_seven_days_count(spark: SparkSession) -> None:
    assert patience(spark, week(SLOW, hours=range(170, 400))) is None
    assert patience(spark, [*week(SLOW, hours=range(170, 700)), (1, WELL, 1)]) == GRACE


@pytest.mark.parametrize("late", [17, LATENCY_BINS - 1])
def test_it_is_never_above_a_tenth_of_the_retention(spark: SparkSession, late: int) -> None:
    assert patience(spark, week(late)) == 7 * DAY / 10
    assert patience(spark, week(13), retention=DAY) == seconds(13)
    assert patience(spark, week(14), retention=DAY) == DAY / 10


def test_rows_that_went_do_not_count(spark: SparkSession) -> None:
    assert patience(spark, [(1, SLOW, 5), (1, SLOW, -5)]) is None


@pytest.mark.parametrize("seed", range(9))
def test_spark_and_plain_python_find_the_same(spark: SparkSession, seed: int) -> None:
    for shard in history(seed).shards.values():
        ledger, hours = ShardLedger(shard.name), []
        for at, side, number in events(shard):
            if side == "landed":
                ledger.land(at, number, shard.sent_at[number])
        for hour, counts in ledger.hours.items():
            hours += [(24.0 - hour, late, n) for late, n in enumerate(counts) if n]
        if hours:
            expected = usual_patience(ledger.hours.values(), GRACE, 7 * DAY)
            assert patience(spark, hours) == expected
