"""Reads one window of one shard again, completely, or says what is missing.

The one module of the rooms that acts, and only through the client that it is handed.
"""

import random
from collections.abc import Iterator
from datetime import datetime
from typing import Protocol

from shardaudit.backfill.kpl import MAGIC, user_records
from shardaudit.backfill.pace import Pace
from shardaudit.backfill.price import LIMITS, PAGE_RECORDS, PAGES_PAST_THE_END
from shardaudit.backfill.reading import ReadOutcome, ReadWindow, UserRecord
from shardaudit.model.errors import ShardauditError
from shardaudit.model.sequence import sequence_order
from shardaudit.model.stream_page import (
    IteratorExpiredError,
    PlaceGoneError,
    Start,
    StoredRecord,
    StreamPage,
    ThrottledError,
)

MAX_TRIES = 15  # of one call, in a row; with the pauses below about two minutes
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 10.0


class ShardClient(Protocol):
    """What reading needs of Kinesis."""

    def iterator(self, shard_id: str, start: Start) -> str:
        """A shard iterator.

        Raises:
            PlaceGoneError: the shard or the sequence number is not there.
            ThrottledError: ask again later.
        """

    def page(self, iterator: str, *, limit: int) -> StreamPage:
        """What GetRecords brings.

        Raises:
            IteratorExpiredError: the iterator is too old.
            ThrottledError: ask again later.
        """


class WindowReader:
    """Reads a window; `outcome` grows while `batches` are taken, and is final after the last.

    `at_hand` is the last page of the shard that was read before, `last_page` afterwards the last of
    this window: the next one often begins in it, and costs no call then.
    """

    def __init__(
        self,
        client: ShardClient,
        wanted: ReadWindow,
        pace: Pace,
        *,
        at_hand: StreamPage | None = None,
    ) -> None:
        self._client, self._wanted, self._pace = client, wanted, pace
        self.last_page = at_hand
        self._last: StoredRecord | None = None
        self._pages = self._pages_past_end = 0
        self.outcome = ReadOutcome(wanted.window_id)

    def batches(self) -> Iterator[list[UserRecord]]:
        """The window's records, page by page, in the shard's order. Never raises one of ours."""
        try:
            yield from self._read()
            self.outcome.is_complete = True
        except PlaceGoneError:
            self._gone_until(self._wanted.end)
            self.outcome.is_complete = True
        except ShardauditError as error:
            self.outcome.error = str(error)

    def _read(self) -> Iterator[list[UserRecord]]:
        for page in self._answers():
            self._notice_clamp(page)
            self.outcome.records += len(page.records)
            wanted = self._wanted_of(page)
            if wanted:
                yield [user for record in wanted for user in _users(record)]
            if self._is_done(page):
                return
        if self._last is None:
            self._gone_until(self._wanted.end)

    def _answers(self) -> Iterator[StreamPage]:
        """The pages of the shard from the window's start on."""
        if self.last_page is not None and _begins_in(self.last_page, self._wanted):
            iterator = self.last_page.next_iterator
            yield self.last_page
        else:
            iterator = self._iterator()
        while iterator is not None:
            page = self._page(iterator)
            if page is None:
                iterator = self._iterator()
                continue
            if page.records:
                self.last_page = page
            iterator = page.next_iterator
            yield page

    def _iterator(self) -> str:
        """Where the window begins, or behind what was read of it."""
        if self._last is not None:
            start = Start(self._last.sequence_number, is_after=True)
        elif self._wanted.start_sequence is not None:
            start = Start(self._wanted.start_sequence)
        else:
            start = Start(at=self._wanted.start)
        return self._retried_iterator(start)

    def _retried_iterator(self, start: Start) -> str:
        for tries in range(MAX_TRIES):
            try:
                return self._client.iterator(self._wanted.shard_id, start)
            except ThrottledError:
                if tries + 1 == MAX_TRIES:
                    raise
                self._pace.pause(_pause_s(tries))
            except PlaceGoneError:
                if start.sequence_number is None:
                    raise
                start = Start()  # the oldest that is left
        raise AssertionError  # the last try raised

    def _page(self, iterator: str) -> StreamPage | None:
        """The next page; None when the iterator is too old."""
        for tries in range(MAX_TRIES):
            self._pace.wait()
            self.outcome.calls += 1
            try:
                page = self._client.page(iterator, limit=self._limit())
            except IteratorExpiredError:
                self._pace.called(0)
                return None
            except ThrottledError:
                self._pace.called(0)
                if tries + 1 == MAX_TRIES:
                    raise
                self._pace.pause(_pause_s(tries))
                continue
            self._pace.called(page.size_bytes)
            self.outcome.size_bytes += page.size_bytes
            return page
        raise AssertionError  # the last try raised

    def _limit(self) -> int:
        """How many records to ask for: few at first where the end is known, past it is waste."""
        wanted = self._wanted
        if wanted.start_sequence is None:
            return PAGE_RECORDS
        if wanted.start_sequence == wanted.end_sequence:
            return 1
        return LIMITS[min(self._pages, len(LIMITS) - 1)]

    def _notice_clamp(self, page: StreamPage) -> None:
        """Kinesis begins with its oldest record, without a word, when the wanted one is gone."""
        if self._last is None and page.records:
            first = page.records[0]
            start = self._wanted.start_sequence
            if start is None or sequence_order(first.sequence_number) > sequence_order(start):
                self._gone_until(first.arrived_at)
        if page.records:
            self._pages += 1
            self._last = page.records[-1]

    def _gone_until(self, instant: datetime) -> None:
        """Nothing was there from the window's start on: expired, as far as it is old enough."""
        wanted = self._wanted
        until = min(instant, wanted.end)
        if wanted.start < wanted.horizon and wanted.start < until:
            self.outcome.expired_from, self.outcome.expired_to = wanted.start, until

    def _wanted_of(self, page: StreamPage) -> list[StoredRecord]:
        wanted = self._wanted
        if wanted.start_sequence is None or wanted.end_sequence is None:
            start, end = wanted.start, wanted.end
            return [record for record in page.records if start <= record.arrived_at < end]
        first, last = sequence_order(wanted.start_sequence), sequence_order(wanted.end_sequence)
        return [
            record
            for record in page.records
            if first <= sequence_order(record.sequence_number) <= last
        ]

    def _is_done(self, page: StreamPage) -> bool:
        """Whether nothing that is wanted can follow. An empty page alone says nothing."""
        if page.is_level and not page.records:
            if self._last is None:
                self._gone_until(self._wanted.end)
            return True
        if not page.records:
            return False
        end = self._wanted.end_sequence
        if end is not None:
            return sequence_order(page.records[-1].sequence_number) >= sequence_order(end)
        # Arrival times are not in order: one late record is not the end.
        is_past = all(record.arrived_at >= self._wanted.end for record in page.records)
        self._pages_past_end = self._pages_past_end + 1 if is_past else 0
        return self._pages_past_end >= PAGES_PAST_THE_END


def _begins_in(page: StreamPage, wanted: ReadWindow) -> bool:
    """Whether the window begins between the first and the last record of the page."""
    if wanted.start_sequence is None or not page.records:
        return False
    first, last = (sequence_order(page.records[place].sequence_number) for place in (0, -1))
    return first <= sequence_order(wanted.start_sequence) <= last


def _users(record: StoredRecord) -> list[UserRecord]:
    number, partition_key, arrived_at, content = record
    if not content.startswith(MAGIC):  # nearly all: this is the inner loop
        return [UserRecord(number, 0, partition_key, arrived_at, content)]
    return [
        UserRecord(number, sub_sequence, key, arrived_at, inner)
        for sub_sequence, (key, inner) in enumerate(user_records(partition_key, content))
    ]


def _pause_s(tries: int) -> float:
    """Doubles from try to try; the jitter keeps readers of one stream apart."""
    longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0**tries)
    return longest * (0.5 + random.random() / 2)  # noqa: S311 - to spread calls, not to be secret
