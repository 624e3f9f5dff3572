"""A seed names the same cases in every process: a failure that cannot be called again is lost."""

import subprocess
import sys

SAMPLE = (
    "from tests.strategies import FAULTS, cases, sample, terms\n"
    "of = sample(terms(faults=FAULTS), count=8, seed_number=7)[-1]\n"
    "print(repr(sample(cases(of), count=30, seed_number=7)))"
)


def in_another_process(*imports: str) -> str:
    script = "\n".join((*(f"import {name}" for name in imports), SAMPLE))
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, text=True
    ).stdout


def test_cases_do_not_depend_on_what_else_was_imported() -> None:
    alone = in_another_process()
    assert len(alone) > 10_000
    assert (
        in_another_process("shardaudit.model.config.settings", "shardaudit.simulate.stand_in")
        == alone
    )
