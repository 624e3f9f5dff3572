"""The shipped suites are understood by Great Expectations itself, and told of in the docs."""

from pathlib import Path

from shardaudit.adapters.suite_files import load_suites
from shardaudit.jobs.suites import understood_suites
from shardaudit.model.gate import CONTRACTS, GateState

DOCS = Path(__file__).parents[2] / "docs" / "gates.md"


def test_every_shipped_check_can_be_made_on_rows_without_values() -> None:
    quality = understood_suites(None)
    for contract in CONTRACTS:
        rows = [dict.fromkeys(contract.columns) | {next(iter(contract.columns)): "x"}]
        for check in quality.judge(contract.name, rows).checks:
            assert check.state is GateState.PASSED, check.sentence


def test_every_shipped_check_says_what_to_do() -> None:
    for suite in load_suites(None):
        assert all(wanted.advice for wanted in suite.expectations)
        assert f"`{suite.contract.name}.yaml`" in DOCS.read_text()
