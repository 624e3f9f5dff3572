"""A watch's judgements as the report that people and `--json` get."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from shardaudit.model.errors import ShardauditError
from shardaudit.model.verdict import Level, ShardState
from shardaudit.report.plain import counted, instant, length
from shardaudit.watch.rules.facts import Rules
from shardaudit.watch.rules.judge import Judgement
from shardaudit.watch.rules.skew import Skew, landed_skew, produced_skew
from shardaudit.watch.watch_summary import SkewLine, WatchLine, WatchReport


def watch_report(
    name: str,
    rules: Rules,
    judgements: Sequence[Judgement],
    *,
    listed_at: datetime | None,
    failures: Sequence[ShardauditError],
) -> WatchReport:
    """The report: the most urgent shards first, then the nearest deadline."""
    states = Counter(j.state for j in judgements)
    levels = Counter(j.level for j in judgements)
    noted = [j for j in judgements if j.level is not Level.NONE or j.evidence]
    noted.sort(key=lambda j: (-j.level.rank, _deadline(j, rules), j.shard_id))
    return WatchReport(
        stream=name,
        as_of=rules.as_of,
        retention=rules.retention,
        read_at=rules.when_read.as_of,
        listed_at=listed_at,
        told=0,
        states={state.value: states[state] for state in ShardState if states[state]},
        levels={level.value: levels[level] for level in Level if levels[level]},
        worst=max((j.level for j in judgements), key=lambda level: level.rank, default=Level.NONE),
        shards=tuple(_line(j) for j in noted),
        produced_skew=_skew(produced_skew(judgements)),
        landed_skew=_skew(landed_skew(judgements)),
        notes=(*_notes(failures, listed_at, rules), *_doubts(judgements)),
    )


def _deadline(judgement: Judgement, rules: Rules) -> datetime:
    due = judgement.first_due
    return due.start_by if due else rules.as_of + rules.retention


def _line(judgement: Judgement) -> WatchLine:
    witness, due, hole_due = judgement.witness, judgement.deadline, judgement.hole_deadline
    progress, position, holes = witness.progress, witness.position, witness.holes
    return WatchLine(
        shard_id=judgement.shard_id,
        state=judgement.state,
        level=judgement.level,
        produced_until=progress.produced_until,
        landed_until=progress.landed_until,
        frontier_at=witness.resting_since,
        position=position.checkpoint if position else progress.frontier,
        messages_ahead=due.ahead.messages if due else 0,
        oldest_ahead=due.ahead.since if due else None,
        recoverable_until=due.recoverable_until if due else None,
        start_by=due.start_by if due else None,
        crosses_at=due.crosses_at if due else None,
        hours_to_read=due.hours_to_read if due else None,
        holes=holes.cells,
        hole_messages=holes.messages,
        hole_since=holes.since,
        hole_until=holes.until,
        hole_recoverable_until=hole_due.recoverable_until if hole_due else None,
        hole_start_by=hole_due.start_by if hole_due else None,
        advice=judgement.advice,
        evidence=judgement.evidence,
    )


def _skew(skew: Skew | None) -> SkewLine | None:
    if skew is None:
        return None
    return SkewLine(skew.spread, skew.earliest, skew.latest, skew.shard_id)


def _notes(
    failures: Sequence[ShardauditError], listed_at: datetime | None, rules: Rules
) -> tuple[str, ...]:
    """What could not be asked, and how old therefore what is."""
    if not failures:
        return ()
    if listed_at is None:
        shards = "the shards are known from the traces and the sink alone"
    else:
        shards = f"what Kinesis said last is {_age(listed_at, rules)}"
    read = f"the traces and the sink are {_age(rules.when_read.as_of, rules)}"
    return (*(str(failure) for failure in failures), f"{shards}; {read}")


def _doubts(judgements: Sequence[Judgement]) -> tuple[str, ...]:
    """Where only an audit can say whether something is missing."""
    doubted = [h for j in judgements if (h := j.witness.holes).doubted_since is not None]
    if not doubted:
        return ()
    since = min(h.doubted_since for h in doubted if h.doubted_since is not None)
    cells = counted(sum(h.doubts for h in doubted), "cell")
    shards = counted(len(doubted), "shard")
    return (
        f"in {cells} of {shards} from {instant(since)} on sums cannot tell whether something is "
        "missing: more landed than was sent, or what lacks may be among the sink's rows that lack "
        "their own time or shard; an audit says",
    )


def _age(at: datetime, rules: Rules) -> str:
    if at == rules.as_of:
        return "of now"
    return f"of {instant(at)}, {length(rules.as_of - at)} old"
