"""Draws what `commands` measured, seconds over messages, both in powers of ten.

`python -m tests.bench.picture FILE.svg` reads `.bench/MESSAGES.json` of each size that is there.
"""

import json
import math
import sys
from dataclasses import dataclass
from html import escape
from pathlib import Path

from tests.bench.commands import FOLDER

WIDTH, HEIGHT = 860, 480
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 210, 24, 440
# Two looks tell embedded and Apache Spark apart, also without colours.
_COLOURS = {
    "Spark script": "#777777",
    "DuckDB script": "#000000",
    "first audit": "#b2182b",
    "again": "#2166ac",
    "watch": "#1b7837",
    "backfill plan": "#a6611a",
}
_LABEL_HEIGHT = 15.0


@dataclass(frozen=True, slots=True)
class Axis:
    """From a value above 0 to a place, by its power of ten; `first` and `last` are powers."""

    first: int
    last: int
    start: float
    end: float

    def at(self, value: float) -> float:
        share = (math.log10(value) - self.first) / (self.last - self.first)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        return [10.0**power for power in range(self.first, self.last + 1)]


def drawn(lines: dict[str, list[tuple[float, float]]]) -> str:
    """An SVG of lines, each of (messages, seconds) in the order of messages; none may be empty."""
    points = [point for line in lines.values() for point in line]
    x = _axis([messages for messages, _ in points], _LEFT, WIDTH - _RIGHT)
    y = _axis([seconds for _, seconds in points], _BOTTOM, _TOP)
    body = [_grid(x, y)]
    lowest = math.inf
    for name, line in sorted(lines.items(), key=lambda named: named[1][-1][1]):
        what, _, engine = name.partition(", ")
        colour = _COLOURS[what]
        dashes = ' stroke-dasharray="6 4"' if engine == "spark" else ""
        path = " ".join(f"{x.at(messages):.1f},{y.at(seconds):.1f}" for messages, seconds in line)
        body.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>'
        )
        seconds = line[-1][1]
        lowest = min(y.at(seconds) + 4, lowest - _LABEL_HEIGHT)
        told = escape(f"{name} {seconds:.0f} s")
        body.append(
            f'<text x="{WIDTH - _RIGHT + 8}" y="{lowest:.1f}" fill="{colour}">{told}</text>'
        )
    size = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    style = 'font-family="sans-serif" font-size="12"'
    paper = '<rect width="100%" height="100%" fill="white"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>{paper}{"".join(body)}</svg>\n'


def _axis(values: list[float], start: float, end: float) -> Axis:
    first = math.floor(math.log10(min(values)))
    return Axis(first, max(first + 1, math.ceil(math.log10(max(values)))), start, end)


def _grid(x: Axis, y: Axis) -> str:
    parts = []
    for value in x.ticks():
        at = f"{x.at(value):.1f}"
        parts += [
            f'<line x1="{at}" x2="{at}" y1="{_TOP}" y2="{_BOTTOM}" stroke="#dddddd"/>',
            f'<text x="{at}" y="{_BOTTOM + 18}" text-anchor="middle">{value:,.0f}</text>',
        ]
    for value in y.ticks():
        at = f"{y.at(value):.1f}"
        right = WIDTH - _RIGHT
        parts += [
            f'<line x1="{_LEFT}" x2="{right}" y1="{at}" y2="{at}" stroke="#dddddd"/>',
            f'<text x="{_LEFT - 6}" y="{at}" dy="4" text-anchor="end">{value:g} s</text>',
        ]
    middle = (_LEFT + WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">messages</text>')
    return "".join(parts)


def main(target: Path) -> None:
    """Writes the picture of all sizes that were measured."""
    sizes = {float(file.stem): file for file in FOLDER.glob("[0-9]e[0-9].json")}
    lines: dict[str, list[tuple[float, float]]] = {}
    for messages, file in sorted(sizes.items()):
        for name, measured in json.loads(file.read_text()).items():
            if isinstance(measured, dict):  # beside them are load and cores
                lines.setdefault(name, []).append((messages, measured["seconds"]))
    target.write_text(drawn(lines))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
