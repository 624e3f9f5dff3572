"""Traces, sink and warehouse on S3, on the embedded engine: killed, and read by everybody else."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from shardaudit.adapters.engine.door import Engine
from shardaudit.simulate.s3proxy import REGION, s3_proxy
from tests.engines.commands import AS_OF, STREAM, WINDOW, reaching, run
from tests.engines.process import EngineProcess

PLANTED = {"missing": 20, "duplicated": 10, "untraced": 5}
KILLS = 6
CONFIG = """
warehouse = "s3a://lake/warehouse"
engine = "embedded"
embedded = {{ shared_machine = true }}
aws = {{ region = "{region}", endpoints = {{ s3 = "{url}" }} }}

[streams.events]
stream_name = "events"
retention = "24h"
traces = {{ path = "s3a://lake/events/traces", format = "parquet" }}
sink = {{ path = "s3a://lake/events/sink" }}
"""


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket, which is a folder of this machine too, and how commands reach it."""

    folder: Path
    config: Path
    environment: dict[str, str]

    def words(self, *words: str) -> list[str]:
        return ["--config", str(self.config), *words]

    def table(self, name: str) -> Path:
        return self.folder / "warehouse" / name


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[Bucket]:
    folder = tmp_path / "s3" / "lake"
    folder.mkdir(parents=True)
    faults = ["--fault=lost=20", "--fault=replay=10", "--fault=untraced=5"]
    made = ["simulate", "files", "--out", str(folder / "events"), "--messages=20000", *faults]
    assert run(made, dict(os.environ)).returncode == 0
    with s3_proxy(tmp_path / "s3") as endpoint:
        config = tmp_path / "shardaudit.toml"
        config.write_text(CONFIG.format(region=REGION, url=endpoint.url))
        yield Bucket(folder, config, reaching(endpoint) | {"SHARDAUDIT_ENGINE": "embedded"})


def audited(bucket: Bucket) -> dict[str, int]:
    """What an audit counts."""
    words = bucket.words("audit", *STREAM, *WINDOW, *AS_OF, "--json")
    done = run(words, bucket.environment)
    assert done.returncode == 0, done.stderr[-2000:]
    counts = json.loads(done.stdout)["counts"]
    return {name: counts[name] for name in PLANTED}


def killed_audit(bucket: Bucket, *, after_s: float) -> None:
    words = bucket.words("audit", *STREAM, *WINDOW, *AS_OF)
    process = subprocess.Popen(
        [sys.executable, "-m", "shardaudit.cli.main", *words],
        env=bucket.environment,
        stderr=subprocess.DEVNULL,
    )
    try:
        process.wait(timeout=after_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()


def rows_by_apache_spark(engine: Engine, *, path: str) -> int:
    return engine.session.read.format("delta").load(path).count()


def test_planted_is_found_after_kills_and_everybody_reads_the_tables(bucket: Bucket) -> None:
    for kill in range(KILLS):
        killed_audit(bucket, after_s=0.8 + 0.4 * kill)
    assert audited(bucket) == PLANTED
    tables = ("fingerprints", "cells", "findings", "audits")
    with EngineProcess("spark") as apache:
        for name in tables:
            path = str(bucket.table(name))
            table = DeltaTable(path)
            files = "', '".join(table.file_uris())
            query = f"select count(*) from read_parquet(['{files}'])"  # noqa: S608 - our own
            [(in_duckdb,)] = duckdb.connect().execute(query).fetchall()
            in_spark = apache.call(rows_by_apache_spark, path=path)
            assert table.to_pyarrow_table().num_rows == in_duckdb == in_spark > 0, name
    kept = bucket.table("kept_files").rglob("*.parquet")
    traces = sum(pq.read_metadata(file).num_rows for file in kept)
    stored = str(bucket.table("traces"))
    traces += DeltaTable(stored).count() if DeltaTable.is_deltatable(stored) else 0
    assert traces == 20000 - PLANTED["untraced"]
