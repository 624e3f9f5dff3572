"""Small looks at the outside for the doctor: they read little, and leave nothing behind."""

import os
import re
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from shardaudit.adapters.claim_store import FOLDER
from shardaudit.adapters.s3 import bucket_and_prefix, delta_rs_options, s3_client, s3_error
from shardaudit.model.choices import SinkFormat
from shardaudit.model.config import Aws, Settings, Sink
from shardaudit.model.errors import FinalError

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # delta-rs paints its errors
SAMPLE = 1000  # listing more would only make a large prefix slow


class ProbeError(FinalError, OSError):
    """A place does not do what is needed of it."""


def probe_warehouse(settings: Settings) -> None:
    """Writes a small object and removes it; on S3 also sees that a conditional write is refused.

    Raises:
        ProbeError: it cannot be written, or two runs could claim it at the same time.
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
        return sum(1 for _ in islice(folder.rglob("*"), SAMPLE))
    bucket, prefix = bucket_and_prefix(place)
    with _s3_errors(place):
        found = s3_client(aws).list_objects_v2(Bucket=bucket, Prefix=prefix, MaxKeys=SAMPLE)
    return found["KeyCount"]


def sink_columns(aws: Aws, sink: Sink) -> list[str] | None:
    """The columns of a Delta sink as its newest version has them; None for Parquet files.

    Raises:
        ProbeError: there is no table, or it cannot be read.
    """
    if sink.format is not SinkFormat.DELTA:
        return None
    address = sink.path.replace("s3a://", "s3://", 1)
    try:
        schema = DeltaTable(address, storage_options=delta_rs_options(aws)).schema()
    except TableNotFoundError as error:
        raise ProbeError(f"there is no Delta table {sink.path}") from error
    except (OSError, DeltaError) as error:
        said = " ".join(_COLOURS.sub("", str(error)).split())
        raise ProbeError(f"{sink.path}: {said[:300]}") from error
    return [field.name for field in schema.fields]


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
