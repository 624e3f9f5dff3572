"""What the gates said of an audit, as the page and the report show it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from shardaudit.model.gate import (
    CONTRACTS,
    CheckResult,
    GateState,
    Severity,
    SuiteResult,
    sentences,
)
from shardaudit.model.verdict import SelfCheck

_ROWS = {contract.name: contract.row for contract in CONTRACTS}
_ORDER = ("failed", "broken", "warned", "passed")  # the worst first


@dataclass(frozen=True, slots=True)
class GateLine:
    """One suite. `look`: that of its worst check; `noted`: (look, sentence) of those not passed.

    A look is `failed` or `broken` (nothing is published), `warned`, or `passed`.
    """

    suite: str
    row: str
    rows: int
    checks: int
    look: str
    noted: tuple[tuple[str, str], ...]


def gate_lines(results: Iterable[SuiteResult]) -> tuple[GateLine, ...]:
    """The suites in their order, each with the sentences of the checks that did not pass."""
    return tuple(_line(result) for result in results)


def why_rejected(results: Sequence[SuiteResult], *, self_check: str | None) -> list[str]:
    """Why nothing of an audit was published; none when it did not come that far."""
    shut = sentences(results, severity=Severity.ERROR)
    if self_check == SelfCheck.FAILED:
        shut.append("it did not find the discrepancies that it planted itself")
    return shut


def _line(result: SuiteResult) -> GateLine:
    looks = [(_look(check), check.sentence) for check in result.checks]
    return GateLine(
        suite=result.suite,
        row=_ROWS.get(result.suite, "row"),
        rows=result.rows,
        checks=len(result.checks),
        look=min((look for look, _ in looks), key=_ORDER.index, default="passed"),
        noted=tuple((look, sentence) for look, sentence in looks if look != "passed"),
    )


def _look(check: CheckResult) -> str:
    if check.stops:
        return "broken" if check.state is GateState.BROKEN else "failed"
    return "warned" if check.warns else "passed"
