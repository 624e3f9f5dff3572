"""Which minutes before an audit's window are audited with it, and by what they are judged."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from shardaudit.audit.rules.watermark import without
from shardaudit.model.watermark import Held, Hold
from shardaudit.model.window import Window, joined

_MOST_WINDOWS = 4  # each is an audit of its own
# What an audit can settle. What changed comes first, what was on its way is looked at each night.
_LATE = (Held.CHANGED, Held.UNAUDITED, Held.DAMAGED, Held.PENDING)
_NEVER = datetime.min.replace(tzinfo=UTC)


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
    tried: Sequence[tuple[Window, datetime]] = (),
) -> list[Window]:
    """The spans that an audit has to look at besides its own window.

    Few, and together no longer than its own: so all of it costs no more than twice as much. What
    has no place stays held till next time.

    Input:
        holds: of `early_holds`; own, bucket: the window, in whole buckets.
        kept_from: what was sent then the stream still has.
        tried: what audits of before looked at in vain, and as of when.
    """
    windows: list[Window] = []
    for piece in _pieces(list(holds), own, bucket=bucket, kept_from=kept_from, tried=tried):
        wider = joined([*windows, piece], most=_MOST_WINDOWS)
        if sum((one.end - one.start for one in wider), timedelta()) <= own.end - own.start:
            windows = wider
    return windows


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
) -> list[Window]:
    """The spans in pieces of a quarter of the window: of each reason the first ones first.

    So no reason takes all that there is, and what is longer than the window is done in some nights.
    The oldest first, but of what nobody ever looked at that which can still be recovered; and what
    was looked at in vain comes behind all others, the longest ago first.
    """
    length = max(bucket, (own.end - own.start) // _MOST_WINDOWS // bucket * bucket)
    ranked: list[tuple[datetime, int, int, Window]] = []
    for place, why in enumerate(_LATE):
        mine = [hold.window for hold in holds if hold.why is why]
        pieces = [piece for span in joined(mine) for piece in span.parts(length)]
        if why is Held.UNAUDITED:
            pieces.sort(key=lambda piece: (piece.end <= kept_from, piece.start))
        for nth, piece in enumerate(pieces):
            last = max((at for span, at in tried if span.common(piece)), default=_NEVER)
            ranked.append((last, nth, place, piece))
    return [piece for *_, piece in sorted(ranked, key=lambda one: one[:3])]
