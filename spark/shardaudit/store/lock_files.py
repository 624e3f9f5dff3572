"""Where the lock files of a warehouse lie: a local folder or S3, with the same four verbs."""

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from shardaudit.adapters.aws.s3 import bucket_and_prefix, s3_client, s3_error
from shardaudit.model.config.settings import Settings
from shardaudit.model.errors import FinalError

if TYPE_CHECKING:  # the stubs are installed for development only
    from mypy_boto3_s3 import S3Client

FOLDER = "_claims"
# The lock on shards, positions, notifications, holes, plan_requests: no other run writes them, but
# audits, which add their own rows to notifications.
WATCH = "watch"
# How long another run is waited for: longer than what it holds the lock for lasts.
A_WATCH = timedelta(minutes=5)
AN_AUDIT = timedelta(hours=1)  # of a large window
_FILE = re.compile(r"(\d{12})\.json$")
# 412: the key exists. 409: somebody else is writing it at this moment (S3 API, PutObject).
_EXISTS = {"PreconditionFailed", "ConditionalRequestConflict", "412", "409"}


class WarehouseAccessError(FinalError, PermissionError):
    """The warehouse's folder cannot be used."""


class LockFiles(Protocol):
    """Numbered files in `folder` of a warehouse. Only `create` decides who wins."""

    folder: str

    def generations(self) -> list[int]:
        """The numbers that exist, ascending."""

    def read(self, generation: int) -> str | None:
        """The text, None when the file is gone."""

    def create(self, generation: int, text: str) -> bool:
        """Writes the file unless it exists; False when it does."""

    def rewrite(self, generation: int, text: str) -> None:
        """Writes the file, whatever is there."""

    def delete(self, generation: int) -> None:
        """Removes the file, if it is there."""


def lock_files_of(settings: Settings, *, name: str | None) -> LockFiles:
    """The store of the warehouse's lock, or of a named one beside it."""
    folder = FOLDER if name is None else f"{FOLDER}/{name}"
    if settings.warehouse.startswith("s3a://"):
        return S3LockFiles(s3_client(settings.aws), settings.warehouse, folder)
    return LocalLockFiles(Path(settings.warehouse), folder)


class LocalLockFiles:
    """Lock files in a folder. A hard link appears with its whole text, or not at all."""

    def __init__(self, warehouse: Path, folder: str) -> None:
        self.folder, self._folder = folder, warehouse / folder

    def generations(self) -> list[int]:
        """The numbers that exist, ascending."""
        if not self._folder.is_dir():
            return []
        found = (_FILE.fullmatch(path.name) for path in self._folder.iterdir())
        return sorted(int(match[1]) for match in found if match)

    def read(self, generation: int) -> str | None:
        """The text, None when the file is gone."""
        try:
            return self._file(generation).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def create(self, generation: int, text: str) -> bool:
        """Writes the file unless it exists; False when it does."""
        with self._write_draft(text) as draft:
            try:
                self._file(generation).hardlink_to(draft)
            except FileExistsError:
                return False
        return True

    def rewrite(self, generation: int, text: str) -> None:
        """Writes the file, whatever is there."""
        with self._write_draft(text) as draft:
            draft.replace(self._file(generation))

    def delete(self, generation: int) -> None:
        """Removes the file, if it is there."""
        self._file(generation).unlink(missing_ok=True)

    def _file(self, generation: int) -> Path:
        return self._folder / f"{generation:012}.json"

    @contextmanager
    def _write_draft(self, text: str) -> Iterator[Path]:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self._folder, prefix=".draft-")
        except OSError as error:
            raise WarehouseAccessError(f"cannot write {self._folder}: {error.strerror}") from error
        draft = Path(name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            yield draft
        finally:
            draft.unlink(missing_ok=True)


class S3LockFiles:
    """Lock files in a bucket that knows conditional writes (`If-None-Match: *`)."""

    def __init__(self, client: "S3Client", warehouse: str, folder: str) -> None:
        self.folder, self._client, self._warehouse = folder, client, warehouse
        self._bucket, prefix = bucket_and_prefix(warehouse)
        self._prefix = f"{prefix}{folder}/"

    def generations(self) -> list[int]:
        """The numbers that exist, ascending."""
        with self._translated():
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket, Prefix=self._prefix
            )
            keys = [item["Key"] for page in pages for item in page.get("Contents", [])]
        found = (_FILE.fullmatch(key.removeprefix(self._prefix)) for key in keys)
        return sorted(int(match[1]) for match in found if match)

    def read(self, generation: int) -> str | None:
        """The text, None when the file is gone."""
        with self._translated():
            try:
                answer = self._client.get_object(Bucket=self._bucket, Key=self._key(generation))
            except self._client.exceptions.NoSuchKey:
                return None
            return answer["Body"].read().decode()

    def create(self, generation: int, text: str) -> bool:
        """Writes the file unless it exists; False when it does."""
        with self._translated():
            try:
                self._client.put_object(
                    Bucket=self._bucket,
                    Key=self._key(generation),
                    Body=text.encode(),
                    IfNoneMatch="*",
                )
            except ClientError as error:
                if error.response.get("Error", {}).get("Code") in _EXISTS:
                    return False
                raise
        return True

    def rewrite(self, generation: int, text: str) -> None:
        """Writes the file, whatever is there."""
        with self._translated():
            self._client.put_object(
                Bucket=self._bucket, Key=self._key(generation), Body=text.encode()
            )

    def delete(self, generation: int) -> None:
        """Removes the file, if it is there."""
        with self._translated():
            self._client.delete_object(Bucket=self._bucket, Key=self._key(generation))

    def _key(self, generation: int) -> str:
        return f"{self._prefix}{generation:012}.json"

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (BotoCoreError, ClientError) as error:
            raise s3_error(self._warehouse, error) from error
