"""Suite files: what is shipped is understood, and what is wrong is refused by file and line."""

from pathlib import Path

import pytest

from shardaudit.adapters.suite_files import load_suites
from shardaudit.model.errors import ConfigError
from shardaudit.model.gate import CONTRACTS, Severity

GOOD = """\
# a comment
expectations:
  - type: expect_column_values_to_be_between
    kwargs:
      column: lines
      min_value: 1
    severity: warn
    says: a batch has lines
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Suites that check nothing."""
    for contract in CONTRACTS:
        (tmp_path / f"{contract.name}.yaml").write_text("expectations: []\n")
    return tmp_path


def refused(folder: Path, text: str) -> str:
    (folder / "traces.yaml").write_text(text)
    with pytest.raises(ConfigError) as error:
        load_suites(folder)
    return str(error.value).removeprefix(str(folder))


def test_the_shipped_suites_judge_every_contract() -> None:
    suites = load_suites(None)
    assert [suite.contract for suite in suites] == list(CONTRACTS)
    assert all(suite.expectations for suite in suites)


def test_an_expectation_is_read_with_its_line(folder: Path) -> None:
    (folder / "traces.yaml").write_text(GOOD)
    (wanted,) = load_suites(folder)[0].expectations
    assert (wanted.line, wanted.kind) == (3, "expect_column_values_to_be_between")
    assert (wanted.settings, wanted.severity) == ({"column": "lines", "min_value": 1}, "warn")
    assert (wanted.says, wanted.advice) == ("a batch has lines", None)
    assert wanted.severity is Severity.WARN


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("column: lines", "column: line", "/traces.yaml:5: column: found 'line', wanted one of"),
        ("column: lines", "column: line", "(did you mean lines?)"),
        ("severity: warn", "severity: warning", "/traces.yaml:7: expectations.0.severity: found"),
        ("severity: warn", "severity: warning", "wanted one of error, warn (did you mean warn?)"),
        ("says:", "say:", "/traces.yaml:8: expectations.0.say: found 'say', wanted one of advice"),
        (
            "    says: a batch has lines\n",
            "",
            "/traces.yaml:3: expectations.0.says: found 'nothing'",
        ),
        ("says: a batch has lines", "says: ''", "/traces.yaml:8: expectations.0.says"),
        ("type: expect", "type: hope", "/traces.yaml:3: expectations.0.type"),
        ("kwargs:", "kwargs: 3 #", "/traces.yaml:5: found"),
        (
            "      min_value: 1",
            "      column: lines",
            "/traces.yaml:6: found 'column a second time'",
        ),
        ("expectations:", "- expectations:", "/traces.yaml:"),
        (GOOD, "", "/traces.yaml:1: found 'nothing', wanted a suite file (traces: a batch of"),
        (GOOD, "3", "/traces.yaml:1: "),
        (GOOD, "expectations: {}", "/traces.yaml:1: expectations: found {}, wanted"),
        (GOOD, "expectations: [\x00]", "/traces.yaml"),
        (GOOD, "expectations: [2026-13-45]", "/traces.yaml"),
        (GOOD, "? {a: b}\n: c", "/traces.yaml"),
    ],
)
def test_a_wrong_suite_is_refused_by_line(folder: Path, old: str, new: str, said: str) -> None:
    assert old in GOOD
    assert said in refused(folder, GOOD.replace(old, new))


def test_a_suite_that_is_not_there_or_not_known_is_named(folder: Path) -> None:
    (folder / "trace.yaml").write_text("expectations: []\n")
    with pytest.raises(ConfigError, match=r"trace.yaml: found 'trace'.*did you mean traces"):
        load_suites(folder)
    (folder / "trace.yaml").unlink()
    (folder / "sink.yaml").unlink()
    with pytest.raises(ConfigError, match=r"sink.yaml: .*wanted a suite file \(sink: a batch"):
        load_suites(folder)
