"""The commands as a person types them: each a cold process, against scripts on the same files.

`python -m tests.bench.commands [MESSAGES …]` prints, per size and engine that is set, seconds, the
ratio to both scripts and the peak memory of the process tree, and writes the same to
`.bench/MESSAGES.json`. The files are read once before, for all.
"""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

FOLDER = Path(".bench")
SHARDS = 64
_FAULTS = {"lost": 1e-4, "replay": 5e-5, "untraced": 1e-5}  # shares of the messages
FAULT_KINDS = ("missing", "duplicated", "untraced")
ENGINES = ("embedded", "spark")
_MOST_ON_SPARK = 1e7  # messages: of 50 million the first audit takes half an hour on two cores
_LOOK_SECONDS = 0.25
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Measured:
    """One process from its start to its end. `peak_gib`: resident, of it and all its children."""

    seconds: float
    peak_gib: float
    said: str


def main(sizes: Sequence[str]) -> None:
    """Measures every size, one process after the other."""
    console = Console()
    for size in sizes:
        folder = simulated(size)
        warm(folder)
        engines = ENGINES if float(size) <= _MOST_ON_SPARK else ENGINES[:1]
        found = _measure(folder, engines)
        load = os.getloadavg()[0]
        said = {"load": load, "cores": os.cpu_count()} | {k: asdict(v) for k, v in found.items()}
        folder.with_suffix(".json").write_text(json.dumps(said, indent=2))
        console.print(measured_table(f"{size} messages", found, load=load))


def simulated(size: str) -> Path:
    """The folder of that many messages, made once."""
    folder, messages = FOLDER / size, float(size)
    if not (folder / "simulation.json").exists():
        command = ["simulate", "files", "--out", str(folder), f"--messages={size}"]
        run(shardaudit([*command, f"--shards={SHARDS}", *fault_options(messages)]))
    return folder


def fault_options(messages: float) -> list[str]:
    """The options of `simulate` that plant faults among so many messages."""
    return [f"--fault={name}={round(share * messages)}" for name, share in _FAULTS.items()]


def warm(folder: Path) -> None:
    """Reads every file, so that all find the same page cache."""
    for file in (*folder.glob("traces/*"), *folder.glob("sink/**/*.parquet")):
        file.read_bytes()


def _measure(folder: Path, engines: Sequence[str]) -> dict[str, Measured]:
    simulation = json.loads((folder / "simulation.json").read_text())
    window = [f"--from={simulation['window_start']}", f"--to={simulation['window_end']}"]
    audit = ["audit", "--stream", simulation["stream"], *window, "--as-of", simulation["as_of"]]
    watch = ["watch", "--stream", simulation["stream"], "--as-of", simulation["as_of"]]
    plan = ["backfill", "plan", "--stream", simulation["stream"], "--as-of", simulation["as_of"]]
    found = {"Spark script": run(script("spark", folder))}
    found |= {"DuckDB script": run(script("duckdb", folder))}
    for engine in engines:
        config = fresh_warehouse(folder, engine)
        commands = {"first audit": audit, "again": audit, "watch": watch, "backfill plan": plan}
        for name, command in commands.items():
            words = ["--config", config, "--json", *command]
            found[f"{name}, {engine}"] = run(shardaudit(words))
    the_same(found)
    return found


def fresh_warehouse(folder: Path, engine: str) -> str:
    """Deletes the folder's warehouse; the path of a configuration that says that engine."""
    shutil.rmtree(folder / "warehouse", ignore_errors=True)
    # Not by --engine: what reads little runs embedded on either setting.
    config = folder / f"{engine}.toml"
    settings = (folder / "shardaudit.toml").read_text()
    config.write_text(settings.replace('engine = "embedded"', f'engine = "{engine}"'))
    return str(config)


def the_same(found: Mapping[str, Measured]) -> None:
    """Checks that the audits count what the scripts count.

    Raises:
        ValueError: one of them does not.
    """
    answers = {}
    for name, measured in found.items():
        if " script" in name:
            answers[name] = json.loads(measured.said)
        elif name.startswith(("first audit", "again")):
            answers[name] = json.loads(measured.said)["counts"]
    told = {name: {kind: of.get(kind, 0) for kind in FAULT_KINDS} for name, of in answers.items()}
    if len({tuple(sorted(of.items())) for of in told.values()}) > 1:
        msg = f"not the same answers: {told}"
        raise ValueError(msg)


def run(command: Sequence[str]) -> Measured:
    """Runs a command to its end, which must be a good one.

    Raises:
        CalledProcessError: it was not.
    """
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    peak = _Peak(process.pid)
    said, _ = process.communicate()
    seconds = time.perf_counter() - start
    peak.stop()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Measured(seconds, peak.gib, said)


class _Peak:
    """Looks at the resident memory of a process tree until it is told to stop."""

    def __init__(self, pid: int) -> None:
        self.gib, self._pid, self._done = 0.0, pid, threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def stop(self) -> None:
        self._done.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._done.wait(_LOOK_SECONDS):
            pages = sum(map(_resident_pages, _tree(self._pid)))
            self.gib = max(self.gib, pages * _PAGE_BYTES / 2**30)


def _tree(pid: int) -> list[int]:
    found = [pid]
    for parent in found:
        try:
            for task in Path(f"/proc/{parent}/task").glob("*/children"):
                found += map(int, task.read_text().split())
        except OSError:
            continue  # a process or a thread that has ended
    return found


def _resident_pages(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0


def shardaudit(words: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "shardaudit.cli.main", *words]


def script(name: str, folder: Path) -> list[str]:
    return [sys.executable, str(Path(__file__).with_name(f"{name}_script.py")), str(folder)]


def measured_table(title: str, found: Mapping[str, Measured], *, load: float) -> Table:
    """Seconds, memory, and the ratio to each script that was run beside."""
    table = Table(title=f"{title}, cold, load {load:.1f} on {os.cpu_count()} cores")
    scripts = [name for name in found if name.endswith(" script")]
    for name in ("what", "s", *(f"÷ {script}" for script in scripts), "peak GiB"):
        table.add_column(name)
    for name, measured in found.items():
        ratios = (f"{measured.seconds / found[script].seconds:.2f}" for script in scripts)
        table.add_row(name, f"{measured.seconds:.1f}", *ratios, f"{measured.peak_gib:.2f}")
    return table


if __name__ == "__main__":
    main(sys.argv[1:] or ["2e5", "1e6", "1e7"])
