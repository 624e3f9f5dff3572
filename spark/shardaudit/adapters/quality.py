"""The door to Great Expectations: judges small rows by a suite. Its import takes seconds.

Half of what it imports only a few of its expectations use (distributions, charts): that waits until
one of them is asked.

It judges pandas frames that Spark has summed up: on Spark itself a check takes seconds (GX 1.24).
Nothing leaves the machine: this version of it has no telemetry, and a later one is told not to.
"""

import logging
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

import pandas as pd

from shardaudit.model.errors import ConfigError
from shardaudit.model.gate import (
    CheckResult,
    Expectation,
    GateState,
    Suite,
    SuiteResult,
    SummaryRow,
)

_USED_BY_FEW = ("altair", "scipy.stats")
# For other engines than pandas, and a grammar that jsonschema reads for 3 s where it is installed.
_USED_BY_NONE = ("sqlalchemy", "rfc3987_syntax")


class _ImportedLater(ModuleType):
    """Stands for a module until something of it is used."""

    def __getattr__(self, name: str) -> Any:  # Any: whatever the module has
        return getattr(import_module(self.__name__), name)


@contextmanager
def _light_imports() -> Iterator[None]:
    """What is imported in the block does without these; who imports them after it gets them."""
    later = {name: _ImportedLater(name) for name in _USED_BY_FEW}
    put: dict[str, Any] = dict.fromkeys(_USED_BY_NONE) | later
    put = {name: module for name, module in put.items() if name not in sys.modules}
    sys.modules.update(put)
    try:
        yield
    finally:
        for name in put:
            del sys.modules[name]


os.environ["GX_ANALYTICS_ENABLED"] = "false"
logging.getLogger("great_expectations").setLevel(logging.WARNING)
with warnings.catch_warnings(), _light_imports():
    warnings.simplefilter("ignore")  # it imports what Python itself has given up
    import great_expectations as gx
    from great_expectations.data_context.types.base import (
        DataContextConfig,
        InMemoryStoreBackendDefaults,
        ProgressBarsConfig,
    )
    from great_expectations.exceptions.exceptions import GreatExpectationsError
    from great_expectations.expectations.expectation import (
        ColumnMapExpectation,
        ColumnPairMapExpectation,
        MulticolumnMapExpectation,
    )
    from great_expectations.expectations.registry import get_expectation_impl

SHOWN_ROWS = 5

# They judge each row by itself.
_ROW_BY_ROW = (ColumnMapExpectation, ColumnPairMapExpectation, MulticolumnMapExpectation)

Raw = Mapping[str, Any]  # Any: what Great Expectations says, whose keys hang on the expectation


class Quality:
    """Suites, understood once, to judge with.

    Raises:
        ConfigError: a suite wants an expectation that there is not, or gives it wrong settings.
    """

    def __init__(self, suites: Sequence[Suite]) -> None:
        self._suites = {suite.contract.name: suite for suite in suites}
        self._understood = {
            suite.contract.name: [_understood(wanted, suite) for wanted in suite.expectations]
            for suite in suites
        }
        context = gx.get_context(mode="ephemeral", project_config=_quiet())
        asset = context.data_sources.add_pandas("summaries").add_dataframe_asset("rows")
        self._frames = asset.add_batch_definition_whole_dataframe("all")

    def prepare(self) -> None:
        """Nothing: it is ready when it is made."""

    def judge(self, name: str, rows: Sequence[SummaryRow]) -> SuiteResult:
        """What each check of the suite says of the rows."""
        suite = self._suites[name]
        frame = _frame(rows, list(suite.contract.columns))
        checks = (
            _check(wanted, self._said(understood, frame, wanted.where), suite, rows)
            for wanted, understood in zip(suite.expectations, self._understood[name], strict=True)
        )
        return SuiteResult(name, len(rows), tuple(checks))

    def _said(self, understood: Any, frame: pd.DataFrame, where: str | None) -> Raw:  # Any: GX's
        """What Great Expectations says of the rows that the check is about."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its own use of pandas
            try:
                chosen = frame.query(where) if where else frame
                if chosen.empty and isinstance(understood, _ROW_BY_ROW):
                    # Great Expectations says so, too, and needs 20 ms for it.
                    return {"success": True, "exception_info": {}, "result": {"element_count": 0}}
                batch = self._frames.get_batch({"dataframe": chosen})
                said: Raw = batch.validate(understood, result_format="COMPLETE").to_raw_dict()
            except Exception as error:  # noqa: BLE001 - pandas and GX raise whatever Python does
                return {"exception_info": _raised(f"{type(error).__name__}: {error}")}
            return said


def _quiet() -> DataContextConfig:
    """In memory; no telemetry, no pages of its own, no bars."""
    return DataContextConfig(
        analytics_enabled=False,
        progress_bars=ProgressBarsConfig(globally=False),
        store_backend_defaults=InMemoryStoreBackendDefaults(init_temp_docs_sites=False),
    )


def _raised(message: str) -> Raw:
    return {"raised_exception": True, "exception_message": message}


def _frame(rows: Sequence[SummaryRow], columns: Sequence[str]) -> pd.DataFrame:
    """The rows in pandas; a column without any value counts as one of numbers, to be compared."""
    frame = pd.DataFrame.from_records([dict(row) for row in rows], columns=columns)
    empty = [name for name in columns if frame[name].isna().all()]
    return frame.astype(dict.fromkeys(empty, "float64"))


def _understood(wanted: Expectation, suite: Suite) -> Any:  # Any: one of GX's expectations
    where = f"{suite.file}:{wanted.line}"
    kind: Any  # Any: it takes what is checked here
    if "row_condition" in wanted.settings:
        raise ConfigError(f"{where}: kwargs", "row_condition", "`where`, beside kwargs")
    try:
        kind = get_expectation_impl(wanted.kind)
    except GreatExpectationsError as error:
        known = "an expectation of Great Expectations, as expect_column_values_to_be_between"
        raise ConfigError(f"{where}: type", wanted.kind, known) from error
    try:
        return kind(**wanted.settings)
    except (TypeError, ValueError) as error:  # pydantic's ValidationError is a ValueError
        said = "; ".join(line.strip() for line in str(error).splitlines()[1:]) or str(error)
        given = ", ".join(f"{name}: {value}" for name, value in wanted.settings.items())
        raise ConfigError(
            f"{where}: kwargs", given, f"what {wanted.kind} takes ({said})"
        ) from error


def _check(wanted: Expectation, raw: Raw, suite: Suite, rows: Sequence[SummaryRow]) -> CheckResult:
    named = f"{suite.contract.name}: {wanted.says}"
    broken = list(_exceptions(raw["exception_info"] or {}))
    if broken:
        sentence = (
            f"{named} – nobody knows, the check itself broke: {broken[0]}. "
            f"It stands in {suite.file}, line {wanted.line}"
        )
        return CheckResult(wanted.kind, wanted.severity, GateState.BROKEN, sentence)
    found = raw["result"] or {}
    judged = int(found.get("element_count", len(rows)))
    details: dict[str, object] = {"judged": judged}
    if raw["success"]:
        return CheckResult(wanted.kind, wanted.severity, GateState.PASSED, named, details)
    wrong = [rows[place] for place in found.get("unexpected_index_list") or ()]
    observed = "" if wrong else str(found.get("observed_value", ""))
    sentence = f"{named} – not so: {_found(wrong, judged, observed, suite, wanted)}"
    sentence += f". {wanted.advice}" if wanted.advice else ""
    details |= {"wrong": len(wrong), "observed": observed, "rows": wrong[:SHOWN_ROWS]}
    return CheckResult(wanted.kind, wanted.severity, GateState.FAILED, sentence, details)


def _exceptions(info: Raw) -> Iterable[str]:
    """The messages of what was raised: GX has one entry, or one per metric."""
    entries = [info] if "raised_exception" in info else list(info.values())
    for entry in entries:
        if entry["raised_exception"]:
            yield str(entry["exception_message"]).strip().splitlines()[0]


def _found(
    wrong: Sequence[SummaryRow], judged: int, observed: str, suite: Suite, wanted: Expectation
) -> str:
    """The first wrong row in words, the columns of the check first."""
    if not wrong:
        return f"found {observed or 'otherwise'} in {judged:,} rows"
    row, columns = wrong[0], list(suite.contract.columns)
    own = [name for name in columns if name in map(str, wanted.settings.values())]
    shown = [name for name in dict.fromkeys((*own, *columns[1:])) if row.get(name) is not None]
    facts = ", ".join(f"{name} {_shown(row[name])}" for name in shown if name != columns[0])
    more = f"; {len(wrong) - 1:,} more of {judged:,}" if len(wrong) > 1 else ""
    return f"{_shown(row[columns[0]])} ({facts}){more}"


def _shown(value: object) -> str:
    if isinstance(value, pd.Timestamp) or hasattr(value, "isoformat"):
        return f"{value:%Y-%m-%dT%H:%MZ}"
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
