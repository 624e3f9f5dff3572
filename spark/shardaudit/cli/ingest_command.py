"""`shardaudit ingest`."""

import argparse

from shardaudit.adapters.clock import now
from shardaudit.cli.command import CommandContext, Reply
from shardaudit.cli.session import session
from shardaudit.ingest.job import INGEST_STAGES, ingest_stream
from shardaudit.report.render import ingest_view

EXAMPLES = """\
  shardaudit ingest --stream events
  shardaudit --config /etc/shardaudit.toml ingest --stream events --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The stream."""
    parser.add_argument("--stream", required=True, help="its name in the configuration")


def run(arguments: argparse.Namespace, context: CommandContext) -> Reply:
    """Reads what is new, once."""
    settings = context.settings()
    name = arguments.stream
    settings.stream(name)
    progress = context.progress(INGEST_STAGES + 1)
    with session(settings, owner=f"ingest {name}", progress=progress) as warehouse:
        report = ingest_stream(warehouse, settings, name, now=now(), progress=progress)
    return Reply(document=report, view=ingest_view([report]))
