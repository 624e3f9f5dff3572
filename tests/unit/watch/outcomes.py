"""Random days, watched every quarter of an hour: what came of each."""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import timedelta

from shardaudit.model.shard_state import Level
from shardaudit.watch.facts import Before, Rules, Witness
from shardaudit.watch.judge import Judgement, judged, waits_for
from shardaudit.watch.notifications import Heard, Notification, Occasion, due_notifications
from shardaudit.watch.patience import patiences
from tests.unit.watch.aggregated import MINUTE, ShardLedger, instant
from tests.unit.watch.simulated import END, HEALTHY, KINDS, History, events, history, real_stops

EVERY = 15  # minutes between two observations
GRACE = timedelta(minutes=10)
RETENTION = timedelta(days=7)
MUST_BE_SEEN = 15  # minutes that a message waits


def observations(past: History) -> Iterator[tuple[float, dict[str, Judgement]]]:
    """Every quarter of an hour, the judgement of each shard that exists by then."""
    ledgers = {name: ShardLedger(name) for name in past.shards}
    pending = {name: events(shard) for name, shard in past.shards.items()}
    before: dict[str, Before] = {}
    earlier: dict[str, list[Before]] = {name: [] for name in past.shards}
    now = float(EVERY)
    while now <= END:
        for name, ledger in ledgers.items():
            pending[name] = _feed(ledger, past, pending[name], now)
        alive = {n: ledgers[n] for n, shard in past.shards.items() if shard.opened <= now}
        found = _judge(past, alive, now, before=before, earlier=earlier)
        yield now, found
        for name, judgement in found.items():
            before[name] = _stored(judgement)
            earlier[name] = [*earlier[name], before[name]][-4:]
        now += EVERY


def _feed(
    ledger: ShardLedger, past: History, pending: list[tuple[float, str, int]], now: float
) -> list[tuple[float, str, int]]:
    shard = past.shards[ledger.name]
    ready = [event for event in pending if event[0] <= now]
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
    before: dict[str, Before],
    earlier: dict[str, list[Before]],
) -> dict[str, Judgement]:
    rules = Rules(as_of=instant(now), retention=RETENTION, bucket=MINUTE, read_share=0.5)
    progress = {name: ledger.progress(now, before.get(name)) for name, ledger in alive.items()}
    bins = {name: ledger.bins for name, ledger in alive.items()}
    patience = patiences(bins, settle_grace=GRACE, retention=RETENTION)
    parents = {name: tuple(filter(None, (past.shards[name].parent,))) for name in alive}
    waiting = waits_for(progress.values(), parents)
    return {
        name: judged(
            Witness(
                progress=progress[name],
                patience=patience.get(name, GRACE),
                is_open=past.shards[name].closed > now,
                waits_for=waiting.get(name),
                before=before.get(name),
                earlier=earlier[name][0] if earlier[name] else None,
            ),
            rules,
            settle_grace=GRACE,
        )
        for name in alive
    }


def _stored(judgement: Judgement) -> Before:
    due, progress = judgement.deadline, judgement.witness.progress
    return Before(
        observed_at=judgement.as_of,
        level=judgement.level,
        frontier=progress.frontier,
        frontier_at=judgement.witness.resting_since,
        recoverable_until=due.recoverable_until if due else None,
    )


def outcome(seed: int) -> Counter[str]:
    """What came of one history: stops that had to be seen, those that were, alarms, messages."""
    past = history(seed)
    seen = list(observations(past))
    noted = {(name, now) for now, found in seen for name, j in found.items() if is_noted(j)}
    messages, known = heard_of(seen)
    count = Counter(histories=1, observations=sum(len(found) for _, found in seen))
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
            count["told"] += (name, first + EVERY) in known
    count["not quiet"] = len(noted)
    count["alarms"] = sum(j.level.is_alarm for _, found in seen for j in found.values())
    count["messages"] = messages
    return count


def is_noted(judgement: Judgement) -> bool:
    """Whether the shard is anything but quiet."""
    return judgement.level is not Level.NONE


def heard_of(
    seen: Iterable[tuple[float, dict[str, Judgement]]],
) -> tuple[int, set[tuple[str, float]]]:
    """How many notifications there were, and at which observations people knew of which shard."""
    told: dict[str, Notification] = {}
    known: set[tuple[str, float]] = set()
    messages = 0
    for now, found in seen:
        heard = [Heard("s", name, j.level, j.stands_still, "") for name, j in found.items()]
        news = due_notifications(heard, told, as_of=instant(now))
        messages += len(news)
        told |= {item.shard_id: item for item in news}
        known |= {(name, now) for name, n in told.items() if n.occasion is not Occasion.CLEAR}
    return messages, known


def outcomes(histories: int) -> dict[str, Counter[str]]:
    """By kind what came of that many histories: all stops are seen, healthy ones are quiet."""
    table = {kind: Counter[str]() for kind in KINDS}
    for seed in range(histories):
        table[KINDS[seed % len(KINDS)]] += outcome(seed)
    stops = table["stop"]
    assert stops["reported"] == stops["stops"] > 0
    assert stops["told"] == stops["long stops"] > 0
    for kind in HEALTHY:
        assert (table[kind]["not quiet"], table[kind]["messages"]) == (0, 0)
    return table
