"""A route's places over time, as rows of a map below that of the shards."""

from collections.abc import Sequence
from datetime import datetime

from shardaudit.model.verdict import Verdict
from shardaudit.page.page_map import HeatMap, MapRow
from shardaudit.page.page_svg import LEFT, TOP, Drawing
from shardaudit.page.page_words import UNKNOWN, Metric
from shardaudit.report.delivery_view import PlaceLine
from shardaudit.store.cell_grid import Bins, CellGrid, ShardGroup
from shardaudit.store.read_places import PlaceGrid

_UNSEEN = "no published audit looked at all of this time"
_SILENT = "it traced nothing of this time"


def place_map(grid: PlaceGrid, cells: CellGrid, bins: Bins, *, unseen: frozenset[int]) -> HeatMap:
    """The map of places; `reasons` has the words of each bin that is not ok.

    Missing messages that no finding names, those of gaps, may have been lost before any place.

    Input:
        cells: of all shards; unseen: the bins that no audit saw whole.
    """
    sent, missing = (_sums(cells.counts[name], bins) for name in ("sent", "missing"))
    rows = []
    for name, lines in grid.lines.items():
        verdicts, reasons = list[str](), list[str | None]()
        for index, line in enumerate(lines):
            unnamed = max(0, missing[index] - grid.named[index])
            verdict, faults = _verdict(line, unnamed)
            words = [_words(faults, line)] if verdict != Verdict.OK else []
            if not line.lost and not line.doubled:
                if index in unseen:
                    verdict, words = UNKNOWN, [_UNSEEN]
                elif sent[index] and not faults and _is_silent(line):
                    verdict, words = UNKNOWN, [_SILENT]
            verdicts.append(verdict)
            reasons.append(f"{name}, {_time(bins.at(index))}: {words[0]}" if words else None)
        whole = tuple(verdicts)
        rows.append(MapRow(ShardGroup((name,)), whole, whole, {}, (), tuple(reasons)))
    return HeatMap(Metric.VERDICT, bins, tuple(rows))


def marked_runs(found: HeatMap, drawn: Drawing) -> list[tuple[float, float, str]]:
    """Where each bin stands that has words, and these."""
    return [
        (LEFT + index * drawn.cell_width, TOP + number * drawn.cell_height, words)
        for number, row in enumerate(found.rows)
        for index, words in enumerate(row.reasons)
        if words
    ]


def _sums(rows: Sequence[Sequence[int]], bins: Bins) -> list[int]:
    return [sum(row[index] for row in rows) for index in range(bins.count)]


def _verdict(line: PlaceLine, unnamed: int) -> tuple[str, list[str]]:
    """What happened to it in the words of a cell, and its faults."""
    faults = {
        "lost before it": line.lost,
        "may be lost before it": line.doubtful,
        "doubled after it": line.doubled,
        "missing of no known hop": unnamed,
    }
    told = [f"{count:,} {what}" for what, count in faults.items() if count]
    if line.lost:
        return (Verdict.MIXED if line.doubled else Verdict.LOSS).value, told
    if line.doubled:
        return Verdict.DUPLICATION.value, told
    return (Verdict.INCONCLUSIVE if told else Verdict.OK).value, told


def _is_silent(line: PlaceLine) -> bool:
    """Whether it traced nothing. Of the producer and the sink the page has no such numbers."""
    return line.received == line.sent == 0 and not line.left_out


def _words(faults: Sequence[str], line: PlaceLine) -> str:
    traced = "" if line.received is None else f"; {line.received:,} received, {line.sent:,} sent on"
    return f"{', '.join(faults)}{traced}"


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
