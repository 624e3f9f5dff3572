"""A watch's judgements as the report that people and `--json` get."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from shardaudit.model.errors import ShardauditError
from shardaudit.model.verdict import Level, ShardState, by_rank
from shardaudit.model.window import earlier
from shardaudit.model.words import counted, length
from shardaudit.report.health import OK_IN_PART, SUMS_CANNOT_TELL
from shardaudit.report.plain import cell, harmless, instant
from shardaudit.watch.rules.facts import Rules
from shardaudit.watch.rules.judgement import Judgement, Skew, landed_skew, produced_skew
from shardaudit.watch.watch_asked import Asked

_SHOWN_SHARDS = 20
_STYLES = {
    Level.NONE: "bold green",
    Level.NOTICE: "bold yellow",
    Level.WARN: "bold yellow",
    Level.URGENT: "bold red",
    Level.LOST: "bold red",
}


@dataclass(frozen=True, slots=True)
class WatchLine:
    """One shard. `messages_ahead` and `hours_to_read` are upper bounds; times are UTC.

    `holes`: cells that its consumer is past and in which at least `hole_messages` are missing.
    """

    shard_id: str
    state: ShardState
    level: Level
    produced_until: datetime | None
    landed_until: datetime | None
    frontier_at: datetime | None
    position: str | None
    messages_ahead: int
    oldest_ahead: datetime | None
    recoverable_until: datetime | None
    start_by: datetime | None
    crosses_at: datetime | None
    hours_to_read: float | None
    holes: int
    hole_messages: int
    hole_since: datetime | None
    hole_until: datetime | None
    hole_recoverable_until: datetime | None
    hole_start_by: datetime | None
    advice: str | None
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WatchReport:
    """One watch. `shards`: those that are not well, or of which witnesses disagree.

    `read_at`: when traces and sink were read last; None: never, and nothing is judged: `worst` is
    None. `listed_at`: when Kinesis last said which shards there are; None when it never did.
    `told`: how many notifications are new.
    """

    stream: str
    as_of: datetime
    retention: timedelta
    read_at: datetime | None
    listed_at: datetime | None
    told: int
    states: dict[str, int]
    levels: dict[str, int]
    worst: Level | None
    shards: tuple[WatchLine, ...]
    produced_skew: Skew | None
    landed_skew: Skew | None
    notes: tuple[str, ...]


def watch_report(
    name: str,
    rules: Rules,
    judgements: Sequence[Judgement],
    asked: Asked,
    *,
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
        listed_at=asked.listed_at,
        told=0,
        states={state.value: states[state] for state in ShardState if states[state]},
        levels={level.value: levels[level] for level in Level if levels[level]},
        worst=max((j.level for j in judgements), key=by_rank, default=Level.NONE),
        shards=tuple(_line(j) for j in noted),
        produced_skew=produced_skew(judgements),
        landed_skew=landed_skew(judgements),
        notes=(*_notes(failures, asked.listed_at, rules), *asked.unsaid, *_doubts(judgements)),
    )


def unread_report(
    name: str,
    asked: Asked,
    *,
    as_of: datetime,
    retention: timedelta,
    failures: Sequence[ShardauditError],
) -> WatchReport:
    """That of a first watch that could not read: it judges no shard, and says why."""
    return WatchReport(
        stream=name,
        as_of=as_of,
        retention=retention,
        read_at=None,
        listed_at=asked.listed_at,
        told=0,
        states={},
        levels={},
        worst=None,
        shards=(),
        produced_skew=None,
        landed_skew=None,
        notes=(
            *(str(failure) for failure in failures),
            "nothing is known yet of what landed, neither good nor bad: no watch was before, and "
            "the ledger is being filled; the first watch after that run judges every shard",
        ),
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
    return (f"in {cells} of {shards} from {instant(since)} on {SUMS_CANNOT_TELL}",)


def _age(at: datetime, rules: Rules) -> str:
    if at == rules.as_of:
        return "of now"
    return f"of {instant(at)}, {length(rules.as_of - at)} old"


def watch_view(report: WatchReport) -> RenderableType:
    """The page of a watch: levels, deadlines, what to do."""
    parts: list[RenderableType] = [_headline(report), _facts(report)]
    shown = report.shards[:_SHOWN_SHARDS]
    if shown:
        parts += ["", _shards(shown)]
    if len(report.shards) > len(shown):
        parts.append(Text(f"… and {len(report.shards) - len(shown):,} shards more (--json)"))
    for line in shown:
        words = "; ".join(filter(None, (line.advice, *line.evidence)))
        if words:
            parts.append(_sentence(f"{line.shard_id}: {words}"))
    parts += [_sentence(note) for note in report.notes]
    return Group(*parts)


def _headline(report: WatchReport) -> Text:
    """The worst level; OK alone only where nothing is left that nobody knows (`notes`)."""
    worst = report.worst
    if worst is None:
        said, style = "nothing is known yet", _STYLES[Level.NOTICE]
    elif worst is not Level.NONE:
        said, style = worst.value, _STYLES[worst]
    elif report.notes:
        said, style = OK_IN_PART, _STYLES[Level.NOTICE]
    else:
        said, style = "ok", _STYLES[worst]
    return Text.assemble(f"Watch of {harmless(report.stream)}: ", (said.upper(), style))


def _facts(report: WatchReport) -> Table:
    read, listed = _when(report.read_at, report), _when(report.listed_at, report)
    facts = {
        "as of": instant(report.as_of),
        "ledger": f"read {read}",
        "shards": _counts(report.states),
        "levels": _counts(report.levels),
        "Kinesis": f"asked {listed}; retention {length(report.retention)}",
        "producers": _skew_line(report.produced_skew),
        "sink": _skew_line(report.landed_skew),
    }
    if report.read_at is None:
        facts |= dict.fromkeys(("shards", "levels", "producers", "sink"), "not known yet")
    table = Table(box=None, show_header=False, padding=(0, 1))
    for name, text in facts.items():
        table.add_row(Text(name, style="dim"), Text(harmless(text)))
    return table


def _when(at: datetime | None, report: WatchReport) -> str:
    return "never" if at is None else f"{instant(at)} ({length(report.as_of - at)} ago)"


def _shards(lines: Sequence[WatchLine]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    for name in ("shard", "state", "level", "waiting since", "start by", "recoverable until"):
        table.add_column(name, no_wrap=True)
    for name in ("messages", "hours to read", "in holes"):
        table.add_column(name, justify="right")
    for line in lines:
        table.add_row(
            cell(line.shard_id),
            line.state,
            Text(line.level, style=_STYLES[line.level]),
            instant(earlier(line.oldest_ahead, line.hole_since)),
            instant(earlier(line.start_by, line.hole_start_by)),
            instant(earlier(line.recoverable_until, line.hole_recoverable_until)),
            f"{line.messages_ahead:,}",
            "–" if line.hours_to_read is None else f"≤ {line.hours_to_read:.1f}",
            f"≥ {line.hole_messages:,}" if line.holes else "–",
        )
    return table


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items() if count) or "none"


def _skew_line(skew: Skew | None) -> str:
    if skew is None:
        return "no shard is at work"
    return (
        f"shards are {length(skew.spread)} apart, up to {instant(skew.latest)}; "
        f"{skew.shard_id} is the furthest behind"
    )


def _sentence(text: str) -> Text:
    # Not wrapped by us: a window in a sentence must survive being copied.
    return Text(f"• {harmless(text)}", no_wrap=True, overflow="ignore")
