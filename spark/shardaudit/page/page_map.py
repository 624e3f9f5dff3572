"""The heat map of shards × time as a frozen value, and its numbers for a hover.

`page_svg.py` draws it.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from shardaudit.model.verdict import Verdict, by_rank
from shardaudit.page.page_words import (
    LETTERS,
    LEVELS,
    NO_SHARD,
    UNKNOWN,
    UNKNOWN_LETTER,
    Metric,
)
from shardaudit.store.cell_grid import (
    COUNTED,
    Bins,
    CellGrid,
    LatencyGrid,
    SecondsGrid,
    ShardGroup,
    quantile,
)

# Worse than what is merely late or untraced, better than what is known to be wrong.
_ABOVE_UNKNOWN = [one for one in Verdict if one.rank > Verdict.INCONCLUSIVE.rank]
_RATES = {Metric.LOSS: ("missing", "sent"), Metric.DUPLICATION: ("extra_rows", "landed")}
SHARES = {Metric.P50: 0.5, Metric.P99: 0.99}
_TIMES = (*SHARES, Metric.SKEW)


@dataclass(frozen=True, slots=True)
class MapRow:
    """Some neighbouring shards. `verdicts`: of each bin, or UNKNOWN, or NO_SHARD.

    `marks`: what each bin looks like: a verdict's name, `level-0` to `level-5`, UNKNOWN, NO_SHARD.
    `seconds`: of each bin, of a metric that is a length of time; none for others. `reasons`: of
    each bin, why its verdict is what it is where no message tells.
    """

    group: ShardGroup
    verdicts: tuple[str, ...]
    marks: tuple[str, ...]
    counts: dict[str, tuple[int, ...]]
    seconds: tuple[float | None, ...]
    reasons: tuple[str | None, ...]

    @property
    def label(self) -> str:
        """The shard, or the first and how many follow."""
        more = self.group.shards - 1
        return self.group.first if not more else f"{self.group.first} +{more}"

    @property
    def worst(self) -> str:
        """The worst verdict of the row, by name."""
        return worst_of(self.verdicts)

    @property
    def is_good(self) -> bool:
        """Whether nobody has to look: what no audit looked at is not."""
        return self.worst in list(Verdict) and Verdict(self.worst).is_good

    @property
    def letter(self) -> str:
        """The letter of the worst verdict."""
        return letter(self.worst)


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Rows of shards, the columns' times, and what is shown."""

    metric: Metric
    bins: Bins
    rows: tuple[MapRow, ...]

    @property
    def shards(self) -> int:
        """How many shards there are in it."""
        return sum(row.group.shards for row in self.rows)

    @property
    def worst(self) -> str:
        """The worst verdict in it, by name; UNKNOWN without a row."""
        return worst_of([row.worst for row in self.rows]) or UNKNOWN

    def total(self, name: str) -> int:
        """The sum of a count over the map."""
        return sum(sum(row.counts[name]) for row in self.rows)


def heat_map(
    grid: CellGrid,
    bins: Bins,
    *,
    unseen: frozenset[int],
    metric: Metric,
    seconds: SecondsGrid | None = None,
) -> HeatMap:
    """The map of a grid; `unseen` are the bins that no audit saw whole."""
    known = frozenset(
        i for row in seconds or [] for i, value in enumerate(row) if value is not None
    )
    rows = []
    for index, group in enumerate(grid.groups):
        verdicts = tuple(
            _verdict(found, is_blind=i in unseen) for i, found in enumerate(grid.worst[index])
        )
        counts = {name: tuple(grid.counts[name][index]) for name in COUNTED}
        times = tuple(seconds[index] if seconds else (None,) * bins.count)
        if metric is Metric.VERDICT:
            marks = verdicts
        elif metric is Metric.SKEW:
            marks = tuple(_skew_mark(value, is_watched=i in known) for i, value in enumerate(times))
        else:
            marks = _marks(verdicts, _values(counts, times, metric), metric)
        shown = times if metric in _TIMES else ()
        reasons = tuple(grid.reasons[index])
        rows.append(MapRow(group, verdicts, marks, counts, shown, reasons))
    return HeatMap(metric, bins, tuple(rows))


def empty_bins(grid: CellGrid, bins: Bins) -> frozenset[int]:
    """The bins without any cell: of a whole stream, nobody saw them, whatever an audit claims.

    An audit has a cell for each shard that lived, and some shard always lives.
    """
    return frozenset(i for i in range(bins.count) if all(row[i] is None for row in grid.worst))


def letter(name: str) -> str:
    """The letter of a verdict by its name."""
    if name == NO_SHARD:
        return ""
    return UNKNOWN_LETTER if name == UNKNOWN else LETTERS[Verdict(name)]


def worst_of(names: Sequence[str]) -> str:
    """The worst of verdicts, UNKNOWN among them; NO_SHARD when there is none."""
    present = {Verdict(name) for name in names if name not in {UNKNOWN, NO_SHARD}}
    worst = max(present, key=by_rank, default=None)
    return _verdict(worst, is_blind=True) if UNKNOWN in names else (worst or NO_SHARD)


def latency_seconds(latency: LatencyGrid, metric: Metric) -> SecondsGrid:
    """The metric's quantile of each place."""
    share = SHARES[metric]
    return [[quantile(counts, share) if counts else None for counts in row] for row in latency]


def _verdict(found: Verdict | None, *, is_blind: bool) -> str:
    if not is_blind:
        return NO_SHARD if found is None else found.value
    return found.value if found in _ABOVE_UNKNOWN else UNKNOWN


def _values(
    counts: dict[str, tuple[int, ...]], seconds: tuple[float | None, ...], metric: Metric
) -> list[float | None]:
    if metric.is_latency:
        return list(seconds)
    part, whole = _RATES[metric]
    return [
        p / w if w else (0.0 if not p else 1.0)
        for p, w in zip(counts[part], counts[whole], strict=True)
    ]


def _marks(
    verdicts: tuple[str, ...], values: list[float | None], metric: Metric
) -> tuple[str, ...]:
    levels = LEVELS[metric]
    return tuple(
        _mark(verdict, value, levels) for verdict, value in zip(verdicts, values, strict=True)
    )


def _skew_mark(value: float | None, *, is_watched: bool) -> str:
    """What the watch saw, whatever an audit says; a shard that was not at work has no skew."""
    if value is None:
        return NO_SHARD if is_watched else UNKNOWN
    return f"level-{bisect_left(LEVELS[Metric.SKEW], value)}"


def _mark(verdict: str, value: float | None, levels: tuple[float, ...]) -> str:
    """A level where something is known; what no audit saw stays unknown, whatever the number."""
    if verdict in {UNKNOWN, NO_SHARD}:
        return verdict
    if value is None:  # nothing landed: fine on an idle shard, and no number on any other
        return NO_SHARD if verdict == Verdict.OK else UNKNOWN
    return f"level-{bisect_left(levels, value)}"
