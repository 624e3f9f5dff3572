"""Random lakes, ingested and audited night after night: both engines fill the same tables.

One warehouse is filled by each engine alone, in a third one ingests what the other audits, in turn.
Each lake holds many cases;
`SHARDAUDIT_LAKES` says how many lakes (the drill takes a hundred).
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from shardaudit.model.tables.audit_tables import CELLS
from tests.engines.contents import TABLES, contents
from tests.engines.lakes import DAILY, ROUNDS, feed, judge, take_in
from tests.engines.process import EngineProcess

# The drill takes a hundred.
LAKES = range(int(os.environ["SHARDAUDIT_LAKES"])) if "SHARDAUDIT_LAKES" in os.environ else DAILY
CASES = 15


@pytest.fixture(scope="module")
def apache() -> Iterator[EngineProcess]:
    """Apache Spark."""
    with EngineProcess("spark") as process:
        yield process


@pytest.fixture(scope="module")
def embedded() -> Iterator[EngineProcess]:
    """The embedded engine."""
    with EngineProcess("embedded") as process:
        yield process


@pytest.mark.parametrize("number", LAKES)
def test_tables_are_the_same_whatever_engine_filled_them(
    apache: EngineProcess, embedded: EngineProcess, tmp_path: Path, number: int
) -> None:
    lake = {"folder": str(tmp_path / "lake"), "number": number, "size": CASES}
    engines = {"apache": (apache, apache), "embedded": (embedded, embedded)}
    for round_ in range(1, ROUNDS + 1):
        apache.call(feed, **lake, round_=round_)
        is_even = (number + round_) % 2 == 0
        engines["alternating"] = (apache, embedded) if is_even else (embedded, apache)
        statuses = set[str]()
        for name, (takes_in, judges) in engines.items():
            takes_in.call(take_in, **lake, to=str(tmp_path / name))
            statuses.add(judges.call(judge, **lake, to=str(tmp_path / name)))
        assert len(statuses) == 1, statuses
        for table in TABLES:
            wanted = contents(tmp_path / "apache", table)
            assert contents(tmp_path / "embedded", table) == wanted, table.name
            assert contents(tmp_path / "alternating", table) == wanted, table.name
    assert contents(tmp_path / "apache", CELLS)
