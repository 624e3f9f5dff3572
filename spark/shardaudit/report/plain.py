"""Texts that come from outside, made harmless for a terminal and a log."""

from datetime import datetime, timedelta

from rich.text import Text

from shardaudit.model.window import Window

MAX_SHOWN = 64


def harmless(text: str) -> str:
    """The text with everything escaped that a terminal obeys instead of showing it.

    That is: control characters, line ends of every kind, characters that turn the reading
    direction, and halves of surrogate pairs. A backslash is doubled, so that nothing is ambiguous.
    """
    return visible(text.replace("\\", "\\\\"))


def visible(text: str) -> str:
    """The same with a backslash as it is: for a page, where one is nothing but itself."""
    return text if text.isprintable() else "".join(map(_shown, text))


def cell(text: str | None) -> Text:
    """A table cell: harmless, cut to `MAX_SHOWN` characters, and never read as rich's markup."""
    if text is None:
        return Text("–")
    shown = harmless(text)
    return Text(shown if len(shown) <= MAX_SHOWN else f"{shown[: MAX_SHOWN - 1]}…")


def instant(at: datetime | None) -> str:
    """The UTC time to the second, as it may be given to `--from`."""
    return "–" if at is None else at.strftime("%Y-%m-%dT%H:%M:%SZ")


def length(span: timedelta) -> str:
    """A length of time in its two largest units, as `3 d 4 h`, `5 min` or `12 s`."""
    seconds = int(abs(span).total_seconds())
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min" if minutes else f"{seconds} s"


def counted(count: int, noun: str) -> str:
    """The number with its noun, as `1 window` or `2 windows`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def messages(count: int) -> str:
    """How many messages, in words."""
    return counted(count, "message")


def byte_size(count: float) -> str:
    """A number of bytes in its unit, as `32 MiB`."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:  # noqa: PLR2004 - that is what KiB means
            return f"{value:,.0f} {unit}"
        value /= 1024
    return f"{value:,.1f} TiB"


def gap_line(shard_id: str, gaps: int, ids: int, *, window: Window) -> str:
    """Cells of a shard of which (nearly) nothing landed, in words."""
    when = f"from {instant(window.start)} to {instant(window.end)}"
    return f"{counted(gaps, 'gap')} of {messages(ids)}: shard {harmless(shard_id)}, {when}"


def _shown(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape", "surrogatepass").decode()
