"""Findings as the page and the download show them."""

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

_Row = Mapping[str, Any]  # Any: a column's type is what model/tables/audit_tables.py says

# A spreadsheet runs what begins with one of these, also where they are fullwidth or where what is
# before them cannot be seen. OWASP, "CSV Injection".
_FORMULA = ("=", "+", "-", "@")
_CONTROLS = ("\t", "\r", "\n")


@dataclass(frozen=True, slots=True)
class Step:
    """A finding's state at one time, and why."""

    to_state: str
    at: datetime
    reason: str | None


@dataclass(frozen=True, slots=True)
class FindingRow:
    """One finding with its evidence; `steps`: its life so far, oldest first; None: was not read."""

    stream: str
    shard_id: str
    message_id: str
    kind: str
    cause: str
    state: str
    location: str | None
    sent_at: datetime | None
    first_landed_at: datetime | None
    last_landed_at: datetime | None
    sent_count: int | None
    landed_count: int | None
    sequence_numbers: tuple[str, ...]
    recoverable_until: datetime | None
    attributes: tuple[tuple[str, str], ...]
    opened_at: datetime | None
    state_reason: str | None
    hops: str | None
    steps: tuple[Step, ...] | None = ()


@dataclass(frozen=True, slots=True)
class FindingList:
    """The first rows of a list, how long it is, and what it is not, in a sentence."""

    rows: tuple[FindingRow, ...] = ()
    total: int = 0
    note: str | None = None


CSV_COLUMNS = tuple(field.name for field in fields(FindingRow) if field.name != "steps")


def finding_rows(
    findings: Iterable[_Row], transitions: Iterable[_Row] | None
) -> tuple[FindingRow, ...]:
    """The findings in their order, each with its transitions; None: they were not read."""
    if transitions is None:
        return tuple(_finding(row, None) for row in findings)
    steps: dict[tuple[str, str], list[Step]] = {}
    for row in sorted(transitions, key=lambda row: row["changed_at"]):
        step = Step(row["to_state"], row["changed_at"], row["reason"])
        steps.setdefault((row["message_id"], row["kind"]), []).append(step)
    return tuple(
        _finding(row, tuple(steps.get((row["message_id"], row["kind"]), ()))) for row in findings
    )


def csv_lines(findings: Iterable[_Row]) -> Iterator[str]:
    """The lines of a CSV file (RFC 4180) in which no cell is a formula."""
    yield _line(CSV_COLUMNS)
    for row in findings:
        yield _line([_text(row[name]) for name in CSV_COLUMNS])


def harmless_cell(text: str) -> str:
    """The text as a spreadsheet shows it, and never runs it."""
    seen = next((c for c in text if unicodedata.category(c)[0] not in "CZM"), "")
    is_run = unicodedata.normalize("NFKC", seen).startswith(_FORMULA)
    return f"'{text}" if is_run or text.lstrip(" ").startswith(_CONTROLS) else text


def _finding(row: _Row, steps: tuple[Step, ...] | None) -> FindingRow:
    values = {name: row[name] for name in CSV_COLUMNS}
    values["sequence_numbers"] = tuple(row["sequence_numbers"] or ())
    values["attributes"] = tuple(sorted(dict(row["attributes"] or ()).items()))
    return FindingRow(**values, steps=steps)


def _line(cells: Sequence[str]) -> str:
    quoted = (harmless_cell(cell).replace('"', '""') for cell in cells)
    return ",".join(f'"{cell}"' for cell in quoted) + "\r\n"


def _pair(name: str, value: str | None) -> str:
    return name if value is None else f"{name}={value}"


def _text(value: object) -> str:
    match value:
        case None:
            return ""
        case datetime():
            return value.isoformat()
        case list():  # a map comes as pairs
            return " ".join(_pair(*v) if isinstance(v, tuple) else str(v) for v in value)
    return str(value)
