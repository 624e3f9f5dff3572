"""Why a stream's watermark is where it is, and what moves it on: one sentence."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from shardaudit.model.verdict import Kind
from shardaudit.model.watermark import INCONCLUSIVE_FOR_GOOD, WHY, Held, Hold
from shardaudit.model.window import Window
from shardaudit.model.words import counted, messages
from shardaudit.report.plain import harmless, instant

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
        return f"nobody knows until when: {reason or 'nothing of the stream was ever seen'}"
    return f"the stream is complete until {instant(at)}" + (f": {reason}" if reason else "")


def quiet_notes(
    stream: str, window: Window, holds: Mapping[str, Sequence[Hold]], *, named: int = 20
) -> list[str]:
    """What to do about shards that are silent where they used not to be; nothing without any.

    One note for each time of silence, with the shards that share it: of the others its command must
    not say that they were quiet.

    Input:
        holds: by shard what holds its watermark. Those that reach into the window count.
        named: so many shards a command can hold, and so many notes there are.
    """
    shards: dict[Window, list[str]] = {}
    for shard_id, held in sorted(holds.items()):
        for hold in held:
            if hold.why is Held.QUIET and hold.window.common(window):
                shards.setdefault(hold.window, []).append(shard_id)
    spans = sorted(shards, key=lambda span: (span.start, span.end))
    notes = [_quiet_note(stream, span, shards[span], named=named) for span in spans[:named]]
    if len(spans) > named:
        notes.append(f"{counted(len(spans) - named, 'more time')} of silence: see the page")
    return notes


def _quiet_note(stream: str, span: Window, shards: Sequence[str], *, named: int) -> str:
    first, more = harmless(shards[0]), len(shards) - 1
    whose = f"{first} and {counted(more, 'shard')} more" if more else first
    if more >= named:
        whose += f" (the first {named} are in the command)"
    seconds = span.aligned(timedelta(seconds=1))
    return (
        f"{whose}: {WHY[Held.QUIET]}. Either producers' traces are not shipped and the consumer "
        "stands still, or nothing was sent. If so: `shardaudit findings accept --quiet --stream "
        f"{stream} --from {instant(seconds.start)} --to {instant(seconds.end)} "
        f"--shard {' '.join(shlex.quote(harmless(name)) for name in shards[:named])} "
        '--reason "nothing was sent"`'
    )


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
    of = f"--stream {holding.stream} --from {instant(hold.start)} --to {instant(hold.end)}"
    text += f"; to be looked at{again} by `shardaudit audit {of}`"
    if hold.why not in INCONCLUSIVE_FOR_GOOD:
        return text
    return (
        f"{text}; where that stays so, to be accepted by `shardaudit findings accept "
        f'--inconclusive {of} --shard {shlex.quote(shard_id)} --reason "…"`'
    )
