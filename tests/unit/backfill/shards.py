"""A shard in memory that refuses as Kinesis does, on a clock that stands still unless slept on."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from shardaudit.backfill.rules.aggregated_records import UserRecord
from shardaudit.backfill.rules.pace import Pace
from shardaudit.backfill.rules.reading import OldestRecord, ReadOutcome, ReadWindow
from shardaudit.backfill.window_reader import WindowReader
from shardaudit.model.get_records import PlaceGoneError, Start, StoredRecord, StreamPage
from shardaudit.model.sequence import sequence_order
from tests.builders import SHARD, T0, sequence

LONG_AGO = T0 - timedelta(days=30)


def record(number: int, *, arrived_s: float | None = None, content: bytes = b"x") -> StoredRecord:
    """The record m<number>, arrived as many seconds after T0."""
    seconds = number if arrived_s is None else arrived_s
    return StoredRecord(sequence(number), "key", T0 + timedelta(seconds=seconds), content)


@dataclass
class Time:
    """Seconds that pass by sleeping alone."""

    at: float = 0.0

    def now(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += seconds


@dataclass
class FakeShard:
    """Answers with pages of `page_size`; `refusals` are raised, one per call, before it answers."""

    records: list[StoredRecord]
    page_size: int = 3
    is_open: bool = True
    is_gone: bool = False
    refusals: Sequence[Exception | None] = ()
    empty_every: int = 0
    time: Time = field(default_factory=Time)
    calls: list[tuple[float, int]] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)

    def iterator(self, shard_id: str, start: Start) -> str:
        assert shard_id == SHARD
        self.starts.append(start)
        if self.is_gone:
            raise PlaceGoneError("gone")
        return str(self._place(start))

    def page(self, iterator: str, *, limit: int) -> StreamPage:
        refusal = dict(enumerate(self.refusals)).get(len(self.calls))
        if refusal is not None:
            self.calls.append((self.time.at, 0))
            raise refusal
        place = int(iterator)
        is_empty = self.empty_every and len(self.calls) % self.empty_every == 0
        end = place if is_empty else min(place + min(limit, self.page_size), len(self.records))
        is_last = end == len(self.records)
        following = None if is_last and not self.is_open else str(end)
        page = StreamPage(tuple(self.records[place:end]), following, is_last)
        self.calls.append((self.time.at, page.size_bytes))
        return page

    def beside(self) -> "FakeShard":
        return self

    def _place(self, start: Start) -> int:
        for place, one in enumerate(self.records):
            if start.at is not None:
                if one.arrived_at >= start.at:
                    return place
            elif start.sequence_number is None:
                return 0
            else:
                wanted, mine = map(sequence_order, (start.sequence_number, one.sequence_number))
                if mine > wanted or (mine == wanted and not start.is_after):
                    return place
        return len(self.records)


def window(start_s: float, end_s: float, **fields: object) -> ReadWindow:
    """A window by arrival, on a stream that forgot nothing unless `horizon` says so."""
    start, end = (T0 + timedelta(seconds=s) for s in (start_s, end_s))
    wanted: dict[str, object] = {"horizon": LONG_AGO} | fields
    return ReadWindow("w", SHARD, start, end, **wanted)  # type: ignore[arg-type] # the test's choice


def read(
    shard: FakeShard, wanted: ReadWindow, *, share: float = 1.0
) -> tuple[list[UserRecord], ReadOutcome]:
    """What the window brought, and the outcome."""
    pace = Pace(share, clock=shard.time.now, sleep=shard.time.sleep)
    reader = WindowReader(shard, wanted, pace)
    found = [record for batch in reader.batches() for record in batch]
    return found, reader.outcome


def numbers(found: list[UserRecord]) -> list[int]:
    """Which records they are."""
    return [int(one.sequence_number[4:]) for one in found]


def seconds(instant: datetime | None) -> float | None:
    """Since T0."""
    return None if instant is None else (instant - T0).total_seconds()


def read_in_turn(
    shard: FakeShard, wanted: Sequence[ReadWindow]
) -> list[tuple[list[UserRecord], ReadOutcome]]:
    """What each window brought, when readers take over the last page and the oldest record."""
    pace = Pace(1.0, clock=shard.time.now, sleep=shard.time.sleep)
    found, page, oldest = [], None, OldestRecord()
    for one in wanted:
        reader = WindowReader(shard, one, pace, at_hand=page, oldest=oldest)
        records = [record for batch in reader.batches() for record in batch]
        found.append((records, reader.outcome))
        page = reader.last_page
    return found
