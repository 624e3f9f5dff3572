"""The Spark audit on the golden cases: those that may share a stream share one audit."""

from pathlib import Path

import pytest

from shardaudit.audit.gates import open_gates
from shardaudit.store.warehouse import Warehouse
from tests.golden_cases import GoldenCase
from tests.spark.golden import check, groups
from tests.spark.trial import Trial


def named(group: list[GoldenCase]) -> str:
    return f"{group[0].name}+{len(group) - 1}"


# Of every sixteenth the daily tests see that Apache Spark says the same, of every ninth that kept
# traces do; of each the drill does.
GROUPS = [
    pytest.param(group, marks=[] if number % 16 else [pytest.mark.both_engines])
    for number, group in enumerate(groups())
]
IN_PARQUET = [
    pytest.param(group, marks=[pytest.mark.drill] if number % 9 else [])
    for number, group in enumerate(group for group in groups() if group[0].cut_at is None)
]


@pytest.mark.parametrize("group", GROUPS, ids=named)
def test_audit_gives_the_reviewed_answers(
    warehouse: Warehouse, tmp_path: Path, group: list[GoldenCase]
) -> None:
    question = group[0].steps()[0].question
    check(Trial(warehouse, tmp_path, question, gates=open_gates(None)), group)


@pytest.mark.parametrize("group", IN_PARQUET, ids=named)
def test_answers_are_the_same_when_traces_are_kept_in_parquet(
    warehouse: Warehouse, tmp_path: Path, group: list[GoldenCase], monkeypatch: pytest.MonkeyPatch
) -> None:
    # And when our tables are read as large ones are: by the engine, with the notes of their
    # columns.
    monkeypatch.setattr("shardaudit.store.warehouse.FEW_ROWS", 0)
    question = group[0].steps()[0].question
    check(Trial(warehouse, tmp_path, question, in_parquet=True), group)
