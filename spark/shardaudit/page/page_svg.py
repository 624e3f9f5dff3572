"""Where things are drawn, and the numbers behind them for a hover: no colours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import groupby

from shardaudit.model.verdict import Verdict
from shardaudit.model.window import EPOCH
from shardaudit.model.words import length
from shardaudit.page.page_lines import TrendPoint
from shardaudit.page.page_map import HeatMap, MapRow, letter
from shardaudit.page.page_words import MEANINGS, METRICS, NO_SHARD, NOT_KNOWN, Metric

WIDTH, LEFT, TOP = 1200.0, 172.0, 22.0
_HIGHEST_ROW, _LOWEST_ROW, _MAP_HEIGHT = 22.0, 5.0, 780.0
_LABEL_HEIGHT = 11.0
_LETTER_WIDTH = 11.0
_TICKS, _TICK_WIDTH = 8, 60.0
_STEPS = (
    *(timedelta(minutes=minutes) for minutes in (1, 5, 10, 15, 30, 60, 120, 180, 360, 720)),
    *(timedelta(days=days) for days in (1, 2, 4, 7, 14, 28)),
)
_TREND_WIDTH, _TREND_HEIGHT = 360.0, 84.0

_SPARSE = ("missing", "pending", "extra_rows", "untraced")


@dataclass(frozen=True, slots=True)
class Label:
    """The name of a row, at its height; only as many as can be read."""

    y: float
    row: MapRow


@dataclass(frozen=True, slots=True)
class MarkLetter:
    """A verdict's letter in the middle of a run of equal places."""

    x: float
    y: float
    text: str
    mark: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """A map. `paths`: per mark one outline of all its places."""

    height: float
    cell_width: float
    cell_height: float
    paths: tuple[tuple[str, str], ...]
    labels: tuple[Label, ...]
    letters: tuple[MarkLetter, ...]
    ticks: tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True)
class Curve:
    """A trend: its points as (x, y, words), and the line through them.

    `changed`: the words of the points from which on it is no longer what it was.
    """

    title: str
    meaning: str
    last: str
    points: tuple[tuple[float, float, str], ...]
    changed: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """The points as an SVG polyline wants them."""
        return " ".join(f"{x:g},{y:g}" for x, y, _ in self.points)


@dataclass(frozen=True, slots=True)
class _Trend:
    """A rate that is drawn. `name`: in the audits' rates; rows are no sample, as ids are."""

    title: str
    meaning: str
    name: str
    is_of_rows: bool = False


_LOST = _Trend("Lost", "missing messages per million sent", "missing")
_DOUBLED = _Trend("Doubled", "extra rows per million landed", "duplicated", is_of_rows=True)
_UNTRACED = _Trend("Untraced", "landed without a trace, per million", "untraced")
_TO_COME = "messages that never reached it, per million that came, or may have been lost before it"
_PASSED = "messages that passed it without a trace, per million"


def drawing(found: HeatMap) -> Drawing:
    """The map's drawing; its size does not grow with what is in it."""
    height = min(_HIGHEST_ROW, max(_LOWEST_ROW, _MAP_HEIGHT / max(1, len(found.rows))))
    width = (WIDTH - LEFT) / found.bins.count
    outlines: dict[str, list[str]] = {}
    letters: list[MarkLetter] = []
    for index, row in enumerate(found.rows):
        y, at = TOP + index * height, 0
        for mark, run in groupby(row.marks):
            length = len(list(run))
            x, wide = LEFT + at * width, length * width
            if mark != NO_SHARD:
                outlines.setdefault(mark, []).append(
                    f"M{x:.2f} {y:.2f}h{wide:.2f}v{height:.2f}h-{wide:.2f}z"
                )
            if mark == row.verdicts[at] and height > _LABEL_HEIGHT and wide >= _LETTER_WIDTH:
                letters += _letter(mark, x + wide / 2, y + height / 2)
            at += length
    return Drawing(
        height=TOP + height * len(found.rows) + 2,
        cell_width=width,
        cell_height=height,
        paths=tuple((mark, "".join(parts)) for mark, parts in sorted(outlines.items())),
        labels=_labels(found.rows, height),
        letters=tuple(letters),
        ticks=_ticks(found),
    )


def curves(points: Sequence[TrendPoint]) -> tuple[Curve, ...]:
    """Loss, duplication, coverage and latency over the audits; none with fewer than two audits."""
    if len(points) < 2:  # noqa: PLR2004 - a line has two ends
        return ()
    full = [1.0 if point.coverage is None else point.coverage for point in points]
    return (
        _curve(_LOST, points, [point.lost for point in points]),
        _curve(_DOUBLED, points, [point.doubled for point in points]),
        _curve(_UNTRACED, points, [1e6 * (1 - share) for share in full]),
        *_latency(points, Metric.P50),
        *_latency(points, Metric.P99),
    )


def place_curves(trends: Mapping[str, Sequence[TrendPoint]]) -> tuple[Curve, ...]:
    """Loss before each place, and its trace loss, over the audits that knew of them."""
    found = []
    for place, points in trends.items():
        traced = [point for point in points if point.coverage is not None]
        lost = replace(_LOST, title=f"Lost before {place}", meaning=_TO_COME)
        untraced = replace(_UNTRACED, title=f"Trace loss of {place}", meaning=_PASSED)
        if len(points) >= 2:  # noqa: PLR2004 - a line has two ends
            found.append(_curve(lost, points, [point.lost for point in points]))
        if len(traced) >= 2:  # noqa: PLR2004 - as above
            shares = [1 - (point.coverage or 0) for point in traced]
            found.append(_curve(untraced, traced, [1e6 * share for share in shares]))
    return tuple(found)


def _letter(mark: str, x: float, y: float) -> list[MarkLetter]:
    return [] if mark == Verdict.OK else [MarkLetter(x, y, letter(mark), mark)]


def _labels(rows: Sequence[MapRow], height: float) -> tuple[Label, ...]:
    """Each row's where there is room; otherwise those in trouble come first."""
    by_urgency = sorted(
        range(len(rows)),
        key=lambda i: (-_urgency(rows[i].worst), i),
    )
    taken: list[int] = []
    apart = -(-_LABEL_HEIGHT // height)
    for index in by_urgency:
        if all(abs(index - other) >= apart for other in taken):
            taken.append(index)
    return tuple(Label(TOP + (index + 0.5) * height, rows[index]) for index in sorted(taken))


def _urgency(name: str) -> int:
    """Greater is more urgent; what is unknown stands where the map puts it."""
    return (Verdict(name) if name in list(Verdict) else Verdict.INCONCLUSIVE).rank


def _ticks(found: HeatMap) -> tuple[tuple[float, str], ...]:
    """Round times, about as many as there is room for."""
    bins = found.bins
    span = bins.width * bins.count
    step = next((s for s in _STEPS if s >= bins.width and s * _TICKS >= span), _STEPS[-1])
    style = "%d %b %H:%M" if span > timedelta(days=1) else "%H:%M"
    places = [i for i in range(bins.count) if (bins.at(i) - EPOCH) % step < bins.width]
    at = [(LEFT + i * (WIDTH - LEFT) / bins.count, bins.at(i).strftime(style)) for i in places]
    return tuple(tick for tick in at if tick[0] < WIDTH - _TICK_WIDTH) or (
        (LEFT, bins.start.strftime(style)),
    )


def _curve(trend: _Trend, points: Sequence[TrendPoint], values: Sequence[float]) -> Curve:
    """The values with their words, and with the changes of that rate."""
    said = [
        (
            value,
            f"{point.end:%Y-%m-%d %H:%M} UTC: {value:,.1f} per million"
            f"{_between(point, trend)} ({point.verdict}){_changed(point, trend)}",
        )
        for point, value in zip(points, values, strict=True)
    ]
    last = f"{values[-1]:,.1f} per million{_between(points[-1], trend)}"
    curve = _line(trend.title, trend.meaning, said, last=last)
    marked = zip(points, said, strict=True)
    return replace(curve, changed=tuple(words for p, (_, words) in marked if trend.name in p.usual))


def _changed(point: TrendPoint, trend: _Trend) -> str:
    if trend.name not in point.usual:
        return ""
    usual = 1e6 * point.usual[trend.name]
    return f"; with this audit it changed: {usual:,.1f} per million were usual before"


def _between(point: TrendPoint, trend: _Trend) -> str:
    if trend.is_of_rows or trend.name not in point.rates:
        return ""
    least, most = point.rates[trend.name].between
    return f", {1e6 * least:,.1f} to {1e6 * most:,.1f}"


def _latency(points: Sequence[TrendPoint], metric: Metric) -> tuple[Curve, ...]:
    """Of the audits that know it; none with fewer than two of them."""
    known = [(point, at) for point in points if (at := point.latency[metric]) is not None]
    if len(known) < 2:  # noqa: PLR2004 - as above
        return ()
    said = [(at, f"{point.end:%Y-%m-%d %H:%M} UTC: {_at_most(at)}") for point, at in known]
    return (_line(*METRICS[metric], said, last=_at_most(known[-1][1])),)


def _at_most(seconds: float) -> str:
    return f"≤ {length(timedelta(seconds=seconds))}"


def _line(title: str, meaning: str, said: Sequence[tuple[float, str]], *, last: str) -> Curve:
    """The values with their words, evenly from left to right, from zero up."""
    most = max(*(value for value, _ in said), 1e-9)
    step = (_TREND_WIDTH - 20) / (len(said) - 1)
    return Curve(
        title=title,
        meaning=meaning,
        last=last,
        points=tuple(
            (
                round(10 + index * step, 1),
                round(_TREND_HEIGHT - 10 - (_TREND_HEIGHT - 22) * value / most, 1),
                words,
            )
            for index, (value, words) in enumerate(said)
        ),
    )


def script_map(found: HeatMap, drawn: Drawing) -> dict[str, object]:
    """The map as a JSON object: a letter per place, and counts where they are not zero."""
    names = {name for row in found.rows for name in row.verdicts} - {NO_SHARD}
    return {
        "start": round(found.bins.start.timestamp() * 1000),
        "step": round(found.bins.width.total_seconds() * 1000),
        "bins": found.bins.count,
        "left": LEFT,
        "top": TOP,
        "width": WIDTH,
        "cellWidth": drawn.cell_width,
        "cellHeight": drawn.cell_height,
        "metric": METRICS[found.metric][0],
        "notKnown": NOT_KNOWN.get(found.metric, ""),
        "verdicts": {letter(name): [name, MEANINGS[name]] for name in sorted(names)},
        "rows": [_row(row) for row in found.rows],
    }


def _row(row: MapRow) -> dict[str, object]:
    seconds = {"seconds": list(row.seconds)} if row.seconds else {}
    return {
        "first": row.group.first,
        "last": row.group.last,
        "shards": row.group.shards,
        "letters": "".join(letter(name) or " " for name in row.verdicts),
        "sent": list(row.counts["sent"]),
        "reasons": {i: why for i, why in enumerate(row.reasons) if why},
        **{name: {i: n for i, n in enumerate(row.counts[name]) if n} for name in _SPARSE},
        **seconds,
    }
