"""What is said of producers whose traces never came, and how the tables keep it."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from shardaudit.model.input_columns import PRODUCER
from shardaudit.model.words import counted
from shardaudit.report.plain import harmless, instant
from shardaudit.report.summary import BrokenSession, HoleLine, ProducerLine, plain_value

_MOST_NOTES, _MOST_HOLES, _MOST_BROKEN = 10, 3, 3
_WHY = (
    "Dropped: its queue was full, or a record had no id. Never came: files that were not shipped, "
    "or deleted before they were read, or a process that was killed. "
)
_OF_PRODUCER = "What of them landed is untraced here; whether the others did, nobody sees"
_OF_PLACE = (
    "What of these messages did not land may have been lost further on than is told, and looks "
    "lost where it was left out by design"
)
_BROKEN = (
    "and did not close its log, while others went on: it was killed, or its last files were not "
    "shipped. What it had numbered after that is in no file, and how much that was nobody knows"
)
_UNNUMBERED = (
    "no count of what never came. `session_seq` should count the traces of a session from 0, one "
    "by one; leave it out where it means something else"
)


def producers_as_json(producers: Sequence[ProducerLine]) -> str | None:
    """The text that AUDITS holds; None: nobody numbers its traces."""
    return json.dumps(plain_value(producers)) if producers else None


def producers_from_json(text: str | None) -> tuple[ProducerLine, ...]:
    """The lines of such a text."""
    return tuple(
        ProducerLine(
            **row
            | {
                "holes": tuple(map(_hole, row["holes"])),
                "broken": tuple(map(_broken, row.get("broken", ()))),
            }
        )
        for row in json.loads(text or "[]")
    )


def producer_notes(producers: Sequence[ProducerLine]) -> tuple[str, ...]:
    """Who dropped or lost traces of the window, or cannot be counted; nothing where all came.

    Input:
        producers: those that lost most first.
    """
    notes = [
        f"{_who(one)}: {_lost(one)}: {_share(one)} of what it numbered in this window came. "
        f"{_WHY}{_OF_PRODUCER if one.location == PRODUCER else _OF_PLACE}"
        for one in producers
        if one.dropped or one.lost
    ]
    notes += [f"{_who(one)}: {_broken_off(one)}, {_BROKEN}" for one in producers if one.broken_off]
    notes += [
        f"{_who(one)}: the numbers of {counted(one.unnumbered, 'session')} are not consecutive: "
        f"{_UNNUMBERED}"
        for one in producers
        if one.unnumbered
    ]
    if len(notes) > _MOST_NOTES:
        more = f"{len(notes) - _MOST_NOTES} more of producers whose traces did not all come"
        notes = [*notes[:_MOST_NOTES], f"{more}: see `producers` in --json"]
    return tuple(notes)


def _who(line: ProducerLine) -> str:
    name = f"producer {harmless(line.producer_id)}" if line.producer_id else "a nameless producer"
    return name if line.location == PRODUCER else f"{harmless(line.location)}, {name}"


def _lost(line: ProducerLine) -> str:
    told = []
    if line.dropped:
        told.append(f"{counted(line.dropped, 'trace')} {_were(line.dropped)} dropped")
    if line.lost:
        told.append(f"{counted(line.lost, 'number')} never came ({_holes(line)})")
    return ", ".join(told)


def _holes(line: ProducerLine) -> str:
    shown = line.holes[:_MOST_HOLES]
    told = [f"session {harmless(hole.session)}: {_numbers(hole)}{_when(hole)}" for hole in shown]
    rest = line.lost - sum(hole.last - hole.first + 1 for hole in shown)
    return "; ".join([*told, f"and {rest:,} more"] if rest else told)


def _broken_off(line: ProducerLine) -> str:
    shown = [
        f"session {harmless(one.session)} ended {instant(one.at)}, at number {one.known - 1}"
        for one in line.broken[:_MOST_BROKEN]
    ]
    rest = line.broken_off - len(shown)
    return "; ".join([*shown, f"and {rest:,} more"] if rest else shown)


def _numbers(hole: HoleLine) -> str:
    return f"{hole.first}" if hole.first == hole.last else f"{hole.first} to {hole.last}"


def _when(hole: HoleLine) -> str:
    if hole.since is None:
        return ""
    at = f", {instant(hole.since)}"
    return at if hole.since == hole.until else f"{at} to {instant(hole.until)}"


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _share(line: ProducerLine) -> str:
    """How many came, never as all where some did not."""
    share = line.came / line.numbered
    return f"{min(share, 0.9999):.2%}"


def _hole(row: dict[str, Any]) -> HoleLine:  # Any: JSON
    times = {n: row[n] and datetime.fromisoformat(row[n]) for n in ("since", "until")}
    return HoleLine(**row | times)


def _broken(row: dict[str, Any]) -> BrokenSession:  # Any: JSON
    return BrokenSession(**row | {"at": datetime.fromisoformat(row["at"])})
