"""Texts that come from outside, made harmless for a terminal and a log."""

from datetime import datetime

from rich.text import Text

from shardaudit.model.window import Window
from shardaudit.model.words import counted, messages

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


def gap_line(shard_id: str, gaps: int, ids: int, *, window: Window) -> str:
    """Cells of a shard of which (nearly) nothing landed, in words."""
    when = f"from {instant(window.start)} to {instant(window.end)}"
    return f"{counted(gaps, 'gap')} of {messages(ids)}: shard {harmless(shard_id)}, {when}"


def _shown(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape", "surrogatepass").decode()
