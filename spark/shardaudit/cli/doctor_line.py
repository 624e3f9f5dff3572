"""What a check of `doctor` says, and how it is shown."""

from collections.abc import Callable
from dataclasses import dataclass

from rich.text import Text

from shardaudit.model.errors import ShardauditError
from shardaudit.report.plain import harmless

OK, WARN, FAIL = "ok", "warn", "fail"
_STYLES = {OK: "green", WARN: "yellow", FAIL: "bold red"}


@dataclass(frozen=True, slots=True)
class Line:
    """One check: how it went, what was found, and what cures it when it is not ok."""

    check: str
    level: str
    found: str
    cure: str = ""


def looked(
    check: str, look: Callable[[], tuple[str, str]], *, cure: str, without: str = FAIL
) -> Line:
    """The line of one look; `without` is its level when the place cannot be reached."""
    try:
        level, found = look()
    except ShardauditError as error:
        level, found = without, str(error)
    return Line(check, level, found, "" if level == OK else cure)


def check_view(line: Line) -> Text:
    """Its line, and the cure below it."""
    text = Text(no_wrap=True, overflow="ignore")
    text.append(f"{line.level:<5}", style=_STYLES[line.level])
    text.append(harmless(f"{line.check}: {line.found}"))
    if line.cure:
        text.append(f"\n     -> {harmless(line.cure)}", style="italic")
    return text
