"""A shard as the watch sees it, with sensible defaults: a test shows only what matters."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from shardaudit.model.config.choices import PositionSource
from shardaudit.model.config.eras import always
from shardaudit.model.sequence import Position
from shardaudit.model.verdict import Level
from shardaudit.watch.rules.facts import EarlierWatch, LedgerProgress, Rules, Span, Witness
from shardaudit.watch.rules.judgement import Judgement, judgement_of
from tests.builders import NOW, SHARD, sequence

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
GRACE = 10 * MINUTE
RULES = Rules(as_of=NOW, retention=timedelta(days=7), cells=always(MINUTE), read_share=0.5)


def progress(**fields: Any) -> LedgerProgress:  # Any: the fields of Progress
    """A shard that landed everything a minute ago."""
    well = LedgerProgress(
        SHARD,
        produced_until=NOW - MINUTE,
        frontier=sequence(100),
        frontier_at=NOW - MINUTE,
        last_landed_at=NOW - MINUTE,
        landed_until=NOW - 2 * MINUTE,
        relanded_until=NOW - 2 * MINUTE,
    )
    return replace(well, **fields)


def behind(
    ago: timedelta, *, messages: int = 600, **fields: Any
) -> LedgerProgress:  # Any: as above
    """A shard whose frontier stopped that long ago, and that is still written to."""
    stopped = NOW - ago
    waiting = Span(messages, since=stopped, until=NOW)
    at = {"frontier_at": stopped, "last_landed_at": stopped}
    until = {"landed_until": stopped - MINUTE, "relanded_until": stopped - MINUTE}
    return progress(**{**at, **until, "ahead": waiting, **fields})


def witness(seen: LedgerProgress, **fields: Any) -> Witness:  # Any: the fields of Witness
    """What is known of it."""
    return replace(Witness(seen, patience=GRACE), **fields)


def judge(seen: LedgerProgress, rules: Rules = RULES, **fields: Any) -> Judgement:  # Any: as above
    """Its judgement."""
    return judgement_of(witness(seen, **fields), rules, settle_grace=GRACE)


def position(checkpoint: str, **fields: Any) -> Position:  # Any: the fields of Position
    """What a KCL consumer says."""
    lease = Position(PositionSource.KCL, "leases", SHARD, checkpoint, lease_owner="worker-1")
    return replace(lease, **fields)


def before(ago: timedelta, **fields: Any) -> EarlierWatch:  # Any: the fields of Before
    """What a watch of that long ago stored."""
    return replace(EarlierWatch(NOW - ago, Level.NONE), **fields)
