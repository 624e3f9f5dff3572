"""How far each shard is proven complete: what holds its watermark, kept from audit to audit.

A shard's record is short: until when it was audited, and the spans of its time before that which no
audit could call complete. What lacks or is doubled is not among them: the findings tell that, and
go on telling it when they are repaired or accepted between two audits.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from shardaudit.audit.rules.cell_verdicts import MOST_SPANS
from shardaudit.model.config.eras import Eras
from shardaudit.model.watermark import INCONCLUSIVE_FOR_GOOD, Held, Hold, first_unjudged
from shardaudit.model.window import Window as Span
from shardaudit.model.window import joined

_TRACELESS, _SILENT = (Held.THIN, Held.UNSENT), (Held.QUIET, Held.DOUBT)
TOUCHABLE = (Held.THIN, Held.QUIET)  # an audit may judge otherwise when something comes there


@dataclass(frozen=True, slots=True)
class ShardRecord:
    """What is known of one shard since the stream was first audited.

    `audited_from`: the beginning of that first audit; what is before it makes no gap, but what an
    audit finds there counts. `as_of`: the latest "now" of the audits that were counted.
    """

    audited_from: datetime
    audited_until: datetime
    as_of: datetime
    holds: tuple[Hold, ...]

    @property
    def audited(self) -> Span:
        """From the beginning of the first audit to the end of what was audited."""
        return Span(self.audited_from, self.audited_until)

    def judged_until(self, since: datetime) -> datetime:
        """Of `first_unjudged`."""
        return first_unjudged(self.holds, audited_until=self.audited_until, since=since)

    def unaudited(self, over: Span) -> list[Span]:
        """The parts of a span that nobody audited: the gaps, and what is before the first audit."""
        gaps = [hold.window for hold in self.holds if hold.why is Held.UNAUDITED]
        if over.start < self.audited_from:
            gaps.append(Span(over.start, self.audited_from))
        return [part for gap in gaps if (part := gap.common(over))]


def touched_doubts(holds: Iterable[Hold], touched: Sequence[Span]) -> list[Hold]:
    """What of times of no or too few traces was touched since: both sides may agree by now.

    Of a silence all is, where what came spans half of it: what is left may be as usual. A single
    message in it may be of a clock that is off.

    Input:
        touched: in order.
    """
    found: list[Hold] = []
    for hold in (hold for hold in holds if hold.why in TOUCHABLE):
        parts = [part for span in touched if (part := hold.window.common(span))]
        if hold.why is Held.QUIET and parts:
            is_healed = 2 * (parts[-1].end - parts[0].start) >= hold.end - hold.start
            parts = [hold.window] if is_healed else []
        found += [replace(hold, start=p.start, end=p.end, why=Held.CHANGED) for p in parts]
    return found


def recorded(
    before: ShardRecord | None,
    *,
    window: Span,
    as_of: datetime,
    found: Iterable[Hold],
    changed: Iterable[Hold] = (),
) -> ShardRecord:
    """The record after one more audit. Counting the same audit again changes nothing.

    An audit as of an earlier time than one before it knows less: it counts where nobody looked.

    Input:
        before: None when no audit of the stream was counted: the record begins with this one.
        found: what of the window cannot be called complete.
        changed: what was audited before is not as it was then.
    """
    if before is None:
        return ShardRecord(window.start, window.end, as_of, _joined(found))
    before = replace(before, holds=_joined([*before.holds, *changed]))
    holds = list(before.holds)
    if window.start > before.audited_until:
        holds.append(Hold(before.audited_until, window.start, Held.UNAUDITED))
    looked_at = _unseen(window, before) if as_of < before.as_of else [window]
    known = without(holds, looked_at)
    new = [
        replace(hold, start=part.start, end=part.end)
        for hold in found
        for span in looked_at
        if (part := hold.window.common(span))
    ]
    return ShardRecord(
        audited_from=before.audited_from,
        audited_until=max(before.audited_until, window.end),
        as_of=max(before.as_of, as_of),
        holds=_joined([*known, *new]),
    )


def unknown_before(records: Iterable[ShardRecord], *, as_of: datetime) -> ShardRecord | None:
    """The record of a shard of which no audit knew: they looked, and there was nothing of it.

    None when no audit was counted.
    """
    if not (known := list(records)):
        return None
    since = min(record.audited_from for record in known)
    return ShardRecord(since, max(record.audited_until for record in known), as_of, ())


def silenced(
    record: ShardRecord, silences: Iterable[Hold], quiet_times: Sequence[Span], *, as_of: datetime
) -> ShardRecord:
    """The record with the silences of now, though they began before the window.

    One that is told holds until an audit looks at it again, one in doubt as long as it is in doubt.

    Input:
        quiet_times: of which a person said that nothing was sent: they hold nothing any more.
        as_of: of the audit; another one may have seen later silences.
    """
    looked_at = record.audited
    seen = [
        replace(hold, start=part.start, end=part.end)
        for hold in silences
        if (part := hold.window.common(looked_at))
    ]
    holds = [h for h in record.holds if h.why is not Held.DOUBT or as_of < record.as_of]
    return replace(record, holds=_joined(without([*holds, *seen], quiet_times, of=_SILENT)))


def _unseen(window: Span, before: ShardRecord) -> list[Span]:
    """The parts of a window that nobody had looked at, as they are now."""
    fresh = [hold.window for hold in before.holds if hold.why in {Held.UNAUDITED, Held.CHANGED}]
    if window.start < before.audited_from:
        fresh.append(Span(window.start, before.audited_from))
    if window.end > before.audited_until:
        fresh.append(Span(before.audited_until, window.end))
    return [part for span in fresh if (part := span.common(window))]


def without(
    holds: Iterable[Hold], spans: Sequence[Span], *, of: Iterable[Held] = tuple(Held)
) -> list[Hold]:
    """What is left of the holds outside of the spans, where they are of some reasons."""
    left = list(holds)
    for span in spans:
        left = [
            replace(hold, start=start, end=end)
            for hold in left
            for start, end in (
                ((hold.start, min(hold.end, span.start)), (max(hold.start, span.end), hold.end))
                if hold.why in of
                else ((hold.start, hold.end),)
            )
            if start < end
        ]
    return left


def accepted(
    record: ShardRecord, times: Sequence[Span], *, of: Sequence[Held] = INCONCLUSIVE_FOR_GOOD
) -> ShardRecord:
    """The record without what is inconclusive in these times: a person said that it may stay so.

    By a file that cannot be read, or for want of traces; a silence is another thing.
    """
    holds = without(record.holds, times, of=of)
    return replace(record, holds=tuple(sorted(holds, key=lambda h: (h.start, h.why.value))))


def without_accepted_doubts(
    record: ShardRecord, times: Sequence[Span], *, left_at: datetime
) -> ShardRecord:
    """The record that is kept. What a file hid then is looked at once it hides it no more.

    Input:
        left_at: what was sent before has left the stream: of that it is let go, too.
    """
    gone = [time for time in times if time.end <= left_at]
    return accepted(accepted(record, gone), times, of=_TRACELESS)


def first_hold(
    record: ShardRecord | None, unsettled_at: datetime | None, *, cells: Eras
) -> Hold | None:
    """What holds a shard's watermark: it is where that begins. None: nothing, up to the end.

    Input:
        record: None for a shard that only findings tell of.
        unsettled_at: when the first message that lacks or is doubled was sent.
    """
    holds = list(record.holds) if record else []
    if unsettled_at is not None:
        cell = cells.aligned(Span(unsettled_at, unsettled_at + timedelta(microseconds=1)))
        holds.append(Hold(cell.start, cell.end, Held.FINDINGS))
    return min(holds, key=lambda hold: (hold.start, list(Held).index(hold.why)), default=None)


def _joined(holds: Iterable[Hold]) -> tuple[Hold, ...]:
    """Holds of one reason that touch or overlap as one; of more than MOST_SPANS the nearest."""
    spans: dict[Held, list[Span]] = {}
    for hold in holds:
        spans.setdefault(hold.why, []).append(hold.window)
    done = [
        Hold(span.start, span.end, why)
        for why, mine in spans.items()
        for span in joined(mine, most=MOST_SPANS)
    ]
    return tuple(sorted(done, key=lambda hold: (hold.start, hold.why.value)))
