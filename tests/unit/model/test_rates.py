"""Rates of a sample carry an interval that covers what is planted; exact ones carry none."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest

from shardaudit.model.rates import Rate, audit_rates, came_to, counts_at_place, wilson_interval
from shardaudit.producer.sample import is_sampled

Words = npt.NDArray[np.uint64]
IDS, RUNS = 100_000, 1000
_P1, _P2, _P3, _P4, _P5 = (
    *(0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9),
    *(0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5),
)
_ALL = 2**64 - 1


# Newcombe, Statistics in Medicine 17 (1998), 857-872, table I, method 3: to four places.
@pytest.mark.parametrize(
    ("count", "of", "least", "most"),
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (29, 29, 0.8830, 1.0),
    ],
)
def test_the_interval_is_the_published_one(count: int, of: int, least: float, most: float) -> None:
    assert wilson_interval(count, of) == pytest.approx((least, most), abs=5e-5)


def test_each_end_is_where_the_normal_approximation_would_just_not_refuse_what_was_seen() -> None:
    for end in wilson_interval(7, 5000):
        assert abs(7 / 5000 - end) == pytest.approx(1.959964 * (end * (1 - end) / 5000) ** 0.5)


def test_of_nothing_nothing_is_known() -> None:
    assert wilson_interval(0, 0) == (0.0, 1.0)


COUNTS = {"sent": 1000, "matched": 990, "missing": 3, "duplicated": 2, "untraced": 10}


def test_rates_are_of_what_was_sent_or_landed_and_only_of_a_sample() -> None:
    assert audit_rates(COUNTS, sample_rate=1.0) == {}
    assert audit_rates(COUNTS, sample_rate=0.01) == {
        "missing": Rate(3, 1000, 0.003, wilson_interval(3, 1000)),
        "duplicated": Rate(2, 1000, 0.002, wilson_interval(2, 1000)),
        "untraced": Rate(10, 1000, 0.01, wilson_interval(10, 1000)),
    }


@pytest.mark.parametrize(
    ("had", "trace_loss", "passed", "traces"),
    [
        (180, 0.1, None, (20, 200)),
        (135, 0.1, None, (15, 150)),  # a branch: a part of what landed passed it
        (180, 0.1, 50, (5, 50)),
        (90, 0.0, None, (0, 90)),
        (0, 1.0, None, (0, 0)),
        (90, None, None, None),
    ],
)
def test_trace_loss_of_a_place_is_of_what_passed_it_and_its_losses_of_what_was_to_come(
    had: int, trace_loss: float | None, passed: int | None, traces: tuple[int, int] | None
) -> None:
    counts = {"had": had, "lost": 3, "doubtful": None, "doubled": 100}
    found = counts_at_place(counts, trace_loss=trace_loss, passed=passed)
    came = came_to(had, trace_loss)
    expected = {"lost": (3, came + 3), "doubled": (100, max(came, 100)), "trace_loss": traces}
    assert found == {name: told for name, told in expected.items() if told}


def test_what_is_lost_before_a_place_that_loses_traces_is_covered() -> None:
    """Of 20,000 messages 2 % are lost before a place that loses 10 % of its traces."""
    covered, chance = 0, np.random.default_rng(10)
    for lost in chance.binomial(20_000, 0.02, size=RUNS).tolist():
        counts = {"had": int(chance.binomial(20_000 - lost, 0.9)), "lost": lost}
        found = counts_at_place({**counts, "doubtful": 0, "doubled": 0}, trace_loss=0.1)
        least, most = wilson_interval(*found["lost"])
        covered += least <= 0.02 <= most
    assert 0.93 <= covered / RUNS <= 0.97


def test_trace_loss_of_a_few_minutes_is_covered() -> None:
    """A place loses 1 % of its traces, and all has landed in one minute of 1,000 messages."""
    covered = 0
    for traced in np.random.default_rng(9).binomial(1000, 0.99, size=RUNS).tolist():
        loss = 1 - traced / 1000
        counts = {"had": 99_000, "lost": 0, "doubtful": 0, "doubled": 0}
        found = counts_at_place(counts, trace_loss=loss, passed=came_to(traced, loss))
        least, most = wilson_interval(*found["trace_loss"])
        covered += least <= 0.01 <= most
    assert 0.93 <= covered / RUNS <= 0.97


def test_what_landed_twice_is_no_more_than_all_where_its_ids_count_in_the_window_before() -> None:
    found = audit_rates({**COUNTS, "duplicated": 1001}, sample_rate=0.5)
    assert found["duplicated"].share == 1


def hashes() -> Iterator[tuple[str, Words]]:
    """Of each run the beginning of its ids, eight bytes, and XXH64 of all: `beginning00000042`."""
    names = np.char.zfill(np.arange(IDS).astype("S8"), 8)
    turned = _rounded(names.view("<u8"))
    for run in range(RUNS):
        beginning = f"run-{run:04d}"
        [word] = _rounded(np.frombuffer(beginning.encode(), "<u8")).tolist()
        start = (42 + _P5 + 16 ^ word) & _ALL
        start = ((start << 27 | start >> 37) * _P1 + _P4) & _ALL
        found = turned ^ np.uint64(start)
        found = (found << np.uint64(27) | found >> np.uint64(37)) * np.uint64(_P1) + np.uint64(_P4)
        found = (found ^ found >> np.uint64(33)) * np.uint64(_P2)
        found = (found ^ found >> np.uint64(29)) * np.uint64(_P3)
        yield beginning, found ^ found >> np.uint64(32)


def _rounded(words: Words) -> Words:
    mixed = words * np.uint64(_P2)
    found: Words = (mixed << np.uint64(31) | mixed >> np.uint64(33)) * np.uint64(_P1)
    return found


@pytest.mark.slow
def test_intervals_of_samples_cover_the_planted_loss() -> None:
    """The first ids of each run are lost, together as in an outage: the hash scatters them."""
    planted = {0.01: (0.02, 0.05, 0.2), 0.1: (0.002, 0.01, 0.1)}
    covered = {(rate, lost): 0 for rate, of_rate in planted.items() for lost in of_rate}
    for beginning, hashed in hashes():
        parts = hashed.view(np.int64) % 1_000_000
        for rate, of_rate in planted.items():
            sampled = parts < round(rate * 1_000_000)
            ids = [f"{beginning}{number:08d}" for number in (0, 7, 99_999)]
            assert [is_sampled(one, rate) for one in ids] == sampled[[0, 7, 99_999]].tolist()
            for lost in of_rate:
                missing = int(sampled[: round(lost * IDS)].sum())
                least, most = wilson_interval(missing, int(sampled.sum()))
                covered[rate, lost] += least <= lost <= most
    shares = {which: times / RUNS for which, times in covered.items()}
    assert {which: s for which, s in shares.items() if not 0.93 <= s <= 0.97} == {}
