"""A seed names the same cases in every process: a failure that cannot be called again is lost.

And what the oracle and the audit agree on has all that it should.
"""

import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise

from tests.cases import Case, Terms
from tests.random_cases import HOUR_MS, PALETTES, cases_of_palette, random_cases, random_terms
from tests.spark.lines import SEED

ALONE = (
    "from tests.random_cases import random_cases, random_terms\n"
    "print(repr(random_cases(random_terms(7), seed=7, count=30)))"
)


def test_a_seed_names_the_same_cases_in_every_process() -> None:
    alone = subprocess.run(
        [sys.executable, "-c", ALONE], capture_output=True, check=True, text=True
    ).stdout
    assert len(alone) > 10_000
    assert f"{random_cases(random_terms(7), seed=7, count=30)!r}\n" == alone


def test_other_seeds_name_other_cases() -> None:
    of = random_terms(7)
    assert len({repr(random_cases(of, seed=seed, count=5)) for seed in range(20)}) == 20


def is_buffered(of: Terms, case: Case) -> bool:
    """A message that was acknowledged long after it was sent."""
    sent = {(i, s, n): ms for i, s, n, ms, _ in case.traces}
    return any(ms - sent[i, s, n] > of.grace_ms + of.bucket_ms for i, s, n, ms in case.acked)


def has_silent_nights(of: Terms, case: Case) -> bool:
    """A shard with messages on each of two days, and none in what is the window's hour of these."""
    del of
    hours = defaultdict(set)
    for _, shard, _, ms, _ in case.traces:
        hours[shard].add(ms // HOUR_MS)
    return any(
        all(day not in own and own & set(range(day + 1, day + 24)) for day in (-24, -48))
        for own in hours.values()
    )


def has_outage(of: Terms, case: Case) -> bool:
    """A consumer that landed something, stopped, and landed later what was sent meanwhile."""
    landings = defaultdict(list)
    for _, shard, _, sent, landed, _, own in case.rows:
        if landed is not None and not own:
            landings[shard].append((landed, sent))
    for own_rows in landings.values():
        own_rows.sort()
        for (stops, _), (resumes, _) in pairwise(own_rows):
            waited = [ms for ms, sent in own_rows if stops < sent < resumes]
            until = resumes + (resumes - stops) // 10
            is_caught_up = all(resumes <= ms <= until for ms in waited)
            if resumes - stops > of.grace_ms and len(waited) >= 3 and is_caught_up:
                return True
    return False


def lacks(column: str) -> Callable[[Terms, Case], bool]:
    """Rows without a place, in a sink that has the column."""
    return lambda _, case: any(column in columns.split() for _, columns in case.lacks)


def gains(column: str) -> Callable[[Terms, Case], bool]:
    """Rows from before and after the sink had the column."""
    return lambda of, case: column in of.gains and {row[5] for row in case.rows} == {1, 2}


CONDITIONS: dict[str, Callable[[Terms, Case], bool]] = {
    "buffered producers": is_buffered,
    "NULL landed_at": lambda _, case: any(row[4] is None for row in case.rows),
    "NULL sent_at": lacks("sent_at"),
    "NULL shard": lacks("shard_id"),
    "NULL sequence number of a trace": lambda _, case: any(t[2] is None for t in case.traces),
    "NULL sequence number of a row": lambda _, case: any(row[2] is None for row in case.rows),
    "sink gains sent_at": gains("sent_at"),
    "sink gains shard_id": gains("shard_id"),
    "rows of our own": lambda _, case: any(row[6] for row in case.rows),
    "silent nights": has_silent_nights,
    "outages": has_outage,
}


def test_each_condition_of_a_real_week_is_among_the_cases_that_are_audited() -> None:
    drawn = [cases_of_palette(number, seed=SEED) for number in range(len(PALETTES))]
    found = {
        name: sum(holds(of, case) for of, cases in drawn for case in cases)
        for name, holds in CONDITIONS.items()
    }
    assert sum(len(cases) for _, cases in drawn) == 660
    assert min(found.values()) >= 20, found
