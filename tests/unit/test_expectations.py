"""The shipped suites are understood by Great Expectations itself, and told of in the docs."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from shardaudit.adapters.suite_files import load_suites
from shardaudit.adapters.suites import SuiteJudge, understood_suites
from shardaudit.model.gate import CONTRACTS, GateState

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
DOCS = Path(__file__).parents[2] / "docs" / "gates.md"


@pytest.fixture(scope="module")
def shipped() -> SuiteJudge:
    """The suites as they are shipped."""
    return understood_suites(None)


def test_every_shipped_check_can_be_made_on_rows_without_values(shipped: SuiteJudge) -> None:
    for contract in CONTRACTS:
        rows = [dict.fromkeys(contract.columns) | {next(iter(contract.columns)): "x"}]
        for check in shipped.judge(contract.name, rows).checks:
            assert check.state is GateState.PASSED, check.sentence


BATCH = {"batch_id": "events/traces/7", "lines": 5000, "refused": 0, "impossible_times": 0}
CALM = {"quiet_hours": 0, "usual_quiet_hours": 0, "active_hours": 168}
HOUR = {"hour": NOON, "sent": 9, "landed": 9, "hours_without_traces": 0, "hours_since_traces": 0}
SHARD = {"shard_id": "s1", "sent": 5000, "landed": 5000, "matched": 5000, "missing": 0}
WINDOW = {"window_id": "1", "state": "merged", "expected_ids": 3, "read_records": 9}
READ = {"refused_share": 0.0, "rows_too_many": 0, "expired": False}


@pytest.mark.parametrize(
    ("suite", "row", "change", "broken"),
    [
        ("traces", BATCH, {"refused_share": 0.51}, [0, 2]),
        ("traces", BATCH, {"refused_share": 0.51, "lines": 99}, []),
        ("traces", BATCH, {"refused_share": 0.5, "lines": 999}, []),
        ("traces", BATCH, {"refused_share": 0.011}, [2]),
        ("traces", BATCH, {"impossible_times": 100}, [1]),
        ("traces", BATCH, {"impossible_times": 99}, [5]),
        ("traces", BATCH, {"impossible_times": 100, "lines": 2_000_000_000}, [5]),
        ("sink", BATCH, {"refused_share": 0.51}, [0, 2]),
        ("sink", BATCH, {"impossible_times": 100}, [1]),
        ("sink", BATCH, {"impossible_times": 1}, [3]),
        ("sink", BATCH, {"refused_share": 0.011}, [2]),
        ("ledger", HOUR | CALM, {"sent_before": 10}, [0]),
        ("ledger", HOUR | CALM, {"sent_before": 9}, []),
        ("ledger", HOUR | CALM, {"hours_without_traces": 6, "rows_without_traces": 100}, [1]),
        ("ledger", HOUR | CALM, {"hours_without_traces": 6, "rows_without_traces": 99}, []),
        ("ledger", HOUR | CALM, {"hours_without_traces": 5, "rows_without_traces": 100}, []),
        ("ledger", HOUR | CALM, {"hours_since_traces": 6, "rows_without_traces": 100}, [2]),
        ("ledger", HOUR | CALM, {"quiet_hours": 12, "usual_quiet_hours": 2}, [3]),
        ("ledger", HOUR | CALM, {"quiet_hours": 63, "usual_quiet_hours": 15}, []),
        ("ledger", HOUR | CALM, {"quiet_hours": 12, "active_hours": 23}, []),
        ("ledger", HOUR | CALM, {"rows_without_landing_time": 1}, [4]),
        ("ledger", HOUR | CALM, {"rows_without_landing_time": 0}, []),
        ("audit_result", SHARD, {"matched": 0, "missing": 5000}, [0]),
        ("audit_result", SHARD, {"matched": 0, "missing": 5000, "landed": 0}, []),
        ("audit_result", SHARD, {"matched": 0, "missing": 0}, []),
        ("audit_result", SHARD, {"shifted_minutes": -120}, [1]),
        ("audit_result", SHARD, {"vanished": 1}, [3]),
        ("audit_result", SHARD, {"vanished": 0}, []),
        ("backfill_result", WINDOW | READ, {"rows_too_many": 1}, [0]),
        ("backfill_result", WINDOW | READ, {"read_records": 0}, [1]),
        ("backfill_result", WINDOW | READ, {"read_records": 0, "expired": True}, []),
        ("backfill_result", WINDOW | READ, {"read_records": 0, "state": "incomplete"}, []),
        ("backfill_result", WINDOW | READ, {"refused_share": 0.51}, [2]),
    ],
)
def test_each_shipped_check_breaks_where_it_should_and_nowhere_else(
    shipped: SuiteJudge,
    suite: str,
    row: dict[str, object],
    change: dict[str, object],
    broken: list[int],
) -> None:
    checks = shipped.judge(suite, [row, row | {next(iter(row)): "the bad one"} | change]).checks
    assert GateState.BROKEN not in {check.state for check in checks}
    found = [n for n, check in enumerate(checks) if check.state is GateState.FAILED]
    assert found == broken
    for n in found:
        assert " – not so: the bad one (" in checks[n].sentence


def test_a_shard_that_is_there_twice_breaks_its_check(shipped: SuiteJudge) -> None:
    checks = shipped.judge("audit_result", [SHARD, SHARD]).checks
    states = [check.state for check in checks]
    assert [state is GateState.FAILED for state in states] == [False, False, True, False]


def test_every_shipped_check_says_what_to_do() -> None:
    for suite in load_suites(None):
        assert all(wanted.advice for wanted in suite.expectations)
        assert f"`{suite.contract.name}.yaml`" in DOCS.read_text()
