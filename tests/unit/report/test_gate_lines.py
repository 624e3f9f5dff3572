"""Gates on the page: a suite looks as bad as its worst check, and a warning stops nothing."""

import pytest

from shardaudit.model.gate import CheckResult, GateState, Severity, SuiteResult
from shardaudit.page.page_words import GATE_LOOKS
from shardaudit.report.gate_lines import gate_lines, why_rejected

PASSED = CheckResult("a", Severity.ERROR, GateState.PASSED, "all is well")
WARNED = CheckResult("b", Severity.WARN, GateState.FAILED, "a note")
UNJUDGED = CheckResult("c", Severity.WARN, GateState.BROKEN, "a note that broke")
FAILED = CheckResult("d", Severity.ERROR, GateState.FAILED, "half a day is missing")
BROKEN = CheckResult("e", Severity.ERROR, GateState.BROKEN, "it cannot be judged")


@pytest.mark.parametrize(
    ("checks", "look"),
    [
        ((), "passed"),
        ((PASSED,), "passed"),
        ((PASSED, WARNED), "warned"),
        ((UNJUDGED, PASSED), "warned"),
        ((WARNED, BROKEN), "broken"),
        ((BROKEN, FAILED, PASSED), "failed"),
    ],
)
def test_a_suite_looks_as_its_worst_check(checks: tuple[CheckResult, ...], look: str) -> None:
    (line,) = gate_lines([SuiteResult("traces", 3, checks)])
    assert (line.look, line.checks) == (look, len(checks))
    assert look in GATE_LOOKS


def test_each_check_that_did_not_pass_has_its_sentence_and_look() -> None:
    (line,) = gate_lines([SuiteResult("traces", 3, (PASSED, WARNED, FAILED))])
    assert line.noted == (("warned", "a note"), ("failed", "half a day is missing"))


def test_a_rejection_is_told_by_what_stopped_it_alone() -> None:
    results = [SuiteResult("traces", 1, (WARNED, FAILED)), SuiteResult("sink", 1, (BROKEN,))]
    assert why_rejected(results, self_check="passed") == [FAILED.sentence, BROKEN.sentence]
    assert why_rejected([], self_check=None) == []
    assert "planted itself" in why_rejected([], self_check="failed")[0]
