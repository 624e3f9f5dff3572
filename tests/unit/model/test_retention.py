"""Until when a message can be read again, whatever the retention was before."""

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from shardaudit.model.retention import Longer, Retention, Shorter, observed_retention
from tests.builders import T0

HOUR = timedelta(hours=1)
hours = st.integers(0, 400).map(lambda n: n * HOUR)


def test_nothing_is_known_when_nothing_was_observed() -> None:
    assert observed_retention({}) is None


def test_the_last_retention_counts_and_of_the_shorter_ones_the_worst() -> None:
    seen = {T0 + 2 * HOUR: 24 * HOUR, T0 + 20 * HOUR: 48 * HOUR, T0 + 40 * HOUR: 168 * HOUR}
    assert observed_retention(seen) == Retention(168 * HOUR, Shorter(24 * HOUR, T0 + 2 * HOUR))


def test_a_longer_retention_counts_until_somebody_saw_that_it_was_over() -> None:
    seen = {
        T0: 168 * HOUR,
        T0 + HOUR: 48 * HOUR,
        T0 + 5 * HOUR: 24 * HOUR,
        T0 + 9 * HOUR: 24 * HOUR,
    }
    longer = (Longer(168 * HOUR, T0 + HOUR), Longer(48 * HOUR, T0 + 5 * HOUR))
    assert observed_retention(seen) == Retention(24 * HOUR, longer=longer)
    assert longer[0].until(T0 - 10 * HOUR) == T0 + HOUR
    assert longer[1].until(T0 - 47 * HOUR) == T0 + HOUR


@given(st.dictionaries(hours.map(lambda at: T0 + at), hours.filter(bool), min_size=1), hours)
def test_a_message_is_gone_when_it_was_older_than_what_was_kept_when_somebody_looked(
    seen: dict[datetime, timedelta], age: timedelta
) -> None:
    kept = observed_retention(seen)
    assert kept is not None
    arrived_at = T0 + 200 * HOUR - age
    gone = [at for at, length in seen.items() if length < kept.length and arrived_at + length < at]
    assert (kept.gone_at(arrived_at) is not None) == bool(gone)
    now = max(seen)
    assert (arrived_at < kept.held_since(now)) == (kept.until(arrived_at) < now)
    if gone:
        assert kept.until(arrived_at) < max(gone) <= now
    else:
        assert kept.until(arrived_at) == arrived_at + kept.length
