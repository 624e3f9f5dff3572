"""What is mutated is there, as the tests are that must notice; no module of rules is forgotten."""

from pathlib import Path

from tests.mutants.suites import SUITES

ROOT = Path(__file__).parents[2]
# `decode` merges, which Apache Spark alone does; `planned` holds values.
LEFT_OUT = {f"shardaudit/backfill/rules/{name}.py" for name in ("decode", "planned")}


def test_what_is_mutated_is_there_and_so_are_its_tests() -> None:
    named = {ROOT / "spark" / module for module in SUITES}
    named |= {ROOT / test for suite in SUITES.values() for test in suite}
    assert {str(path) for path in named if not path.exists()} == set()


def test_each_module_of_rules_is_mutated() -> None:
    rules = (ROOT / "spark" / "shardaudit").glob("*/rules/*.py")
    found = {str(path.relative_to(ROOT / "spark")) for path in rules if path.stem != "__init__"}
    assert found - SUITES.keys() == LEFT_OUT
