"""Two years of nights: what each table holds, by the rates of docs/sizing.md and `keep.history`.

    python -m tests.bench.kept_year [SHARDS MESSAGES-A-DAY] [--nights]

A table of months, as docs/sizing.md has it; `--nights`: a line for each night.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shardaudit.model.config.keep import Keep
from shardaudit.model.words import byte_size
from shardaudit.report.sizing import AUDIT_BYTES, LEDGER_BYTES, TRACE_BYTES

HOUR_BYTES, WATCH_BYTES = 132, 3  # of a shard's hour in `ledger_hours`; of its row of a watch
MINUTES, HOURS, WATCHES = 1440, 24, 96  # of a day
LOOKED_AT, LEFT = 7, 2  # days of a nightly audit; of one whose minutes two newer ones looked at
MONTHS = (*range(1, 13), 15, 18, 21, 24)
DEFAULT, SHORT = Keep().history.days, 100
TABLES = ("traces", "fingerprints", "ledger_hours", "cells", "shards and positions")


@dataclass(frozen=True, slots=True)
class Stream:
    """How much comes of it each day."""

    shards: int
    messages: int


def nights(stream: Stream, *, history: int | None, last: int) -> Iterator[dict[str, float]]:
    """After each night the bytes of each table. `history`: in days; None: no row ever goes."""
    cells = stream.shards * MINUTES
    audits, watches = list[float](), list[float]()
    for night in range(1, last + 1):
        audits.append(cells * min(night, LOOKED_AT) * AUDIT_BYTES)
        watches.append(2 * stream.shards * WATCHES * WATCH_BYTES)
        if history is not None and night > history:
            audits[night - history - 1] = cells * LEFT * AUDIT_BYTES
            watches[night - history - 1] = 0
        yield {
            "traces": night * stream.messages * TRACE_BYTES,
            "fingerprints": night * cells * LEDGER_BYTES,
            "ledger_hours": night * stream.shards * HOURS * HOUR_BYTES,
            "cells": sum(audits),
            "shards and positions": sum(watches),
        }


def months(stream: Stream) -> list[str]:
    """The table of docs/sizing.md, line by line."""
    ends = [round(month * 365 / 12) for month in MONTHS]
    kept = {
        history: list(nights(stream, history=history, last=ends[-1]))
        for history in (None, DEFAULT, SHORT)
    }
    ending = [(table, history) for table in TABLES[3:] for history in kept]
    head = [*TABLES[:3], *(f"{table}, {_words(history)}" for table, history in ending)]
    lines = [["after months", *head], ["---"] * (len(head) + 1)]
    for month, end in zip(MONTHS, ends, strict=True):
        sizes = [kept[None][end - 1][table] for table in TABLES[:3]]
        sizes += [kept[history][end - 1][table] for table, history in ending]
        lines.append([str(month), *map(byte_size, sizes)])
    return [f"| {' | '.join(line)} |" for line in lines]


def _words(history: int | None) -> str:
    return "all kept" if history is None else f"{history}d"


def main(arguments: Sequence[str]) -> None:
    """Prints it."""
    numbers = [int(float(one)) for one in arguments if one != "--nights"]
    stream = Stream(*numbers) if numbers else Stream(200, 200_000_000)
    lines = months(stream)
    if "--nights" in arguments:
        found = nights(stream, history=DEFAULT, last=730)
        lines = [
            f"{n} {' '.join(map(byte_size, sizes.values()))}" for n, sizes in enumerate(found, 1)
        ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
