"""`shardaudit backfill plan` and `shardaudit backfill run`, and the two halves of a run."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from shardaudit.adapters.clock import now
from shardaudit.audit.gates import open_gates
from shardaudit.backfill.backfill_view import plan_view, run_view
from shardaudit.backfill.ledger import plans_under_way, stored_windows
from shardaudit.backfill.plan_job import PlanRequest, plan_backfill, stuck_ids
from shardaudit.backfill.proposal import (
    PlanReport,
    RunReport,
    beyond_sample,
    lands_filtered,
    minutes_to_read,
    on_its_way,
    window_lines,
)
from shardaudit.backfill.questions import AskedPlan, store_request
from shardaudit.backfill.rules.approval import configured_for, why_not_run
from shardaudit.backfill.rules.planned import REPLAY, SINK_WRITING, VERIFY, Repair, WindowState
from shardaudit.backfill.run import (
    ACTIONS,
    STAGES,
    Running,
    check_landing,
    replay_of,
    run_backfill,
    stream_of,
)
from shardaudit.cli.command import CommandContext, RanBy, Reply, asked_instant, asked_time
from shardaudit.cli.session import long_session, session
from shardaudit.ingest.ask_kinesis import retention_of
from shardaudit.model.config.settings import Settings
from shardaudit.model.errors import ConfigError, WarehouseBusyError
from shardaudit.model.exit_code import ExitCode
from shardaudit.model.verdict import Cause
from shardaudit.model.window import Window
from shardaudit.store.audits import unaudited_notes
from shardaudit.store.lock import Lock, living_holder, warehouse_lock
from shardaudit.store.read_findings import findings_bytes
from shardaudit.store.warehouse import Warehouse

EXAMPLES = """\
  shardaudit backfill plan --stream events
  shardaudit backfill run --plan events-0123456789ab --approve-as ann
"""
PLAN_STAGES = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The actions."""
    parser.set_defaults(approve_as=None)  # where an action has none
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
    plan.add_argument(
        "--shard",
        nargs="+",
        action="extend",
        default=[],
        metavar="ID",
        help="these shards alone",
    )
    plan.add_argument(
        "--include-stuck",
        action="store_true",
        help="also what is behind a stopped shard: when its consumer resumes, it lands again",
    )
    plan.add_argument(
        "--request", metavar="ID", help="the run of the DAG backfill that asks, and finds it by ID"
    )
    run = actions.add_parser("run", help="reads, merges and verifies an approved plan")
    replay = actions.add_parser("replay", help="reads and merges it, without the proof")
    verify = actions.add_parser("verify", help="verifies what was read and merged before")
    for action in (run, replay, verify):
        action.add_argument(
            "--plan", required=True, metavar="ID", help="as `backfill plan` prints it"
        )
    for action in (run, replay):
        action.add_argument("--approve-as", metavar="NAME", help="in whose name it is approved")
    for action in (plan, run, replay, verify):
        action.add_argument("--as-of", metavar="T", help='the "now" of it; default: the clock')


def run(arguments: argparse.Namespace, context: CommandContext) -> Reply:
    """Plans or runs."""
    return _plan(arguments, context) if arguments.action == "plan" else _run(arguments, context)


def _plan(arguments: argparse.Namespace, context: CommandContext) -> Reply:
    settings, name = context.settings(), arguments.stream
    stream = settings.stream(name)
    as_of = asked_instant(arguments.as_of, "--as-of") or now()
    window = _window(arguments, as_of)
    progress = context.progress(PLAN_STAGES)
    chosen = context.light("backfill plan", settings, reads=lambda: findings_bytes(settings))
    with (
        session(chosen.settings, owner=f"backfill plan {name}", progress=progress) as warehouse,
        progress.stage("plan"),
    ):
        check_landing(settings, name)  # or it could not be run
        request = _request(warehouse, arguments, settings, as_of=as_of, window=window)
        plan = plan_backfill(warehouse, request, now=now())
        windows = stored_windows(warehouse, plan.plan_id)
        handed_over = _left_to(warehouse, request)
        stuck = stuck_ids(warehouse, name, shard_ids=request.shard_ids)
        if arguments.request is not None:
            plan_id = plan.plan_id if plan.windows else None
            asked = AskedPlan(arguments.request, name, Repair.MISSING, plan_id, scope=request.scope)
            store_request(settings, asked, now=now())
    planned = sum(w.expected_ids for w in plan.windows if Cause.STUCK in w.causes)
    report = PlanReport(
        plan_id=plan.plan_id,
        stream=name,
        as_of=as_of,
        windows=window_lines(windows),
        stages=tuple(stage.says(windows, stream.backfill_mode) for stage in STAGES),
        minutes=minutes_to_read(windows),
        extension=plan.extension,
        stuck_left_out=0 if window else max(0, stuck - planned),
        before_run=why_not_run(name, stream, spark_settings=settings.spark),
        lands_filtered=lands_filtered(settings, windows) if windows else None,
        beyond_sample=beyond_sample(settings, windows) if windows else None,
        on_its_way=on_its_way(settings, windows),
        handed_over=tuple(other for other in handed_over if other != plan.plan_id),
        notes=() if windows else tuple(unaudited_notes(settings, [name], now=now())),
    )
    ran_by = RanBy(warehouse.engine, chosen.because)
    return Reply(document=report, view=plan_view(report), ran_by=ran_by)


def _left_to(warehouse: Warehouse, request: PlanRequest) -> tuple[str, ...]:
    """The plans to which what they have to bring is left."""
    if not request.leaves_handed_over:
        return ()
    return plans_under_way(warehouse, request.name, shard_ids=request.shard_ids)


def _request(
    warehouse: Warehouse,
    arguments: argparse.Namespace,
    settings: Settings,
    *,
    as_of: datetime,
    window: Window | None,
) -> PlanRequest:
    name, stream = arguments.stream, settings.stream(arguments.stream)
    return PlanRequest(
        name=name,
        stream=stream,
        as_of=as_of,
        retention=retention_of(warehouse, name, stream, as_of=as_of),
        configured=configured_for(settings, name),
        include_stuck=arguments.include_stuck,
        window=window,
        shard_ids=tuple(arguments.shard),
    )


def _run(arguments: argparse.Namespace, context: CommandContext) -> Reply:
    action, plan_id = arguments.action, arguments.plan
    settings = context.repair_settings() if action in SINK_WRITING else context.settings()
    as_of, stages = asked_instant(arguments.as_of, "--as-of"), ACTIONS[action]
    gates = None if action == REPLAY else open_gates(settings.expectations)
    progress = context.progress(1 + len(stages))
    name = stream_of(settings, plan_id, writes=action in SINK_WRITING)
    owner = f"backfill {action} {plan_id}"
    with (
        work_lock(settings, f"backfill-{name}", action, owner=owner, plan_id=plan_id) as held,
        long_session(settings, owner=owner, progress=progress, of_work=held) as (warehouse, lock),
    ):
        replay = replay_of(warehouse, settings, plan_id, as_of=as_of, writing=lock.taken)
        running = Running(replay, settings, gates, arguments.approve_as, progress)
        verified = run_backfill(running, stages)
    windows = replay.ledger.windows
    report = RunReport(
        plan_id=plan_id,
        stream=replay.name,
        approved_by=windows[0].approved_by or "nobody",
        windows=window_lines(windows),
        audit_id=verified.audit_id if verified else None,
        recovered=verified.recovered if verified else 0,
        expired=verified.expired if verified else 0,
        left=verified.left if verified else 0,
        engine=warehouse.engine,
        beyond_sample=beyond_sample(settings, windows),
    )
    return Reply(document=report, view=run_view(report), exit_code=exit_code(running, action))


@contextmanager
def work_lock(
    settings: Settings, name: str, action: str, *, owner: str, plan_id: str
) -> Iterator[Lock | None]:
    """The lock of one at a time of a stream: two would read its shards at twice their share.

    A proof reads none: it waits for no other plan's replay, which may take days. None: it has none.

    Raises:
        WarehouseBusyError: another run reads the stream; with a proof, it reads for this plan.
    """
    if action != VERIFY:
        with warehouse_lock(settings, owner=owner, name=name) as held:
            yield held
        return
    busy = living_holder(settings, name=name)
    if busy is not None and busy.owner.endswith(f" {plan_id}"):
        raise WarehouseBusyError(f"{settings.warehouse} ({name})", str(busy), busy.since)
    yield None


def exit_code(running: Running, action: str) -> ExitCode:
    """What could not be read to its end may be read later; what is not there will not come."""
    verified = running.verified
    if verified is None:
        if running.replay.ledger.of(WindowState.INCOMPLETE):
            return ExitCode.RETRY
        # Over before, and as it ended then.
        expired = running.replay.ledger.of(WindowState.EXPIRED)
        has_failed = action != REPLAY and any(window.error for window in expired)
        return ExitCode.FAILED if has_failed else ExitCode.DONE
    if verified.cut_short:  # to verify it again reads nothing
        return ExitCode.FAILED if action == VERIFY else ExitCode.RETRY
    is_left = verified.left and not verified.hands_over
    is_short = verified.unjudged or verified.expired or is_left
    return ExitCode.FAILED if is_short else ExitCode.DONE


def _window(arguments: argparse.Namespace, as_of: datetime) -> Window | None:
    window = asked_time(arguments)
    if window is not None and window.end > as_of:
        raise ConfigError("--to", window.end.isoformat(), "a time that is over")
    return window
