from datetime import datetime, timedelta

from shardaudit.model.verdict import Level
from shardaudit.watch.rules.notifications import (
    Notification,
    Occasion,
    ShardNews,
    due_notifications,
    news_messages,
)
from tests.builders import NOW

HOUR = timedelta(hours=1)


def shard_news(
    level: Level, shard: str = "s1", *, stands_still: bool = False, goes_on: bool = False
) -> ShardNews:
    return ShardNews("events", shard, level, stands_still, "stands still", goes_on=goes_on)


def holed(level: Level, *, consumer: Level, news: bool = False) -> ShardNews:
    """A shard with a hole; its consumer stands still where that is a notice or worse."""
    return ShardNews(
        *("events", "s1", level, consumer is not Level.NONE, "a hole"),
        goes_on=consumer is Level.NONE,
        has_holes=True,
        has_news=news,
    )


class Receiver:
    """A watch after the other, with what was told so far."""

    def __init__(self) -> None:
        self.told: list[Notification] = []

    def watch(
        self, *shards: ShardNews, at: datetime = NOW, is_past: bool = False
    ) -> list[Notification]:
        news = due_notifications(shards, self.told, as_of=at, is_past=is_past)
        self.told += news
        return news


def test_each_change_of_level_is_told_once_and_the_end_is_an_all_clear() -> None:
    receiver = Receiver()
    levels = [Level.NONE, Level.NOTICE, Level.WARN, Level.WARN, Level.URGENT, Level.NOTICE]
    told = [receiver.watch(shard_news(level)) for level in levels]
    assert [[(n.occasion, n.level) for n in news] for news in told] == [
        [],
        [],
        [(Occasion.CHANGE, Level.WARN)],
        [],
        [(Occasion.CHANGE, Level.URGENT)],
        [(Occasion.CLEAR, Level.NOTICE)],
    ]
    assert receiver.watch(shard_news(Level.NONE)) == []


def test_a_standstill_is_told_once_without_reminders_and_its_end_is_an_all_clear() -> None:
    receiver = Receiver()
    stalled = shard_news(Level.NOTICE, stands_still=True)
    told = [receiver.watch(stalled, at=NOW + h * HOUR) for h in range(20)]
    assert [len(news) for news in told] == [1] + [0] * 19
    ((first,), *_) = told
    assert (first.occasion, first.level) == (Occasion.STANDSTILL, Level.NOTICE)
    assert news_messages([first])[0].title == "shardaudit: NOTICE: stands still: events s1"
    # Not over yet: it reads again what it had, say.
    assert receiver.watch(shard_news(Level.NOTICE)) == []
    (clear,) = receiver.watch(shard_news(Level.NONE))
    assert (clear.occasion, clear.previous_level) == (Occasion.CLEAR, Level.NOTICE)
    (again,) = receiver.watch(stalled)
    assert (again.occasion, again.previous_level) == (Occasion.STANDSTILL, Level.NONE)
    assert again.notification_id != first.notification_id


def test_a_standstill_that_becomes_less_urgent_is_not_over() -> None:
    receiver = Receiver()
    receiver.watch(shard_news(Level.WARN, stands_still=True))
    (news,) = receiver.watch(shard_news(Level.NOTICE, stands_still=True))
    assert (news.occasion, news.level) == (Occasion.CHANGE, Level.NOTICE)


def test_standstills_behind_a_hole_that_was_told_are_told_once_each_and_so_is_their_end() -> None:
    none, notice, warn = Level.NONE, Level.NOTICE, Level.WARN
    week = [
        (holed(notice, consumer=none, news=True), [(Occasion.HOLE, notice)]),
        (holed(notice, consumer=none), []),
        (holed(notice, consumer=notice), [(Occasion.STANDSTILL, notice)]),
        *[(holed(notice, consumer=notice), [])] * 9,
        (holed(notice, consumer=notice, news=True), [(Occasion.HOLE, notice)]),
        (holed(notice, consumer=notice), []),
        (holed(warn, consumer=notice), [(Occasion.CHANGE, warn)]),
        (holed(warn, consumer=none), [(Occasion.RESUMED, warn)]),
        (holed(warn, consumer=none), []),
        # Both at once are one notification.
        (holed(warn, consumer=notice, news=True), [(Occasion.STANDSTILL, warn)]),
        (holed(warn, consumer=notice), []),
        (shard_news(none), [(Occasion.CLEAR, none)]),
        (shard_news(none), []),
    ]
    receiver = Receiver()
    told = [receiver.watch(shard, at=NOW + n * HOUR / 4) for n, (shard, _) in enumerate(week)]
    assert [[(n.occasion, n.level) for n in news] for news in told] == [due for _, due in week]
    assert len({news.notification_id for news in receiver.told}) == len(receiver.told)
    resumed = next(news for news in receiver.told if news.occasion is Occasion.RESUMED)
    assert news_messages([resumed])[0].title == "shardaudit: goes on, still WARN: events s1"


def test_a_standstill_is_told_also_of_a_shard_that_was_catching_up_since_the_last() -> None:
    receiver = Receiver()
    stalled = shard_news(Level.WARN, stands_still=True)
    catches_up, reads_again = shard_news(Level.WARN, goes_on=True), shard_news(Level.WARN)
    # Crashing and landing a little, again and again, is told when it begins.
    week = [stalled, *[stalled, reads_again, catches_up] * 7, *[catches_up] * 3, stalled]
    told = [
        (n, news.occasion)
        for n, shard in enumerate(week)
        for news in receiver.watch(shard, at=NOW + n * HOUR / 4)
    ]
    began, over = Occasion.STANDSTILL, Occasion.RESUMED
    assert told == [(0, began), (24, over), (25, began)]


def test_a_watch_of_a_past_time_changes_no_word_of_a_later_one_but_tells_of_a_hole() -> None:
    receiver, before = Receiver(), NOW - HOUR / 2
    receiver.watch(shard_news(Level.URGENT))
    for shards in ([shard_news(Level.NONE)], [shard_news(Level.WARN)], []):
        assert receiver.watch(*shards, at=before, is_past=True) == []
    (hole,) = receiver.watch(
        holed(Level.WARN, consumer=Level.NONE, news=True), at=before, is_past=True
    )
    assert hole.occasion is Occasion.HOLE
    (clear,) = receiver.watch(shard_news(Level.NONE), at=NOW + HOUR, is_past=True)
    assert clear.occasion is Occasion.CLEAR


def test_a_hole_that_a_watch_of_a_past_time_tells_has_no_other_s_id() -> None:
    receiver = Receiver()
    later = receiver.watch(shard_news(Level.URGENT))
    hole = holed(Level.WARN, consumer=Level.NONE, news=True)
    told = [
        due_notifications([hole], later, as_of=NOW + minutes * HOUR / 60, is_past=minutes < 0)
        for minutes in (-30, -20, -20, 15)
    ]
    first, second, again, next_one = (news[0].notification_id for news in told)
    assert second == again
    assert len({first, second, next_one}) == 3


def test_a_clock_that_is_a_bit_behind_keeps_nobody_from_being_told() -> None:
    receiver = Receiver()
    receiver.watch(shard_news(Level.URGENT))
    (clear,) = receiver.watch(shard_news(Level.NONE), at=NOW - HOUR / 2)
    assert clear.occasion is Occasion.CLEAR


def test_standstills_of_more_than_ten_shards_are_one_digest() -> None:
    shards = [shard_news(Level.NOTICE, f"s{i:02}", stands_still=True) for i in range(11)]
    (digest,) = news_messages(Receiver().watch(*shards))
    assert digest.title == "shardaudit: events: 11 notice (as of 2026-11-20T14:00Z)"


def test_an_urgent_shard_is_recalled_every_six_hours() -> None:
    receiver = Receiver()
    urgent = shard_news(Level.URGENT)
    hours = [h for h in range(20) if receiver.watch(urgent, at=NOW + h * HOUR)]
    assert hours == [0, 6, 12, 18]
    assert len({news.notification_id for news in receiver.told}) == 4


def test_a_warning_and_a_loss_are_not_recalled() -> None:
    for level in (Level.WARN, Level.LOST):
        receiver = Receiver()
        assert len(receiver.watch(shard_news(level))) == 1
        assert receiver.watch(shard_news(level), at=NOW + 7 * HOUR) == []


def test_a_notification_made_again_has_the_same_id_and_a_later_one_another() -> None:
    first = due_notifications([shard_news(Level.WARN)], [], as_of=NOW)
    again = due_notifications([shard_news(Level.WARN)], [], as_of=NOW + HOUR)
    assert first[0].notification_id == again[0].notification_id
    receiver = Receiver()
    ids = [
        receiver.watch(shard_news(level))[0].notification_id
        for level in (Level.WARN, Level.NONE, Level.WARN, Level.NONE, Level.WARN)
    ]
    assert len(set(ids)) == 5


def test_a_shard_that_is_not_heard_of_any_more_has_left_the_stream() -> None:
    receiver = Receiver()
    receiver.watch(shard_news(Level.LOST))
    (news,) = receiver.watch()
    assert (news.occasion, news.level, news.text) == (
        Occasion.CLEAR,
        Level.NONE,
        "it has left the stream",
    )
    assert news_messages([news])[0].title == "shardaudit: no longer LOST: events s1"
    assert receiver.watch() == []


def test_up_to_ten_shards_are_a_message_each_the_most_urgent_first() -> None:
    news = Receiver().watch(
        *(shard_news(Level.WARN, f"s{i}") for i in range(9)), shard_news(Level.URGENT, "z")
    )
    sent = news_messages(news)
    assert len(sent) == 10
    assert sent[0].title == "shardaudit: URGENT: events z"
    assert sent[0].message_id == next(n.notification_id for n in news if n.shard_id == "z")


def test_above_ten_shards_there_is_one_digest_with_the_same_id_each_time() -> None:
    shards = [shard_news(Level.WARN, f"s{i:02}") for i in range(30)]
    shards.append(shard_news(Level.URGENT, "z"))
    news = Receiver().watch(*shards)
    (digest,) = news_messages(news)
    assert digest.title == "shardaudit: events: 1 urgent, 30 warn (as of 2026-11-20T14:00Z)"
    assert digest.text.splitlines()[0] == "z urgent: stands still"
    assert digest.text.splitlines()[-1] == "… and 11 shards more"
    assert sorted(digest.notification_ids) == sorted(n.notification_id for n in news)
    assert news_messages(list(reversed(news)))[0].message_id == digest.message_id
    assert news_messages([]) == []


def test_the_last_message_on_a_shard_is_the_last_word_however_long_nobody_took_any() -> None:
    """Who was down for a night hears last that it stands still, not that it is well."""
    receiver = Receiver()
    stalled, urgent = shard_news(Level.NOTICE, stands_still=True), shard_news(Level.URGENT)
    for n, shard in enumerate((urgent, shard_news(Level.NONE), stalled)):
        receiver.watch(shard, shard_news(Level.WARN, "s0"), at=NOW + n * HOUR)
    sent = [message.title for message in news_messages(receiver.told)]
    assert sent == [
        "shardaudit: URGENT: events s1",
        "shardaudit: no longer URGENT: events s1",
        "shardaudit: NOTICE: stands still: events s1",
        "shardaudit: WARN: events s0",
    ]
    many = [news for news in receiver.told for _ in range(3)]
    (digest,) = news_messages(many)
    assert digest.level is Level.URGENT
