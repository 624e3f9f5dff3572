"""Planted streams in a bucket, and commands that are submitted to a cluster."""

import gzip
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import boto3
import pyarrow.parquet as pq

from shardaudit.simulate.s3proxy import REGION, S3Endpoint
from tests.cluster.bound_process import BoundProcess
from tests.cluster.standalone import JVM, Cluster, submission
from tests.conftest import INTERPRETED, TUNING
from tests.engines.commands import reaching, run

BUCKET = "lake"
_LOGS = 8
_ODD_LINES = '{"message_id": "no time", "shard_id": "shardId-000000000000"}\n{broken\n'
# The sizes of a small cluster. The master is the submitter's.
SMALL = {name: of for name, of in (TUNING | INTERPRETED).items() if name != "spark.master"} | {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": f"{JVM} -XX:ReservedCodeCacheSize=240m",
    "spark.executor.memory": "600m",
    "spark.executor.extraJavaOptions": JVM,
    "spark.sql.shuffle.partitions": "3",
    "spark.databricks.delta.snapshotPartitions": "2",
}
_CONFIG = """
warehouse = "s3a://{bucket}/{name}/{warehouse}"
embedded = {{ shared_machine = true }}

[aws]
region = "{region}"
endpoints = {{ s3 = "{url}", kinesis = "http://127.0.0.1:9" }}

[spark]
{spark}

[streams.events]
stream_name = "events"
retention = "24h"
traces = {{ path = "s3a://{bucket}/{name}/traces", format = "{format}" }}
sink = {{ path = "s3a://{bucket}/{name}/sink" }}
"""


@dataclass(frozen=True, slots=True)
class S3Lake:
    """Traces and a sink in the bucket, which is a folder of this machine, too.

    format: of the traces, `json` or `parquet`.
    """

    folder: Path
    name: str
    format: str
    endpoint: S3Endpoint

    def make(self, *words: str) -> None:
        """Simulates it, and brings it to the bucket through S3, as Spark wants it."""
        out = self.folder / "made" / self.name
        done = run(["simulate", "files", "--out", str(out), *words], dict(os.environ))
        assert done.returncode == 0, done.stderr[-2000:]
        client = boto3.client(
            "s3",
            endpoint_url=self.endpoint.url,
            region_name=REGION,
            aws_access_key_id=self.endpoint.credentials.access_key,
            aws_secret_access_key=self.endpoint.credentials.secret_key,
        )
        with closing(client):
            for path, content in self._files(out):
                client.put_object(Bucket=BUCKET, Key=f"{self.name}/{path}", Body=content)

    def _files(self, out: Path) -> Iterator[tuple[str, bytes]]:
        for file in sorted((out / "sink").rglob("*.*")):
            yield str(file.relative_to(out)), file.read_bytes()
        traces = sorted((out / "traces").iterdir())
        if self.format == "parquet":
            yield from ((f"traces/{file.name}", file.read_bytes()) for file in traces)
            return
        rows = [row for file in traces for row in pq.read_table(file).to_pylist()]
        for n in range(_LOGS):
            lines = [json.dumps(row, default=lambda at: at.isoformat()) for row in rows[n::_LOGS]]
            text = "\n".join((*lines, _ODD_LINES))
            yield f"traces/{n}.jsonl.gz", gzip.compress(text.encode(), 1)

    def configured(self, warehouse: str, *, spark: Mapping[str, str] | None = None) -> Path:
        """The configuration of a warehouse of that name; `spark`: what it says besides."""
        keys = SMALL | dict(spark or {})
        config = self.folder / f"{self.name}-{warehouse}.toml"
        named = {"bucket": BUCKET, "name": self.name, "warehouse": warehouse, "region": REGION}
        written = "\n".join(f'"{key}" = "{value}"' for key, value in keys.items())
        of = {"url": self.endpoint.url, "format": self.format, "spark": written}
        config.write_text(_CONFIG.format(**named, **of))
        return config

    def warehouse(self, name: str) -> Path:
        """The folder of that warehouse."""
        return self.folder / "s3" / BUCKET / self.name / name

    def is_free(self, name: str) -> bool:
        """Whether its last run gave that warehouse back."""
        newest = max((self.warehouse(name) / "_claims").glob("*.json"))
        return bool(json.loads(newest.read_text())["released"])

    def environment(self) -> dict[str, str]:
        """Of the machine that submits; its JVM is not to look for a name of this machine."""
        found = reaching(self.endpoint) | {"SPARK_LOCAL_IP": "127.0.0.1"}
        return {name: of for name, of in found.items() if not name.startswith("SHARDAUDIT_")}


def submitted(cluster: Cluster, lake: S3Lake, config: Path, *words: str) -> BoundProcess:
    """A command at work on a cluster."""
    number = len(list(config.parent.glob("*.log")))
    return BoundProcess(
        submission(cluster, "--config", str(config), *words),
        lake.environment(),
        config.with_suffix(f".{number}.log"),
    )
