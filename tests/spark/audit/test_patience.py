"""How long a landing may take, as the hours of a shard's last week make it usual."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import product

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from shardaudit.adapters.engine.held import own_rows
from shardaudit.audit.rules.patience import hour_bins, patiences, week_bins
from shardaudit.model.tables.audit_tables import FINGERPRINTS
from shardaudit.model.tables.table import LATENCY_BINS
from tests.builders import T0
from tests.oracle_shards import usual_patience
from tests.unit.watch.aggregated import ShardLedger
from tests.unit.watch.simulated import events, history, kinds

pytestmark = pytest.mark.both_engines

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
GRACE = timedelta(minutes=10)
NOW = T0 + 30 * DAY
WELL, SLOW = 5, 11  # bins: within half a minute, half an hour

Hours = Sequence[tuple[float, int, int]]  # how long ago it was sent, bin, rows


@dataclass(frozen=True, slots=True)
class Case:
    """A shard of its own among those of all cases, which are asked for at once."""

    name: str
    hours: Hours
    expected: timedelta | None
    retention: timedelta = 7 * DAY


def week(late: int = WELL, *, hours: Iterable[int] = range(1, 169)) -> list[tuple[float, int, int]]:
    return [(ago, late, 100) for ago in hours]


def seconds(late: int) -> timedelta:
    return timedelta(seconds=2**late)


def a_shard_that_is_well_has_the_grace() -> Iterator[Case]:
    yield Case("well", week(), GRACE)
    yield Case("nothing", [], None)


def a_shard_that_is_slow_as_a_habit_is_given_the_time() -> Iterator[Case]:
    yield Case("slow", week(SLOW), seconds(SLOW))
    nightly_quick = [(a, WELL if a % 24 < 7 else SLOW, 100) for a in range(1, 169)]
    yield Case("quick at night", nightly_quick, seconds(SLOW))


def one_message_in_a_hundred_may_be_slower() -> Iterator[Case]:
    tail = [(float(ago), late, n) for ago in range(1, 169) for late, n in ((WELL, 99), (15, 1))]
    yield Case("one in a hundred", tail, GRACE)
    longer = [(float(ago), late, n) for ago in range(1, 169) for late, n in ((WELL, 98), (12, 2))]
    yield Case("two in a hundred", longer, seconds(12))


def an_outage_of_hours_or_of_days_does_not_raise_it() -> Iterator[Case]:
    """What was sent in it landed when it ended: so the first of it last for as long as it did."""
    for lasted, ended in product([2, 12, 30, 120], [1, 20, 40]):
        late = {
            ago: next(i for i in range(LATENCY_BINS) if (ago - ended + 1) * HOUR <= seconds(i))
            for ago in range(ended, ended + lasted)
        }
        hours = [(ago, late.get(ago, WELL), 100) for ago in range(1, 169)]
        for kept in (7 * DAY, DAY):
            yield Case(f"outage of {lasted} h, {ended} h ago, of {kept}", hours, GRACE, kept)


def what_a_burst_of_an_outage_landed_counts_by_its_hours() -> Iterator[Case]:
    yield Case("burst", [*week(), (3, 16, 10**9)], GRACE)


def a_day_is_enough_to_know_a_stream() -> Iterator[Case]:
    first_day = [(ago, 13 if ago in range(5, 9) else WELL, 100) for ago in range(1, 24)]
    yield Case("first day", first_day, GRACE)
    yield Case("first hour", [(2, SLOW, 1)], seconds(SLOW))


def only_the_last_seven_days_count() -> Iterator[Case]:
    yield Case("before the week", week(SLOW, hours=range(170, 400)), None)
    since = [*week(SLOW, hours=range(170, 700)), (1, WELL, 1)]
    yield Case("before the week, and since", since, GRACE)


def it_is_never_above_a_tenth_of_the_retention() -> Iterator[Case]:
    for late in (17, LATENCY_BINS - 1):
        yield Case(f"bin {late}", week(late), 7 * DAY / 10)
    yield Case("bin 13 of a day", week(13), seconds(13), DAY)
    yield Case("bin 14 of a day", week(14), DAY / 10, DAY)


def rows_that_went_do_not_count() -> Iterator[Case]:
    yield Case("went", [(1, SLOW, 5), (1, SLOW, -5)], None)


def plain_python_finds_the_same() -> Iterator[Case]:
    for seed in range(9):
        for shard in history(seed, kinds(seed)[0]).shards.values():
            ledger, hours = ShardLedger(shard.name), []
            for at, side, number in events(shard):
                if side == "landed":
                    ledger.land(at, number, shard.sent_at[number])
            for hour, counts in ledger.hours.items():
                hours += [(24.0 - hour, late, n) for late, n in enumerate(counts) if n]
            if hours:
                expected = usual_patience(ledger.hours.values(), GRACE, 7 * DAY)
                yield Case(f"history {seed}, {shard.name}", hours, expected)


RULES = (
    a_shard_that_is_well_has_the_grace,
    a_shard_that_is_slow_as_a_habit_is_given_the_time,
    one_message_in_a_hundred_may_be_slower,
    an_outage_of_hours_or_of_days_does_not_raise_it,
    what_a_burst_of_an_outage_landed_counts_by_its_hours,
    a_day_is_enough_to_know_a_stream,
    only_the_last_seven_days_count,
    it_is_never_above_a_tenth_of_the_retention,
    rows_that_went_do_not_count,
    plain_python_finds_the_same,
)


def rows_of(case: Case) -> Iterator[tuple[object, ...]]:
    for ago, late, count in case.hours:
        start = NOW - ago * HOUR
        bins = [count * (i == late) for i in range(LATENCY_BINS)]
        row = {"side": "sink", "shard_id": case.name, "bucket_start": start}
        row |= {"sent_day": start.date(), "n": count, "latency_counts": bins}
        yield tuple(row.get(name) for name in FINGERPRINTS.names)


@pytest.fixture(scope="module", params=[10, 3, 0], ids=lambda days: f"older than {days} d")
def found(spark: SparkSession, request: pytest.FixtureRequest) -> dict[str, timedelta]:
    """The patience of each case's shard; those of which nothing landed are not there."""
    cases = [case for rule in RULES for case in rule()]
    assert len({case.name for case in cases}) == len(cases)
    answers: dict[str, timedelta] = {}
    for retention in (7 * DAY, DAY):
        rows = [row for case in cases if case.retention == retention for row in rows_of(case)]
        ledger = own_rows(spark, rows, FINGERPRINTS.ddl)
        is_kept = F.col("bucket_start") < F.lit(NOW - request.param * DAY)
        kept = hour_bins(ledger.where(is_kept), MINUTE)
        week = week_bins(ledger.where(~is_kept), kept, as_of=NOW, bucket=MINUTE)
        patience = patiences(week, settle_grace=GRACE, retention=retention)
        for row in patience.collect():
            answers[row.shard_id] = timedelta(seconds=row.patience)
    return answers


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_landing_is_given_the_time_that_is_usual(
    found: dict[str, timedelta], rule: Callable[[], Iterator[Case]]
) -> None:
    for case in rule():
        assert found.get(case.name) == case.expected, case.name
