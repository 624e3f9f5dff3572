"""A seed names the same cases in every process: a failure that cannot be called again is lost."""

import subprocess
import sys

from tests.random_cases import random_cases, random_terms

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
