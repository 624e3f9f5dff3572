"""Time before an audit's window that has no place in the audits that went with it."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from shardaudit.model.window import Window, joined

_MOST_SPANS = 500  # that are kept of one audit: the nearest are joined


@dataclass(frozen=True, slots=True)
class Waiting:
    """How long all of it is, and its spans.

    `spans`: in order, none over another, each with the `as_of` of the audit that first left it; of
    very many the nearest are one, with what lies between them.
    """

    length: timedelta = timedelta()
    spans: tuple[tuple[Window, datetime], ...] = ()

    @property
    def since(self) -> datetime | None:
        """Since when some of it waits; None: nothing does."""
        return min((since for _, since in self.spans), default=None)

    def is_overdue(self, *, as_of: datetime, kept: timedelta) -> bool:
        """Whether some that the stream still has waits for half of the time that it keeps records.

        Not what the stream has dropped: nothing is won by a look at once.

        Input:
            as_of: of the audit; kept: how long the stream keeps its records.
        """
        return any(
            span.end + kept > as_of and as_of - since >= kept / 2 for span, since in self.spans
        )

    def as_json(self) -> str:
        """The text that is stored."""
        spans = [[w.start.isoformat(), w.end.isoformat(), s.isoformat()] for w, s in self.spans]
        return json.dumps({"seconds": self.length // timedelta(seconds=1), "spans": spans})


def waiting_from_json(text: str | None) -> Waiting:
    """What `as_json` wrote; nothing waits where nobody said so."""
    if text is None:
        return Waiting()
    stored, at = json.loads(text), datetime.fromisoformat
    spans = tuple((Window(at(start), at(end)), at(since)) for start, end, since in stored["spans"])
    return Waiting(timedelta(seconds=stored["seconds"]), spans)


def still_waiting(left: Iterable[Window], before: Waiting, *, as_of: datetime) -> Waiting:
    """What is left now, and since when.

    Input:
        left: of all shards; before: of the audit before; as_of: of this one.
    """
    whole = joined(left)
    spans = [part for span in whole for part in _parts(span, before, as_of=as_of)]
    if len(spans) > _MOST_SPANS:
        spans = [
            (group, min(since for span, since in spans if span.common(group)))
            for group in joined((span for span, _ in spans), most=_MOST_SPANS)
        ]
    return Waiting(sum((span.end - span.start for span in whole), timedelta()), tuple(spans))


def _parts(span: Window, before: Waiting, *, as_of: datetime) -> Iterator[tuple[Window, datetime]]:
    """The span in parts that wait since the same night."""
    start = span.start
    for other, since in before.spans:
        if part := span.common(other):
            if start < part.start:
                yield Window(start, part.start), as_of
            yield part, since
            start = part.end
    if start < span.end:
        yield Window(start, span.end), as_of
