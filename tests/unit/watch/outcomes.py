"""Random days, watched every quarter of an hour: what came of each."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from operator import itemgetter

from shardaudit.model.config.eras import always
from shardaudit.model.verdict import Level
from shardaudit.watch.rules.facts import EarlierWatch, Holes, Rules, Witness
from shardaudit.watch.rules.judgement import Judgement, judgement_of, waits_for
from shardaudit.watch.rules.notifications import (
    Notification,
    Occasion,
    ShardNews,
    due_notifications,
)
from tests.oracle_shards import usual_patience
from tests.unit.watch.aggregated import MINUTE, ShardLedger, instant
from tests.unit.watch.simulated import (
    END,
    HEALTHY,
    KINDS,
    STOPPED,
    History,
    events,
    history,
    kinds,
    real_stops,
    settled_cells,
)

EVERY = 15  # minutes between two observations
GRACE = timedelta(minutes=10)
RETENTION = timedelta(days=7)
MUST_BE_SEEN = 15  # minutes that a message waits


@dataclass(frozen=True)
class Look:
    """One observation: each shard that exists by then, and the cells that are news, or doubted."""

    now: float
    found: dict[str, Judgement]
    news: set[tuple[str, int]]
    doubts: set[tuple[str, int]]


def observations(past: History) -> Iterator[Look]:
    """Every quarter of an hour, what the watch sees."""
    ledgers = {name: ShardLedger(name) for name in past.shards}
    pending = {name: events(shard) for name, shard in past.shards.items()}
    before: dict[str, EarlierWatch] = {}
    earlier: dict[str, list[EarlierWatch]] = {name: [] for name in past.shards}
    told: dict[str, dict[int, int]] = {name: {} for name in past.shards}
    settled: dict[str, int] = {}
    now = float(EVERY)
    while now <= END:
        for name, ledger in ledgers.items():
            pending[name] = _feed(ledger, past, pending[name], now)
        alive = {n: ledgers[n] for n, shard in past.shards.items() if shard.opened <= now}
        holes = {
            name: ledger.holes(settled=settled.get(name, -1), told=told[name])
            for name, ledger in alive.items()
        }
        facts = {name: one.facts for name, one in holes.items()}
        found = _judge(past, alive, now, holes=facts, before=before, earlier=earlier)
        yield Look(
            now,
            found,
            {
                (name, cell)
                for name, one in holes.items()
                for cell, missing in one.lacking.items()
                if missing > told[name].get(cell, 0)
            },
            {(name, cell) for name, one in holes.items() for cell in one.doubts},
        )
        for name, judgement in found.items():
            before[name] = _stored(judgement)
            earlier[name] = [*earlier[name], before[name]][-4:]
            told[name] |= holes[name].lacking
            settled[name] = max(settled.get(name, -1), _settled(judgement))
        now += EVERY


def _settled(judgement: Judgement) -> int:
    """The number of the message up to which its shard is settled."""
    frontier = judgement.witness.progress.settled_frontier
    return -1 if frontier is None else int(frontier[-20:])


def _feed(
    ledger: ShardLedger, past: History, pending: list[tuple[float, str, int]], now: float
) -> list[tuple[float, str, int]]:
    shard = past.shards[ledger.name]
    ready = pending[: bisect_right(pending, now, key=itemgetter(0))]
    for at, side, number in ready:
        if side == "sent":
            ledger.send(number, shard.sent_at[number])
        else:
            ledger.land(at, number, shard.sent_at[number])
    return pending[len(ready) :]


def _judge(
    past: History,
    alive: dict[str, ShardLedger],
    now: float,
    *,
    holes: dict[str, Holes],
    before: dict[str, EarlierWatch],
    earlier: dict[str, list[EarlierWatch]],
) -> dict[str, Judgement]:
    rules = Rules(as_of=instant(now), retention=RETENTION, cells=always(MINUTE), read_share=0.5)
    progress = {name: ledger.progress(now, before.get(name)) for name, ledger in alive.items()}
    patience = {
        name: usual_patience(ledger.hours.values(), GRACE, RETENTION)
        for name, ledger in alive.items()
    }
    parents = {name: tuple(filter(None, (past.shards[name].parent,))) for name in alive}
    witnesses = {
        name: Witness(
            progress=progress[name],
            patience=patience[name],
            is_open=past.shards[name].closed > now,
            holes=holes[name],
            before=before.get(name),
            earlier=earlier[name][0] if earlier[name] else None,
        )
        for name in alive
    }
    waiting = waits_for(witnesses.values(), parents, rules)
    return {
        name: judgement_of(replace(one, waits_for=waiting.get(name)), rules, settle_grace=GRACE)
        for name, one in witnesses.items()
    }


def _stored(judgement: Judgement) -> EarlierWatch:
    due, progress = judgement.deadline, judgement.witness.progress
    return EarlierWatch(
        observed_at=judgement.as_of,
        level=judgement.level,
        frontier=progress.frontier,
        frontier_at=judgement.witness.resting_since,
        recoverable_until=due.recoverable_until if due else None,
    )


def outcome(seed: int, kind: str) -> Counter[str]:
    """What came of one history: stops and holes that had to be seen, those that were, alarms."""
    past = history(seed, kind)
    looks = list(observations(past))
    noted = {(name, look.now) for look in looks for name, j in look.found.items() if is_noted(j)}
    notified = notified_of(looks)
    count = Counter(histories=1, observations=sum(len(look.found) for look in looks))
    count += _stops(past, noted, notified.standing)
    count += _holes(past, looks, notified.holes)
    count["told again"] = _told_again(looks, notified)
    count["not quiet"] = len(noted)
    count["alarms"] = sum(j.level.is_alarm for look in looks for j in look.found.values())
    count["messages"] = notified.messages
    return count


def _stops(
    past: History, noted: set[tuple[str, float]], standing: set[tuple[str, float]]
) -> Counter[str]:
    count = Counter[str]()
    for name, since, until in real_stops(past):
        if until - since < MUST_BE_SEEN:
            continue
        first = (since // EVERY + 1) * EVERY
        if first + EVERY > END:
            continue  # the day ends before the second observation
        count["stops"] += 1
        reported = [n for n, at in enumerate((first, first + EVERY), 1) if (name, at) in noted]
        count["reported"] += bool(reported)
        count["at once"] += reported[:1] == [1]
        if until > first + EVERY:
            count["long stops"] += 1
            count["told"] += (name, first + EVERY) in standing
    return count


def _told_again(looks: Sequence[Look], notified: "Notified") -> int:
    """How often people were told of a standstill or a hole that was none, or no news."""
    stood = {(name, look.now) for look in looks for name, j in look.found.items() if j.stands_still}
    news = {(name, look.now) for look in looks for name, _ in look.news}
    again = {(name, now) for name, now in stood if (name, now - EVERY) in stood}
    wrong = notified.standstills - stood, notified.standstills & again, notified.holes - news
    return sum(map(len, wrong))


def _holes(past: History, looks: list[Look], told: set[tuple[str, float]]) -> Counter[str]:
    """What came of the cells in which something was lost, from when they were settled on."""
    count = Counter[str]()
    real = {(name, shard.minute(n)) for name, shard in past.shards.items() for n in shard.lost}
    for look in looks:
        assert all((name, look.now) in told for name, _ in look.news)
        count["false holes"] += len(look.news - real)
    settled = {
        (name, cell): first
        for name, shard in past.shards.items()
        for cell, first in settled_cells(shard).items()
    }
    for (name, cell), first in settled.items():
        if first + EVERY > END:
            continue  # the day ends before the second observation
        seen = [look for look in looks if look.now <= first + EVERY]
        is_told = any((name, cell) in look.news for look in seen)
        is_doubt = (name, cell) in seen[-1].doubts
        count["hidden"] += is_doubt and not is_told  # more doubled there than was lost
        count["holes"] += not is_doubt or is_told
        count["holes told"] += is_told
    return count


def is_noted(judgement: Judgement) -> bool:
    """Whether the shard is anything but quiet."""
    return judgement.level is not Level.NONE


@dataclass(frozen=True)
class Notified:
    """What people were told: how many messages, and by shard and observation what.

    `standing`: when they knew that it stands still; `standstills`, `holes`: when they were told of
    a standstill, of a new hole, or of both at once.
    """

    messages: int
    standing: set[tuple[str, float]]
    standstills: set[tuple[str, float]]
    holes: set[tuple[str, float]]


def notified_of(looks: Iterable[Look]) -> Notified:
    """What the notifications of all these observations told."""
    told: list[Notification] = []
    stands: dict[str, bool] = {}
    found = Notified(0, set(), set(), set())
    for look in looks:
        shards = [_shard_news(name, j) for name, j in look.found.items()]
        news = due_notifications(shards, told, as_of=instant(look.now))
        told += news
        for item in news:
            if item.occasion in {Occasion.STANDSTILL, Occasion.RESUMED, Occasion.CLEAR}:
                stands[item.shard_id] = item.occasion is Occasion.STANDSTILL
            if item.occasion is Occasion.STANDSTILL:
                found.standstills.add((item.shard_id, look.now))
            has_news = look.found[item.shard_id].witness.holes.news > 0
            if item.occasion is Occasion.HOLE or (
                item.occasion is Occasion.STANDSTILL and has_news
            ):
                found.holes.add((item.shard_id, look.now))
        found.standing.update((name, look.now) for name, is_told in stands.items() if is_told)
    return replace(found, messages=len(told))


def _shard_news(name: str, judgement: Judgement) -> ShardNews:
    holes = judgement.witness.holes
    return ShardNews(
        *("s", name, judgement.level, judgement.stands_still, ""),
        goes_on=judgement.goes_on,
        has_holes=holes.cells > 0,
        has_news=holes.news > 0,
    )


def outcomes(histories: int) -> dict[str, Counter[str]]:
    """By kind what came of that many histories: all stops are seen, healthy ones are quiet."""
    table = {kind: Counter[str]() for kind in (*KINDS, *STOPPED)}
    for seed in range(histories):
        for kind in kinds(seed):
            table[kind] += outcome(seed, kind)
    for kind in STOPPED:
        stops = table[kind]
        assert stops["reported"] == stops["stops"] > 0
        assert stops["told"] == stops["long stops"] > 0
    for count in table.values():
        assert count["told again"] == 0
        assert count["false holes"] == 0
        assert count["holes told"] == count["holes"]
    for kind in HEALTHY:
        assert (table[kind]["not quiet"], table[kind]["messages"]) == (0, 0)
    return table
