"""What was delivered in some time, in counts that add up: a week is the sum of its minutes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from math import inf, sqrt
from operator import add

from shardaudit.model.rates import audit_rates, counts_of_rates
from shardaudit.model.tables.table import LATENCY_BINS
from shardaudit.report.delivery_view import Between, DeliveryLine, LatencyLine
from shardaudit.store.audits import CELL_SUMS
from shardaudit.store.cell_grid import quantile

DELIVERED = ("cells", "inconclusive", *CELL_SUMS)
_SHARES = (0.5, 0.9, 0.99, 0.999, 1.0)
_NO_END = 2.0 ** (LATENCY_BINS - 1)  # what `quantile` says of the last bin, which is open
_THIRDS = 80  # cut off: 10^6 s are some nanoseconds then


@dataclass(frozen=True, slots=True)
class Delivery:
    """Cells that the newest audits of their minutes saw, and the latencies of their rows.

    `audited`: how much time that is; none of it: nothing is known. `counts`: by `DELIVERED`: how
    many cells, how many of them inconclusive, and what all add up to. `latencies`: rows by bin of
    latency, those with a landing time that no backfill landed.
    """

    audited: timedelta = timedelta(0)
    counts: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(DELIVERED, 0))
    latencies: tuple[int, ...] = (0,) * LATENCY_BINS

    def __add__(self, other: "Delivery") -> "Delivery":
        """Of both, which share no time, or no shard of one time."""
        return Delivery(
            self.audited + other.audited,
            {name: self.counts[name] + other.counts[name] for name in DELIVERED},
            tuple(map(add, self.latencies, other.latencies)),
        )

    @property
    def landed_ids(self) -> int:
        """Messages that landed, however often."""
        return self.counts["matched"] + self.counts["untraced"]

    def line(self, name: str, *, sample_rate: float) -> DeliveryLine:
        """What a reader is told of it."""
        if not self.audited:
            return DeliveryLine(name, 0.0, None)
        seconds, counts = self.audited.total_seconds(), self.counts
        is_known = counts["inconclusive"] < counts["cells"]
        return DeliveryLine(
            name,
            seconds,
            counts,
            shares={
                name: count / of if of and is_known else None
                for name, (count, of) in counts_of_rates(counts).items()
            },
            rates=audit_rates(counts, sample_rate=sample_rate) if is_known else {},
            sent_per_s=counts["sent"] / seconds,
            landed_per_s=counts["landed"] / seconds,
            latency=latency_line(self.latencies),
        )


def latency_line(counts: Sequence[int]) -> LatencyLine | None:
    """What is known of latencies by their bins; None: there is none.

    Input:
        counts: of rows, by bin.
    """
    # Below zero: a row left the sink of whose arrival the ledger knows nothing.
    counts = [max(0, count) for count in counts]
    rows = sum(counts)
    if not rows:
        return None
    ends = (quantile(counts, share) for share in _SHARES)
    p50, p90, p99, p999, latest = (None if end == _NO_END else end for end in ends)
    mean, deviation = _moments([_Bin(n, i) for i, n in enumerate(counts) if n], rows)
    return LatencyLine(rows, p50, p90, p99, p999, latest, mean, deviation)


@dataclass(frozen=True, slots=True)
class _Bin:
    rows: int
    number: int

    @property
    def least(self) -> float:
        return 2.0 ** (self.number - 1) if self.number else 0.0

    @property
    def most(self) -> float:
        return inf if self.number == LATENCY_BINS - 1 else 2.0**self.number


def _moments(bins: Sequence[_Bin], rows: int) -> tuple[Between, Between]:
    """Between which ends the mean of the rows lies, and their standard deviation."""

    def nearest(middle: float) -> float:
        """The least mean square that the rows can be away from a middle."""
        away = (each.rows * max(each.least - middle, 0.0, middle - each.most) ** 2 for each in bins)
        return sum(away) / rows

    def farthest(middle: float) -> float:
        """The greatest."""
        away = (each.rows * max(middle - each.least, each.most - middle) ** 2 for each in bins)
        return sum(away) / rows

    # The variance is the mean square distance from that middle from which it is least.
    least_mean = sum(each.rows * each.least for each in bins) / rows
    least = sqrt(_least_of(nearest))
    if bins[-1].most == inf:
        return (least_mean, None), (least, None)
    most_mean = sum(each.rows * each.most for each in bins) / rows
    return (least_mean, most_mean), (least, sqrt(_least_of(farthest)))


def _least_of(convex: Callable[[float], float]) -> float:
    """The least value of a convex function over all latencies that have a bin with an end."""
    low, high = 0.0, _NO_END / 2
    for _ in range(_THIRDS):
        third = (high - low) / 3
        if convex(low + third) < convex(high - third):
            high -= third
        else:
            low += third
    return convex((low + high) / 2)
