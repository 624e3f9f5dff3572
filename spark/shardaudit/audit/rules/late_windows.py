"""Which minutes before an audit's window are audited with it, and by what they are judged."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from shardaudit.audit.rules.watermark import without
from shardaudit.model.watermark import Held, Hold
from shardaudit.model.window import NEVER, Window, joined

_MOST_WINDOWS = 4  # each is an audit of its own
_MOST_OF_CHANGED = 24  # where as many are far apart: what was lost in one hour leaves in one
_MOST_FAILURES = 3  # of audits that were cut off, or failed, over the same minutes
# What an audit can settle. What changed comes first, what was on its way is looked at each night.
_LATE = (Held.CHANGED, Held.UNAUDITED, Held.DAMAGED, Held.PENDING)


def early_holds(
    holds: Iterable[Hold], own: Window, *, since: datetime, damage: Sequence[Window]
) -> list[Hold]:
    """What holds before a window and an audit can settle.

    Input:
        holds: of all shards; own: the window, in whole buckets.
        since: what nobody audited counts from then on.
        damage: what an unreadable file may have fed, as of now.
    """
    before = [
        replace(hold, end=min(hold.end, own.start)) for hold in holds if hold.start < own.start
    ]
    unaudited = (
        replace(hold, start=max(hold.start, since))
        for hold in before
        if hold.why is Held.UNAUDITED and hold.end > since
    )
    others = (hold for hold in before if hold.why in {Held.CHANGED, Held.PENDING})
    healed = without((hold for hold in before if hold.why is Held.DAMAGED), damage)
    return [*unaudited, *others, *healed]


def late_windows(
    holds: Iterable[Hold],
    own: Window,
    *,
    bucket: timedelta,
    kept_from: datetime,
    tried: Sequence[tuple[Window, datetime]],
) -> list[Window]:
    """The spans that an audit has to look at besides its own window.

    Few, and together no longer than its own: so what they read is no more than twice as much. Of
    what changed there may be more: messages of many days that were lost in one hour leave the
    stream in one. What has no place stays held till next time. What was looked at in vain is no
    part of a longer span: a minute that shuts a gate must not keep those beside it.

    Input:
        holds: of `early_holds`; own, bucket: the window, in whole buckets.
        kept_from: what was sent then the stream still has.
        tried: of `still_tried`.
    Output:
        in order, none over another.
    """
    shared: list[Window] = []
    alone: list[Window] = []
    pieces = _pieces(list(holds), own, bucket=bucket, kept_from=kept_from, tried=tried)
    for last, piece in pieces:
        is_fresh = piece.why is Held.CHANGED and last == NEVER
        for most in (_MOST_WINDOWS, _MOST_OF_CHANGED) if is_fresh else (_MOST_WINDOWS,):
            wider, more = shared, alone
            if last == NEVER:
                wider = joined([*shared, piece.window], most=most)
            else:
                more = [*alone, *(rest.window for rest in without([piece], [*shared, *alone]))]
            length = sum((one.end - one.start for one in [*wider, *more]), timedelta())
            has_place = len(wider) + len(more) <= most and length <= own.end - own.start
            if has_place and not any(one.common(span) for one in wider for span, _ in tried):
                shared, alone = wider, more
                break
    return sorted([*shared, *alone], key=lambda window: window.start)


def still_tried(
    rejected: Iterable[tuple[Window, datetime]], published: Sequence[tuple[Window, datetime]]
) -> list[tuple[Window, datetime]]:
    """What audits looked at in vain, and as of when, but for what was published since.

    Input:
        both: what audits looked at, and as of when.
    """
    return [
        (rest.window, at)
        for window, at in rejected
        for rest in without(
            [Hold(window.start, window.end, Held.CHANGED)],
            [other for other, done in published if done > at and other.common(window)],
        )
    ]


def cut_off(
    failed: Sequence[tuple[Window, datetime]], *, since: datetime, before: datetime
) -> list[Window]:
    """What audits that failed are to look at once more, in their order.

    Not what three of them failed over: that is no accident, and would cost each night its time.

    Input:
        failed: of `still_tried`; since: as of when they failed, at least.
    """
    windows = [window for window, _ in failed]
    return [
        window
        for window, at in failed
        if since <= at
        and window.end <= before
        and sum(map(bool, map(window.common, windows))) < _MOST_FAILURES
    ]


def given_up(
    failed: Sequence[tuple[Window, datetime]],
    *,
    since: datetime,
    before: datetime,
    held: Sequence[Hold],
) -> list[tuple[Window, datetime]]:
    """The rest of it, which none looks at by itself; each with as of when the last one failed.

    Input:
        held: of `early_holds`: what is looked at for these.
    """
    spans = joined(window for window, _ in failed if window.end <= before)
    rest = without(
        [Hold(span.start, span.end, Held.UNAUDITED) for span in spans],
        [*cut_off(failed, since=since, before=before), *(hold.window for hold in held)],
    )
    return [
        (hold.window, max(at for window, at in failed if window.common(hold.window)))
        for hold in rest
    ]


def never_audited(
    holds: Iterable[Hold],
    *,
    before: datetime,
    known: Sequence[tuple[Window, datetime]],
    as_of: datetime,
) -> list[tuple[Window, datetime]]:
    """What nobody audited, and none will by itself any more; each with as of when that was found.

    Input:
        holds: of all shards; before: what was sent until then is too old.
        known: what was given up as of the audit before; as_of: of this one.
    """
    spans = joined(
        Window(hold.start, min(hold.end, before))
        for hold in holds
        if hold.why is Held.UNAUDITED and hold.start < before
    )
    old = [(part, at) for span, at in known for mine in spans if (part := mine.common(span))]
    new = without(
        [Hold(span.start, span.end, Held.UNAUDITED) for span in spans], [part for part, _ in old]
    )
    return [*old, *((hold.window, as_of) for hold in new)]


def judged_over(late: Window, own: Window) -> Window:
    """The night to whose totals late minutes belong: the window, moved back by whole lengths."""
    length = own.end - own.start
    start = own.start - ((own.start - late.end) // length + 1) * length
    return Window(min(start, late.start), start + length)


def _pieces(
    holds: Sequence[Hold],
    own: Window,
    *,
    bucket: timedelta,
    kept_from: datetime,
    tried: Sequence[tuple[Window, datetime]],
) -> list[tuple[datetime, Hold]]:
    """The spans in pieces of a quarter of the window: of each reason the first ones first.

    Each with when it was looked at in vain, and not since; `NEVER`: it was not.

    So no reason takes all that there is, and what is longer than the window is done in some nights.
    The oldest first, but of what nobody ever looked at that which can still be recovered; and what
    was looked at in vain comes behind all others, the longest ago first.
    """
    length = max(bucket, (own.end - own.start) // _MOST_WINDOWS // bucket * bucket)
    ranked: list[tuple[datetime, int, int, Hold]] = []
    for place, why in enumerate(_LATE):
        mine = [hold.window for hold in holds if hold.why is why]
        pieces = [piece for span in joined(mine) for piece in span.parts(length)]
        if why is Held.UNAUDITED:
            pieces.sort(key=lambda piece: (piece.end <= kept_from, piece.start))
        for nth, piece in enumerate(pieces):
            last = max((at for span, at in tried if span.common(piece)), default=NEVER)
            ranked.append((last, nth, place, Hold(piece.start, piece.end, why)))
    return [(last, piece) for last, *_, piece in sorted(ranked, key=lambda one: one[:3])]
