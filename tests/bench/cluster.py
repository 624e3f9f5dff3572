"""Ingest and first audit on a standalone cluster with one worker core, then with two.

`python -m tests.bench.cluster [MESSAGES]` prints seconds, the speed-up, and of the stages with the
most work how evenly their tasks shared it, from Spark's event log. The audit must find what was
planted. Files and warehouse are on this machine's disk: what is measured is the work, not an S3
stand-in. A worker gets half a core of this machine, by a control group (Linux, as root): so two
cores have room for two workers and, beside them, the driver. What each worker does but once, as to
compile, is about a minute of a core: of few messages the speed-up tells of that.
"""

import json
import os
import statistics
import sys
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from deltalake import DeltaTable
from rich.console import Console
from rich.table import Table

from tests.bench.commands import FAULT_KINDS, simulated
from tests.cluster.bound_process import BoundProcess
from tests.cluster.standalone import Cluster, standalone_cluster, submission

CORES, SHARE = (1, 2), 0.5
STAGES = 6  # that are shown
_HOURS = 6
_SPARK = {
    "spark.driver.memory": "2500m",
    "spark.executor.memory": "2g",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.rolling.enabled": "false",
    "spark.eventLog.compress": "false",
    "spark.sql.shuffle.partitions": "8",
}


@dataclass(frozen=True, slots=True)
class StageTasks:
    """A stage's tasks: what it did, and how many seconds each of them took."""

    stage: int
    seconds: tuple[float, ...]

    @property
    def skew(self) -> float:
        """The longest task by the median one."""
        return max(self.seconds) / max(statistics.median(self.seconds), 0.001)


def main(size: str) -> None:
    """Measures one core, then two."""
    lake, console = simulated(size).absolute(), Console(width=120)
    for file in lake.rglob("*.parquet"):
        file.read_bytes()  # the same warm page cache for both
    taken: dict[int, float] = {}
    for cores in CORES:
        with TemporaryDirectory(prefix="shardaudit-cluster-") as place:
            folder = Path(place)
            with standalone_cluster(
                folder / "cluster", workers=cores, memory="3g", core_share=SHARE
            ) as cluster:
                taken[cores] = audited(cluster, lake, folder)
            console.print(_table(stages(folder / "events"), cores, seconds=taken[cores]))
    ratio, load = taken[CORES[0]] / taken[CORES[1]], os.getloadavg()[0]
    console.print(f"speed-up {ratio:.2f}, {size} messages, load {load:.1f}, {os.cpu_count()} cores")


def audited(cluster: Cluster, lake: Path, folder: Path) -> float:
    """How many seconds an audit of what nobody ingested took, its driver's start with it."""
    (folder / "events").mkdir()
    keys = _SPARK | {"spark.eventLog.dir": (folder / "events").as_uri()}
    made = (lake / "shardaudit.toml").read_text()
    made = made.replace('"warehouse"', f'"{folder}/warehouse"', 1)
    for name in ("traces", "sink"):
        made = made.replace(f'path = "{name}"', f'path = "{lake}/{name}"')
    config = folder / "shardaudit.toml"
    written = "\n".join(f'"{key}" = "{value}"' for key, value in keys.items())
    config.write_text(f"{made}\n[spark]\n{written}\n")
    of = json.loads((lake / "simulation.json").read_text())
    window = [f"--from={of['window_start']}", f"--to={of['window_end']}", f"--as-of={of['as_of']}"]
    words = ["--config", str(config), "audit", f"--stream={of['stream']}", *window]
    environment = dict(os.environ) | {"SPARK_LOCAL_IP": "127.0.0.1"}
    start = time.perf_counter()
    audit = BoundProcess(submission(cluster, *words), environment, folder / "audit.log")
    code = audit.exit_code(within_s=_HOURS * 3600)
    seconds = time.perf_counter() - start
    assert code == 0, audit.words()[-4000:]
    [found] = DeltaTable(f"{folder}/warehouse/audits").to_pyarrow_table().to_pylist()
    planted = [of["faults"][name] for name in ("lost", "replay", "untraced")]
    assert [found[kind] for kind in FAULT_KINDS] == planted, found
    return seconds


def stages(events: Path) -> list[StageTasks]:
    """The stages of the one application that wrote its events there."""
    seconds: dict[int, list[float]] = defaultdict(list)
    [log] = [file for file in events.iterdir() if not file.name.startswith(".")]
    with log.open() as lines:
        for event in map(json.loads, lines):
            if event["Event"] == "SparkListenerTaskEnd":
                task = event["Task Info"]
                spent = (task["Finish Time"] - task["Launch Time"]) / 1000
                seconds[event["Stage ID"]].append(spent)
    return [StageTasks(stage, tuple(of)) for stage, of in sorted(seconds.items())]


def _table(found: list[StageTasks], cores: int, *, seconds: float) -> Table:
    work = sum(sum(stage.seconds) for stage in found)
    idle = 1 - work / (cores * seconds)
    title = f"{cores} core(s): {seconds:.0f} s, of which the cores were idle {idle:.0%}"
    table = Table(title=title)
    for name in ("stage", "tasks", "all s", "median s", "longest s", "longest ÷ median"):
        table.add_column(name)
    for stage in sorted(found, key=lambda one: -sum(one.seconds))[:STAGES]:
        of = stage.seconds
        figures = (f"{n:.1f}" for n in (sum(of), statistics.median(of), max(of), stage.skew))
        table.add_row(str(stage.stage), str(len(of)), *figures)
    return table


if __name__ == "__main__":
    main(*(sys.argv[1:] or ["3e7"]))
