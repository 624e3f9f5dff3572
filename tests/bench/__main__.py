"""`make bench`: 10 M messages, 64 shards, 24 h, 1e-4 faults; median of 3 warm runs each; the page.

Every contender is a process of its own, one after another, so that none inherits another's heap.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

FOLDER = Path(".bench")
MESSAGES = os.environ.get("BENCH_MESSAGES", "1e7")
FAULTS = ("lost=1000", "replay=500", "untraced=100")
CONTENDERS = ("spark_join", "duckdb_join", "ours")
PAGE_SECONDS = 2.0
PEAK_GIB = 4.0
LIMITS = (
    # what, contender, ours, at most
    ("raw files: fingerprints + compare + drill-down", "spark_join", "raw", 1 / 5),
    ("raw files: fingerprints + compare + drill-down", "duckdb_join", "raw", 2.0),
    ("ledger built: the same day compared again", "duckdb_join", "again", 1 / 4),
)


def main() -> int:
    """Exit code 1 when a ratio is above its limit."""
    console = Console()
    _make_files(console)
    seconds: dict[str, float] = {}
    for contender in CONTENDERS:
        measured = _measured(console, contender)
        console.print(f"  {measured}")
        seconds |= measured
    slow = _judge_page(console, _measured(console, "page"))
    return _judge(console, seconds) | slow


def _measured(console: Console, contender: str) -> dict[str, Any]:
    console.print(f"{contender} …")
    done = subprocess.run(
        [sys.executable, "-m", f"tests.bench.{contender}", str(FOLDER)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured


def _make_files(console: Console) -> None:
    if (FOLDER / "simulation.json").exists():
        return
    console.print(f"simulate {MESSAGES} messages straight to files …")
    faults = [word for fault in FAULTS for word in ("--fault", fault)]
    command = ["simulate", "files", "--out", str(FOLDER), "--messages", MESSAGES, "--shards", "64"]
    subprocess.run(
        [
            sys.executable,
            "-m",
            "shardaudit.cli.main",
            *command,
            "--sink-format",
            "parquet",
            *faults,
        ],
        check=True,
    )


def _judge(console: Console, seconds: dict[str, float]) -> int:
    table = Table(
        title=f"{MESSAGES} messages, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    )
    for name in ("what", "against", "ours s", "theirs s", "ratio", "at most", ""):
        table.add_column(name)
    worst = 0
    for what, other, mine, limit in LIMITS:
        ratio = seconds[mine] / seconds[other]
        is_met = ratio <= limit
        worst |= not is_met
        table.add_row(
            what,
            other,
            f"{seconds[mine]:.2f}",
            f"{seconds[other]:.2f}",
            f"{ratio:.2f}",
            f"{limit:.2f}",
            "ok" if is_met else "ABOVE",
        )
    peak = seconds["peak_gib"]
    said = "ok" if peak <= PEAK_GIB else "ABOVE"
    name = "peak memory of the driver, GiB"
    table.add_row(name, "", f"{peak:.2f}", "", "", f"{PEAK_GIB:.2f}", said)
    console.print(table)
    return int(worst or peak > PEAK_GIB)


def _judge_page(console: Console, measured: dict[str, Any]) -> int:
    """The page in the process that Airflow's api-server would be: at most 2 s, at most 1 GiB."""
    table = Table(title=f"the page, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for name in ("page of 1,800 shards x 7 days x 5 min", "first s", "s", "at most", "KiB"):
        table.add_column(name)
    for name, of in measured["page"].items():
        table.add_row(
            name, f"{of['first']:.2f}", f"{of['seconds']:.2f}", "2.00", f"{of['kib']:.0f}"
        )
    table.add_row("peak memory, GiB", "", f"{measured['page_peak_gib']:.2f}", "1.00", "")
    console.print(table)
    slowest = max(of["seconds"] for of in measured["page"].values())
    return int(slowest > PAGE_SECONDS or measured["page_peak_gib"] > 1)


if __name__ == "__main__":
    sys.exit(main())
