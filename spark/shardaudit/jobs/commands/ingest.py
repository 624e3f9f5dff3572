"""`shardaudit ingest`."""

import argparse
from datetime import datetime

from shardaudit.adapters.clock import now
from shardaudit.adapters.delta import Warehouse
from shardaudit.jobs.command import Desk, Reply
from shardaudit.jobs.ingest import ingest
from shardaudit.jobs.observe import observe_shards
from shardaudit.jobs.opened import opened
from shardaudit.model.config import Settings
from shardaudit.report.progress import Progress
from shardaudit.report.render import ingest_view
from shardaudit.report.summary import IngestReport

EXAMPLES = """\
  shardaudit ingest --stream events
  shardaudit --config /etc/shardaudit.toml ingest --stream events --json
"""
INGEST_STAGES = 3  # of `ingest_stream`


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The stream."""
    parser.add_argument("--stream", required=True, help="its name in the configuration")


def run(arguments: argparse.Namespace, desk: Desk) -> Reply:
    """Reads what is new, once."""
    settings = desk.settings()
    name = arguments.stream
    settings.stream(name)
    progress = desk.progress(INGEST_STAGES + 1)
    with opened(settings, owner=f"ingest {name}", progress=progress) as warehouse:
        report = ingest_stream(warehouse, settings, name, now=now(), progress=progress)
    return Reply(document=report, view=ingest_view([report]))


def ingest_stream(
    warehouse: Warehouse, settings: Settings, name: str, *, now: datetime, progress: Progress
) -> IngestReport:
    """Takes in the stream's shards, then its traces and its sink."""
    with progress.stage("ask Kinesis for shards"):
        observe_shards(warehouse, settings, name, now=now)
    return ingest(warehouse, name, settings.stream(name), now=now, progress=progress)
