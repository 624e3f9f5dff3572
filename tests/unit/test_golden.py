"""The oracle on the golden cases, and what these must cover."""

import pytest

from shardaudit.model.verdict import Cause, Kind, State, Verdict
from tests.golden_cases import FOLDER, GoldenCase, answers, golden_cases

CASES = golden_cases()

# What no audit can say before there are backfills.


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_oracle_gives_the_reviewed_answer(case: GoldenCase) -> None:
    assert answers(case) == case.expected


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case_says_where_it_comes_from(case: GoldenCase) -> None:
    assert len((FOLDER / case.name / "NOTE.md").read_text(encoding="utf-8")) > 80


def values_of(part: str, name: str) -> set[str]:
    return {
        line[name] for case in CASES for audit in case.expected["audits"] for line in audit[part]
    }


def test_there_is_a_case_for_every_verdict_kind_cause_and_state() -> None:
    assert values_of("cells", "verdict") == set(Verdict)
    assert values_of("findings", "kind") == set(Kind)
    assert values_of("findings", "cause") == set(Cause) - {Cause.EXPIRED}
    assert values_of("findings", "state") == set(State)


def test_there_is_a_case_for_every_verdict_of_an_audit() -> None:
    found = {audit["verdict"] for case in CASES for audit in case.expected["audits"]}
    assert found == set(Verdict)
