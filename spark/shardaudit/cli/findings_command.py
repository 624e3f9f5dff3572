"""`shardaudit findings list` and `shardaudit findings accept`."""

import argparse
import getpass
from dataclasses import fields
from datetime import timedelta

from rich.console import Group
from rich.text import Text

from shardaudit.adapters.clock import now
from shardaudit.audit.evidence import gap_messages
from shardaudit.backfill.plan_job import check_shards
from shardaudit.cli.command import CommandContext, RanBy, Reply
from shardaudit.cli.session import session
from shardaudit.ingest.rules.placed_rows import UNKNOWN_SHARD
from shardaudit.model.errors import ConfigError
from shardaudit.model.verdict import Cause, Kind, State
from shardaudit.model.window import CLOCKS_APART, Window, parse_instant
from shardaudit.report.plain import harmless
from shardaudit.report.render import findings_view, gaps_view
from shardaudit.report.summary import FindingLine
from shardaudit.store.audits import unaudited_notes
from shardaudit.store.cell_grid import ShardRange
from shardaudit.store.read_findings import (
    FindingValues,
    WantedFindings,
    findings_bytes,
    gaps_of,
    read_findings,
)
from shardaudit.store.transitions import (
    Accepted,
    Said,
    accept_findings,
    accept_gaps,
    accept_time,
)

EXAMPLES = """\
  shardaudit findings list --stream events --kind missing --state open
  shardaudit findings accept --stream events --message-id 4711 4712 --reason "test traffic"
  shardaudit findings list --stream events --gap shardId-000000000007 2026-11-19T22:00:00Z
  shardaudit findings accept --stream events --gaps --from 2026-11-19T22:00:00Z \\
    --to 2026-11-20T06:00:00Z --reason "the stream has it no more"
  shardaudit findings accept --stream events --quiet --from 2026-11-19T22:00:00Z \\
    --to 2026-11-20T06:00:00Z --reason "the shops were closed"
  shardaudit findings accept --stream events --inconclusive --from 2026-11-19T22:00:00Z \\
    --to 2026-11-20T06:00:00Z --reason "that trace file is lost for good"
"""
ACCEPT_STAGES = 2
_FILTERS = ("stream", "kind", "state")


def person() -> str:
    """The name of the account that runs the command."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container without an entry for its user
        return "unknown"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The two actions."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listed = actions.add_parser("list", help="findings, the soonest deadline first")
    listed.add_argument("--stream", help="its name in the configuration; default: all")
    listed.add_argument("--kind", choices=[kind.value for kind in Kind])
    listed.add_argument("--state", choices=[state.value for state in State])
    listed.add_argument(
        "--gap", nargs=2, metavar=("SHARD", "T"), help="the messages of the gap that begins then"
    )
    listed.add_argument("--limit", type=int, default=50, metavar="N", help="default: 50")
    accepted = actions.add_parser("accept", help="says that findings are known")
    accepted.add_argument("--stream", required=True, help="its name in the configuration")
    what = accepted.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--message-id", nargs="+", action="extend", metavar="ID", help="all findings of these"
    )
    what.add_argument("--gaps", action="store_true", help="the gaps that begin from --from to --to")
    what.add_argument(
        "--quiet", action="store_true", help="nothing was sent from --from to --to, say you"
    )
    what.add_argument(
        "--inconclusive",
        action="store_true",
        help="--from to --to may stay so (a file that cannot be read, too few traces): the "
        "watermark passes it",
    )
    accepted.add_argument("--from", dest="start", metavar="T", help="of a time: since when")
    accepted.add_argument("--to", dest="end", metavar="T", help="of a time: until when")
    accepted.add_argument(
        "--shard", nargs="+", action="extend", metavar="ID", help="of a time; default: all"
    )
    accepted.add_argument("--reason", required=True, help="why; it is kept with the findings")


def run(arguments: argparse.Namespace, context: CommandContext) -> Reply:
    """Lists or accepts."""
    return _list(arguments, context) if arguments.action == "list" else _accept(arguments, context)


def _list(arguments: argparse.Namespace, context: CommandContext) -> Reply:
    settings = context.settings()
    if arguments.limit < 1:
        raise ConfigError("--limit", arguments.limit, "a whole number from 1 on")
    if arguments.stream is not None:
        settings.stream(arguments.stream)
    given = {name: getattr(arguments, name) for name in _FILTERS}
    wanted = {name: value for name, value in given.items() if value is not None}
    if arguments.gap is not None:
        return _list_gap(arguments, context)
    found = read_findings(settings, WantedFindings(wanted), limit=arguments.limit)
    gaps = []
    if arguments.kind in {None, Kind.MISSING.value}:
        gaps = gaps_of(settings, stream=arguments.stream, state=arguments.state)
    shown = gaps[: arguments.limit]
    lines = [_line(row) for row in found.rows]
    names = [arguments.stream] if arguments.stream else list(settings.streams)
    unknown = [] if gaps or found.total else unaudited_notes(settings, names, now=now())
    return Reply(
        document={
            "total": found.total,
            "findings": found.rows,
            "total_gaps": len(gaps),
            "gaps": shown,
            "notes": unknown,
        },
        view=Group(
            *([gaps_view(shown, total=len(gaps))] if gaps else []),
            *([] if gaps and not found.total else [findings_view(lines, total=found.total)]),
            *map(Text, unknown),
        ),
    )


def _list_gap(arguments: argparse.Namespace, context: CommandContext) -> Reply:
    settings, (shard_id, text) = context.settings(), arguments.gap
    start = parse_instant(text, where="--gap")
    if arguments.stream is None:
        raise ConfigError("--gap", "no --stream", "the stream that it is of")
    if arguments.kind or arguments.state:
        raise ConfigError("--gap", "--kind or --state", "neither: all of a gap's messages lack")
    shard = ShardRange(shard_id, shard_id)
    gaps = gaps_of(settings, stream=arguments.stream, state=None, shards=shard)
    if start not in {gap["bucket_start"] for gap in gaps}:
        raise ConfigError("--gap", f"{shard_id} {text}", "shard and start as `findings list` says")
    progress = context.progress(ACCEPT_STAGES)
    chosen = context.light("findings list", settings)
    with (
        session(chosen.settings, owner="findings list", progress=progress) as warehouse,
        progress.stage("read"),
    ):
        stream = settings.stream(arguments.stream)
        cell = (shard_id, start)
        rows, total = gap_messages(
            warehouse, arguments.stream, stream, cell=cell, limit=arguments.limit
        )
    ids = [harmless(row["message_id"]) for row in rows]
    if len(ids) < total:
        ids.append(f"these are the first {len(ids):,} of {total:,}: --limit says how many")
    return Reply(
        document={"total": total, "messages": rows},
        view=Text("\n".join(ids) or "none lacks any more"),
        ran_by=RanBy(warehouse.engine, chosen.because),
    )


def _accept(arguments: argparse.Namespace, context: CommandContext) -> Reply:
    settings = context.settings()
    settings.stream(arguments.stream)
    if not arguments.reason.strip():
        raise ConfigError("--reason", arguments.reason, "a reason")
    if arguments.quiet or arguments.inconclusive or arguments.gaps:
        return _accept_time(arguments, context)
    if arguments.start or arguments.end or arguments.shard:
        wanted = "these with --gaps, --quiet or --inconclusive alone"
        raise ConfigError("--message-id", "--from, --to or --shard", wanted)
    progress = context.progress(ACCEPT_STAGES)
    chosen = context.light("findings accept", settings, reads=lambda: findings_bytes(settings))
    with (
        session(chosen.settings, owner="findings accept", progress=progress) as warehouse,
        progress.stage("accept"),
    ):
        outcome = accept_findings(
            warehouse,
            arguments.stream,
            arguments.message_id,
            reason=arguments.reason,
            now=now(),
        )
    return _accepted(outcome, "findings", RanBy(warehouse.engine, chosen.because))


def _accepted(outcome: Accepted, what: str, ran_by: RanBy) -> Reply:
    text = f"{what} accepted: {outcome.accepted:,}"
    if outcome.unchanged:
        text += f"; accepted or closed before: {outcome.unchanged:,}"
    return Reply(document=outcome, view=Text(text), ran_by=ran_by)


def _accept_time(arguments: argparse.Namespace, context: CommandContext) -> Reply:
    if not (arguments.start and arguments.end):
        options = ("gaps", "quiet", "inconclusive")
        option = next(name for name in options if getattr(arguments, name))
        raise ConfigError(f"--{option}", "no --from or no --to", "both")
    window = Window(
        parse_instant(arguments.start, where="--from"), parse_instant(arguments.end, where="--to")
    )
    settings = context.settings()
    if not arguments.gaps:
        _check_over(window, arguments.end, cell=settings.stream(arguments.stream).bucket)
    said = Said(
        arguments.stream,
        window,
        tuple(arguments.shard or ()),
        arguments.reason,
        is_inconclusive=arguments.inconclusive,
    )
    progress = context.progress(ACCEPT_STAGES)
    chosen = context.light("findings accept", settings)
    with (
        session(chosen.settings, owner="findings accept", progress=progress) as warehouse,
        progress.stage("accept"),
    ):
        if arguments.gaps:
            done = accept_gaps(warehouse, said, now=now())
            return _accepted(done, "gaps", RanBy(warehouse.engine, chosen.because))
        if named := set(said.shard_ids) - {UNKNOWN_SHARD}:
            check_shards(warehouse, said.stream, named)
        outcome = accept_time(warehouse, said, by=person(), now=now())
    what = "may stay inconclusive" if said.is_inconclusive else "quiet"
    return Reply(
        document=outcome,
        view=Text(f"{what} as {outcome.accepted_by} says: the next audit counts it"),
        ran_by=RanBy(warehouse.engine, chosen.because),
    )


def _check_over(window: Window, end: str, *, cell: timedelta) -> None:
    """Returns when a time is over, but for its last cell: an audit says to accept whole ones."""
    if window.end > now() + cell + CLOCKS_APART:
        wanted = "a time that is over: what is still to come would be complete whatever happens"
        raise ConfigError("--to", end, wanted)


def _line(row: FindingValues) -> FindingLine:
    values = {field.name: row[field.name] for field in fields(FindingLine)}
    enums = {"kind": Kind(row["kind"]), "cause": Cause(row["cause"]), "state": State(row["state"])}
    return FindingLine(**values | enums)
