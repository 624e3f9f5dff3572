"""What a command is to `main`, and where its words go: the reply to stdout, the rest to stderr."""

import argparse
import errno
import json
import logging
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol, TextIO, cast

from rich.console import Console, Group, RenderableType
from rich.logging import RichHandler
from rich.text import Text

from shardaudit.adapters.engine.light import LightChoice, light_choice
from shardaudit.model.config.choices import EngineName
from shardaudit.model.config.settings import Settings, load_settings
from shardaudit.model.errors import ShardauditError
from shardaudit.model.exit_code import ExitCode
from shardaudit.model.window import Window, asked_span, parse_instant
from shardaudit.report.plain import harmless, visible
from shardaudit.report.progress import Live, Logged, Progress
from shardaudit.report.summary import as_json, plain_value

log = logging.getLogger(__name__)

_MORE_FILES = "; let a process open more files first, as by `ulimit -n 1024`"
WIDTH_IN_A_PIPE = 160  # a file or CI's log has no width of its own; 80 would fold the tables


@dataclass(frozen=True, slots=True)
class RanBy:
    """What ran a command: its name and version, and why that one where it is to be told."""

    engine: str
    engine_because: str | None


@dataclass(frozen=True, slots=True)
class Reply:
    """What a command says at its end: the document for `--json`, the view for people.

    `ran_by`: told beside both.
    """

    document: object
    view: RenderableType
    exit_code: ExitCode = ExitCode.DONE
    ran_by: RanBy | None = None


@dataclass(frozen=True, slots=True)
class CommandContext:
    """What `main` lays out for a command. `progress` wants the number of stages.

    `engine`: asked for in the place of the configuration's.
    """

    config: Path
    progress: Callable[[int], Progress]
    engine: str | None = None

    def settings(self) -> Settings:
        """The configuration, read and checked, with the engine that was asked for.

        Raises:
            ConfigError: it cannot be used, or there is no such engine.
        """
        return load_settings(self.config).with_engine(self.engine)

    def repair_settings(self) -> Settings:
        """The same for what writes into a user's sink: always by Apache Spark, Delta's own writer.

        Raises:
            ConfigError: as `settings`.
        """
        return self.settings().with_engine(EngineName.SPARK)

    def light(
        self, command: str, settings: Settings, *, reads: Callable[[], int] = lambda: 0
    ) -> LightChoice:
        """The settings for a command that reads little: `light_choice` says which engine runs it.

        Input:
            reads: the size in bytes of what the command is going to read.
        """
        choice = light_choice(command, settings, asked=self.engine, reads=reads)
        if choice.because is not None:
            log.info(
                "%s runs on the engine %s: %s", command, choice.settings.engine, choice.because
            )
        return choice


class Command(Protocol):
    """A command's module."""

    EXAMPLES: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declares the command's own arguments."""

    def run(self, arguments: argparse.Namespace, context: CommandContext) -> Reply:
        """Does it."""


def asked_time(arguments: argparse.Namespace) -> Window | None:
    """The time of `--from` and `--to`; None: neither was given.

    Raises:
        ConfigError: one of them was, or they are no times, or not in this order.
    """
    return asked_span(arguments.start, arguments.end, prefix="--")


def asked_instant(text: str | None, option: str) -> datetime | None:
    """The instant that an option names; None: it was not given.

    Raises:
        ConfigError: it is no time.
    """
    return None if text is None else parse_instant(text, where=option)


class Terminal:
    """The two outputs of one run. A person's terminal gets moving progress, a pipe log lines.

    `as_json`: the reply is one document; `log_json`: each line of the log is one.
    """

    def __init__(self, *, as_json: bool, debug: bool, log_json: bool = False) -> None:
        self._as_json, self._log_json = as_json, log_json
        self._out, self._log = _console(sys.stdout), _console(sys.stderr)
        _configure_logging(self._log, debug=debug, as_json=log_json)

    def progress(self, stages: int) -> Progress:
        """The progress of a job with that many stages."""
        is_watched = self._log.is_terminal and not self._log_json
        return Live(self._log, stages) if is_watched else Logged(stages)

    def tell(self, reply: Reply) -> int:
        """Prints the reply."""
        if self._as_json:
            self._out.out(as_json(_document(reply)), highlight=False)
        else:
            # In a group, because print() would join a text into one of its own, that it wraps.
            self._out.print(Group(reply.view, *_engine_line(reply.ran_by)), crop=False)
        return reply.exit_code

    def fail(self, error: BaseException, exit_code: ExitCode) -> int:
        """Says in one line what went wrong; the traceback only for who asked for it."""
        text = _sentence(error)
        log.debug("traceback", exc_info=error)
        if self._log_json:
            log.error("%s", text)
        else:
            self._log.print(f"error: {text}", soft_wrap=True, style="red")
        if self._as_json:
            document = {"error": text, "exit_code": int(exit_code)}
            self._out.out(as_json(document), highlight=False)
        return exit_code


def _document(reply: Reply) -> object:
    """The reply's document, an object where it says what ran the command."""
    if reply.ran_by is None:
        return reply.document
    return {**cast(Mapping[str, object], plain_value(reply.document)), **asdict(reply.ran_by)}


def _engine_line(ran_by: RanBy | None) -> list[Text]:
    if ran_by is None or ran_by.engine_because is None:
        return []
    said = harmless(f"on {ran_by.engine}: {ran_by.engine_because}")
    return [Text(f"• {said}", no_wrap=True, overflow="ignore")]


def _sentence(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    lines = str(error).strip().splitlines() or ["without words"]
    said = f"unexpected {type(error).__name__}: {lines[0]} (--debug shows where)"
    if isinstance(error, ShardauditError):
        said = " ".join(lines)
    cure = _MORE_FILES if os.strerror(errno.EMFILE) in str(error) else ""
    return harmless(said + cure)


def _console(stream: TextIO) -> Console:
    width = None if stream.isatty() else WIDTH_IN_A_PIPE
    return Console(file=stream, width=width, markup=False, highlight=False)


class _JsonLines(logging.Formatter):
    """Each record as one object: `time` (UTC), `level`, `logger`, `message`, `traceback`."""

    def format(self, record: logging.LogRecord) -> str:
        said = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            said["traceback"] = self.formatException(record.exc_info)
        return json.dumps(said)


class _PlainLines(logging.Formatter):
    """Each record in one line, whatever is in it: names of files and shards come from outside."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = visible(record.message)
        return super().formatMessage(record)


def _configure_logging(console: Console, *, debug: bool, as_json: bool) -> None:
    """Our own lines from INFO on, at a terminal (where progress moves) from WARNING on."""
    handler: logging.Handler
    is_watched = console.is_terminal and not as_json
    if as_json:
        handler = logging.StreamHandler(console.file)
        handler.setFormatter(_JsonLines())
    elif is_watched:
        handler = RichHandler(console=console, show_path=False, markup=False)
        handler.setFormatter(_PlainLines("%(message)s"))
    else:
        handler = logging.StreamHandler(console.file)
        line = "%(asctime)s %(levelname)s %(name)s: %(message)s"
        formatter = _PlainLines(line, "%Y-%m-%dT%H:%M:%SZ")
        formatter.converter = time.gmtime
        handler.setFormatter(formatter)
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    level = logging.WARNING if is_watched else logging.INFO
    logging.getLogger("shardaudit").setLevel(logging.DEBUG if debug else level)
