"""What holds the watermark of a shard: the words, and the span that cannot be called complete."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from shardaudit.model.window import Window


class Held(StrEnum):
    """Why a watermark does not move on. Declared in the order in which one is told of several."""

    FINDINGS = "findings"
    DAMAGED = "damaged"
    QUIET = "quiet"
    THIN = "thin"
    UNSENT = "unsent"
    UNAUDITED = "unaudited"
    CHANGED = "changed"
    DOUBT = "doubt"
    PENDING = "pending"


WHY = {
    Held.DAMAGED: "a file that cannot be read may have fed it",
    Held.QUIET: "no traces where there used to be some",
    Held.THIN: "too few of its landed messages have a trace",
    Held.UNSENT: "places traced messages of it that no producer traced, and that did not land",
    Held.UNAUDITED: "nobody audited it",
    Held.CHANGED: "traces or rows that may be of it came after it was audited",
    Held.DOUBT: "silent for longer than usual, not yet for so long that it must be told",
    Held.PENDING: "messages were on their way, or could still come",
}

# What a person may accept: audits may find the same for ever.
INCONCLUSIVE_FOR_GOOD = (Held.DAMAGED, Held.THIN, Held.UNSENT)
_UNJUDGED = (Held.UNAUDITED, Held.CHANGED, Held.PENDING)

# Why a cell has fewer rows than messages landed.
LEFT_THE_SINK = "rows left the sink when the stream had none of its messages any more"


@dataclass(frozen=True, slots=True)
class Hold:
    """A span `[start, end)` of a shard's time that no audit could call complete."""

    start: datetime
    end: datetime
    why: Held

    @property
    def window(self) -> Window:
        """The span."""
        return Window(self.start, self.end)


def first_unjudged(holds: Iterable[Hold], *, audited_until: datetime, since: datetime) -> datetime:
    """Up to when audits have judged what was sent to a shard from `since` on.

    Not what none looked at, and what was on its way, or came later: its next audit may say.
    """
    left = (h.start for h in holds if h.why in _UNJUDGED and h.end > since)
    return min([*left, audited_until])


def holds_as_json(holds: Iterable[Hold]) -> str:
    """The text that is stored."""
    return json.dumps([[h.start.isoformat(), h.end.isoformat(), h.why.value] for h in holds])


def holds_from_json(text: str) -> tuple[Hold, ...]:
    """What `holds_as_json` wrote."""
    return tuple(
        Hold(datetime.fromisoformat(start), datetime.fromisoformat(end), Held(why))
        for start, end, why in json.loads(text)
    )


@dataclass(frozen=True, slots=True)
class Watermark:
    """Until when a stream is complete since its first audit, and why not further.

    `reason`: a sentence; None when that is the end of all that was audited.
    """

    at: datetime | None
    reason: str | None = None
