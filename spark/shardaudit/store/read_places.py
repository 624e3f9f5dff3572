"""What each place of a stream's route had, lost, doubled and did not trace: without Spark."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shardaudit.adapters.lake.delta_rs import DeltaRs
from shardaudit.model.config.settings import Settings
from shardaudit.model.input_columns import LEFT_OUT, PRODUCER, RECEIVED, SENT
from shardaudit.model.rates import Rate, came_to, counts_at_place, had_by_traces, sampled_rates
from shardaudit.model.route.lost_hops import LostHop, lost_before, lost_hops_from_json
from shardaudit.model.route.route import SINK, Route
from shardaudit.model.route.trace_loss import Traced, trace_losses
from shardaudit.model.tables.audit_tables import FINDINGS
from shardaudit.model.tables.route_tables import SIGHTING_COUNTS
from shardaudit.model.tables.table import LATENCY_BINS
from shardaudit.model.verdict import ENDED, STANDING, Kind, State
from shardaudit.model.window import EPOCH, Window, unix_micros
from shardaudit.report.delivery_view import PlaceLine
from shardaudit.report.plain import instant
from shardaudit.store.cell_grid import Bins
from shardaudit.store.cells import Integers, bin_of, dictionary, field_within, micros
from shardaudit.store.read_deliveries import HOUR_US, Deliveries, latency_line, sums_by_code

_MICROSECOND = timedelta(microseconds=1)
_HOURS = Bins(EPOCH, timedelta(hours=1), 0)

_FINDING = ["kind", "location", "hops"]
_EVENTS = (RECEIVED, SENT)
_COUNTED = (*_EVENTS, LEFT_OUT)
_Found = Sequence[tuple[str, str, str | None, int]]  # kind, location, hops, and how many messages


@dataclass(frozen=True, slots=True)
class _Sighted:
    """What places traced. `counts`: received, sent and left out, by place and bucket.

    `times`: by place and hour since 1970, of each event its messages by bin of latency, and those
    that are in none as they came before they were sent.
    """

    counts: dict[tuple[str, datetime], Integers] = field(default_factory=dict)
    times: dict[tuple[str, int], Integers] = field(default_factory=dict)

    def add(self, batch: pa.RecordBatch) -> None:
        """Adds rows of SIGHTING_COUNTS."""
        places = dictionary(batch.column("location"))
        codes, names = places.indices.to_numpy(), places.dictionary.to_pylist()
        starts = micros(batch.column("bucket_start"))
        each, nth = np.unique(starts, return_inverse=True)
        for code, sums in sums_by_code(nth * len(names) + codes, _counts(batch)):
            key = (names[code % len(names)], EPOCH + int(each[code // len(names)]) * _MICROSECOND)
            self.counts[key] = self.counts.get(key, 0) + sums
        times = np.concatenate([_timed(batch, event) for event in _EVENTS], axis=1)
        for code, sums in sums_by_code(starts // HOUR_US * len(names) + codes, times):
            hour = (names[code % len(names)], code // len(names))
            self.times[hour] = self.times.get(hour, 0) + sums

    def of(self, place: str, starts: Iterable[datetime]) -> list[int]:
        """How many messages of some buckets it traced as received, as sent, and as left out."""
        sums = np.zeros(len(_COUNTED), np.int64)
        for at in starts:
            sums += self.counts.get((place, at), 0)
        return [int(of) for of in sums]

    def latencies(self, place: str, hours: Iterable[int]) -> dict[str, Any]:  # Any: of PlaceLine
        """What is known of the times of both events."""
        width = LATENCY_BINS + 1
        sums = np.zeros(2 * width, np.int64)
        for hour in hours:
            sums += self.times.get((place, hour), 0)
        told: dict[str, Any] = {}
        for event, of in zip(_EVENTS, sums.reshape(2, width).tolist(), strict=True):
            line = latency_line(of[:-1])
            told[f"{event}_latency"] = line
            told[f"{event}_early"] = of[-1] if line or of[-1] else None
        return told


def _counts(batch: pa.RecordBatch) -> Integers:
    # An older version counted none as left out.
    return np.stack([batch.column(event).fill_null(0).to_numpy() for event in _COUNTED], axis=1)


def _timed(batch: pa.RecordBatch, event: str) -> Integers:
    lists = batch.column(f"{event}_latency_counts")
    found = np.zeros((batch.num_rows, LATENCY_BINS + 1), np.int64)
    is_known = lists.is_valid().to_numpy(zero_copy_only=False)
    found[is_known, :-1] = lists.drop_null().flatten().to_numpy().reshape(-1, LATENCY_BINS)
    found[:, -1] = batch.column(f"{event}_early").fill_null(0).to_numpy()
    return found


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
    sighted = _sighted(tables, name, deliveries)
    found = _findings(tables, name, deliveries.audited)
    lines: list[PlaceLine] = []
    for start, part in deliveries.hourly.items() if by_hour else [(None, deliveries)]:
        traced = _traced(stream.route, part, sighted)
        hours = found if start is None else [unix_micros(start) // HOUR_US]
        of_part = [one for hour in hours for one in found.get(hour, ())]
        hour = None if start is None else instant(start)
        lines += [
            replace(line, hour=hour, rates=_rates(line, traced, sample_rate=stream.sample_rate))
            for line in _lines(stream.route, part, sighted, of_part, traced)
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
    had = {place: np.zeros((bins.count, len(_COUNTED)), np.int64) for place in route.places}
    for batch in _counted(tables, name, whole):
        counts = _counts(batch)
        at = bin_of(batch.column("bucket_start"), bins)
        for place, mine in had.items():
            is_mine = pc.equal(batch.column("location"), place).to_numpy(zero_copy_only=False)
            np.add.at(mine, at[is_mine], counts[is_mine])
    found = _findings(tables, name, [whole], bins=bins)
    back = _findings(tables, name, [whole], bins=bins, states=ENDED)
    after, lines = _after(route), {}
    sums = [_placed(found.get(index, ()), after) for index in range(bins.count)]
    for place, before in after.items():
        traced = had[place].tolist() if place in had else [(None,) * len(_COUNTED)] * bins.count
        lines[place] = [
            PlaceLine(
                *(place, before),
                **dict[str, Any](zip(_COUNTED, of, strict=True)),
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
    route: Route, part: Deliveries, sighted: _Sighted, found: _Found, traced: Traced
) -> list[PlaceLine]:
    """The places over a part of the time; unknown where no audit looked.

    Input:
        traced: of `_traced`.
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
    losses = trace_losses(route, traced)
    if whole.landed_ids:
        losses[PRODUCER] = whole.counts["untraced"] / whole.landed_ids
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


def _sighted(tables: DeltaRs, name: str, deliveries: Deliveries) -> _Sighted:
    """What the places traced in the buckets that audits looked at."""
    found = _Sighted()
    starts = [unix_micros(at) for at in deliveries.buckets]
    times = [f"{event}_{what}" for event in _EVENTS for what in ("latency_counts", "early")]
    for batch in _counted(tables, name, deliveries.window, columns=times):
        audited = batch.filter(pa.array(np.isin(micros(batch.column("bucket_start")), starts)))
        if audited.num_rows:
            found.add(audited)
    return found


def _counted(
    tables: DeltaRs, name: str, window: Window, *, columns: Sequence[str] = ()
) -> Iterator[pa.RecordBatch]:
    """SIGHTING_COUNTS of a window: place, bucket, messages, and more columns."""
    where = (
        (pc.field("stream") == name)
        & (pc.field("sent_day") >= pc.scalar(window.start.date()))
        & (pc.field("sent_day") <= pc.scalar(window.end.date()))
        & field_within("bucket_start", window.start, window.end)
    )
    names = ["location", "bucket_start", *_COUNTED, *columns]
    return tables.batches(SIGHTING_COUNTS, columns=names, where=where, dictionaries=("location",))


def _traced(route: Route, part: Deliveries, sighted: _Sighted) -> Traced:
    """What places traced in the buckets in which all that was sent has landed: all passed there.

    Of what landed in any bucket the producer.
    """
    # Not so where a filter left some out: how many of these each place traced is not kept.
    whole = [at for at, of in part.buckets.items() if of.counts["matched"] == of.counts["sent"]]
    landed = sum(part.buckets[at].landed_ids for at in whole)
    told = {place: [sighted.of(place, [at]) for at in whole] for place in route.places}
    had = {place: sum(had_by_traces(*of) for of in each) for place, each in told.items()}
    passed_on = {place: had[place] - sum(of[-1] for of in each) for place, each in told.items()}
    return Traced(landed, {**had, PRODUCER: part.whole.counts["matched"]}, passed_on)


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
