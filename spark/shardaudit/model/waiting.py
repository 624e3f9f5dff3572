"""Time before an audit's window that has no place in the audits that went with it."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from shardaudit.model.watermark import Held, Hold
from shardaudit.model.window import Window, joined

_MOST_SPANS = 500  # that are kept of one audit: the nearest are joined


@dataclass(frozen=True, slots=True)
class WaitingSpan:
    """A span, since when it waits, and when the newest of its messages may have come.

    `since`: the `as_of` of the audit that first left it; where nights looked at none of it, its
    start. `newest`: the span's end; where messages came late `since`: a device may have held them
    back, and the stream keeps them from then on.
    """

    window: Window
    since: datetime
    newest: datetime


@dataclass(frozen=True, slots=True)
class Waiting:
    """How long all of it is, and its spans.

    `spans`: in order, none over another; of very many the nearest are one, with what lies between
    them. `given_up`: what no audit looks at any more by itself, and as of when one last failed over
    it, or found that none had looked at it.
    """

    length: timedelta = timedelta()
    spans: tuple[WaitingSpan, ...] = ()
    given_up: tuple[tuple[Window, datetime], ...] = ()

    @property
    def since(self) -> datetime | None:
        """Since when some of it waits; None: nothing does."""
        return min((span.since for span in self.spans), default=None)

    def is_overdue(self, *, as_of: datetime, kept: timedelta) -> bool:
        """Whether some that the stream still has waits for half of the time that it keeps records.

        Not what the stream has dropped: nothing is won by a look at once.

        Input:
            as_of: of the audit; kept: how long the stream keeps its records.
        """
        return any(
            span.newest + kept > as_of and as_of - span.since >= kept / 2 for span in self.spans
        )

    def as_json(self) -> str:
        """The text that is stored."""
        spans = [
            [at.isoformat() for at in (s.window.start, s.window.end, s.since, s.newest)]
            for s in self.spans
        ]
        given_up = [
            [at.isoformat() for at in (window.start, window.end, failed_at)]
            for window, failed_at in self.given_up
        ]
        seconds = self.length // timedelta(seconds=1)
        return json.dumps({"seconds": seconds, "spans": spans, "given_up": given_up})


def waiting_from_json(text: str | None) -> Waiting:
    """What `as_json` wrote; nothing waits where nobody said so."""
    if text is None:
        return Waiting()
    stored, at = json.loads(text), datetime.fromisoformat
    spans = tuple(
        WaitingSpan(Window(at(start), at(end)), at(since), at(newest))
        for start, end, since, newest in stored["spans"]
    )
    given_up = tuple(
        (Window(at(start), at(end)), at(failed_at))
        for start, end, failed_at in stored.get("given_up", ())  # older audits do not say it
    )
    return Waiting(timedelta(seconds=stored["seconds"]), spans, given_up)


def still_waiting(
    left: Iterable[Hold], before: Waiting, *, as_of: datetime, is_night: bool = False
) -> Waiting:
    """What is left now, and since when.

    Input:
        left: of all shards; before: of the audit before; as_of: of this one; is_night: it looks at
        as much as a night does: what none looked at before it, nights have missed.
    """
    holds = list(left)
    came = joined(hold.window for hold in holds if hold.why is Held.CHANGED)
    late = [WaitingSpan(window, as_of, as_of) for window in came]
    unseen = joined(hold.window for hold in holds if is_night and hold.why is Held.UNAUDITED)
    missed = [WaitingSpan(window, window.start, window.end) for window in unseen]

    def seen(window: Window) -> Iterator[WaitingSpan]:
        yield WaitingSpan(window, as_of, window.end)

    def old(window: Window) -> Iterator[WaitingSpan]:
        return _parts(window, missed, rest=seen)

    def new(window: Window) -> Iterator[WaitingSpan]:
        return _parts(window, late, rest=old)

    whole = joined(hold.window for hold in holds)
    spans = [part for window in whole for part in _parts(window, before.spans, rest=new)]
    if len(spans) > _MOST_SPANS:
        groups = joined((span.window for span in spans), most=_MOST_SPANS)
        spans = [_as_one(group, spans) for group in groups]
    return Waiting(sum((one.end - one.start for one in whole), timedelta()), tuple(spans))


def _parts(
    window: Window,
    known: Sequence[WaitingSpan],
    *,
    rest: Callable[[Window], Iterator[WaitingSpan]],
) -> Iterator[WaitingSpan]:
    """The window in parts: as is known of them, and what `rest` says of those between."""
    start = window.start
    for span in known:
        if part := window.common(span.window):
            if start < part.start:
                yield from rest(Window(start, part.start))
            yield replace(span, window=part)
            start = part.end
    if start < window.end:
        yield from rest(Window(start, window.end))


def _as_one(group: Window, spans: Iterable[WaitingSpan]) -> WaitingSpan:
    mine = [span for span in spans if span.window.common(group)]
    return WaitingSpan(group, min(s.since for s in mine), max(s.newest for s in mine))
