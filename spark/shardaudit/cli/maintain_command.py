"""`shardaudit maintain`."""

import argparse

from shardaudit.cli.command import CommandContext, Reply
from shardaudit.cli.session import session
from shardaudit.model.tables.all_tables import OF_LEDGER, OF_WATCH
from shardaudit.report.render import upkeep_view
from shardaudit.store.lock import warehouse_lock
from shardaudit.store.lock_files import A_WATCH, WATCH
from shardaudit.store.maintain import maintain
from shardaudit.store.migrations import tables_of_places

EXAMPLES = """\
  shardaudit maintain
"""
_STAGES = 3


def add_arguments(_parser: argparse.ArgumentParser) -> None:
    """None: it looks after the whole warehouse."""


def run(_arguments: argparse.Namespace, context: CommandContext) -> Reply:
    """Merges small files, deletes old ones."""
    settings = context.settings()
    progress = context.progress(_STAGES)
    with session(settings, owner="maintain", progress=progress) as warehouse:
        with progress.stage("merge and delete files of the ledger"):
            done = maintain(warehouse, (*OF_LEDGER, *tables_of_places(settings)))
        with (
            progress.stage("merge and delete files of the watch"),
            warehouse_lock(settings, owner="maintain", name=WATCH, patience=A_WATCH) as held,
        ):
            done += maintain(warehouse.claimed_by(held.check), OF_WATCH)
    lines = [(line.table, line.files_merged, line.files_made, line.files_deleted) for line in done]
    return Reply(document=done, view=upkeep_view(lines))
