"""Time before an audit's window that has no place in the audits that went with it."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from shardaudit.model.window import Window, joined

_MOST_SPANS = 50  # that are kept of one audit: the nearest are joined


@dataclass(frozen=True, slots=True)
class Waiting:
    """How long all of it is, and its spans.

    `spans`: each with the `as_of` of the audit that first left some of it.
    """

    length: timedelta = timedelta()
    spans: tuple[tuple[Window, datetime], ...] = ()

    @property
    def since(self) -> datetime | None:
        """Since when some of it waits; None: nothing does."""
        return min((since for _, since in self.spans), default=None)

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
    return Waiting(
        sum((span.end - span.start for span in whole), timedelta()),
        tuple(
            (span, min((at for other, at in before.spans if other.common(span)), default=as_of))
            for span in joined(whole, most=_MOST_SPANS)
        ),
    )
