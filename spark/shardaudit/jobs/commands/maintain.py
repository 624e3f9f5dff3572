"""`shardaudit maintain`."""

import argparse

from shardaudit.jobs.command import Desk, Reply
from shardaudit.jobs.maintain import maintain
from shardaudit.jobs.opened import opened
from shardaudit.report.render import upkeep_view

EXAMPLES = """\
  shardaudit maintain
"""
STAGES = 3


def add_arguments(_parser: argparse.ArgumentParser) -> None:
    """None: it looks after the whole warehouse."""


def run(_arguments: argparse.Namespace, desk: Desk) -> Reply:
    """Merges small files, deletes old ones."""
    settings = desk.settings()
    progress = desk.progress(STAGES)
    with opened(settings, owner="maintain", progress=progress) as warehouse:
        done = maintain(warehouse, progress=progress)
    lines = [(line.table, line.files_merged, line.files_made, line.files_deleted) for line in done]
    return Reply(document=done, view=upkeep_view(lines))
