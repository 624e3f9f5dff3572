"""The suites of a folder, understood: without Spark, so that `doctor` need not wait for it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from shardaudit.adapters.suite_files import load_suites
from shardaudit.model.gate import SuiteResult, SummaryRow


class SuiteJudge(Protocol):
    """What judges rows by the suite of that name."""

    def judge(self, name: str, rows: Sequence[SummaryRow]) -> SuiteResult:
        """What each check of the suite says of the rows."""


def understood_suites(folder: str | None) -> SuiteJudge:
    """What judges by the suites of a folder, or by those that are shipped.

    Raises:
        ConfigError: a suite cannot be understood: file, line, what would do.
    """
    suites = load_suites(Path(folder) if folder else None)  # no typing error waits for the import
    # Great Expectations takes seconds to import: only who judges pays for it.
    from shardaudit.adapters.quality import Quality as GreatExpectations  # noqa: PLC0415

    return GreatExpectations(suites)
