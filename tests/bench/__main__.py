"""`make bench`: the commands as they are typed, against scripts, at four sizes; then the page."""

import json
import os
import subprocess
import sys
from typing import Any  # JSON has no closer type

from rich.console import Console
from rich.table import Table

from tests.bench import commands

SIZES = ("2e5", "1e6", "1e7", "5e7")
PAGE_SECONDS = 2.0
PAGE_GIB = 1.0


def main() -> int:
    """Exit code 1 when the page is above its limits."""
    commands.main(SIZES)
    # In a process of its own, as Airflow's api-server is one.
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.page", str(commands.FOLDER)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return _judge_page(json.loads(done.stdout.splitlines()[-1]))


def _judge_page(measured: dict[str, Any]) -> int:
    table = Table(title=f"the page, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for name in ("page of 1,800 shards x 7 days x 5 min", "first s", "s", "at most", "KiB"):
        table.add_column(name)
    for name, of in measured["page"].items():
        seconds = (f"{of['first']:.2f}", f"{of['seconds']:.2f}", f"{PAGE_SECONDS:.2f}")
        table.add_row(name, *seconds, f"{of['kib']:.0f}")
    peak = measured["page_peak_gib"]
    table.add_row("peak memory, GiB", "", f"{peak:.2f}", f"{PAGE_GIB:.2f}", "")
    Console().print(table)
    slowest = max(of["seconds"] for of in measured["page"].values())
    return int(slowest > PAGE_SECONDS or peak > PAGE_GIB)


if __name__ == "__main__":
    sys.exit(main())
