"""`shardaudit dedupe plan`, `run` and `purge`, and the two halves of a run."""

import argparse
import os
import platform
from dataclasses import asdict, dataclass

from rich.text import Text

from shardaudit.adapters.clock import now
from shardaudit.audit.gates import open_gates
from shardaudit.backfill.dedupe_plan import plan_dedupe, purge_removed_rows, stored_dedupe
from shardaudit.backfill.dedupe_run import Dedupe
from shardaudit.backfill.landing import backfill_sink, sink_sources
from shardaudit.backfill.questions import AskedPlan, store_request
from shardaudit.backfill.rules.approval import check_as_planned, check_dedupe, dedupe_configured_for
from shardaudit.backfill.rules.planned import (
    RUN,
    SINK_WRITING,
    VERIFY,
    Repair,
    StoredDedupe,
    WindowState,
)
from shardaudit.cli.command import CommandContext, RanBy, Reply, asked_instant
from shardaudit.cli.session import session
from shardaudit.ingest.ask_kinesis import retention_of
from shardaudit.model.errors import ConfigError
from shardaudit.model.exit_code import ExitCode
from shardaudit.model.words import counted, messages
from shardaudit.report.plain import harmless
from shardaudit.store.audits import read_eras, unaudited_notes
from shardaudit.store.read_findings import findings_bytes

EXAMPLES = """\
  shardaudit dedupe plan --stream events
  shardaudit dedupe run --plan events-dedupe-0123456789abcdef --approve-as ann
  shardaudit dedupe purge --plan events-dedupe-0123456789abcdef
"""
_PLAN_STAGES, _PURGE_STAGES = 2, 1
REMOVE = "remove"
_STAGES = {RUN: 4, REMOVE: 3, VERIFY: 2}


@dataclass(frozen=True, slots=True)
class DedupeReport:
    """A dedupe after a run; `engine`: the name and version of what ran it."""

    plan_id: str
    stream: str
    state: WindowState
    ids: int
    removed_rows: int
    approved_by: str | None
    error: str | None
    engine: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The actions."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    plan = actions.add_parser("plan", help="which rows would go; nothing is removed yet")
    plan.add_argument("--stream", required=True, help="its name in the configuration")
    plan.add_argument(
        "--request", metavar="ID", help="the run of the DAG backfill that asks, and finds it by ID"
    )
    run = actions.add_parser("run", help="leaves one row of each message, the first that landed")
    remove = actions.add_parser("remove", help="the same, without the proof")
    verify = actions.add_parser("verify", help="proves by an audit what was removed before")
    purge = actions.add_parser("purge", help="no longer keeps the rows that a run removed")
    for action in (run, remove, verify, purge):
        action.add_argument(
            "--plan", required=True, metavar="ID", help="as `dedupe plan` prints it"
        )
    for action in (run, remove):
        action.add_argument("--approve-as", metavar="NAME", help="in whose name it is approved")
    for action in (run, remove, verify):
        action.add_argument("--as-of", metavar="T", help='the "now" of it; default: the clock')


def run(arguments: argparse.Namespace, context: CommandContext) -> Reply:
    """Plans, runs or purges."""
    actions = {"plan": _plan, "purge": _purge}
    return actions.get(arguments.action, _run)(arguments, context)


def _plan(arguments: argparse.Namespace, context: CommandContext) -> Reply:
    settings, name = context.settings(), arguments.stream
    stream = settings.stream(name)
    check_dedupe(name, stream, spark_settings=settings.spark)
    progress = context.progress(_PLAN_STAGES)
    chosen = context.light("dedupe plan", settings, reads=lambda: findings_bytes(settings))
    with (
        session(chosen.settings, owner=f"dedupe plan {name}", progress=progress) as warehouse,
        progress.stage("plan"),
    ):
        sink_sources(settings, name)  # or it could not be run
        shape, configured = read_eras(settings, name), dedupe_configured_for(settings, name)
        plan = plan_dedupe(warehouse, name, shape=shape, configured=configured, now=now())
        if arguments.request is not None:
            asked = AskedPlan(arguments.request, name, Repair.DUPLICATES, plan.plan_id)
            store_request(settings, asked, now=now())
    ran_by = RanBy(warehouse.engine, chosen.because)
    if plan.plan_id is None:
        notes = unaudited_notes(settings, [name], now=now())
        said = "\n".join([f"No message of {name} stands more than once.", *notes])
        return Reply(document=asdict(plan) | {"notes": notes}, view=Text(said), ran_by=ran_by)
    text = (
        f"Dedupe plan {plan.plan_id}\n• {messages(plan.ids)} in the sink more than once; "
        f"{counted(plan.extra_rows, 'row')} would go, and be kept in the table removed_rows\n\n"
        f"Approve and run it\n• shardaudit dedupe run --plan {plan.plan_id} --approve-as NAME"
    )
    view = Text(text, no_wrap=True, overflow="ignore")
    return Reply(document=plan, view=view, ran_by=ran_by)


def _run(arguments: argparse.Namespace, context: CommandContext) -> Reply:
    action, plan_id, at = arguments.action, arguments.plan, arguments.as_of
    settings = context.repair_settings() if action in SINK_WRITING else context.settings()
    as_of = asked_instant(at, "--as-of")
    gates = None if action == REMOVE else open_gates(settings.expectations)
    progress = context.progress(_STAGES[action])
    with session(settings, owner=f"dedupe {action} {plan_id}", progress=progress) as warehouse:
        plan = stored_dedupe(warehouse, plan_id)
        if plan is None:
            raise ConfigError("--plan", plan_id, "a plan that `shardaudit dedupe plan` printed")
        name = plan.stream
        stream = settings.stream(name)
        check_dedupe(name, stream, spark_settings=settings.spark)
        if action in SINK_WRITING and plan.state is not WindowState.VERIFIED:
            check_as_planned(
                plan_id,
                plan.configured,
                configured=dedupe_configured_for(settings, name),
                instead=f"`shardaudit dedupe verify --plan {plan_id}`: its rows are removed"
                if plan.state is WindowState.MERGED
                else "`shardaudit dedupe plan` again",
            )
        dedupe = Dedupe(
            warehouse=warehouse,
            settings=settings,
            gates=gates,
            plan=plan,
            sink=backfill_sink(warehouse.spark, settings, name),
            retention=retention_of(warehouse, name, stream, as_of=as_of),
            now=now if as_of is None else lambda: as_of,
            owner=f"{platform.node()}/{os.getpid()}",
            progress=progress,
        )
        if action != VERIFY:
            dedupe.remove(approve_as=arguments.approve_as)
        if action != REMOVE:
            dedupe.verify()
    return _reply(_report(dedupe.plan, engine=warehouse.engine), action)


def _reply(report: DedupeReport, action: str) -> Reply:
    """Done once it is proven, or removed where nothing else was asked."""
    state, rows = report.state, counted(report.removed_rows, "row")
    by = "" if action == VERIFY else f" by {report.engine}"
    text = f"Dedupe {report.plan_id}: {state}; {rows} removed{by}"
    said = f"{text}; {report.error}" if report.error else text
    is_done = state is WindowState.VERIFIED or (action == REMOVE and state is WindowState.MERGED)
    exit_code = ExitCode.DONE if is_done else ExitCode.FAILED
    return Reply(document=report, view=Text(harmless(said)), exit_code=exit_code)


def _report(plan: StoredDedupe, *, engine: str) -> DedupeReport:
    return DedupeReport(
        plan_id=plan.plan_id,
        stream=plan.stream,
        state=plan.state,
        ids=plan.ids,
        removed_rows=plan.removed_rows or 0,
        approved_by=plan.approved_by,
        error=plan.error,
        engine=engine,
    )


def _purge(arguments: argparse.Namespace, context: CommandContext) -> Reply:
    settings, plan_id = context.settings(), arguments.plan
    with context.progress(_PURGE_STAGES).stage("purge"):
        purge = purge_removed_rows(settings, plan_id)
    text = (
        f"Dedupe {plan_id}: forgot {counted(purge.purged_rows, 'row')} that it removed; "
        "the first `shardaudit maintain` after a week deletes their files"
    )
    return Reply(document=purge, view=Text(text))
