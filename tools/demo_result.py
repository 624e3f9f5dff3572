"""What was planted against what was found, id by id."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from shardaudit.report.plain import cell, harmless

SHOWN = 10
_SAME = ("shard_id", "cause", "state", "recoverable_until")

Row = Mapping[str, Any]  # Any: a column's type is what model/tables/audit_tables.py says
Group3 = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class GroupLine:
    """The findings of one kind, cause and state; `same` of them are alike on both sides."""

    kind: str
    cause: str
    state: str
    planted: int
    found: int
    same: int


@dataclass(frozen=True, slots=True)
class FoundPlanted:
    """Each finding of one side that the other one lacks, or has otherwise, in words."""

    groups: tuple[GroupLine, ...]
    not_found: tuple[str, ...]
    not_planted: tuple[str, ...]
    different: tuple[str, ...]

    @property
    def is_equal(self) -> bool:
        """Whether everything planted was found, and nothing else."""
        return not (self.not_found or self.not_planted or self.different)


def match_planted(planted: Iterable[Row], found: Iterable[Row]) -> FoundPlanted:
    """Both sides matched by message id and kind; each is unique on them."""
    wanted = {_key(row): row for row in planted}
    got = {_key(row): row for row in found}
    both = sorted(wanted.keys() & got.keys())
    same = [key for key in both if not _differences(wanted[key], got[key])]
    return FoundPlanted(
        groups=_groups(wanted.values(), got.values(), [wanted[key] for key in same]),
        not_found=tuple(_named(wanted[key]) for key in sorted(wanted.keys() - got.keys())),
        not_planted=tuple(_named(got[key]) for key in sorted(got.keys() - wanted.keys())),
        different=tuple(
            f"{_named(wanted[key])}: {', '.join(differences)}"
            for key in both
            if (differences := _differences(wanted[key], got[key]))
        ),
    )


def comparison_view(comparison: FoundPlanted) -> RenderableType:
    """The comparison for people."""
    table = Table(title="\nPlanted against found", title_justify="left", box=box.SIMPLE_HEAD)
    for name in ("kind", "cause", "state"):
        table.add_column(name)
    for name in ("planted", "found", "same shard, cause, state and deadline"):
        table.add_column(name, justify="right")
    for line in comparison.groups:
        alike = line.planted == line.found == line.same
        table.add_row(
            cell(line.kind),
            cell(line.cause),
            cell(line.state),
            f"{line.planted:,}",
            f"{line.found:,}",
            Text(f"{line.same:,}", style="green" if alike else "bold red"),
        )
    parts: list[RenderableType] = [table]
    for title, names in (
        ("planted and not found", comparison.not_found),
        ("found and not planted", comparison.not_planted),
        ("found otherwise than planted", comparison.different),
    ):
        parts += _listed(title, names)
    if comparison.is_equal:
        parts.append(Text("planted = found: every message, nothing else", style="bold green"))
    return Group(*parts)


def _listed(title: str, names: tuple[str, ...]) -> list[RenderableType]:
    if not names:
        return []
    more = [Text(f"  … and {len(names) - SHOWN:,} more")] if len(names) > SHOWN else []
    shown = [Text(f"  {name}") for name in names[:SHOWN]]
    return [Text(f"{len(names):,} {title}:", style="bold red"), *shown, *more]


def _groups(
    planted: Iterable[Row], found: Iterable[Row], same: Iterable[Row]
) -> tuple[GroupLine, ...]:
    counts = [Counter(map(_group, rows)) for rows in (planted, found, same)]
    groups = sorted(counts[0].keys() | counts[1].keys())
    return tuple(GroupLine(*group, *(count[group] for count in counts)) for group in groups)


def _key(row: Row) -> tuple[str, str]:
    return row["message_id"], row["kind"]


def _group(row: Row) -> Group3:
    return row["kind"], row["cause"], row["state"]


def _named(row: Row) -> str:
    return f"{harmless(row['message_id'])} ({row['kind']}, {row['cause']}, {row['state']})"


def _differences(planted: Row, found: Row) -> list[str]:
    return [
        f"{name} planted {planted[name]}, found {found[name]}"
        for name in _SAME
        if planted[name] != found[name]
    ]
