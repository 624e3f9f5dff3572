"""200 random days: every stop with waiting messages is reported, no healthy day is disturbed."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

import pytest

from shardaudit.model.shard_state import Level
from shardaudit.watch.facts import Before, Rules, Witness
from shardaudit.watch.judge import Judgement, judged, waits_for
from shardaudit.watch.patience import patiences
from tests.unit.watch.aggregated import MINUTE, ShardLedger, instant
from tests.unit.watch.simulated import END, HEALTHY, KINDS, History, events, history, real_stops

HISTORIES = 200
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
    """What came of one history: stops that had to be seen, those that were, and alarms."""
    past = history(seed)
    seen = list(observations(past))
    told = {(name, now) for now, found in seen for name, j in found.items() if is_told(j)}
    count = Counter(histories=1, observations=sum(len(found) for _, found in seen))
    for name, since, until in real_stops(past):
        if until - since < MUST_BE_SEEN:
            continue
        first = (since // EVERY + 1) * EVERY
        if first + EVERY > END:
            continue  # the day ends before the second observation
        count["stops"] += 1
        reported = [n for n, at in enumerate((first, first + EVERY), 1) if (name, at) in told]
        count["reported"] += bool(reported)
        count["at once"] += reported[:1] == [1]
    count["told"] = len(told)
    count["alarms"] = sum(j.level.is_alarm for _, found in seen for j in found.values())
    return count


def is_told(judgement: Judgement) -> bool:
    """Whether the shard is anything but quiet."""
    return judgement.level is not Level.NONE


def test_every_stop_is_reported_and_no_healthy_history_is_disturbed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = {kind: Counter[str]() for kind in KINDS}
    for seed in range(HISTORIES):
        table[KINDS[seed % len(KINDS)]] += outcome(seed)
    names = ("histories", "observations", "stops", "reported", "at once", "told", "alarms")
    with capsys.disabled():
        print("\n" + " ".join(f"{name:>12}" for name in ("kind", *names)))  # noqa: T201 - the table
        for kind, count in table.items():
            print(" ".join(f"{text!s:>12}" for text in (kind, *(count[n] for n in names))))  # noqa: T201
    stops = table["stop"]
    assert stops["stops"] > 50
    assert stops["reported"] == stops["stops"]
    assert [table[kind]["told"] for kind in HEALTHY] == [0] * len(HEALTHY)
