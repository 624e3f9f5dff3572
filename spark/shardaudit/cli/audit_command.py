"""`shardaudit audit`."""

import argparse
from dataclasses import replace
from datetime import datetime

from shardaudit.adapters.clock import now
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.gates import open_gates
from shardaudit.audit.late import audit_with_late
from shardaudit.cli.command import CommandContext, Reply, asked_instant
from shardaudit.cli.session import session
from shardaudit.ingest.ask_kinesis import retention_of
from shardaudit.ingest.job import INGEST_STAGES, ingest_stream
from shardaudit.model.config.settings import Stream
from shardaudit.model.exit_code import ExitCode
from shardaudit.model.window import Window, asked_window
from shardaudit.report.render import audit_view
from shardaudit.report.summary import AuditReport

EXAMPLES = """\
  shardaudit audit --stream events
  shardaudit audit --stream events --from 2026-11-19T00:00:00Z --to 2026-11-20T00:00:00Z
  shardaudit audit --stream events --check || alert      # exit code 3: the verdict is bad
"""
AUDIT_STAGES = 7
_UNREAD = (
    "nothing was ingested for this audit: what came to the traces or the sink since the last "
    "ingest is not in it, and may be lost"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The stream, the window, the now."""
    parser.add_argument("--stream", required=True, help="its name in the configuration")
    parser.add_argument(
        "--from",
        dest="start",
        metavar="T",
        help="start of the window, ISO 8601 with a zone; default: audit_window before --to",
    )
    parser.add_argument(
        "--to", dest="end", metavar="T", help="its end, exclusive; default: --as-of"
    )
    parser.add_argument("--as-of", metavar="T", help='the "now" of the run; default: the clock')
    parser.add_argument("--no-ingest", action="store_true", help="audit what was ingested before")
    parser.add_argument(
        "--check", action="store_true", help="exit with 3 unless the verdict is ok or pending"
    )


def run(arguments: argparse.Namespace, context: CommandContext) -> Reply:
    """Ingests unless told not to, audits, reports."""
    settings = context.settings()
    name = arguments.stream
    stream = settings.stream(name)
    as_of = asked_instant(arguments.as_of, "--as-of") or now()
    window = _window(arguments, stream, as_of=as_of)
    gates = open_gates(settings.expectations)
    progress = context.progress(AUDIT_STAGES + (0 if arguments.no_ingest else INGEST_STAGES))
    with session(settings, owner=f"audit {name}", progress=progress) as warehouse:
        if not arguments.no_ingest:
            # An audit of a past time reads what is there now; its times are not in the future.
            newest = max(as_of, now())
            ingest_stream(warehouse, settings, name, now=newest, progress=progress)
        request = AuditRequest(
            name=name,
            stream=stream,
            window=window,
            as_of=as_of,
            retention=retention_of(warehouse, name, stream, as_of=as_of),
        )
        report = audit_with_late(warehouse, request, gates, now=now(), progress=progress)
    if arguments.no_ingest:
        report = replace(report, notes=(_UNREAD, *report.notes))
    return Reply(
        document=report, view=audit_view(report), exit_code=_exit_code(report, arguments.check)
    )


def _window(arguments: argparse.Namespace, stream: Stream, *, as_of: datetime) -> Window:
    end = asked_instant(arguments.end, "--to") or as_of
    start = asked_instant(arguments.start, "--from") or end - stream.audit_window
    return asked_window(start, end, as_of=as_of)


def _exit_code(report: AuditReport, check: bool) -> ExitCode:
    return ExitCode.BAD_VERDICT if check and not report.is_good else ExitCode.DONE
