"""Small looks at the outside for the doctor: they read little, and leave nothing behind."""

import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError

from shardaudit.adapters.aws.s3 import bucket_and_prefix, s3_client, s3_error
from shardaudit.adapters.files.files import s3_access
from shardaudit.adapters.lake.delta_schema import TableFeatureError
from shardaudit.adapters.lake.delta_sink_reader import DeltaSink
from shardaudit.model.config.choices import SinkFormat
from shardaudit.model.config.parts import Aws, Sink
from shardaudit.model.config.settings import Settings
from shardaudit.model.errors import ConfigError, FinalError
from shardaudit.store.lock_files import FOLDER

SAMPLE = 1000  # listing more would only make a large prefix slow


class ProbeError(FinalError, OSError):
    """A place does not do what is needed of it."""


def probe_warehouse(settings: Settings) -> None:
    """Writes a small object and removes it; on S3 also sees that a conditional write is refused.

    Raises:
        ProbeError: it cannot be written, or two runs could take it at the same time.
    """
    if not settings.warehouse.startswith("s3a://"):
        _probe_folder(Path(settings.warehouse))
        return
    bucket, prefix = bucket_and_prefix(settings.warehouse)
    key, client = f"{prefix}{FOLDER}/.doctor-{uuid.uuid4()}", s3_client(settings.aws)
    with _s3_errors(settings.warehouse):
        client.put_object(Bucket=bucket, Key=key, Body=b"", IfNoneMatch="*")
        try:
            client.put_object(Bucket=bucket, Key=key, Body=b"", IfNoneMatch="*")
        except ClientError:
            return
        finally:
            client.delete_object(Bucket=bucket, Key=key)
    raise ProbeError("this S3 ignores If-None-Match: it cannot keep two runs apart")


def count_files(aws: Aws, place: str) -> int:
    """How many files lie under a place, at most `SAMPLE`.

    Raises:
        ProbeError: a local folder that is not there.
    """
    if not place.startswith("s3a://"):
        folder = Path(place)
        if not folder.is_dir():
            raise ProbeError(f"there is no folder {place}")
        return sum(1 for _ in islice(filter(Path.is_file, folder.rglob("*")), SAMPLE))
    bucket, prefix = bucket_and_prefix(place)
    with _s3_errors(place):
        found = s3_client(aws).list_objects_v2(Bucket=bucket, Prefix=prefix, MaxKeys=SAMPLE)
    return found["KeyCount"]


def sink_columns(aws: Aws, sink: Sink) -> list[str] | None:
    """The columns of a Delta sink as its newest version has them; None for Parquet files.

    Raises:
        ProbeError: there is no table.
        TableFeatureError: it asks something of its readers that shardaudit cannot do.
        StorageError: it did not answer, or its log is broken.
    """
    if sink.format is not SinkFormat.DELTA:
        return None
    try:
        return list(DeltaSink(sink.path, s3_access(aws)).at().columns)
    except TableFeatureError:
        raise
    except ConfigError as error:
        raise ProbeError(f"there is no Delta table {sink.path}") from error


def _probe_folder(folder: Path) -> None:
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        raise ProbeError(f"{nearest} is not a folder that this user may write")
    try:
        with tempfile.TemporaryFile(dir=nearest) as file:
            file.write(b"shardaudit")
    except OSError as error:
        raise ProbeError(str(error)) from error


@contextmanager
def _s3_errors(place: str) -> Iterator[None]:
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise s3_error(place, error) from error
