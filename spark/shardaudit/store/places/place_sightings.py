"""What the places of a route traced, as each ingest counted it: by bucket, and in which time."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shardaudit.adapters.lake.delta_rs import DeltaRs
from shardaudit.model.input_columns import LEFT_OUT, RECEIVED, SENT
from shardaudit.model.tables.route_tables import SIGHTING_COUNTS
from shardaudit.model.tables.table import LATENCY_BINS
from shardaudit.model.window import EPOCH, Window, unix_micros
from shardaudit.store.cells import Integers, dictionary, field_within, micros
from shardaudit.store.read_deliveries import HOUR_US, Deliveries, latency_line, sums_by_code

_MICROSECOND = timedelta(microseconds=1)
_EVENTS = (RECEIVED, SENT)
EVENT_COUNTS = (*_EVENTS, LEFT_OUT)


@dataclass(frozen=True, slots=True)
class Sighted:
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
        for code, sums in sums_by_code(nth * len(names) + codes, counts_of_events(batch)):
            key = (names[code % len(names)], EPOCH + int(each[code // len(names)]) * _MICROSECOND)
            self.counts[key] = self.counts.get(key, 0) + sums
        times = np.concatenate([_timed(batch, event) for event in _EVENTS], axis=1)
        for code, sums in sums_by_code(starts // HOUR_US * len(names) + codes, times):
            hour = (names[code % len(names)], code // len(names))
            self.times[hour] = self.times.get(hour, 0) + sums

    def of(self, place: str, starts: Iterable[datetime]) -> list[int]:
        """How many messages of some buckets it traced as received, as sent, and as left out."""
        sums = np.zeros(len(EVENT_COUNTS), np.int64)
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

    def begins(self) -> dict[str, datetime]:
        """By place the first bucket of which it traced anything."""
        first: dict[str, datetime] = {}
        for place, at in self.counts:
            first[place] = min(at, first.get(place, at))
        return first


def counts_of_events(batch: pa.RecordBatch) -> Integers:
    """`EVENT_COUNTS` of each row."""
    # An older version counted none as left out.
    return np.stack([batch.column(event).fill_null(0).to_numpy() for event in EVENT_COUNTS], axis=1)


def _timed(batch: pa.RecordBatch, event: str) -> Integers:
    lists = batch.column(f"{event}_latency_counts")
    found = np.zeros((batch.num_rows, LATENCY_BINS + 1), np.int64)
    is_known = lists.is_valid().to_numpy(zero_copy_only=False)
    found[is_known, :-1] = lists.drop_null().flatten().to_numpy().reshape(-1, LATENCY_BINS)
    found[:, -1] = batch.column(f"{event}_early").fill_null(0).to_numpy()
    return found


def read_sighted(tables: DeltaRs, name: str, deliveries: Deliveries) -> Sighted:
    """What the places traced in the buckets that audits looked at."""
    found = Sighted()
    starts = [unix_micros(at) for at in deliveries.buckets]
    times = [f"{event}_{what}" for event in _EVENTS for what in ("latency_counts", "early")]
    for batch in counted_at_places(tables, name, deliveries.window, columns=times):
        audited = batch.filter(pa.array(np.isin(micros(batch.column("bucket_start")), starts)))
        if audited.num_rows:
            found.add(audited)
    return found


def counted_at_places(
    tables: DeltaRs, name: str, window: Window, *, columns: Sequence[str] = ()
) -> Iterator[pa.RecordBatch]:
    """SIGHTING_COUNTS of a window: place, bucket, messages, and more columns."""
    where = (
        (pc.field("stream") == name)
        & (pc.field("sent_day") >= pc.scalar(window.start.date()))
        & (pc.field("sent_day") <= pc.scalar(window.end.date()))
        & field_within("bucket_start", window.start, window.end)
    )
    names = ["location", "bucket_start", *EVENT_COUNTS, *columns]
    return tables.batches(SIGHTING_COUNTS, columns=names, where=where, dictionaries=("location",))
