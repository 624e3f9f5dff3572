"""A seed names the same cases in every process: a failure that cannot be called again is lost."""

import subprocess
import sys

from tests.strategies import FAULTS, cases, sample, terms

SAMPLE = (
    "from tests.strategies import FAULTS, cases, sample, terms\n"
    "of = sample(terms(faults=FAULTS), count=8, seed_number=7)[-1]\n"
    "print(repr(sample(cases(of), count=30, seed_number=7)))"
)


def test_cases_do_not_depend_on_what_else_was_imported() -> None:
    """Not even on all that pytest and its conftest did."""
    alone = subprocess.run(
        [sys.executable, "-c", SAMPLE], capture_output=True, check=True, text=True
    ).stdout
    of = sample(terms(faults=FAULTS), count=8, seed_number=7)[-1]
    assert len(alone) > 10_000
    assert f"{sample(cases(of), count=30, seed_number=7)!r}\n" == alone
