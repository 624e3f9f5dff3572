"""`shardaudit migrate`."""

import argparse

from rich.text import Text

from shardaudit.cli.command import CommandContext, Reply
from shardaudit.store.lock import warehouse_lock
from shardaudit.store.lock_files import A_WATCH, AN_AUDIT, WATCH
from shardaudit.store.migrations import Migrated, migrate

EXAMPLES = """\
  shardaudit migrate
"""


def add_arguments(_parser: argparse.ArgumentParser) -> None:
    """None: it is about the whole warehouse."""


def run(_arguments: argparse.Namespace, context: CommandContext) -> Reply:
    """Brings the warehouse to this version; needs no engine."""
    settings = context.settings()
    with (
        context.progress(1).stage("migrate the warehouse"),
        warehouse_lock(settings, owner="migrate", timeout=AN_AUDIT) as ledger,
        warehouse_lock(settings, owner="migrate", name=WATCH, timeout=A_WATCH) as watch,
    ):

        def check() -> None:
            ledger.check()
            watch.check()

        done = migrate(settings, check=check)
    return Reply(document=done, view=Text(_said(done)))


def _said(done: Migrated) -> str:
    if done.from_version is None:
        return f"nothing to do: {done.warehouse} has no table yet"
    if not done.steps:
        return f"nothing to do: {done.warehouse} has version {done.to_version}"
    lines = [f"{done.warehouse}: from version {done.from_version} to {done.to_version}"]
    lines += [f"  {step.version}: {step.does}" for step in done.steps]
    lines += [f"  {table} gained {', '.join(names)}" for table, names in done.columns.items()]
    return "\n".join(lines)
