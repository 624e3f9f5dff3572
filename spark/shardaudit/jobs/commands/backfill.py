"""`shardaudit backfill plan` and `shardaudit backfill run`."""

import argparse
import os
import platform
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime

import pyarrow.compute as pc

from shardaudit.adapters.claim import claim
from shardaudit.adapters.clock import now
from shardaudit.adapters.delta import Warehouse
from shardaudit.adapters.entry_point import decoder
from shardaudit.adapters.kinesis_pages import ShardPages, StreamAddress
from shardaudit.adapters.published import read_rows
from shardaudit.backfill.safety import check_backfill
from shardaudit.jobs.backfill_landing import Landing
from shardaudit.jobs.backfill_ledger import Ledger, stored_windows
from shardaudit.jobs.backfill_lines import minutes_to_read, window_lines
from shardaudit.jobs.backfill_plan import PlanRequest, plan_backfill, stuck_ids
from shardaudit.jobs.backfill_replay import Replay
from shardaudit.jobs.backfill_run import STAGES, Running, run_backfill
from shardaudit.jobs.backfill_sink import backfill_sink
from shardaudit.jobs.backfill_source import JSON, Reading
from shardaudit.jobs.backfill_verify import Verified
from shardaudit.jobs.command import Desk, Reply
from shardaudit.jobs.gates import open_gates
from shardaudit.jobs.observe import retention_of
from shardaudit.jobs.opened import opened, opened_in_turns
from shardaudit.model.backfill_tables import BACKFILLS
from shardaudit.model.choices import BackfillMode
from shardaudit.model.config import Settings
from shardaudit.model.errors import ConfigError, ExitCode
from shardaudit.model.window import Window, parse_instant
from shardaudit.report.backfill_summary import PlanReport, RunReport
from shardaudit.report.backfill_view import plan_view, run_view

EXAMPLES = """\
  shardaudit backfill plan --stream events
  shardaudit backfill run --plan events-0123456789ab --approve-as ann
"""
PLAN_STAGES = 2
RUN_STAGES = 1 + len(STAGES)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The two actions."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    plan = actions.add_parser("plan", help="what would be read again; nothing is read yet")
    plan.add_argument("--stream", required=True, help="its name in the configuration")
    plan.add_argument(
        "--from",
        dest="start",
        metavar="T",
        help="all that was sent from here on, and not the open findings; with --to",
    )
    plan.add_argument("--to", dest="end", metavar="T", help="its end, exclusive")
    plan.add_argument("--shard", nargs="+", default=[], metavar="ID", help="these shards alone")
    plan.add_argument(
        "--include-stuck",
        action="store_true",
        help="also what is behind a stopped shard: when its consumer resumes, it lands again",
    )
    run = actions.add_parser("run", help="reads, merges and verifies an approved plan")
    run.add_argument("--plan", required=True, metavar="ID", help="as `backfill plan` prints it")
    run.add_argument("--approve-as", metavar="NAME", help="approves it in this person's name")
    for action in (plan, run):
        action.add_argument("--as-of", metavar="T", help='the "now" of it; default: the clock')


def run(arguments: argparse.Namespace, desk: Desk) -> Reply:
    """Plans or runs."""
    return _plan(arguments, desk) if arguments.action == "plan" else _run(arguments, desk)


def _plan(arguments: argparse.Namespace, desk: Desk) -> Reply:
    settings, name = desk.settings(), arguments.stream
    stream = settings.stream(name)
    check_backfill(name, stream, spark_settings=settings.spark)
    as_of = _instant(arguments.as_of, "--as-of") or now()
    window = _window(arguments, as_of)
    progress = desk.progress(PLAN_STAGES)
    with (
        opened(settings, owner=f"backfill plan {name}", progress=progress) as warehouse,
        progress.stage("plan"),
    ):
        landing_of(warehouse, settings, name)  # or it could not be run
        request = PlanRequest(
            name=name,
            stream=stream,
            as_of=as_of,
            retention=retention_of(warehouse, name, stream),
            include_stuck=arguments.include_stuck,
            window=window,
            shard_ids=tuple(arguments.shard),
        )
        plan = plan_backfill(warehouse, request, now=now())
        rows = stored_windows(warehouse, plan.plan_id)
        stuck = stuck_ids(warehouse, name, shard_ids=request.shard_ids)
    planned = sum(w.expected_ids for w in plan.windows if w.because.startswith("stuck"))
    report = PlanReport(
        plan_id=plan.plan_id,
        stream=name,
        as_of=as_of,
        windows=window_lines(rows),
        stages=tuple(stage.says(rows, stream.backfill_mode) for stage in STAGES),
        minutes=minutes_to_read(rows),
        extension=plan.extension,
        stuck_left_out=0 if window else stuck - planned,
    )
    return Reply(document=report, view=plan_view(report))


def _run(arguments: argparse.Namespace, desk: Desk) -> Reply:
    settings, plan_id = desk.settings(), arguments.plan
    as_of = _instant(arguments.as_of, "--as-of")
    gates = open_gates(settings.expectations)
    progress = desk.progress(RUN_STAGES)
    owner, name = f"backfill run {plan_id}", stream_of(settings, plan_id)
    with (
        # One at a time of a stream: two would read its shards at twice their share.
        claim(settings, owner=owner, name=f"backfill-{name}"),
        opened_in_turns(settings, owner=owner, progress=progress) as (warehouse, turns),
    ):
        replay = replay_of(warehouse, settings, plan_id, as_of=as_of, turn=turns.turn)
        running = Running(replay, settings, gates, arguments.approve_as, progress)
        verified = run_backfill(running)
    rows = replay.ledger.rows
    report = RunReport(
        plan_id=plan_id,
        stream=replay.name,
        approved_by=str(rows[0]["approved_by"]),
        windows=window_lines(rows),
        audit_id=verified.audit_id if verified else None,
        recovered=verified.recovered if verified else 0,
        expired=verified.expired if verified else 0,
        left=verified.left if verified else 0,
    )
    return Reply(document=report, view=run_view(report), exit_code=_exit_code(verified))


def stream_of(settings: Settings, plan_id: str) -> str:
    """The stream that a stored plan is of.

    Raises:
        ConfigError: there is no such plan, or its stream is not in the configuration.
    """
    rows = read_rows(settings, BACKFILLS, where=pc.field("plan_id") == plan_id)
    if not rows:
        raise ConfigError("--plan", plan_id, "a plan that `shardaudit backfill plan` printed")
    name = str(rows[0]["stream"])
    settings.stream(name)
    return name


def replay_of(
    warehouse: Warehouse,
    settings: Settings,
    plan_id: str,
    *,
    as_of: datetime | None,
    turn: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Replay:
    """What it takes to replay a stored plan.

    Raises:
        ConfigError: its stream cannot be written.
        StreamRefusedError: there is no such stream; nothing is read.
    """
    rows = stored_windows(warehouse, plan_id)
    name = str(rows[0]["stream"])
    stream = settings.stream(name)
    address = StreamAddress(
        stream.stream_name, settings.aws.region, settings.aws.endpoint("kinesis")
    )
    check_backfill(name, stream, spark_settings=settings.spark)
    ShardPages(address).check_stream()
    return Replay(
        warehouse=warehouse,
        ledger=Ledger(warehouse, rows, f"{platform.node()}/{os.getpid()}"),
        landing=landing_of(warehouse, settings, name),
        reading=Reading(address, stream.backfill.read_share, stream.backfill.decoder),
        retention=retention_of(warehouse, name, stream),
        now=now if as_of is None else lambda: as_of,
        turn=turn,
    )


def landing_of(warehouse: Warehouse, settings: Settings, name: str) -> Landing | None:
    """How a stream's backfill lands; None when somebody else is asked for it.

    Raises:
        ConfigError: its rows cannot be made, its decoder is not there.
        StreamRefusedError: there is no stream to put records into.
    """
    stream = settings.stream(name)
    mode, backfill = stream.backfill_mode, stream.backfill
    if mode is BackfillMode.REQUEST:
        return None
    if backfill.decoder != JSON:
        decoder(backfill.decoder)
    sink = backfill_sink(warehouse.spark, settings, name, only_ids=mode.hands_over)
    if backfill.republish_to is None:
        return Landing(mode, sink)
    target = StreamAddress(
        backfill.republish_to, settings.aws.region, settings.aws.endpoint("kinesis")
    )
    ShardPages(target).check_stream()
    return Landing(mode, sink, target)


def _exit_code(verified: Verified | None) -> ExitCode:
    """What could not be read to its end may be read later; what is not there will not come."""
    if verified is None or not (verified.cut_short or verified.left):
        return ExitCode.DONE
    if verified.cut_short:
        return ExitCode.RETRY
    return ExitCode.DONE if verified.hands_over else ExitCode.FAILED


def _window(arguments: argparse.Namespace, as_of: datetime) -> Window | None:
    start, end = _instant(arguments.start, "--from"), _instant(arguments.end, "--to")
    if start is None and end is None:
        return None
    if start is None or end is None:
        raise ConfigError("--from and --to", "one of them", "both, or neither")
    if end > as_of:
        raise ConfigError("--to", end.isoformat(), "a time that is over")
    return Window(start, end)


def _instant(text: str | None, where: str) -> datetime | None:
    return None if text is None else parse_instant(text, where=where)
