"""Ingest and audit on a cluster of Spark, with everything on S3: the tables of one machine."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from shardaudit.adapters.engine.apache_spark import JARS
from shardaudit.model.exit_code import ExitCode
from shardaudit.simulate.s3proxy import S3Endpoint, free_port, s3_proxy
from tests.cluster.bound_process import BoundProcess
from tests.cluster.lake_on_s3 import BUCKET, S3Lake, submitted
from tests.cluster.standalone import Cluster, busy_worker, standalone_cluster
from tests.engines.commands import AS_OF, STREAM, WINDOW, run
from tests.engines.contents import OF_THE_RUN, TABLES, contents

ONE_MACHINE = "one-machine"
AUDIT = ["audit", *STREAM, *WINDOW, *AS_OF]
# By the clock of the run that read them.
CLOCK = {"ingested_at", "quarantined_at", "planned_at", "started_at", "updated_at"}


@dataclass(frozen=True, slots=True)
class Site:
    """A cluster, and streams in a bucket by the format of their traces."""

    folder: Path
    s3: S3Endpoint
    cluster: Cluster
    lakes: dict[str, S3Lake] = field(default_factory=dict)

    def lake(self, kind: str) -> S3Lake:
        """A stream with the usual faults; the same for all tests."""
        if kind not in self.lakes:
            self.lakes[kind] = S3Lake(self.folder, f"in-{kind}", kind, self.s3)
            self.lakes[kind].make("--messages=20000", "--shards=6")
        return self.lakes[kind]

    def audit(self, kind: str, warehouse: str, **spark: str) -> BoundProcess:
        """An audit that begins, of what nobody ingested yet."""
        lake = self.lake(kind)
        keys = {name.replace("_", "."): value for name, value in spark.items()}
        return submitted(self.cluster, lake, lake.configured(warehouse, spark=keys), *AUDIT)

    def check(self, kind: str, warehouse: str) -> None:
        """Holds every table of a warehouse against those of one machine, and that it is free."""
        lake = self.lake(kind)
        if not lake.warehouse(ONE_MACHINE).exists():
            words = ["--engine", "embedded", "--config", str(lake.configured(ONE_MACHINE)), *AUDIT]
            done = run(words, lake.environment())
            assert done.returncode == ExitCode.DONE, done.stderr[-2000:]
        for table in TABLES:
            found, wanted = (
                contents(lake.warehouse(name), table, without=OF_THE_RUN | CLOCK)
                for name in (warehouse, ONE_MACHINE)
            )
            assert found == wanted, table.name
        assert lake.is_free(warehouse)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    (folder / "s3" / BUCKET).mkdir(parents=True)
    with s3_proxy(folder / "s3") as s3:
        own = s3.environment()
        with standalone_cluster(folder / "cluster", workers=3, environment=own) as cluster:
            yield Site(folder, s3, cluster)


def test_python_of_the_workers_has_what_spark_needs_and_nothing_of_ours(site: Site) -> None:
    asks = "import orjson, pyarrow, pyspark, zstandard; import shardaudit"
    said = subprocess.run(
        [site.cluster.python, "-c", asks],
        env=site.cluster.environment,
        capture_output=True,
        text=True,
        check=False,
    ).stderr
    assert said.endswith("No module named 'shardaudit'\n")


def test_tables_are_those_of_one_machine_when_airflow_submits(site: Site, tmp_path: Path) -> None:
    lake, master = site.lake("json"), urlsplit(site.cluster.url)
    connection = {"conn_type": "spark", "host": f"spark://{master.hostname}", "port": master.port}
    environment = lake.environment() | {
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(connection),
        "SHARDAUDIT_CONFIG": str(lake.configured("airflow")),
        "SHARDAUDIT_JARS": str(JARS),
    }
    words = [sys.executable, "-m", "tests.cluster.airflow_task", "audit"]
    task = BoundProcess(words, environment, tmp_path / "audit")
    assert task.exit_code() == 0, task.words()[-4000:]
    site.check("json", "airflow")
    logs = [worker.glob("work/app-*/*/stderr") for worker in site.cluster.folder.glob("worker-*")]
    assert [any(mine) for mine in logs] == [True] * 3


@pytest.mark.drill
def test_two_streams_are_audited_at_the_same_time(site: Site) -> None:
    audits = {
        "json": site.audit("json", "beside", spark_cores_max="2"),
        "parquet": site.audit("parquet", "beside", spark_cores_max="1"),
    }
    for kind, audit in audits.items():
        assert audit.exit_code() == ExitCode.DONE, audit.words()[-4000:]
        site.check(kind, "beside")


@pytest.mark.drill
@pytest.mark.parametrize(
    ("kind", "stage"),
    [
        ("json", "ingest traces"),
        ("json", "ingest sink"),
        ("json", "compare"),
        ("parquet", "compare"),
        ("parquet", "classify"),
        ("parquet", "publish"),
    ],
)
def test_tables_are_the_same_when_a_worker_was_killed_in_the_middle(
    site: Site, kind: str, stage: str
) -> None:
    warehouse, port = f"killed-in-{stage.replace(' ', '-')}", str(free_port())
    audit = site.audit(kind, warehouse, spark_ui_port=port)
    audit.said(rf"\d/\d+ ({stage})")
    site.cluster.kill_worker(busy_worker(f"http://127.0.0.1:{port}"))
    code = audit.exit_code()
    assert code in {ExitCode.DONE, ExitCode.RETRY}, audit.words()[-4000:]
    if code == ExitCode.RETRY:
        again = site.audit(kind, warehouse)
        assert again.exit_code() == ExitCode.DONE, again.words()[-4000:]
    site.check(kind, warehouse)
