"""`shardaudit maintain`."""

import argparse
from dataclasses import astuple

from shardaudit.adapters.clock import now
from shardaudit.cli.command import CommandContext, Reply
from shardaudit.cli.session import session
from shardaudit.model.tables.all_tables import OF_LEDGER, OF_WATCH
from shardaudit.report.render import upkeep_view
from shardaudit.store.lock import warehouse_lock
from shardaudit.store.lock_files import A_WATCH, WATCH
from shardaudit.store.maintain import (
    delete_audit_history,
    delete_watch_history,
    maintain,
)
from shardaudit.store.migrations import tables_of_places

EXAMPLES = """\
  shardaudit maintain
"""
_STAGES = 3


def add_arguments(_parser: argparse.ArgumentParser) -> None:
    """None: it looks after the whole warehouse."""


def run(_arguments: argparse.Namespace, context: CommandContext) -> Reply:
    """Deletes old rows that nothing reads, merges small files, deletes old ones."""
    settings, at = context.settings(), now()
    progress = context.progress(_STAGES)
    with session(settings, owner="maintain", progress=progress) as warehouse:
        with progress.stage("delete old rows, merge and delete files of the ledger"):
            gone = delete_audit_history(warehouse, settings, now=at)
            done = maintain(warehouse, (*OF_LEDGER, *tables_of_places(settings)), gone=gone)
        with (
            progress.stage("the same of the watch"),
            warehouse_lock(settings, owner="maintain", name=WATCH, timeout=A_WATCH) as held,
        ):
            of_watch = warehouse.locked_by(held.check)
            gone = delete_watch_history(of_watch, settings, now=at)
            done += maintain(of_watch, OF_WATCH, gone=gone)
    return Reply(document=done, view=upkeep_view([astuple(line) for line in done]))
