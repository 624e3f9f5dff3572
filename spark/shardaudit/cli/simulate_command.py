"""`shardaudit simulate`."""

import argparse
from collections.abc import Mapping

from rich.text import Text

from shardaudit.cli.command import CommandContext, Reply
from shardaudit.report.plain import harmless
from shardaudit.simulate.job import FILE_STAGES, STREAM_STAGES, add_arguments
from shardaudit.simulate.job import run as simulate

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = """\
  shardaudit simulate run --out demo                      # through a Kinesis stand-in
  shardaudit simulate files --out big --messages 1e7      # straight to files
  shardaudit simulate serve                               # the Kinesis stand-in alone
"""


def run(arguments: argparse.Namespace, context: CommandContext) -> Reply:
    """Simulates, and says what was planted."""
    shown: dict[str, object] = {}
    stages = STREAM_STAGES if arguments.action == "run" else FILE_STAGES
    simulate(arguments, show=shown.update, progress=context.progress(stages))
    return Reply(document=shown, view=_facts_view(shown))


def _facts_view(facts: Mapping[str, object]) -> Text:
    """The facts, and the command line that audits what was made."""
    lines = [f"{name:<15} {_words(value)}" for name, value in facts.items()]
    if facts:
        lines.append(
            f"\nAudit it: shardaudit --config {facts['out']}/shardaudit.toml audit "
            f"--stream {facts['stream']} --from {facts['window_start']} "
            f"--to {facts['window_end']} --as-of {facts['as_of']}"
        )
    return Text("\n".join(lines), no_wrap=True, overflow="ignore")


def _words(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{harmless(str(name))} {inner}" for name, inner in value.items())
    return harmless(str(value))
