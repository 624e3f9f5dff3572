"""Who is told what: standstills, holes, changes of level, reminders, all-clears, digests.

At least once: a notification is stored before it is sent and marked after; over a crash in between
it is sent again, under the same id.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from shardaudit.model.verdict import Level, by_rank
from shardaudit.model.words import at

REMIND_AFTER = timedelta(hours=6)
DIGEST_ABOVE = 10
_DIGEST_LINES = 20


class Occasion(StrEnum):
    """Why somebody is told."""

    CHANGE = "change"
    STANDSTILL = "standstill"
    RESUMED = "resumed"
    HOLE = "hole"
    REMINDER = "reminder"
    CLEAR = "clear"


@dataclass(frozen=True, slots=True)
class Notification:
    """One shard's news. `notification_id` is the same however often it is made or sent."""

    notification_id: str
    stream: str
    shard_id: str
    occasion: Occasion
    previous_level: Level
    level: Level
    text: str
    observed_at: datetime


@dataclass(frozen=True, slots=True)
class ShardNews:
    """A shard as it is judged now, in a stream.

    `stands_still`: stalled, or silent; `goes_on`: its consumer is not stopped in any way.
    `has_holes`, `has_news`: something is missing behind its consumer, and nobody was told of a part
    of it.
    """

    stream: str
    shard_id: str
    level: Level
    stands_still: bool
    text: str
    goes_on: bool
    has_holes: bool = False
    has_news: bool = False

    @property
    def is_told(self) -> bool:
        """Whether somebody has to know: of the notices those of a standstill and of a hole."""
        is_noted = self.stands_still or self.has_holes
        return self.level.is_alarm or (is_noted and self.level is Level.NOTICE)


@dataclass(frozen=True, slots=True)
class NewsMessage:
    """What is sent: the news of one shard, or a digest of many."""

    message_id: str
    title: str
    text: str
    level: Level
    notification_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Told:
    """What people know of a shard: its newest notification, and that it stands still."""

    last: Notification | None
    stands_still: bool


def due_notifications(
    seen: Iterable[ShardNews],
    told: Iterable[Notification],
    *,
    as_of: datetime,
    is_past: bool = False,
) -> list[Notification]:
    """What must be told now. `told`: the stream's notifications so far, sent or not, by time.

    A shard that was told and is not seen any more has left the stream with all it held. `is_past`:
    the watch is of a time before now, and what was told later holds; only a hole that nobody was
    told of is news then.
    """
    found = []
    known = _known(told)
    now = {shard.shard_id: shard for shard in seen}
    for shard_id, known_of in known.items():
        if shard_id not in now and known_of.last is not None:
            now[shard_id] = _gone(known_of.last.stream, shard_id)
    for shard in now.values():
        before = known.get(shard.shard_id, _Told(None, stands_still=False))
        if is_past and _is_told_after(before, as_of) and not shard.has_news:
            continue
        occasion = _occasion(shard, before, as_of)
        if occasion is not None:
            # The next one may have the same before it: what is told of the past comes before that.
            link = as_of.isoformat() if is_past else ""
            found.append(_notification(shard, before.last, occasion, as_of, link))
    return found


def _is_told_after(known: _Told, as_of: datetime) -> bool:
    return known.last is not None and known.last.observed_at > as_of


def _gone(stream: str, shard_id: str) -> ShardNews:
    return ShardNews(
        stream,
        shard_id,
        Level.NONE,
        stands_still=False,
        text="it has left the stream",
        goes_on=True,
    )


def _known(told: Iterable[Notification]) -> dict[str, _Told]:
    """From what was told alone: a watch that stored its shards and then crashed told nobody."""
    found: dict[str, _Told] = {}
    for news in told:
        before = found.get(news.shard_id)
        ends = news.occasion in {Occasion.RESUMED, Occasion.CLEAR}
        still = before is not None and before.stands_still and not ends
        found[news.shard_id] = _Told(news, still or news.occasion is Occasion.STANDSTILL)
    return found


def news_messages(pending: Sequence[Notification]) -> list[NewsMessage]:
    """One message per notification of a stream; above `DIGEST_ABOVE` of them a single digest.

    The shard that was worst is first; of each the last word is the last.
    """
    worst = dict[str, int]()
    for n in pending:
        worst[n.shard_id] = max(worst.get(n.shard_id, 0), n.level.rank)
    ordered = sorted(pending, key=lambda n: (-worst[n.shard_id], n.shard_id, n.observed_at))
    if len(ordered) > DIGEST_ABOVE:
        return [_digest(ordered)]
    return [
        NewsMessage(n.notification_id, _title(n), n.text, n.level, (n.notification_id,))
        for n in ordered
    ]


def _occasion(shard: ShardNews, before: _Told, as_of: datetime) -> Occasion | None:
    last = before.last
    was, now = _last_level(last), shard.level
    if shard.stands_still and shard.is_told and not before.stands_still:
        return Occasion.STANDSTILL
    if shard.has_news:
        return Occasion.HOLE
    is_due = last is None or as_of - last.observed_at >= REMIND_AFTER
    # While it catches up, what stops and goes on is no news each time.
    is_over = shard.goes_on and (is_due or shard.has_holes or not shard.level.is_alarm)
    if before.stands_still and shard.is_told and is_over:
        return Occasion.RESUMED  # else the next standstill, at the same level, would be no news
    if now is was:
        return Occasion.REMINDER if now is Level.URGENT and is_due else None
    if shard.is_told:
        return Occasion.CHANGE
    return None if was is Level.NONE else Occasion.CLEAR


def _last_level(last: Notification | None) -> Level:
    """What people believe the shard's level to be."""
    return Level.NONE if last is None or last.occasion is Occasion.CLEAR else last.level


def _notification(
    shard: ShardNews, last: Notification | None, occasion: Occasion, as_of: datetime, link: str
) -> Notification:
    # Chained to the notification before it: made again after a crash it gets the same id.
    chain = (last.notification_id if last else "") + link
    identity = "\n".join((shard.stream, shard.shard_id, occasion, shard.level, chain))
    return Notification(
        notification_id=hashlib.sha256(identity.encode()).hexdigest()[:24],
        stream=shard.stream,
        shard_id=shard.shard_id,
        occasion=occasion,
        previous_level=_last_level(last),
        level=shard.level,
        text=shard.text,
        observed_at=as_of,
    )


def _title(news: Notification) -> str:
    what = {
        Occasion.CHANGE: news.level.upper(),
        Occasion.STANDSTILL: f"{news.level.upper()}: stands still",
        Occasion.RESUMED: f"goes on, still {news.level.upper()}",
        Occasion.HOLE: f"{news.level.upper()}: messages are missing",
        Occasion.REMINDER: f"still {news.level.upper()}",
        Occasion.CLEAR: f"no longer {news.previous_level.upper()}",
    }[news.occasion]
    return f"shardaudit: {what}: {news.stream} {news.shard_id}"


def _digest(news: Sequence[Notification]) -> NewsMessage:
    ids = tuple(sorted(n.notification_id for n in news))
    counts = {
        name: sum(_word(n) == name for n in news) for name in dict.fromkeys(_word(n) for n in news)
    }
    summary = ", ".join(f"{count} {name}" for name, count in counts.items())
    lines = [f"{n.shard_id} {_word(n)}: {n.text}" for n in news[:_DIGEST_LINES]]
    more = len(news) - len(lines)
    rest = [f"… and {more} shards more"] if more > 0 else []
    newest = at(max(n.observed_at for n in news))
    return NewsMessage(
        message_id=hashlib.sha256("\n".join(ids).encode()).hexdigest()[:24],
        title=f"shardaudit: {news[0].stream}: {summary} (as of {newest})",
        text="\n".join([*lines, *rest]),
        level=max((n.level for n in news), key=by_rank),
        notification_ids=ids,
    )


def _word(news: Notification) -> str:
    is_clear = news.occasion is Occasion.CLEAR
    return f"no longer {news.previous_level}" if is_clear else news.level.value
