"""From a page's state and the warehouse to the values that its templates show."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from threading import Lock

from shardaudit.adapters.lake.delta_rs import Row
from shardaudit.model.audit_id import newest_audit, shape_of
from shardaudit.model.config.choices import PositionSource
from shardaudit.model.config.eras import CellShape
from shardaudit.model.config.settings import Settings
from shardaudit.model.rates import audit_rates
from shardaudit.model.verdict import Kind
from shardaudit.model.window import EPOCH, Window
from shardaudit.page.page_findings import FindingList, finding_rows
from shardaudit.page.page_lines import StreamLine, stream_line
from shardaudit.page.page_map import HeatMap, empty_bins, heat_map, latency_seconds
from shardaudit.page.page_places import place_map
from shardaudit.page.page_state import PageState
from shardaudit.page.page_words import Metric
from shardaudit.report.health import OLD_AUDIT, is_old, not_known
from shardaudit.report.next_steps import late_lines
from shardaudit.report.rate_lines import sampled_line
from shardaudit.report.route_lines import hop_rates, hops_from_json
from shardaudit.store.audits import (
    given_up_spans,
    late_audits,
    newest_watch,
    seen_positions,
    waiting_time,
)
from shardaudit.store.cell_grid import ALL_SHARDS, Bins, Segment, audit_spans, newest_segments
from shardaudit.store.cells import read_grid, read_latency, read_skew
from shardaudit.store.health_times import last_read, read_to_come
from shardaudit.store.published import audit_notes
from shardaudit.store.read_findings import (
    Findings,
    OpenCount,
    WantedFindings,
    gaps_of,
    read_findings,
    transitions_of,
)
from shardaudit.store.read_places import read_place_grid

MAX_BINS = 200
_MINUTE, _DAY = timedelta(minutes=1), timedelta(days=1)
_NICE = (
    *(_MINUTE * minutes for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720)),
    *(_DAY * days for days in (1, 2, 7, 14, 28)),
)

MAP_ROWS = 150
SHOWN_FINDINGS = 100
# The ledger's latencies are 22 numbers a cell: two days of 1,800 shards take a second.
MAX_LATENCY_CELLS = 1_000_000
_ONE_MAP = Lock()  # at a time: each takes some 0.4 GiB while it is read, and every core


def bins_of(window: Window, *, bucket: timedelta) -> Bins:
    """The finest readable bins that a screen holds, of whole buckets, over the whole window."""
    # One bin less than fits: the window need not begin where a bin does.
    least = (window.end - window.start) / (MAX_BINS - 1)
    widths = (width for width in (bucket, *_NICE) if width % bucket == timedelta(0))
    width = next((w for w in widths if w >= bucket and w >= least), _NICE[-1])
    start = window.start - (window.start - EPOCH) % width
    return Bins(start, width, -((start - window.end) // width))


def widest_of(audits: Iterable[Row], segments: Iterable[Segment], usual: CellShape) -> timedelta:
    """The width of the widest cell of the audits whose cells are shown."""
    shown = {segment.audit_id for segment in segments}
    shapes = [shape_of(row, usual) for row in audits if row["audit_id"] in shown]
    return max((shape.bucket for shape in shapes), default=usual.bucket)


def unseen_bins(bins: Bins, segments: Iterable[Segment], window: Window) -> frozenset[int]:
    """The bins of which some part of the window belongs to no audit: nothing is known there."""
    seen = sorted((segment.start, segment.end) for segment in segments)
    unseen = set()
    for index in range(bins.count):
        at = max(bins.at(index), window.start)
        end = min(bins.at(index) + bins.width, window.end)
        for start, stop in seen:
            if start <= at < stop:
                at = stop
        if at < end:
            unseen.add(index)
    return frozenset(unseen)


@dataclass(frozen=True, slots=True)
class Shown:
    """A map, the time it shows, the audits it is of, and why a part of it may be missing.

    `places`: the same of the route's places; None: there are none, or only some shards are shown.
    """

    window: Window
    segments: tuple[Segment, ...]
    found: HeatMap
    note: str | None
    places: HeatMap | None = None


def read_line(
    settings: Settings,
    name: str,
    audits: Sequence[Row],
    *,
    findings: Sequence[OpenCount],
    now: datetime,
) -> tuple[StreamLine, list[Row]]:
    """The stream's line, and the shards of its newest watch."""
    shards = newest_watch(settings, name, now=now)
    line = stream_line(name, audits=audits, findings=findings, shards=shards, now=now)
    read_at = last_read(settings, name, now=now)
    to_come = read_to_come(settings, name, now=now)
    is_read_old = is_old(read_at, now, limit=OLD_AUDIT)
    line = replace(line, read_at=read_at, is_read_old=is_read_old, notes=to_come)
    stream, newest = settings.stream(name), newest_audit(audits)
    if line.watched_at is not None:
        positions = seen_positions(settings, name, since=line.watched_at, now=now)
        asked = stream.positions.source is not PositionSource.SINK
        unknown = not_known(shards, positions, is_consumer_asked=asked)
        line = replace(line, not_known=unknown)
    if newest is None:
        return line, shards
    hops = hops_from_json(newest["hops"])
    sample_rate = shape_of(newest, stream.cell_shape).sample_rate
    rates = audit_rates(newest, sample_rate=sample_rate)
    # An audit by hand, or after a repair, says nothing of what waits.
    night = newest_audit(row for row in audits if row["waiting"] is not None) or newest
    late = late_lines(
        late_audits(audits, newest["audit_id"]), waiting_time(night), given_up_spans(night)
    )
    sampled = sampled_line(rates)
    # The page lists what has expired among the findings.
    said = (
        *to_come,
        *late,
        *([sampled] if sampled else []),
        *audit_notes(newest, (), stream=stream),
    )
    place_rates = hop_rates(hops, sample_rate=sample_rate)
    return replace(line, notes=said, hops=hops, rates=rates, place_rates=place_rates), shards


def read_map(
    settings: Settings, state: PageState, audits: Sequence[Row], *, now: datetime
) -> Shown:
    """The map of the state's window, or of the newest audit's, or of the last day."""
    with _ONE_MAP:
        return _read_map(settings, state, audits, now)


def _read_map(settings: Settings, state: PageState, audits: Sequence[Row], now: datetime) -> Shown:
    stream = settings.stream(state.stream)
    newest = newest_audit(audits)
    of_audit = newest and Window(newest["window_start"], newest["window_end"])
    window = state.window or of_audit or Window(now - timedelta(days=1), now)
    segments = newest_segments(audit_spans(audits), window)
    bucket = widest_of(audits, segments, stream.cell_shape)
    bins = bins_of(window, bucket=bucket)
    grid = read_grid(settings, segments, bins, shards=state.shards, rows=MAP_ROWS)
    seconds, note = None, None
    if state.metric.is_latency:
        shards = sum(group.shards for group in grid.groups)
        cells = shards * (bins.width * bins.count // bucket)
        if cells <= MAX_LATENCY_CELLS:
            latency = read_latency(settings, state.stream, bins, grid.groups)
            seconds = latency_seconds(latency, state.metric)
        else:
            note = _too_many(cells, shards, bucket)
    elif state.metric is Metric.SKEW:
        seconds = read_skew(settings, state.stream, bins, grid.groups)
    unseen, places = unseen_bins(bins, segments, window), None
    if state.shards == ALL_SHARDS:
        unseen |= empty_bins(grid, bins)
        if stream.route.places and grid.groups:
            of_places = read_place_grid(settings, state.stream, bins)
            places = place_map(of_places, grid, bins, unseen=unseen)
    found = heat_map(grid, bins, unseen=unseen, metric=state.metric, seconds=seconds)
    return Shown(window, segments, found, note, places)


def read_finding_rows(
    settings: Settings, state: PageState, window: Window | None, *, most_read: int | None = None
) -> FindingList:
    """The first findings of the state, whole, and how many there are.

    Input:
        most_read: how many findings, and then transitions, are looked at; None: all.
    """
    wanted = wanted_findings(state, window)
    found = read_findings(settings, wanted, limit=SHOWN_FINDINGS, most_read=most_read)
    steps = transitions_of(settings, state.stream, found.rows, most_read=most_read)
    rows = finding_rows(found.rows, steps)
    return FindingList(rows, found.total, _list_note(found))


def _list_note(found: Findings) -> str | None:
    """What the list is not, in a sentence."""
    shown, total = f"{len(found.rows):,}", f"{found.total:,}"
    more = "" if found.is_counted else " or more"
    if not found.is_whole:
        return (
            f"{shown} of {total}{more}, not those with the nearest deadline: a page does not look "
            "through more findings than this took. Choose a kind, a state or a time; all are in "
            "`shardaudit findings list` and in the CSV."
        )
    if found.total > len(found.rows):
        return f"The {shown} with the nearest deadline of {total}{more}."
    return None


def read_gaps(settings: Settings, state: PageState, window: Window | None) -> tuple[list[Row], int]:
    """The first gaps of the state, and how many there are: messages of them have no id there."""
    if state.part or state.kind not in {"", Kind.MISSING.value}:
        return [], 0
    gaps = gaps_of(settings, stream=state.stream, state=state.state or None, shards=state.shards)
    inside = [gap for gap in gaps if window is None or window.covers(gap["bucket_start"])]
    return inside[:SHOWN_FINDINGS], len(inside)


def wanted_findings(state: PageState, window: Window | None) -> WantedFindings:
    """The findings that a state asks for."""
    return WantedFindings(state.findings, state.shards, window, state.part)


def _too_many(cells: int, shards: int, bucket: timedelta) -> str:
    hours = MAX_LATENCY_CELLS // max(1, shards) * bucket / timedelta(hours=1)
    return (
        f"Latency is not shown: {cells:,} cells are more than the {MAX_LATENCY_CELLS:,} that a "
        f"page reads. Choose at most {hours:,.0f} hours, or fewer shards (click a row)."
    )
