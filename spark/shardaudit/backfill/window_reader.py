"""Reads one window of one shard again, completely, or says what is missing.

The one module of the rooms that acts, and only through the client that it is handed.
"""

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from shardaudit.backfill.rules.aggregated_records import UserRecord, users_of
from shardaudit.backfill.rules.pace import Pace
from shardaudit.backfill.rules.plan import LIMITS, PAGES_PAST_THE_END
from shardaudit.backfill.rules.ranges import BEFORE
from shardaudit.backfill.rules.reading import OldestRecord, ReadOutcome, ReadWindow, ShardClient
from shardaudit.model.errors import ShardauditError
from shardaudit.model.get_records import (
    IteratorExpiredError,
    PlaceGoneError,
    Start,
    StoredRecord,
    StreamPage,
    ThrottledError,
)
from shardaudit.model.retention import PAGE_RECORDS
from shardaudit.model.sequence import sequence_order

MAX_TRIES = 15  # of one call, in a row; with the pauses below about two minutes
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 10.0


class WindowReader:
    """Reads a window; `outcome` grows while `batches` are taken, and is final after the last.

    `at_hand` is the last page of the shard that was read before, `last_page` afterwards the last of
    this window: the next one often begins in it, and costs no call then. `oldest` is the shard's.
    """

    def __init__(
        self,
        client: ShardClient,
        wanted: ReadWindow,
        pace: Pace,
        *,
        at_hand: StreamPage | None = None,
        oldest: OldestRecord | None = None,
    ) -> None:
        self._client, self._wanted, self._pace = client, wanted, pace
        self.last_page = at_hand
        self._known = oldest or OldestRecord()
        self._last: StoredRecord | None = None
        self._pages = self._pages_past_end = 0
        self.outcome = ReadOutcome(wanted.window_id)

    def batches(self) -> Iterator[list[UserRecord]]:
        """The window's records, page by page, in the shard's order. Never raises one of ours."""
        if self._pace.given_up is not None:
            self.outcome.error = self._pace.given_up
            return
        try:
            yield from self._read()
            self.outcome.is_complete = True
        except PlaceGoneError:  # a shard that Kinesis forgot: its last record is gone
            self._gone_until(self._wanted.end, is_certain=True)
            self.outcome.is_complete = True
        except ShardauditError as error:
            self.outcome.error = str(error)

    def _read(self) -> Iterator[list[UserRecord]]:
        for page in self._answers():
            self._notice_clamp(page)
            self.outcome.records += len(page.records)
            wanted = self._wanted_of(page)
            if wanted:
                yield [user for record in wanted for user in users_of(record)]
            if self._is_done(page):
                break
        if self._last is None:
            self._notice_nothing()

    def _answers(self) -> Iterator[StreamPage]:
        """The pages of the shard from the window's start on."""
        if self.last_page is not None and _begins_in(self.last_page, self._wanted):
            iterator = self.last_page.next_iterator
            yield self.last_page
        else:
            iterator = self._iterator()
        while iterator is not None:
            page = self._page(self._client, iterator, limit=self._limit())
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
        return self._retried_iterator(self._client, start)

    def _retried_iterator(self, client: ShardClient, start: Start) -> str:
        for tries in range(MAX_TRIES):
            try:
                iterator = client.iterator(self._wanted.shard_id, start)
            except ThrottledError as error:
                self._wait_after(error, tries)
            except PlaceGoneError:
                if start.sequence_number is None:
                    raise
                # It encodes another shard, or no place: an end there may never come either.
                self._wanted = replace(self._wanted, end_sequence=None)
                start = Start(at=self._wanted.start)
            else:
                self._pace.answered()
                return iterator
        raise AssertionError  # the last try raised

    def _page(self, client: ShardClient, iterator: str, *, limit: int) -> StreamPage | None:
        """The next page; None when the iterator is too old."""
        for tries in range(MAX_TRIES):
            self._pace.wait()
            self.outcome.calls += 1
            try:
                page = client.page(iterator, limit=limit)
            except IteratorExpiredError:
                self._pace.called(0)
                return None
            except ThrottledError as error:
                self._pace.called(0)
                self._wait_after(error, tries)
                continue
            self._pace.called(page.size_bytes)
            self._pace.answered()
            self.outcome.size_bytes += page.size_bytes
            return page
        raise AssertionError  # the last try raised

    def _wait_after(self, error: ThrottledError, tries: int) -> None:
        """Returns when the call may be tried again; else gives up the shard, for all windows."""
        if tries + 1 == MAX_TRIES or self._pace.is_silent():
            self._pace.given_up = str(error)
            raise error
        self._pace.pause(_pause_s(tries))

    def _limit(self) -> int:
        """How many records to ask for: few at first where the end is known, past it is waste."""
        wanted = self._wanted
        if wanted.start_sequence is None:
            return PAGE_RECORDS
        if wanted.start_sequence == wanted.end_sequence and not self._pages:
            return 1
        return LIMITS[min(self._pages, len(LIMITS) - 1)]

    def _notice_clamp(self, page: StreamPage) -> None:
        """Kinesis begins with its oldest record, without a word, when the wanted one is gone."""
        if self._last is None and page.records and self._comes_late(page.records[0]):
            first, oldest = page.records[0], self._oldest()
            # An older one is still there: then nothing stood between it and the first.
            if oldest is None or _order(oldest) >= _order(first):
                self._gone_until(first.arrived_at)
        if page.records:
            self._pages += 1
            self._last = page.records[-1]

    def _comes_late(self, first: StoredRecord) -> bool:
        """Whether records of the window may have stood before the first that came."""
        start = self._wanted.start_sequence
        if start is None:  # what is wanted begins a margin later
            return first.arrived_at > self._wanted.start + BEFORE
        return _order(first) > sequence_order(start)

    def _notice_nothing(self) -> None:
        """No record came: all of it is gone, or nothing was there, which an older record tells."""
        if self._oldest() is None:
            self._gone_until(self._wanted.end)

    def _oldest(self) -> StoredRecord | None:
        """The oldest record that the shard still has; None when it has none."""
        return self._known.once(self._read_oldest)

    def _read_oldest(self) -> StoredRecord | None:
        client = self._client.beside()
        try:
            iterator: str | None = self._retried_iterator(client, Start())
            while iterator is not None:
                page = self._page(client, iterator, limit=1)
                if page is None:
                    iterator = self._retried_iterator(client, Start())
                elif page.records or page.is_level:
                    return page.records[0] if page.records else None
                else:
                    iterator = page.next_iterator
        except PlaceGoneError:
            pass
        return None

    def _gone_until(self, instant: datetime, *, is_certain: bool = False) -> None:
        """The shard begins there. What was before is gone, if anything was: then it expired."""
        wanted, outcome = self._wanted, self.outcome
        until = min(instant, wanted.end)
        if wanted.start >= until:
            return
        outcome.begins_at = until
        was_there = wanted.is_expected or wanted.start_sequence is not None
        if is_certain or was_there or wanted.start < wanted.horizon:
            outcome.expired_from, outcome.expired_to = wanted.start, until

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


def _order(record: StoredRecord) -> tuple[int, str]:
    return sequence_order(record.sequence_number)


def _begins_in(page: StreamPage, wanted: ReadWindow) -> bool:
    """Whether the window begins between the first and the last record of the page."""
    if wanted.start_sequence is None or not page.records:
        return False
    first, last = (sequence_order(page.records[place].sequence_number) for place in (0, -1))
    return first <= sequence_order(wanted.start_sequence) <= last


def _pause_s(tries: int) -> float:
    """Doubles from try to try; the jitter keeps readers of one stream apart."""
    longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0**tries)
    return longest * (0.5 + random.random() / 2)  # noqa: S311 - to spread calls, not to be secret
