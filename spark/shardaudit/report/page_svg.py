"""Where things are drawn: numbers for the SVG of a map and of a trend, no colours."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby

from shardaudit.model.verdict import Verdict
from shardaudit.report.page_map import HeatMap, MapRow
from shardaudit.report.page_streams import TrendPoint
from shardaudit.report.page_words import NO_SHARD

WIDTH, LEFT, TOP = 1200.0, 172.0, 22.0
_HIGHEST_ROW, _LOWEST_ROW, _MAP_HEIGHT = 22.0, 5.0, 780.0
_LABEL_HEIGHT = 11.0
_LETTER_WIDTH = 11.0
_TICKS = 8
_TREND_WIDTH, _TREND_HEIGHT = 360.0, 84.0


@dataclass(frozen=True, slots=True)
class Label:
    """The name of a row, at its height; only as many as can be read."""

    y: float
    row: MapRow


@dataclass(frozen=True, slots=True)
class Letter:
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
    letters: tuple[Letter, ...]
    ticks: tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True)
class Curve:
    """A trend: its points as (x, y, words), and the line through them."""

    title: str
    meaning: str
    last: str
    points: tuple[tuple[float, float, str], ...]

    @property
    def line(self) -> str:
        """The points as an SVG polyline wants them."""
        return " ".join(f"{x:g},{y:g}" for x, y, _ in self.points)


def drawing(found: HeatMap) -> Drawing:
    """The map's drawing; its size does not grow with what is in it."""
    height = min(_HIGHEST_ROW, max(_LOWEST_ROW, _MAP_HEIGHT / max(1, len(found.rows))))
    width = (WIDTH - LEFT) / found.bins.count
    outlines: dict[str, list[str]] = {}
    letters: list[Letter] = []
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
                letters += _letter(row, at, x + wide / 2, y + height / 2)
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
    """Loss, duplication and coverage over the audits; none with fewer than two audits."""
    if len(points) < 2:  # noqa: PLR2004 - a line has two ends
        return ()
    full = [1.0 if point.coverage is None else point.coverage for point in points]
    return (
        _curve("Lost", "missing messages per million sent", points, [p.lost for p in points]),
        _curve("Doubled", "extra rows per million landed", points, [p.doubled for p in points]),
        _curve(
            "Untraced",
            "landed without a trace, per million",
            points,
            [1e6 * (1 - share) for share in full],
        ),
    )


def _letter(row: MapRow, at: int, x: float, y: float) -> list[Letter]:
    if row.verdicts[at] == Verdict.OK:
        return []
    from_row = MapRow(row.group, (row.verdicts[at],), (), {}, ())
    return [Letter(x, y, from_row.letter, row.verdicts[at])]


def _labels(rows: Sequence[MapRow], height: float) -> tuple[Label, ...]:
    """Each row's where there is room; otherwise those in trouble come first."""
    order = list(Verdict)
    by_urgency = sorted(
        range(len(rows)),
        key=lambda i: (order.index(Verdict(rows[i].worst)) if rows[i].worst in order else 5, i),
    )
    taken: list[int] = []
    apart = -(-_LABEL_HEIGHT // height)
    for index in by_urgency:
        if all(abs(index - other) >= apart for other in taken):
            taken.append(index)
    return tuple(Label(TOP + (index + 0.5) * height, rows[index]) for index in sorted(taken))


def _ticks(found: HeatMap) -> tuple[tuple[float, str], ...]:
    bins = found.bins
    step = max(1, bins.count // _TICKS)
    if bins.width * step > timedelta(hours=12):
        step = max(
            1,
            round(timedelta(days=1) / bins.width) * max(1, step * bins.width // timedelta(days=1)),
        )
    is_long = bins.width * bins.count > timedelta(days=1)
    day_start = next(
        (i for i in range(bins.count) if not (bins.at(i).hour or bins.at(i).minute)), 0
    )
    first = day_start % step
    return tuple(
        (
            LEFT + index * (WIDTH - LEFT) / bins.count,
            bins.at(index).strftime("%d %b %H:%M" if is_long else "%H:%M"),
        )
        for index in range(first, bins.count, step)
        if index < bins.count - step // 2 or not index
    )


def _curve(
    title: str, meaning: str, points: Sequence[TrendPoint], values: Sequence[float]
) -> Curve:
    most = max(*values, 1e-9)
    step = (_TREND_WIDTH - 20) / (len(points) - 1)
    return Curve(
        title=title,
        meaning=meaning,
        last=f"{values[-1]:,.1f}",
        points=tuple(
            (
                round(10 + index * step, 1),
                round(_TREND_HEIGHT - 10 - (_TREND_HEIGHT - 22) * value / most, 1),
                f"{point.end:%Y-%m-%d %H:%M} UTC: {value:,.1f} per million ({point.verdict})",
            )
            for index, (point, value) in enumerate(zip(points, values, strict=True))
        ),
    )
