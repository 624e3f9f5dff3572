"""`shardaudit lint-traces`: one line per fault, and an exit code for a script."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from shardaudit.model.exit_code import ExitCode
from tests.builders import trace_line, write_lines
from tests.unit.producer.pages import CONSUMERS, PRODUCERS, shown

pytestmark = pytest.mark.slow

SOURCES = Path(__file__).parents[3] / "spark"


def lint(*arguments: str) -> tuple[int, list[str]]:
    """In a process of its own: two kinds of engine do not mix in one."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "shardaudit.cli.main",
            "lint-traces",
            "--engine=embedded",
            *arguments,
        ],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
    )
    return done.returncode, done.stdout.splitlines()


def test_each_fault_is_a_line_and_the_end_is_1(tmp_path: Path) -> None:
    long = tmp_path / ("long" * 50) / "a.jsonl"
    of_router = trace_line(1, location="router", event="sent")
    path = write_lines(long, [trace_line(0), "no json", '{"gap": 2}', "{}", of_router])
    assert lint(str(path)) == (
        ExitCode.FAILED,
        [
            f"{path}:2: the line is not JSON",
            f"{path}:4: message_id is missing",
            f"{path}:5: the trace is of another location than producer",
            "1 file: 1 trace, 3 faults; 1 gap, told by the producer",
            "with --stream NAME the places that its configuration names are known, too",
        ],
    )


def test_end_is_0_when_all_is_well(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", [trace_line(0), trace_line(1)])
    code, lines = lint(str(path), "--json")
    told = {"files": 1, "traces": 2, "gaps": 0, "faulty": 0, "faults": []}
    assert (code, json.loads("\n".join(lines))) == (ExitCode.DONE, told)


def test_lines_of_the_pages_are_judged_as_they_say(tmp_path: Path) -> None:
    pages = {"producers": PRODUCERS, "consumers": CONSUMERS}
    files = [
        write_lines(tmp_path / name, "".join(shown("json", page)).splitlines())
        for name, page in pages.items()
    ]
    _, lines = lint("--json", *map(str, files))
    found = json.loads("\n".join(lines))["faults"]
    elsewhere = "the trace is of another location than producer"
    assert [(Path(each["file"]).name, each["fault"]) for each in found] == [
        ("consumers", elsewhere)
    ] * 2
