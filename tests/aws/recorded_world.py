"""Stand-ins of Kinesis, S3 and DynamoDB, and a stream in them: what each actor asks of AWS.

Each actor has proxies of its own before the stand-ins, whose addresses stand in its configuration:
so a call is known by who made it, whichever library made it.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pyarrow.parquet as pq
from botocore.config import Config
from deltalake import DeltaTable

from shardaudit.simulate.job import Endpoints, simulate_stream
from shardaudit.simulate.output import BUCKET
from shardaudit.simulate.s3proxy import REGION, S3Endpoint, s3_proxy
from shardaudit.simulate.stand_in_process import kinesis_stand_in
from tests.conftest import SPARK_KEYS
from tests.lease_table import lease_table
from tests.older_warehouses import unpacked
from tests.recorded_calls import Call, recorded_calls
from tests.scenarios import scenario

WAREHOUSE, OLDER = "shardaudit", "older"
AGAIN = "again"  # the stream of `republish`
DELTA = 'path = "s3a://lake/sink"'
PARQUET = 'path = "s3a://lake/files"\nformat = "parquet"'
CONFIG = """
warehouse = "s3a://tables/{warehouse}"
embedded = {{ shared_machine = true }}

[aws]
region = "{region}"
endpoints = {{ kinesis = "{kinesis}", s3 = "{s3}", dynamodb = "{dynamodb}" }}

[spark]
{spark}

[streams.events]
stream_name = "events"
traces = {{ path = "s3a://logs/traces" }}
positions = {{ source = "kcl", table = "consumer" }}

[streams.events.sink]
{sink}
exclusive = true
derived = {{ day = "date_format(sent_at, 'yyyy-MM-dd')" }}

[streams.events.backfill]
fields = {{ payload = "$" }}
read_share = 1.0
{backfill}
"""


@dataclass
class World:
    """A simulated stream, its logs, its sink and our tables, each in a bucket of its own."""

    folder: Path
    urls: dict[str, str]  # by service
    s3: S3Endpoint
    calls: dict[str, list[Call]] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        """That of a command: the credentials, and nothing else about AWS."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "SHARDAUDIT_"))}
        return kept | self.s3.environment()

    @contextmanager
    def recorded(
        self, actor: str, *, warehouse: str = WAREHOUSE, backfill: str = "", sink: str = DELTA
    ) -> Iterator[tuple[Path, dict[str, str]]]:
        """A configuration, and its addresses, by which the calls of an actor are kept."""
        with ExitStack() as stack:
            urls = {}
            for name, url in self.urls.items():
                calls, urls[name] = stack.enter_context(recorded_calls(url))
                stack.callback(self.calls.setdefault(actor, []).extend, calls)
            file = self.folder / f"{warehouse}.toml"
            own = {"warehouse": warehouse, "backfill": backfill, "sink": sink}
            file.write_text(CONFIG.format(region=REGION, spark=SPARK_KEYS, **own, **urls))
            yield file, urls

    @contextmanager
    def client(self, service: str, url: str) -> Iterator[Any]:  # Any: made at run time
        """boto3's client of a service at an address."""
        client = boto3.client(  # type: ignore[call-overload] # a name that is not known here
            service,
            endpoint_url=url,
            region_name=REGION,
            aws_access_key_id=self.s3.credentials.access_key,
            aws_secret_access_key=self.s3.credentials.secret_key,
            config=Config(s3={"addressing_style": "path"}),
        )
        yield client
        client.close()


@contextmanager
def world(folder: Path) -> Iterator[World]:
    """The stand-ins, and a stream of the last hours in which messages are lost and doubled.

    Its files came through S3: Apache Spark cannot read what was laid into the server's folder.
    """
    began = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=4)
    planted = scenario(
        start=began, messages=2000, shards=2, hours=3, faults={"lost": 6, "replay": 5}
    )
    with kinesis_stand_in() as kinesis, lease_table() as leases:
        simulate_stream(planted, folder / "simulated", endpoints=Endpoints(kinesis, s3=True))
        for bucket, name in (("logs", "traces"), ("lake", "sink")):
            (folder / "s3" / bucket).mkdir(parents=True)
            made = folder / "simulated" / "s3" / BUCKET / name
            shutil.move(made, folder / "s3" / bucket / name)
        (folder / "s3" / "requests").mkdir()
        older = unpacked(3, folder).parent / "warehouse"
        shutil.copytree(older, folder / "s3" / "tables" / OLDER)
        with s3_proxy(folder / "s3") as s3:
            urls = {"kinesis": kinesis, "s3": s3.url, "dynamodb": leases}
            yield World(folder, urls, s3)


def write_parquet_sink(made: World) -> None:
    """The sink's rows as a Parquet file, for the mode that appends."""
    rows = DeltaTable(made.folder / "s3" / "lake" / "sink").to_pyarrow_table()
    file = made.folder / "rows.parquet"
    pq.write_table(rows, file)
    with made.client("s3", made.s3.url) as s3:
        s3.put_object(Bucket="lake", Key="files/rows.parquet", Body=file.read_bytes())
