"""Great Expectations behind its door: passed, failed and broken are three things."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

import pytest

from shardaudit.adapters.quality import Quality
from shardaudit.model.errors import ConfigError
from shardaudit.model.gate import (
    TRACES_GATE,
    CheckResult,
    Expectation,
    GateState,
    Severity,
    Suite,
    SuiteResult,
)

BETWEEN = "expect_column_values_to_be_between"


def suite(
    kind: str, severity: Severity = Severity.ERROR, where: str | None = None, **settings: object
) -> Suite:
    wanted = Expectation(7, kind, settings, severity, "batches are well", "Mend them.", where)
    return Suite(TRACES_GATE, "my/traces.yaml", (wanted,))


def judged(asked: Suite, rows: Sequence[Mapping[str, object]]) -> CheckResult:
    (check,) = Quality([asked]).judge("traces", rows).checks
    return check


ROWS = [{"batch_id": f"b{n}", "lines": n, "refused_share": n / 10} for n in range(1, 4)]


def test_what_holds_passes() -> None:
    check = judged(suite(BETWEEN, column="lines", min_value=1), ROWS)
    assert (check.state, check.details) == (GateState.PASSED, {"judged": 3})
    assert not (check.stops or check.warns)


def test_what_does_not_hold_says_what_was_wanted_found_and_is_to_be_done() -> None:
    check = judged(suite(BETWEEN, column="lines", max_value=1), ROWS)
    assert check.state is GateState.FAILED
    assert check.sentence == (
        "traces: batches are well – not so: b2 (lines 2, refused_share 0.2); 1 more of 3. "
        "Mend them."
    )
    assert check.details == {"judged": 3, "wrong": 2, "observed": "", "rows": ROWS[1:]}
    assert check.stops


def test_a_warning_does_not_stop() -> None:
    asked = suite(BETWEEN, Severity.WARN, column="lines", max_value=1)
    result = Quality([asked]).judge("traces", ROWS)
    assert result.state is GateState.PASSED
    assert [(check.stops, check.warns) for check in result.checks] == [(False, True)]


def test_a_check_looks_only_where_it_should() -> None:
    asked = suite(BETWEEN, where="lines >= 3 and batch_id != 'b9'", column="lines", max_value=1)
    check = judged(asked, ROWS)
    assert check.details == {"judged": 1, "wrong": 1, "observed": "", "rows": ROWS[2:]}
    assert judged(suite(BETWEEN, where="lines > 9", column="lines", max_value=1), ROWS).details == {
        "judged": 0
    }


@pytest.mark.parametrize(
    ("where", "column"),
    [("line > 1", "lines"), ("(", "lines"), ("lines", "lines"), (None, "batch_id")],
)
def test_a_check_that_breaks_is_neither_good_nor_bad_data(where: str | None, column: str) -> None:
    check = judged(suite(BETWEEN, where=where, column=column, max_value=9), ROWS)
    assert check.state is GateState.BROKEN
    assert check.stops  # unknown is not clean
    assert "nobody knows, the check itself broke: " in check.sentence
    assert check.sentence.endswith("It stands in my/traces.yaml, line 7")


def test_a_column_without_values_or_rows_breaks_nothing() -> None:
    asked = suite(BETWEEN, where="refused_share > lines / 2", column="lines", max_value=1)
    assert judged(asked, []).state is GateState.PASSED
    assert judged(asked, [{"batch_id": "b"}]).state is GateState.PASSED


def test_checks_that_stand_in_one_line_are_told_apart() -> None:
    one = Expectation(1, BETWEEN, {"column": "lines", "max_value": 1}, Severity.ERROR, "a")
    other = Expectation(1, BETWEEN, {"column": "lines", "max_value": 9}, Severity.ERROR, "b")
    result = Quality([Suite(TRACES_GATE, "f", (one, other))]).judge("traces", ROWS)
    assert [check.state for check in result.checks] == [GateState.FAILED, GateState.PASSED]


def test_an_expectation_over_the_whole_table_says_what_it_saw() -> None:
    check = judged(suite("expect_table_row_count_to_be_between", min_value=5), ROWS)
    assert "– not so: found 3 in 3 rows. Mend them." in check.sentence


def test_the_worst_state_is_the_suites() -> None:
    def of(*checks: tuple[Severity, GateState]) -> GateState:
        made = (CheckResult("k", severity, state, "s") for severity, state in checks)
        return SuiteResult("traces", 1, tuple(made)).state

    error, warn = Severity.ERROR, Severity.WARN
    assert of((error, GateState.BROKEN), (error, GateState.FAILED)) is GateState.FAILED
    assert of((error, GateState.PASSED), (error, GateState.BROKEN)) is GateState.BROKEN
    assert of((warn, GateState.FAILED)) is GateState.PASSED


@pytest.mark.parametrize(
    ("kind", "settings", "said"),
    [
        ("expect_colum", {}, "my/traces.yaml:7: type: found 'expect_colum', wanted an expectation"),
        (BETWEEN, {"column": "lines"}, "min_value and max_value cannot both be None"),
        (BETWEEN, {"column": "lines", "max": 1}, "extra fields not permitted"),
        (BETWEEN, {"column": "lines", "row_condition": "x"}, "wanted `where`, beside kwargs"),
        (BETWEEN, {"column": "lines", "max_value": "x"}, "my/traces.yaml:7: kwargs: found"),
    ],
)
def test_what_great_expectations_does_not_take_is_refused_by_line(
    kind: str, settings: dict[str, str], said: str
) -> None:
    with pytest.raises(ConfigError) as error:
        Quality([suite(kind, Severity.ERROR, None, **settings)])
    assert said in str(error.value)


def test_hostile_names_stay_text() -> None:
    evil = "<script>alert(1)</script>\x1b[2J{x}%s=cmd()"
    check = judged(suite(BETWEEN, column="lines", max_value=1), [{"batch_id": evil, "lines": 2}])
    assert evil in check.sentence  # where it is shown, it is made harmless: report.plain, JSON


@pytest.mark.slow
def test_nothing_is_sent_anywhere_and_nobody_else_imports_it() -> None:
    code = (
        "import sys; import shardaudit.cli.audit_command, shardaudit.cli.backfill_command; "
        "assert 'great_expectations' not in sys.modules"
    )
    assert os.environ["GX_ANALYTICS_ENABLED"] == "false"  # set by the module that is tested here
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=env)


@pytest.mark.slow
def test_what_few_expectations_use_is_imported_when_one_is_asked() -> None:
    code = (
        "import sys, shardaudit.adapters.quality; "
        "print({'altair', 'scipy.stats', 'sqlalchemy', 'rfc3987_syntax'} & sys.modules.keys()); "
        "import great_expectations.expectations.core.expect_column_kl_divergence_to_be_less_than"
        " as few; "
        "print(few.stats.entropy([1, 0]) == 0, bool(few.alt.Chart))"
    )
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    said = subprocess.run([sys.executable, "-c", code], check=True, env=env, capture_output=True)
    assert said.stdout.decode().splitlines() == ["set()", "True True"]


@pytest.mark.parametrize("where", [None, "lines > 100"])
@pytest.mark.parametrize(
    "asked",
    [
        (BETWEEN, {"column": "lines", "min_value": 1}),
        ("expect_column_values_to_be_unique", {"column": "batch_id"}),
        ("expect_column_values_to_be_in_set", {"column": "batch_id", "value_set": ["b9"]}),
        ("expect_column_values_to_not_be_null", {"column": "lines", "mostly": 0.5}),
        (
            "expect_column_pair_values_a_to_be_greater_than_b",
            {"column_A": "lines", "column_B": "refused_share"},
        ),
        ("expect_compound_columns_to_be_unique", {"column_list": ["batch_id", "lines"]}),
        ("expect_table_row_count_to_be_between", {"min_value": 1}),
    ],
)
def test_of_no_rows_we_say_what_great_expectations_says(
    monkeypatch: pytest.MonkeyPatch, asked: tuple[str, dict[str, object]], where: str | None
) -> None:
    kind, settings = asked
    of_it = suite(kind, Severity.ERROR, where, **settings)
    rows = ROWS if where else []
    ours = judged(of_it, rows)
    monkeypatch.setattr("shardaudit.adapters.quality._ROW_BY_ROW", ())
    assert ours == judged(of_it, rows)
