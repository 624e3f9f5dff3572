"""Where a simulation leaves its files and its sink: a local folder or a bucket."""

from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
from botocore.exceptions import BotoCoreError, ClientError
from deltalake import CommitProperties, WriterProperties, write_deltalake
from deltalake.exceptions import DeltaError

from shardaudit.adapters.aws.s3 import s3_error
from shardaudit.model.errors import FinalError
from shardaudit.simulate.s3proxy import REGION, S3Endpoint

if TYPE_CHECKING:  # the stubs are installed for development only
    from mypy_boto3_s3 import S3Client

BUCKET = "shardaudit-simulation"


class SinkWriteError(FinalError, OSError):
    """The simulated sink could not be written."""


class LocalFolder:
    """Files under a folder of this machine."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def write(self, name: str, content: bytes) -> None:
        """Writes a file."""
        self._root.mkdir(parents=True, exist_ok=True)
        (self._root / name).write_bytes(content)


class BucketFolder:
    """Objects under a prefix of the simulation's bucket."""

    def __init__(self, client: "S3Client", prefix: str) -> None:
        self._client, self._prefix = client, prefix

    def write(self, name: str, content: bytes) -> None:
        """Writes an object."""
        key = f"{self._prefix}/{name}"
        try:
            self._client.put_object(Bucket=BUCKET, Key=key, Body=content)
        except (BotoCoreError, ClientError) as error:
            raise s3_error(f"s3a://{BUCKET}/{key}", error) from error


def simulation_bucket(endpoint: S3Endpoint) -> "S3Client":
    """A client of the embedded S3, where the simulation's bucket is now."""
    client = boto3.client(
        "s3",
        endpoint_url=endpoint.url,
        region_name=REGION,
        aws_access_key_id=endpoint.credentials.access_key,
        aws_secret_access_key=endpoint.credentials.secret_key,
    )
    try:
        client.create_bucket(Bucket=BUCKET)
    except client.exceptions.BucketAlreadyOwnedByYou:
        return client
    except (BotoCoreError, ClientError) as error:
        raise s3_error(f"s3a://{BUCKET}", error) from error
    return client


class SimulatedSink:
    """A Delta table, partitioned by day; each append is a commit."""

    def __init__(self, place: str, storage_options: dict[str, str] | None = None) -> None:
        self._place, self._options = place, storage_options

    def append(self, rows: pa.RecordBatchReader) -> None:
        """Adds rows in one commit."""
        try:
            write_deltalake(
                self._place,
                rows,
                mode="append",
                partition_by=["day"],
                storage_options=self._options,
                writer_properties=WriterProperties(compression="ZSTD", compression_level=1),
                commit_properties=CommitProperties(custom_metadata={"by": "shardaudit simulate"}),
            )
        except (DeltaError, OSError) as error:
            raise SinkWriteError(f"{self._place}: {error}") from error


class ParquetSink:
    """A folder of Parquet files; each append is a file."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._files = folder, 0

    def append(self, rows: pa.RecordBatchReader) -> None:
        """Adds rows in one file."""
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"part-{self._files:05d}.parquet"
        self._files += 1
        with pq.ParquetWriter(path, rows.schema, compression="zstd") as writer:
            for batch in rows:
                writer.write_batch(batch)
