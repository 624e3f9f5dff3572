"""`shardaudit lint-traces`."""

import argparse
from contextlib import ExitStack
from dataclasses import asdict

from rich.console import Group
from rich.text import Text

from shardaudit.adapters.clock import now
from shardaudit.adapters.engine.door import started
from shardaudit.adapters.engine.engine_errors import spark_errors
from shardaudit.adapters.files.files import s3_access
from shardaudit.cli.command import CommandContext, Reply
from shardaudit.columns.faults import OF_NO_PLACE
from shardaudit.ingest.linted_traces import LintReport, linted_traces
from shardaudit.model.config.choices import EngineName
from shardaudit.model.config.settings import Settings
from shardaudit.model.exit_code import ExitCode
from shardaudit.model.words import counted
from shardaudit.report.plain import harmless

EXAMPLES = """\
  shardaudit lint-traces traces-0001.jsonl.gz
  shardaudit lint-traces --stream events s3a://logs/traces/events/a.jsonl
"""
_STAGES = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The files."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="local, or s3a://…")
    text = "its name in the configuration: its columns, its format; default: the standard ones"
    parser.add_argument("--stream", help=text)


def run(arguments: argparse.Namespace, context: CommandContext) -> Reply:
    """Reads them as an ingest would, and writes nothing."""
    name = arguments.stream
    settings = context.settings() if name is not None else _without_file(context)
    stream = None if name is None else (name, settings.stream(name))
    progress = context.progress(_STAGES)
    with spark_errors(), ExitStack() as stack:
        with progress.stage("start the engine"):
            engine = stack.enter_context(started(settings, app="shardaudit lint-traces"))
        with progress.stage("read the files"):
            report = linted_traces(
                engine.session,
                arguments.files,
                s3_access(settings.aws),
                stream=stream,
                now=now(),
            )
    exit_code = ExitCode.FAILED if report.faulty else ExitCode.DONE
    view = _view(report, knows_places=stream is not None)
    return Reply(document=asdict(report), view=view, exit_code=exit_code)


def _without_file(context: CommandContext) -> Settings:
    """Somebody's own log can be looked at before there is a configuration."""
    settings = Settings(warehouse="unused", engine=EngineName.EMBEDDED, streams={})
    return settings.with_engine(context.engine)


def _view(report: LintReport, *, knows_places: bool) -> Group:
    lines = [harmless(str(fault)) for fault in report.faults]
    if report.faulty > len(lines):
        lines.append(f"… and {report.faulty - len(lines):,} more")
    told = f"; {counted(report.gaps, 'gap')}, told by the producer" if report.gaps else ""
    lines.append(
        f"{counted(report.files, 'file')}: {counted(report.traces, 'trace')}, "
        f"{counted(report.faulty, 'fault')}{told}"
    )
    if not knows_places and any(each.fault.startswith(OF_NO_PLACE) for each in report.faults):
        lines.append("with --stream NAME the places that its configuration names are known, too")
    # A line each, however long it is.
    return Group(*(Text(line, no_wrap=True, overflow="ignore") for line in lines))
