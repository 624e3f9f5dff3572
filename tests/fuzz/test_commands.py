"""Command lines, as hostile as they come: an exit code that means something, and a sentence."""

import contextlib
import io
import resource
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardaudit.cli.main import main
from shardaudit.model.exit_code import ExitCode
from tests.builders import sink_row, trace_line, write_lines, write_parquet
from tests.fuzz.hostile import BOUNDED, TEXT, TEXTS

# None that writes files of its own or looks at the machine.
_COMMANDS = [
    *("ingest", "audit", "watch", "findings", "backfill", "dedupe", "maintain", "report"),
    "statistics",
]
_WORDS = [
    *("list", "accept", "plan", "run", "replay", "verify", "purge", "--stream", "--stream=events"),
    *("--from", "--to=2026-11-20T00:00:00Z", "--as-of", "--limit", "--limit=-1", "--shard", "--"),
    *("--json", "--log=json", "--debug", "--plan", "--reason", "--message-id", "--out", "--check"),
    *("--engine=embedded", "--engine", "--config", "--help", "-", "--no-ingest", "--quiet"),
]
LINE = st.lists(st.sampled_from(_WORDS) | TEXT | TEXT.map("--stream={}".format), max_size=6)


def ended(words: list[str]) -> tuple[int, str, str]:
    """The exit code of a command line, what it said of errors, and what it printed."""
    said, printed = io.StringIO(), io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(printed):
        try:
            code = main(words)
        except SystemExit as wrong:
            code = int(wrong.code or 0)
    return code, said.getvalue(), printed.getvalue()


@BOUNDED
@given(st.sampled_from(_COMMANDS), LINE, TEXT)
def test_a_command_line_without_a_configuration_ends_in_words(
    command: str, words: list[str], config: str
) -> None:
    code, said, _ = ended(["--config", f"/nonexistent/{config}", command, *words])
    assert code in {ExitCode.USAGE, ExitCode.DONE}  # --help
    assert "unexpected" not in said
    assert ("Traceback" in said) <= ("--debug" in words)


CONFIG = """\
warehouse = "lake"
engine = "embedded"
[embedded]
shared_machine = true
[streams.events]
stream_name = "events"
retention = "168h"
traces = { path = "traces" }
sink = { path = "sink", format = "parquet" }
"""
WINDOW = ["--from", "2026-11-20T11:00:00Z", "--to", "2026-11-20T14:00:00Z"]
AS_OF = ["--as-of", "2026-11-20T18:00:00Z"]


@pytest.mark.drill
def test_hostile_messages_pass_through_every_command(tmp_path: Path) -> None:
    ids = [
        text for text in TEXTS if 0 < len(text.encode()) <= 1024 and text != "shardaudit-canary/x"
    ]
    hostile = [
        trace_line(n, message_id=text, shard_id=text[:100], location=text, attributes={text: text})
        for n, text in enumerate(ids)
    ]
    fat = trace_line(1, message_id="fat", attributes={f"k{i}": "v" * 50 for i in range(50_000)})
    long = trace_line(2, message_id="long", attributes={"x": "y" * (7 * 2**20)})
    good = [trace_line(n, message_id=f"good-{n}") for n in range(300)]
    write_lines(tmp_path / "traces" / "a.jsonl", [*hostile, fat, long, *good, "x" * 9_000_000])
    write_parquet(
        tmp_path / "sink" / "a.parquet", [sink_row(0, message_id="good-0"), sink_row(500)]
    )
    (tmp_path / "shardaudit.toml").write_text(CONFIG)
    report = tmp_path / "report.html"
    for words in (
        ["audit", *WINDOW, *AS_OF],
        ["findings", "list", "--limit=9999"],
        ["watch", *AS_OF],
        ["report", "--out", str(report)],
        ["statistics", "--by=shard"],
        ["backfill", "plan", *AS_OF],
    ):
        line = ["--config", str(tmp_path / "shardaudit.toml"), *words, "--stream=events"]
        line.append("--engine=embedded")
        code, said, printed = ended(line)
        assert (code, "Traceback" in said) == (ExitCode.DONE, False), said[-2000:]
        assert all(text.isprintable() for text in f"{said}\n{printed}".split("\n"))
    html = report.read_bytes().decode()  # read as a text it would lose its \r
    assert len(html) < 2_000_000  # of 50,000 attributes some are shown
    assert all(text.isprintable() for text in html.split("\n"))
    used_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert used_kib < 2 * 2**20
