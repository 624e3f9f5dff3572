"""`shardaudit watch`."""

import argparse
from contextlib import ExitStack
from datetime import datetime

from shardaudit.adapters.clock import now
from shardaudit.cli.command import CommandContext, RanBy, Reply, asked_instant
from shardaudit.cli.session import session
from shardaudit.ingest.job import ingest
from shardaudit.ingest.new_bytes import bytes_to_ingest
from shardaudit.model.config.settings import Settings
from shardaudit.model.errors import ConfigError, WarehouseBusyError
from shardaudit.store.audits import last_look
from shardaudit.store.lock import Lock, warehouse_lock
from shardaudit.store.lock_files import A_WATCH, WATCH
from shardaudit.watch.job import WatchRequest, watch
from shardaudit.watch.watch_report import watch_view

EXAMPLES = """\
  shardaudit watch --stream events
  shardaudit watch --stream events --check || alert      # exit code 3: a shard is warn or worse
  shardaudit watch --stream events --json
"""
WATCH_STAGES = 6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The stream and the now."""
    parser.add_argument("--stream", required=True, help="its name in the configuration")
    parser.add_argument(
        "--as-of",
        metavar="T",
        help='the "now" of the run, not before the last one; default: the clock',
    )
    parser.add_argument(
        "--check", action="store_true", help="exit with 3 when a shard's level is warn or worse"
    )


def run(arguments: argparse.Namespace, context: CommandContext) -> Reply:
    """Ingests what is new, judges every shard, reports."""
    settings = context.settings()
    name = arguments.stream
    stream = settings.stream(name)
    asked = _as_of(arguments.as_of, settings, name)
    progress, owner = context.progress(WATCH_STAGES), f"watch {name}"
    with ExitStack() as stack:
        ledger, busy = locked_ledger(stack, settings, owner)
        chosen = context.light(
            "watch",
            settings,
            reads=lambda: 0 if ledger is None else bytes_to_ingest(settings, name),
        )
        watching = session(chosen.settings, owner=owner, progress=progress, name=WATCH)
        warehouse = stack.enter_context(watching)
        clock = now()  # another watch may have been waited for
        as_of = asked or clock
        latest = max(as_of, clock)
        if ledger is not None:
            tables = warehouse.locked_by(ledger.check)
            # A watch of a past time reads what is there now; its times are not in the future.
            ingest(tables, name, stream, now=latest, progress=progress)
        request = WatchRequest(settings, name, as_of, busy, latest)
        watched = watch(warehouse, request, progress=progress)
    return Reply(
        document=watched.report,
        view=watch_view(watched.report),
        exit_code=watched.checked if arguments.check else watched.exit_code,
        ran_by=RanBy(warehouse.engine, chosen.because),
    )


def _as_of(given: str | None, settings: Settings, name: str) -> datetime | None:
    """The time that is asked for; None: that of the clock.

    Raises:
        ConfigError: it is no time, or somebody looked later: what landed, was audited and told
        since is in the tables, and nothing says what stood in them then.
    """
    asked = asked_instant(given, "--as-of")
    last = None if asked is None else last_look(settings, name, now=now())
    if asked is not None and last is not None and asked < last:
        raise ConfigError(
            "--as-of",
            given,
            f"a time from {last.isoformat()} on, when an audit or a watch last looked: what is "
            "known since then would count as known before. What watches saw until then is in the "
            "table shards; leave --as-of out to watch what stands now",
        )
    return asked


def locked_ledger(
    stack: ExitStack, settings: Settings, owner: str
) -> tuple[Lock | None, WarehouseBusyError | None]:
    """The lock of the tables that the ingest writes, or why it cannot be had.

    Another stream's watch is waited for, as for the watch's own tables: nobody else.
    """
    try:
        try:
            return stack.enter_context(warehouse_lock(settings, owner=owner)), None
        except WarehouseBusyError as busy:
            if busy.owner.split()[0] != WATCH:
                return None, busy
        waiting = warehouse_lock(settings, owner=owner, timeout=A_WATCH)
        return stack.enter_context(waiting), None
    except WarehouseBusyError as busy:
        return None, busy
