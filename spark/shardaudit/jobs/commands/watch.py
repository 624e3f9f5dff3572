"""`shardaudit watch`."""

import argparse

from shardaudit.adapters.clock import now
from shardaudit.jobs.command import Desk, Reply
from shardaudit.jobs.ingest import ingest
from shardaudit.jobs.opened import opened
from shardaudit.jobs.watch import Watched, watch
from shardaudit.model.errors import ExitCode
from shardaudit.model.window import parse_instant
from shardaudit.report.watch_view import watch_view

EXAMPLES = """\
  shardaudit watch --stream events
  shardaudit watch --stream events --check || alert      # exit code 3: a shard is warn or worse
  shardaudit watch --stream events --as-of 2026-11-20T00:00:00Z --json
"""
WATCH_STAGES = 6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The stream and the now."""
    parser.add_argument("--stream", required=True, help="its name in the configuration")
    parser.add_argument("--as-of", metavar="T", help='the "now" of the run; default: the clock')
    parser.add_argument(
        "--check", action="store_true", help="exit with 3 when a shard's level is warn or worse"
    )


def run(arguments: argparse.Namespace, desk: Desk) -> Reply:
    """Ingests what is new, judges every shard, reports."""
    settings = desk.settings()
    name = arguments.stream
    stream = settings.stream(name)
    clock = now()
    as_of = parse_instant(arguments.as_of, where="--as-of") if arguments.as_of else clock
    progress = desk.progress(WATCH_STAGES)
    with opened(settings, owner=f"watch {name}", progress=progress) as warehouse:
        # A watch of a past time reads what is there now; its times are not in the future.
        ingest(warehouse, name, stream, now=max(as_of, clock), progress=progress)
        watched = watch(warehouse, settings, name, as_of=as_of, progress=progress)
    return Reply(
        document=watched.report,
        view=watch_view(watched.report),
        exit_code=_exit_code(watched, arguments.check),
    )


def _exit_code(watched: Watched, check: bool) -> ExitCode:
    """A watch that could not ask everybody is not done, whatever it saw."""
    if watched.failure is not None:
        return watched.exit_code
    return ExitCode.BAD_VERDICT if check and watched.report.worst.is_alarm else ExitCode.DONE
