"""`shardaudit report`."""

import argparse
from dataclasses import asdict
from pathlib import Path

from rich.text import Text

from shardaudit.adapters.clock import now
from shardaudit.cli.command import CommandContext, Reply, asked_time
from shardaudit.model.errors import ConfigError
from shardaudit.model.words import counted
from shardaudit.page.page_report import stream_report
from shardaudit.page.page_state import PageState
from shardaudit.report.plain import instant

EXAMPLES = """\
  shardaudit report --stream events --out events.html
  shardaudit report --stream events --out day.html \\
      --from 2026-11-19T00:00:00Z --to 2026-11-20T00:00:00Z
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The stream, which audit or time, the file."""
    parser.add_argument("--stream", required=True, help="its name in the configuration")
    parser.add_argument(
        "--audit", metavar="ID", help="as this audit found it; default: as the newest ones did"
    )
    parser.add_argument(
        "--from", dest="start", metavar="T", help="start of the time; default: the audit's window"
    )
    parser.add_argument("--to", dest="end", metavar="T", help="its end, exclusive; with --from")
    parser.add_argument("--out", required=True, type=Path, metavar="FILE.html")


def run(arguments: argparse.Namespace, context: CommandContext) -> Reply:
    """Writes the file."""
    settings = context.settings()
    state = PageState(stream=arguments.stream, window=asked_time(arguments))
    written = stream_report(settings, state, audit_id=arguments.audit, now=now())
    try:
        arguments.out.write_text(written.html, encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            "--out", str(arguments.out), f"a file that can be written ({error.strerror})"
        ) from error
    document = asdict(written) | {"file": str(arguments.out)}
    del document["html"]
    return Reply(
        document=document,
        view=Text(
            f"{arguments.out}: {written.stream} from {instant(written.window_start)} to "
            f"{instant(written.window_end)}, {counted(written.shards, 'shard')}, the worst is "
            f"{written.verdict}; {counted(written.findings, 'finding')}, "
            f"{counted(written.gaps, 'gap')}"
        ),
    )
