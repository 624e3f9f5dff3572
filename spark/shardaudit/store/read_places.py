"""What each place of a stream's route had, lost, doubled and did not trace: without Spark."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shardaudit.adapters.lake.delta_rs import DeltaRs
from shardaudit.model.config.settings import Settings
from shardaudit.model.input_columns import PRODUCER
from shardaudit.model.rates import Rate, came_to, counts_at_place, had_by_traces, sampled_rates
from shardaudit.model.route.lost_hops import LostHop, lost_before, lost_hops_from_json
from shardaudit.model.route.route import SINK, Route
from shardaudit.model.route.trace_loss import Traced, losses_as_of_new
from shardaudit.model.tables.audit_tables import FINDINGS
from shardaudit.model.verdict import ENDED, STANDING, Kind, State
from shardaudit.model.window import EPOCH, Window, unix_micros
from shardaudit.report.delivery_view import PlaceLine
from shardaudit.report.plain import instant
from shardaudit.store.cell_grid import Bins
from shardaudit.store.cells import bin_of, field_within, micros
from shardaudit.store.places.new_places import new_places_in
from shardaudit.store.places.place_sightings import (
    EVENT_COUNTS,
    Sighted,
    counted_at_places,
    counts_of_events,
    read_sighted,
)
from shardaudit.store.read_deliveries import HOUR_US, Deliveries, latency_line

_HOURS = Bins(EPOCH, timedelta(hours=1), 0)

_FINDING = ["kind", "location", "hops"]
_Found = Sequence[tuple[str, str, str | None, int]]  # kind, location, hops, and how many messages


def read_places(
    settings: Settings, name: str, deliveries: Deliveries, *, by_hour: bool = False
) -> tuple[list[PlaceLine], int | None]:
    """The producer, the route's places in its order, the sink; missing messages of no known hop.

    Of these some may be back since they were audited. Of the time that audits looked at; what was
    lost and doubled as findings stand now. Unknown, and None: no audit looked. What was lost before
    a place of which there is no trace, or doubled after it, nobody knows.

    Input:
        by_hour: all of them for each full hour, also for those that no audit saw.

    Raises:
        WarehouseUnreadableError: the warehouse does not answer.
    """
    tables, stream = DeltaRs(settings.warehouse, settings.aws), settings.stream(name)
    sighted = read_sighted(tables, name, deliveries)
    begins = new_places_in(tables, name, deliveries, sighted)
    found = _findings(tables, name, deliveries.audited)
    lines: list[PlaceLine] = []
    for start, part in deliveries.hourly.items() if by_hour else [(None, deliveries)]:
        traced, losses = _traced(stream.route, part, sighted, begins)
        hours = found if start is None else [unix_micros(start) // HOUR_US]
        of_part = [one for hour in hours for one in found.get(hour, ())]
        hour = None if start is None else instant(start)
        lines += [
            replace(line, hour=hour, rates=_rates(line, traced, sample_rate=stream.sample_rate))
            for line in _lines(stream.route, part, sighted, of_part, losses)
        ]
    whole = deliveries.whole
    if not whole.audited:
        return lines, None
    *_, placed = _placed([one for of in found.values() for one in of], _after(stream.route))
    return lines, max(0, whole.counts["missing"] - placed)


@dataclass(frozen=True, slots=True)
class PlaceGrid:
    """What is known of places by bin of time, whoever looked: the numbers of a map.

    `lines`: of the producer, the route's places, the sink, each by bin; what the producer and the
    sink had is not in it. `named`: of each bin the missing messages that findings name, also those
    that came back since.
    """

    lines: Mapping[str, Sequence[PlaceLine]]
    named: Sequence[int]


def read_place_grid(settings: Settings, name: str, bins: Bins) -> PlaceGrid:
    """What the places of a stream's route traced, lost and doubled, by bin.

    Raises:
        WarehouseUnreadableError: the warehouse does not answer.
    """
    tables, route = DeltaRs(settings.warehouse, settings.aws), settings.stream(name).route
    whole = Window(bins.start, bins.end)
    had = {place: np.zeros((bins.count, len(EVENT_COUNTS)), np.int64) for place in route.places}
    for batch in counted_at_places(tables, name, whole):
        counts = counts_of_events(batch)
        at = bin_of(batch.column("bucket_start"), bins)
        for place, mine in had.items():
            is_mine = pc.equal(batch.column("location"), place).to_numpy(zero_copy_only=False)
            np.add.at(mine, at[is_mine], counts[is_mine])
    found = _findings(tables, name, [whole], bins=bins)
    back = _findings(tables, name, [whole], bins=bins, states=ENDED)
    after, lines = _after(route), {}
    sums = [_placed(found.get(index, ()), after) for index in range(bins.count)]
    for place, before in after.items():
        traced = had[place].tolist() if place in had else [(None,) * len(EVENT_COUNTS)] * bins.count
        lines[place] = [
            PlaceLine(
                *(place, before),
                **dict[str, Any](zip(EVENT_COUNTS, of, strict=True)),
                lost=lost[place],
                doubtful=doubtful[place],
                doubled=doubled[place],
            )
            for of, (lost, doubtful, doubled, _) in zip(traced, sums, strict=True)
        ]
    named = [_missing(found.get(i, ())) + _missing(back.get(i, ())) for i in range(bins.count)]
    return PlaceGrid(lines, named)


def _after(route: Route) -> dict[str, tuple[str, ...]]:
    """The producer, the places and the sink, each with what leads to it."""
    places = {name: place.after for name, place in route.places.items()}
    return {PRODUCER: (), **places, SINK: tuple(route.last)}


def _missing(found: _Found) -> int:
    return sum(count for kind, *_, count in found if kind == Kind.MISSING.value)


def _lines(
    route: Route,
    part: Deliveries,
    sighted: Sighted,
    found: _Found,
    losses: Mapping[str, float],
) -> list[PlaceLine]:
    """The places over a part of the time; unknown where no audit looked.

    Input:
        losses: of `_traced`.
    """
    whole, seconds = part.whole, part.whole.audited.total_seconds()
    after = _after(route)
    if not seconds:
        return [PlaceLine(place, before) for place, before in after.items()]
    had: dict[str, Sequence[int | None]]
    had = {place: sighted.of(place, part.buckets) for place in route.places}
    silent = {place for place, counts in had.items() if not any(counts)}
    had = {PRODUCER: (None, whole.counts["sent"], None)} | had
    had[SINK] = (whole.landed_ids, None, None)
    if whole.landed_ids:
        losses = {**losses, PRODUCER: whole.counts["untraced"] / whole.landed_ids}
    lost, doubtful, doubled = _known(found, after, silent)
    hours = {unix_micros(at) // HOUR_US for at in part.buckets}
    times = {place: sighted.latencies(place, hours) for place in route.places}
    times[SINK] = {"received_latency": latency_line(whole.latencies)}
    return [
        PlaceLine(
            place,
            after[place],
            audited_s=seconds,
            received=received,
            sent=sent,
            left_out=left_out,
            received_per_s=None if received is None else received / seconds,
            sent_per_s=None if sent is None else sent / seconds,
            lost=None if place == PRODUCER else lost[place],
            doubtful=None if place == PRODUCER else doubtful[place],
            doubled=None if place == SINK else doubled[place],
            trace_loss=losses.get(place),
            **times.get(place, {}),
        )
        for place, (received, sent, left_out) in had.items()
    ]


def _rates(line: PlaceLine, traced: Traced, *, sample_rate: float) -> dict[str, Rate]:
    """Of a sample; the trace loss is of the messages that told it."""
    had = had_by_traces(line.received or 0, line.sent or 0, line.left_out or 0)
    counts = counts_at_place(
        {"had": had, "lost": line.lost, "doubtful": line.doubtful, "doubled": line.doubled},
        trace_loss=line.trace_loss,
        passed=came_to(traced.by_place.get(line.location, 0), line.trace_loss) or traced.landed,
    )
    return sampled_rates(counts, sample_rate=sample_rate)


def _traced(
    route: Route, part: Deliveries, sighted: Sighted, begins: Mapping[str, datetime]
) -> tuple[Traced, dict[str, float]]:
    """What places traced in the buckets in which all that was sent has landed: all passed there.

    Of what landed in any bucket the producer. And by place its trace loss.

    Input:
        begins: of `new_places_in`.
    """
    # Not so where a filter left some out: how many of these each place traced is not kept.
    whole = [at for at, of in part.buckets.items() if of.counts["matched"] == of.counts["sent"]]
    landed = {at: part.buckets[at].landed_ids for at in whole}
    told = {place: [sighted.of(place, [at]) for at in whole] for place in route.places}
    had = {place: sum(had_by_traces(*of) for of in each) for place, each in told.items()}
    passed_on = {place: had[place] - sum(of[-1] for of in each) for place, each in told.items()}
    had[PRODUCER] = part.whole.counts["matched"]
    traced = Traced(sum(landed.values()), had, passed_on)
    since = {
        place: sum(ids for at, ids in landed.items() if at >= begin)
        for place, begin in begins.items()
    }
    return traced, losses_as_of_new(route, traced, since)


def _known(
    found: _Found, places: Collection[str], silent: Collection[str]
) -> Iterator[dict[str, int | None]]:
    """By place the first three of `_placed`; of silent ones what an audit of more time told."""
    for of in _placed(found, places)[:3]:
        yield {name: of[name] or (None if name in silent else 0) for name in places}


def _placed(
    found: _Found, places: Collection[str]
) -> tuple[Counter[str], Counter[str], Counter[str], int]:
    """Messages by place: that never reached it, that may not have, that were doubled after it.

    And how many missing ones are in the first two at these places.
    """
    doubled = Counter[str]()
    missing: list[tuple[int, tuple[LostHop, ...]]] = []
    for kind, location, hops, count in found:
        if kind == Kind.DUPLICATED.value:
            doubled[location] += count
        else:
            missing.append((count, lost_hops_from_json(hops)))
    lost, doubtful = lost_before(missing)
    placed = sum(count for count, hops in missing if any(hop.before in places for hop in hops))
    return lost, doubtful, doubled, placed


def _findings(
    tables: DeltaRs,
    name: str,
    spans: Sequence[Window],
    *,
    bins: Bins = _HOURS,
    states: Sequence[State] = STANDING,
) -> dict[int, _Found]:
    """By bin what was found that was sent in some spans, in these states.

    Input:
        spans: in order; bins: hours since 1970 unless told.
    """
    if not spans:
        return {}
    where = (
        (pc.field("stream") == name)
        & pc.field("state").isin(states)
        & pc.field("kind").isin([Kind.MISSING.value, Kind.DUPLICATED.value])
        & field_within("sent_at", spans[0].start, spans[-1].end)
    )
    found = tables.columns(FINDINGS, names=["stream", "state", "sent_at", *_FINDING], where=where)
    if found is None:
        return {}
    starts = np.array([unix_micros(span.start) for span in spans])
    ends = np.array([unix_micros(span.end) for span in spans])
    sent = micros(found["sent_at"])
    span = np.searchsorted(starts, sent, side="right") - 1
    is_within = (span >= 0) & (sent < ends[span])
    binned = found.append_column("bin", pa.array(bin_of(found["sent_at"], bins)))
    by_bin: dict[int, list[tuple[str, str, str | None, int]]] = defaultdict(list)
    alike = binned.filter(pa.array(is_within)).group_by(["bin", *_FINDING])
    for row in alike.aggregate([([], "count_all")]).to_pylist():
        by_bin[row["bin"]].append((*(row[n] for n in _FINDING), row["count_all"]))
    return dict(by_bin)
