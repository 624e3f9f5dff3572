"""A standalone cluster of Spark on this machine: a master and workers, each a process of its own.

Nothing of ours is theirs: their environment is empty but for what Spark needs, and their Python has
the packages of `[spark]` without `shardaudit`.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyspark

import shardaudit
from shardaudit.adapters.engine.apache_spark import JARS
from tests.cluster.bound_process import BoundProcess

SPARK = Path(pyspark.__file__).parent
_CLASS = [str(SPARK / "bin" / "spark-class")]
JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_HERE = ["--host", "127.0.0.1", "--webui-port", "0"]
# Processor time by Linux' control groups (version 1), which root may make.
_GROUPS, _PERIOD_US = Path("/sys/fs/cgroup/cpu"), 100_000
_PAUSE_S = 0.1
_IN_GROUP = ["/bin/sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"']


@dataclass
class Cluster:
    """A master at `url` and workers of one core each, by the ports of their pages."""

    url: str
    folder: Path
    environment: dict[str, str]
    python: Path
    memory: str = "1g"  # of each worker
    core_share: float | None = None
    workers: dict[str, BoundProcess] = field(default_factory=dict)
    started: list[BoundProcess] = field(default_factory=list)  # all that ever were
    groups: list[Path] = field(default_factory=list)

    def add_workers(self, count: int) -> None:
        """So many more, which the master knows."""
        for worker in [self._worker() for _ in range(count)]:
            port = worker.said(r"WorkerWebUI to \S+, and started at http://\S+:(\d+)")
            self.workers[port] = worker
            worker.said(r"(Successfully registered with master)")

    def kill_worker(self, port: str) -> None:
        """SIGKILL for a worker and its executors; another one takes its place."""
        self.workers.pop(port).kill()
        self.add_workers(1)

    def _worker(self) -> BoundProcess:
        place = self.folder / f"worker-{len(self.started)}"
        place.mkdir()
        sizes = ["--cores", "1", "--memory", self.memory, "--work-dir", str(place / "work")]
        own = self.environment | {"SPARK_LOCAL_DIRS": str(place / "scratch")}
        words = [*self._in_group(), *_CLASS, _WORKER, *_HERE, *sizes, self.url]
        self.started.append(BoundProcess(words, own, place / "log"))
        return self.started[-1]

    def _in_group(self) -> list[str]:
        """What stands before a worker's command, so that it has its share of a core and no more."""
        if self.core_share is None:
            return []
        group = _GROUPS / f"shardaudit-{os.getpid()}-{len(self.groups)}"
        group.mkdir()
        self.groups.append(group)
        (group / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
        (group / "cpu.cfs_quota_us").write_text(str(round(self.core_share * _PERIOD_US)))
        return [*_IN_GROUP, str(group)]

    def end(self) -> None:
        """Ends all that runs."""
        for one in self.started:
            one.kill()
        for group in self.groups:
            while (group / "cgroup.procs").read_text():  # until the last has gone
                time.sleep(_PAUSE_S)
            group.rmdir()


def python_without_us(folder: Path) -> Path:
    """The programs of a virtual environment with all packages of this one but `shardaudit`."""
    make = [sys.executable, "-m", "venv", "--without-pip", str(folder)]
    subprocess.run(make, check=True)
    [packages] = folder.glob("lib/python*/site-packages")
    for one in Path(sysconfig.get_path("purelib")).iterdir():
        if "shardaudit" not in one.name:
            (packages / one.name).symlink_to(one)
    return folder / "bin"


@contextmanager
def standalone_cluster(
    folder: Path,
    *,
    workers: int,
    memory: str = "1g",
    core_share: float | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Cluster]:
    """A master and so many workers, on free ports of 127.0.0.1; they end with the block.

    Input:
        memory: of each worker.
        core_share: the processor time of each worker and its executors, where it is not all that
            they can get; 0.5 is half a core.
        environment: what the machines of a cluster have besides, as their credentials.
    """
    folder.mkdir()
    java, programs = shutil.which("java"), python_without_us(folder / "python")
    assert java is not None
    clean = {
        "PATH": f"{programs}:{Path(java).parent}:/usr/bin:/bin",
        "HOME": str(folder),
        "SPARK_HOME": str(SPARK),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": JVM,
        # A door that nobody needs, on a port that is the same for all masters.
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
        **(environment or {}),
    }
    master = BoundProcess([*_CLASS, _MASTER, *_HERE, "--port", "0"], clean, folder / "log")
    cluster = Cluster("", folder, clean, programs / "python3", memory, core_share)
    try:
        cluster.url = master.said(r"Starting Spark master at (spark://\S+)")
        cluster.add_workers(workers)
        yield cluster
    finally:
        cluster.end()
        master.kill()


def submission(cluster: Cluster, *words: str) -> list[str]:
    """The command line that gives a cluster a command of ours, with the driver in this machine.

    As `airflow/launch.py` has Airflow's provider say it.
    """
    line = ["--master", cluster.url, "--conf", "spark.driver.memory=2500m"]
    line += ["--conf", "spark.log.level=WARN", "--jars", ",".join(map(str, JARS.glob("*.jar")))]
    main = Path(shardaudit.__file__).parent / "cli" / "main.py"
    return [str(SPARK / "bin" / "spark-submit"), *line, str(main), *words]


def busy_worker(driver_page: str) -> str:
    """The worker, by the port of its page, whose executor has a task just now."""
    while True:
        with suppress(OSError):  # the page is not up yet
            [app] = _answer(f"{driver_page}/api/v1/applications")
            for one in _answer(f"{driver_page}/api/v1/applications/{app['id']}/executors"):
                if one["id"] != "driver" and one["activeTasks"]:
                    return str(urlsplit(one["executorLogs"]["stdout"]).port)


def _answer(url: str) -> Any:  # Any: JSON
    with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310 - of this machine
        return json.load(answer)
