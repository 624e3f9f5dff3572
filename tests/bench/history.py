"""What an audit and a watch cost, by how many days the ledger has: cold, embedded.

`python -m tests.bench.history [DAYS …]` prints seconds and peak memory. The day audited is as large
whatever is before it; the last column is of a window of all days.
"""

import json
import shutil
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta

from rich.console import Console
from rich.table import Table

from tests.bench.commands import FOLDER, SHARDS, Measured, run, shardaudit

A_DAY = 200_000  # messages
ROUNDS = 3  # in turn, so that a slow minute of the machine meets all


def main(days: Sequence[int]) -> None:
    """Simulates each ledger, and measures the same commands on all of them."""
    found = {of: [_first(of)] for of in days}
    for _ in range(ROUNDS):
        for of in days:
            found[of] += [_timed(of, "audit", days=1), _timed(of, "watch"), _timed(of, "audit")]
    table = Table(title=f"{A_DAY:,} messages a day, {SHARDS} shards; seconds (peak GiB)")
    for name in ("days in the ledger", "first audit", "again", "watch", "again, all days"):
        table.add_column(name)
    for of, (first, *rest) in found.items():
        table.add_row(str(of), *map(_told, ([first], *(rest[nth::3] for nth in range(3)))))
    Console().print(table)


def _told(measured: Sequence[Measured]) -> str:
    seconds = ", ".join(f"{one.seconds:.1f}" for one in measured)
    return f"{seconds} ({max(one.peak_gib for one in measured):.2f})"


def _first(days: int) -> Measured:
    folder = FOLDER / f"days-{days}"
    if not (folder / "simulation.json").exists():
        size = [f"--messages={A_DAY * days}", f"--shards={SHARDS}", f"--hours={24 * days}"]
        size.append("--start=2026-01-01T00:00:00Z")  # no day is to come
        run(shardaudit(["simulate", "files", "--out", str(folder), *size]))
    shutil.rmtree(folder / "warehouse", ignore_errors=True)
    return _timed(days, "audit")


def _timed(of: int, command: str, *, days: int | None = None) -> Measured:
    """`days`: as long is the audit's window; None: as the ledger."""
    folder = FOLDER / f"days-{of}"
    simulation = json.loads((folder / "simulation.json").read_text())
    asked = ["--stream", simulation["stream"], "--as-of", simulation["as_of"]]
    if command == "audit":
        end = datetime.fromisoformat(simulation["window_end"])
        start = end - timedelta(days=days or of)
        asked += ["--from", start.isoformat(), "--to", end.isoformat()]
    config = ["--config", str(folder / "shardaudit.toml"), "--json"]
    return run(shardaudit([*config, command, *asked]))


if __name__ == "__main__":
    main([int(days) for days in sys.argv[1:]] or [1, 30])
