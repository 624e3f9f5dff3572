"""A standalone cluster of Spark on this machine: a master and workers, each a process of its own.

Nothing of ours is theirs: their environment is empty but for what Spark needs, and their Python has
the packages of `[spark]` without `shardaudit`.
"""

import json
import shutil
import subprocess
import sys
import sysconfig
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
JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_HERE = ["--host", "127.0.0.1", "--webui-port", "0"]


@dataclass
class Cluster:
    """A master at `url` and workers of one core each, by the ports of their pages."""

    url: str
    folder: Path
    environment: dict[str, str]
    python: Path
    memory: str = "1g"  # of each worker
    workers: dict[str, BoundProcess] = field(default_factory=dict)
    started: list[BoundProcess] = field(default_factory=list)  # all that ever were

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
        self.started.append(_daemon([_WORKER, *_HERE, *sizes, self.url], own, place / "log"))
        return self.started[-1]


def _daemon(words: list[str], environment: Mapping[str, str], log: Path) -> BoundProcess:
    return BoundProcess([str(SPARK / "bin" / "spark-class"), *words], environment, log)


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
    environment: Mapping[str, str] | None = None,
) -> Iterator[Cluster]:
    """A master and so many workers, on free ports of 127.0.0.1; they end with the block.

    Input:
        memory: of each worker.
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
    master = _daemon([_MASTER, *_HERE, "--port", "0"], clean, folder / "log")
    cluster = Cluster("", folder, clean, programs / "python3", memory)
    try:
        cluster.url = master.said(r"Starting Spark master at (spark://\S+)")
        cluster.add_workers(workers)
        yield cluster
    finally:
        for one in (*cluster.started, master):
            one.kill()


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
