"""The command line: finds the command, runs it, prints its reply, leaves an exit code.

It runs as `shardaudit …` and as the application of spark-submit. A command's module is imported
by its name when it is asked for: `--help`, wrong arguments and the commands without Spark would
otherwise wait for Spark's import.
"""

import argparse
import errno
import gc
import importlib
import io
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, cast

from shardaudit.cli.command import Command, CommandContext, Terminal
from shardaudit.model.config.parts import CONFIG, ENGINE
from shardaudit.model.errors import ShardauditError
from shardaudit.model.exit_code import ExitCode


@dataclass(frozen=True, slots=True)
class _Entry:
    module: str
    does: str


_COMMANDS = {
    "ingest": _Entry("ingest_command", "reads new trace files and what is new in the sink"),
    "audit": _Entry("audit_command", "ingests, then compares a window and names what is wrong"),
    "watch": _Entry("watch_command", "says which shards stand still, and by when to act"),
    "findings": _Entry("findings_command", "lists findings, or accepts them"),
    "backfill": _Entry("backfill_command", "plans and runs the reading of what was lost again"),
    "dedupe": _Entry("dedupe_command", "plans and runs the removal of what landed twice"),
    "maintain": _Entry(
        "maintain_command", "deletes old rows that nothing reads, merges small files"
    ),
    "migrate": _Entry("migrate_command", "brings a warehouse of an earlier version to this one"),
    "report": _Entry("report_command", "writes what the page shows into one HTML file"),
    "statistics": _Entry(
        "statistics_command", "adds up what was delivered, by stream, shard, place or hour"
    ),
    "lint-traces": _Entry("lint_traces_command", "says what is wrong in somebody's trace files"),
    "doctor": _Entry("doctor", "checks engine, Java, jars, configuration, warehouse, stream, sink"),
    "simulate": _Entry("simulate_command", "makes a stream, traces and a sink with planted faults"),
}
_OVERVIEW = "\n".join(f"  {name:<12} {entry.does}" for name, entry in _COMMANDS.items())
_EXIT_CODES = """\
exit codes:
  0 done   1 failed, will not work by trying again   2 bad arguments or configuration
  3 --check and the verdict is bad   75 failed, try again"""

# What a command imports, two million objects, is never garbage: to look through it again and again
# took a quarter of the time. So many new objects are looked at together.
_LOOKED_AT = 50_000
# What another try would hear again: of a file, of a disk that is full, of a machine.
_FINAL_KINDS = (
    FileExistsError,
    FileNotFoundError,
    IsADirectoryError,
    NotADirectoryError,
    PermissionError,
)
_FINAL_NUMBERS = {
    errno.EDQUOT,
    errno.ELOOP,
    errno.EMFILE,
    errno.ENAMETOOLONG,
    errno.ENOEXEC,
    errno.ENOSPC,
    errno.EROFS,
}
_PANIC = "PanicException"  # of delta-rs, as when too few files may be open: no Exception


def _command(name: str) -> Command:
    module = importlib.import_module(f"shardaudit.cli.{_COMMANDS[name].module}")
    return cast(Command, module)  # it has the protocol's shape; mypy cannot see it by a name


def main(
    arguments: list[str] | None = None, command_named: Callable[[str], Command] = _command
) -> int:
    """The exit code of one command line."""
    asked = _asked(sys.argv[1:] if arguments is None else arguments)
    terminal = Terminal(as_json=asked.json, debug=asked.debug, log_json=asked.log == "json")
    try:
        command = command_named(asked.command)
        options = _options(asked, command)
        context = CommandContext(
            Path(asked.config), engine=asked.engine, progress=terminal.progress
        )
        return terminal.tell(command.run(options, context))
    except ShardauditError as error:
        return terminal.fail(error, error.exit_code)
    except KeyboardInterrupt as error:
        return terminal.fail(error, ExitCode.RETRY)
    except OSError as error:  # no defect of ours: a network, a storage, a disk
        is_final = isinstance(error, _FINAL_KINDS) or error.errno in _FINAL_NUMBERS
        return terminal.fail(error, ExitCode.FAILED if is_final else ExitCode.RETRY)
    except BaseException as error:
        if isinstance(error, Exception) or type(error).__name__ == _PANIC:
            return terminal.fail(error, ExitCode.FAILED)
        raise


def process() -> NoReturn:
    """One command line as a process, which ends here.

    After Ctrl-C threads of the embedded engine may still be in Python: an interpreter that tears
    itself down under them aborts, whatever the exit code was to be.
    """
    # A shell's background job ignores Ctrl-C, and so does all that an Airflow started there starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.set_threshold(_LOOKED_AT)
    if sys.stdout is None:  # it was closed, as by `>&-`
        sys.stdout = io.StringIO()
    code = main()
    with suppress(BrokenPipeError):  # as in `shardaudit findings | head`
        sys.stdout.flush()
    os._exit(code)


def _asked(arguments: list[str]) -> argparse.Namespace:
    """The command's name with what stands before it, and the rest of the line."""
    parser = argparse.ArgumentParser(
        prog="shardaudit",
        description="Finds the messages that were lost or doubled between Kinesis and the lake.",
        epilog=f"commands:\n{_OVERVIEW}\n\n{_EXIT_CODES}\n\n"
        "`shardaudit COMMAND --help` explains a command.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_common(parser)
    parser.add_argument("command", choices=list(_COMMANDS), metavar="COMMAND", help="see below")
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="…", help=argparse.SUPPRESS)
    if not arguments:
        parser.print_help(sys.stderr)
        parser.exit(ExitCode.USAGE)
    asked = parser.parse_args(arguments)
    # What all commands have may also stand anywhere behind the command.
    common = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    _add_common(common)
    _, asked.rest = common.parse_known_args(asked.rest, asked)
    return asked


def _options(asked: argparse.Namespace, command: Command) -> argparse.Namespace:
    """The command's own arguments."""
    parser = argparse.ArgumentParser(
        prog=f"shardaudit {asked.command}",
        description=f"{_COMMANDS[asked.command].does.capitalize()}.",
        epilog=f"examples:\n{command.EXAMPLES}\n{_EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_arguments(parser)
    _add_common(parser)
    return parser.parse_args(asked.rest)


def _add_common(parser: argparse.ArgumentParser) -> None:
    config = os.environ.get(CONFIG, "shardaudit.toml")
    text = f"default: ${CONFIG}, then ./shardaudit.toml"
    parser.add_argument("--config", metavar="FILE", default=config, help=text)
    engine = os.environ.get(ENGINE) or None
    text = f"default: ${ENGINE}, then the file's, but for small commands; repairs always by spark"
    parser.add_argument("--engine", metavar="embedded|spark", default=engine, help=text)
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    text = "json: each line of the log, on stderr, is one object"
    parser.add_argument("--log", choices=["text", "json"], default="text", help=text)
    parser.add_argument("--debug", action="store_true", help="more log lines, and tracebacks")


if __name__ == "__main__":
    process()
