"""The statistics of a stream's delivery: the same values for people and for other tools."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from shardaudit.model.rates import Rate
from shardaudit.model.window import Window
from shardaudit.model.words import counted, length
from shardaudit.report.plain import cell, harmless, instant
from shardaudit.report.rate_lines import rated

_SHOWN = 5  # spans that no audit looked at
_RATES = ("missing", "duplicated", "untraced")
_OF_LATENCY = ("p50", "p90", "p99", "p99.9", "max", "mean", "deviation")
_OF_PLACE = ("lost", "doubtful", "doubled")
_NONE = "–"
Between = tuple[float, float | None]  # the least and the greatest that may be; None: it has no end


@dataclass(frozen=True, slots=True)
class LatencyLine:
    """From `sent_at` to the landing, in seconds: of each share the upper end of its bin.

    `rows`: of so many. None: more than 2^20 s (12 days), where bins end. The mean and
    the standard deviation lie between what rows of these bins may have at least and at most.
    """

    rows: int
    p50: float | None
    p90: float | None
    p99: float | None
    p999: float | None
    max: float | None
    mean_between: Between
    deviation_between: Between


@dataclass(frozen=True, slots=True)
class DeliveryLine:
    """One stream, shard or hour. `counts` None: no audit looked, and nothing is known of it.

    `hour`: the one of a shard's, where rows are of both; `name` None: of an hour that no audit saw.
    `audited_s`: how many seconds of it the counts are of; a shard's are those in which it has
    cells. `counts`: by the names of CELLS, beside how many `cells` there are and how many of them
    are `inconclusive`, and what filters of a route left out, `filtered`; `shares`: of
    `counts_of_rates`, as fractions, None: of nothing, or all is inconclusive; `rates`: of
    `audit_rates`, none where the counts are exact; `latency`: None: nothing landed.
    """

    name: str | None
    audited_s: float
    counts: Mapping[str, int] | None
    shares: Mapping[str, float | None] = field(default_factory=dict)
    rates: Mapping[str, Rate] = field(default_factory=dict)
    sent_per_s: float | None = None
    landed_per_s: float | None = None
    latency: LatencyLine | None = None
    hour: str | None = None


@dataclass(frozen=True, slots=True)
class PlaceLine:
    """One place of a route, from the producer to the sink. Counts are of messages.

    `received`, `sent`, `left_out`: what it traced; of the producer what was acknowledged, of the
    sink what landed. `lost`: never reached it; `doubtful`: that is inconclusive of them;
    `doubled`: after it.
    `trace_loss`: of what landed and had passed it, how much it did not trace, as a fraction.
    `…_latency`: from `sent_at` to when it received a message, or knew it sent on; `…_early`:
    messages that are in none of them, as the place says that it was more than 1 s before `sent_at`.
    `rates`: of a sample, of `lost`, `doubtful`, `doubled` and `trace_loss`, where they are known.
    `hour`: where rows are of one. None: unknown, or it has no such thing.
    """

    location: str
    after: tuple[str, ...]
    audited_s: float = 0.0
    received: int | None = None
    sent: int | None = None
    left_out: int | None = None
    received_per_s: float | None = None
    sent_per_s: float | None = None
    lost: int | None = None
    doubtful: int | None = None
    doubled: int | None = None
    trace_loss: float | None = None
    rates: Mapping[str, Rate] = field(default_factory=dict)
    received_latency: LatencyLine | None = None
    received_early: int | None = None
    sent_latency: LatencyLine | None = None
    sent_early: int | None = None
    hour: str | None = None


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a stream delivered in a window: as a whole, and row by row.

    `by`: what a row is of, one or two of which the first is the hour; `sample_rate`: of the ids
    that all counts are of; `unaudited`: the time of the window that no audit looked at, and of
    which nothing here says anything.
    `unplaced`: where rows are of places, messages missing as of their audit of which no hop is
    known now.
    """

    stream: str
    window: Window
    by: Sequence[str]
    sample_rate: float
    unaudited: Sequence[Window]
    whole: DeliveryLine
    rows: Sequence[DeliveryLine] | Sequence[PlaceLine]
    unplaced: int | None = None


def statistics_view(found: Statistics) -> RenderableType:
    """The same for people."""
    window = f"{instant(found.window.start)} to {instant(found.window.end)}"
    rows = [row for row in found.rows if isinstance(row, DeliveryLine)]
    places = [row for row in found.rows if isinstance(row, PlaceLine)]
    is_whole = "stream" in found.by or bool(places)
    lines = [found.whole] if is_whole else [found.whole, *rows]
    firsts = ("stream",) if is_whole else tuple(found.by)
    return Group(
        Text(f"{harmless(found.stream)}, {window}", style="bold"),
        *([_routed(places, found.by), _passed(places, found.by)] if places else []),
        _delivered(lines, firsts),
        _timed(lines, firsts),
        *(Text(f"• {note}", no_wrap=True, overflow="ignore") for note in _notes(found)),
    )


def _delivered(lines: Sequence[DeliveryLine], firsts: Sequence[str]) -> Table:
    is_filtered = any(line.counts and line.counts["filtered"] for line in lines)
    names = ("sent", "landed", *_RATES, "pending", *(["filtered"] if is_filtered else []))
    table = _numbers(firsts, "audited", "inconclusive", *names)
    for line in lines:
        if line.counts is None:
            unknown = ("not audited", *[_NONE] * (1 + len(names)))
            table.add_row(*_named(line, firsts), *unknown)
            continue
        counts = {name: f"{line.counts[name]:,}" for name in names}
        counts |= {name: _with_share(line, name, counts[name]) for name in _RATES}
        audited = length(timedelta(seconds=line.audited_s))
        doubtful = line.counts["inconclusive"] / line.counts["cells"]
        table.add_row(*_named(line, firsts), audited, f"{doubtful:.1%}", *counts.values())
    return table


def _named(line: DeliveryLine, firsts: Sequence[str]) -> list[Text]:
    """What a row is of; that of the whole, and of an unknown hour, has no second one."""
    names = [line.name or _NONE] if line.hour is None else [line.hour, line.name or _NONE]
    return [cell(name) for name in (*names, "")[: len(firsts)]]


def _with_share(line: DeliveryLine, name: str, count: str) -> str:
    """The count with its share of all, or the interval of that."""
    if line.counts and line.counts["inconclusive"] == line.counts["cells"]:
        return "unknown"
    if name in line.rates:
        return rated(count, name, line.rates)
    share = line.shares[name]
    return count if share is None else f"{count} ({share:.4%})"


def _timed(lines: Sequence[DeliveryLine], firsts: Sequence[str]) -> Table:
    table = _numbers(firsts, "sent per s", "landed per s", *_OF_LATENCY)
    for line in lines:
        per_s = (_per_s(line.sent_per_s), _per_s(line.landed_per_s))
        table.add_row(*_named(line, firsts), *per_s, *_latencies(line.latency))
    return table


def _latencies(line: LatencyLine | None) -> list[str]:
    if line is None:
        return [_NONE] * len(_OF_LATENCY)
    ends = (line.p50, line.p90, line.p99, line.p999, line.max)
    told = ["> 12 d" if end is None else f"≤ {end:,.0f} s" for end in ends]
    return [*told, _between(line.mean_between), _between(line.deviation_between)]


def _between(ends: Between) -> str:
    least, most = ends
    return f"> {least:,.1f} s" if most is None else f"{least:,.1f} to {most:,.1f} s"


def _routed(places: Sequence[PlaceLine], firsts: Sequence[str]) -> Table:
    names = ["received", "per s", "sent on", "per s", "lost before it", "may be lost before it"]
    has_filter = any(place.left_out for place in places)
    if has_filter:
        names.insert(4, "left out")
    table = _numbers(firsts, "audited", *names, "doubled after it", "trace loss")
    for place in places:
        table.add_row(
            *_placed(place, firsts),
            length(timedelta(seconds=place.audited_s)) if place.audited_s else "not audited",
            *(_count(place.received), _per_s(place.received_per_s)),
            *(_count(place.sent), _per_s(place.sent_per_s)),
            *([_count(place.left_out)] if has_filter else []),
            *(rated(_count(getattr(place, name)), name, place.rates) for name in _OF_PLACE),
            rated(_share(place.trace_loss), "trace_loss", place.rates),
        )
    return table


def _passed(places: Sequence[PlaceLine], firsts: Sequence[str]) -> Table:
    """When messages came to the places, and went on."""
    table = _numbers(firsts, "sent_at to", "messages", "before sent_at", *_OF_LATENCY)
    for place in places:
        for what, line, early in (
            ("received", place.received_latency, place.received_early),
            ("sent on", place.sent_latency, place.sent_early),
        ):
            if line or early:
                rows = line.rows if line else 0
                told = (_count(rows), _count(early), *_latencies(line))
                table.add_row(*_placed(place, firsts), what, *told)
    return table


def _placed(place: PlaceLine, firsts: Sequence[str]) -> list[Text]:
    return [cell(name or _NONE) for name in (place.hour, place.location)[-len(firsts) :]]


def _notes(found: Statistics) -> list[str]:
    """What the numbers are not."""
    counts, notes = found.whole.counts or {}, []
    if found.unaudited:
        whole = length(sum((w.end - w.start for w in found.unaudited), timedelta(0)))
        spans = [f"{instant(w.start)} to {instant(w.end)}" for w in found.unaudited[:_SHOWN]]
        more = len(found.unaudited) - len(spans)
        spans += [f"{counted(more, 'more span')} (--json)"] if more else []
        notes.append(f"not audited, and unknown: {whole} ({', '.join(spans)})")
    if counts.get("inconclusive"):
        of = counted(counts["cells"], "cell")
        notes.append(f"{counts['inconclusive']:,} of {of} inconclusive: their counts may be wrong")
    if found.sample_rate < 1:
        notes.append(
            f"counts, also those per s, are of a sample of {found.sample_rate:.4g} of the ids; "
            "shares are 95 % intervals of all messages"
        )
    if found.unplaced:
        lost = counted(found.unplaced, "missing message")
        why = "of gaps, left out by a filter, or back since their audit"
        notes.append(f"{lost} on no hop of the route: {why}")
    return notes


def _numbers(firsts: Sequence[str], *names: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    for first in firsts:
        table.add_column(first, no_wrap=True)
    for name in names:
        table.add_column(name, justify="right")
    return table


def _count(count: int | None) -> str:
    return _NONE if count is None else f"{count:,}"


def _share(share: float | None) -> str:
    return _NONE if share is None else f"{share:.4%}"


def _per_s(rate: float | None) -> str:
    return _NONE if rate is None else f"{rate:,.2f}"
