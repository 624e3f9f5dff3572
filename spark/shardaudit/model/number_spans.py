"""Numbers of a session's traces, as spans: which were told of, and which never came.

A producer numbers the traces of a session from 0, without holes. Who has read its files knows of
each number that came as a trace, or that a gap tells of; and by the lines of health how many there
are at least. What is in neither is lost: a file, or the end of a killed process.
"""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from functools import reduce
from typing import NamedTuple

# Who has more spans of one session in a batch does not number its traces one by one.
MOST_RUNS = 1_000
BEYOND_NUMBERS = 2**62  # no session comes that far, and sums of two still fit a bigint


class Told(StrEnum):
    """What a span of numbers is."""

    LINES = "lines"  # each of them came as a trace, or is told by a gap
    GAP = "gap"  # a gap tells of them, among LINES
    HEALTH = "health"  # there are that many at least, by a line of health; until the last such line
    WHOLE = "whole"  # up to here all is in files: the log was flushed, or closed
    SPARSE = "sparse"  # some of them came: the session is not numbered one by one


class Numbering(NamedTuple):
    """Who numbers: one life of a producer's process. None: the line does not say it."""

    location: str
    producer_id: str | None
    session: str | None


class NumberSpan(NamedTuple):
    """Numbers from `first` to `last`, told from `since` to `until`. None: nobody knows when."""

    first: int
    last: int
    since: datetime | None = None
    until: datetime | None = None

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return self.last - self.first + 1


def united(spans: Iterable[NumberSpan]) -> list[NumberSpan]:
    """The spans in their order, those that overlap or touch as one."""
    found: list[NumberSpan] = []
    for span in sorted(spans, key=lambda span: (span.first, span.last)):
        if found and span.first <= found[-1].last + 1:
            found[-1] = _both(found[-1], span)
        else:
            found.append(span)
    return found


def around(spans: Iterable[NumberSpan]) -> NumberSpan:
    """From the first to the last of them."""
    return reduce(_both, spans)


def greatest(known: Iterable[NumberSpan]) -> NumberSpan:
    """Of spans of HEALTH the one that says most, from when that was said to the last of all."""
    spans = list(known)
    first = min(spans, key=lambda span: (-span.last, span.since is None, span.since))
    return first._replace(until=around(spans).until)


def apart(spans: Iterable[NumberSpan]) -> list[NumberSpan]:
    """The spans in their order, each without what those before it hold; times as they are."""
    found: list[NumberSpan] = []
    held = -1
    for span in sorted(spans, key=lambda span: (span.first, span.last)):
        if span.last > held:
            found.append(span._replace(first=max(span.first, held + 1)))
            held = span.last
    return found


def number_holes(
    told: Iterable[NumberSpan], *, begin: int, known: NumberSpan | None
) -> list[NumberSpan]:
    """The numbers from `begin` on that are in no span, with the time in which they were given.

    Input:
        told: what is known of, also below `begin`.
        known: up to its end there are numbers, by what was told at its time.
    """
    found: list[NumberSpan] = []
    next_number, since = begin, None
    for span in united(told):
        if span.first > next_number:
            found.append(_hole(next_number, span.first - 1, since or span.since, span.since))
        next_number, since = max(next_number, span.last + 1), span.until
    if known is not None and known.last >= next_number:
        found.append(_hole(next_number, known.last, since or known.since, known.since))
    return found


def _hole(first: int, last: int, since: datetime | None, until: datetime | None) -> NumberSpan:
    """Its neighbours' times may overlap: not all is acknowledged in the order of numbers."""
    times = [at for at in (since, until) if at is not None]
    return NumberSpan(first, last, min(times, default=None), max(times, default=None))


def _both(one: NumberSpan, other: NumberSpan) -> NumberSpan:
    since = [at for at in (one.since, other.since) if at is not None]
    until = [at for at in (one.until, other.until) if at is not None]
    return NumberSpan(
        min(one.first, other.first),
        max(one.last, other.last),
        min(since, default=None),
        max(until, default=None),
    )
