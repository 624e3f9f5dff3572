"""The shipped suites are understood beside other work."""

from collections.abc import Sequence
from threading import Event

import pytest

from shardaudit.adapters.suites import ShippedSuites
from shardaudit.model.gate import SuiteResult, SummaryRow


class _Judge:
    def prepare(self) -> None:
        pass

    def judge(self, name: str, rows: Sequence[SummaryRow]) -> SuiteResult:
        return SuiteResult(name, len(rows), ())


def test_nobody_waits_for_the_import_before_there_is_something_to_judge() -> None:
    may_end = Event()

    def slow(_: object) -> _Judge:
        assert may_end.wait(60)
        return _Judge()

    shipped = ShippedSuites(slow)
    shipped.prepare()
    may_end.set()
    assert shipped.judge("traces", []).suite == "traces"


def test_what_breaks_in_the_import_is_raised_where_the_judge_is_asked() -> None:
    def broken(_: object) -> _Judge:
        raise ImportError("no such library")

    shipped = ShippedSuites(broken)
    with pytest.raises(ImportError, match="no such library"):
        shipped.judge("traces", [])
