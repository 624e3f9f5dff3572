"""Why a stream's watermark is where it is, and what moves it on: one sentence."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from shardaudit.model.verdict import Kind
from shardaudit.model.watermark import WHY, Held, Hold
from shardaudit.model.window import Window
from shardaudit.report.plain import counted, harmless, instant, messages

_LACKING = {
    (Kind.MISSING, False): "missing",
    (Kind.MISSING, True): "missing for good",
    (Kind.DUPLICATED, False): "landed more than once",
}


@dataclass(frozen=True, slots=True)
class Holding:
    """What holds a stream. `counts`: messages by kind, and whether they left the stream."""

    stream: str
    shard_id: str
    hold: Hold
    counts: Mapping[tuple[Kind, bool], int]


def complete_until(at: datetime | None, reason: str | None) -> str:
    """Until when a stream is complete, whatever window an audit looked at, and why not further."""
    if at is None:
        return "the stream: nothing of it was ever seen"
    return f"the stream is complete until {instant(at)}" + (f": {reason}" if reason else "")


def quiet_note(
    stream: str, window: Window, holds: Mapping[str, Sequence[Hold]], *, named: int = 20
) -> list[str]:
    """What to do about shards that are silent where they used not to be; nothing without any.

    Input:
        holds: by shard what holds its watermark. Those that reach into the window count.
        named: so many shards a command can hold.
    """
    silent = {
        shard_id: told
        for shard_id, held in sorted(holds.items())
        if (told := [h for h in held if h.why is Held.QUIET and h.window.common(window)])
    }
    if not silent:
        return []
    first, more = harmless(min(silent)), len(silent) - 1
    whose = f"{first} and {counted(more, 'shard')} more" if more else first
    asked = list(silent)[:named]
    if more >= named:
        whose += f" (the first {named} are in the command)"
    spans = [hold.window for shard_id in asked for hold in silent[shard_id]]
    since, until = min(span.start for span in spans), max(span.end for span in spans)
    seconds = Window(since, until).aligned(timedelta(seconds=1))
    return [
        f"{whose}: {WHY[Held.QUIET]}. Either producers' traces are not shipped and the consumer "
        "stands still, or nothing was sent. If so: `shardaudit findings accept --quiet --stream "
        f"{stream} --from {instant(seconds.start)} --to {instant(seconds.end)} "
        f"--shard {' '.join(shlex.quote(harmless(name)) for name in asked)} "
        '--reason "nothing was sent"`'
    ]


def held_because(holding: Holding, *, window: Window) -> str:
    """The sentence; outside of the window that was just audited it names the audit to run."""
    hold = holding.hold
    shard_id = harmless(holding.shard_id)
    if hold.why is Held.FINDINGS:
        counted = ", ".join(
            f"{messages(count)} {_LACKING[key]}" for key, count in sorted(holding.counts.items())
        )
        done = "repaired or accepted"
        if set(holding.counts) == {(Kind.MISSING, True)}:
            done = "accepted"
        return f"{shard_id} has {counted}, sent from {instant(hold.start)} on: not {done}"
    where = "" if hold.why is Held.UNAUDITED else f"{shard_id}: "
    span = f"{instant(hold.start)} to {instant(hold.end)}"
    text = f"{where}{WHY[hold.why]} ({span})"
    if window.start <= hold.start and hold.end <= window.end:
        return text
    again = "" if hold.why is Held.UNAUDITED else " again"
    return (
        f"{text}; to be looked at{again} by `shardaudit audit --stream {holding.stream} "
        f"--from {instant(hold.start)} --to {instant(hold.end)}`"
    )
