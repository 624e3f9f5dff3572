"""Where trace files go: a folder or S3. A file appears whole, or not at all."""

import importlib
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from shardaudit.adapters.clock import now

_S3 = ("s3://", "s3a://")
_LEFT_S = 3600


class TraceFolder(Protocol):
    """A place for whole files."""

    def write(self, name: str, content: bytes) -> None:
        """Writes a file; one of the same name is the same file.

        Raises:
            Exception: it is not there; a later try may work.
        """


class DiskFolder:
    """A folder on disk, made when it is needed; where it is does not change with the process'."""

    def __init__(self, path: str) -> None:
        self._path = Path(path.removeprefix("file://")).absolute()
        self._is_tidy = False

    def write(self, name: str, content: bytes) -> None:
        """Under a hidden name, which no ingest reads, until all of it is on the disk."""
        self._path.mkdir(parents=True, exist_ok=True)
        if not self._is_tidy:
            self._is_tidy = True
            self._remove_left(whose=_producer(name))
        hidden = self._path / f".{name}.part"
        try:
            with hidden.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            hidden.replace(self._path / name)
        except BaseException:
            with suppress(OSError):
                hidden.unlink()  # if there is no later try, a full disk is no fuller by it
            raise

    def _remove_left(self, *, whose: str) -> None:
        """Deletes the hidden files of a producer that nobody wrote to for an hour: of the killed.

        Who is at work after all, on a disk that stood still, writes his file anew.
        """
        oldest = now().timestamp() - _LEFT_S
        with suppress(OSError):
            for left in self._path.glob(".*.part"):
                if _producer(left.name[1:]) == whose and left.stat().st_mtime < oldest:
                    left.unlink(missing_ok=True)


def _producer(name: str) -> str:
    """Who wrote a file, by its name: behind him are session, number and what no other one has."""
    return name.rsplit("-", 3)[0]


class S3Folder:
    """A prefix in a bucket. One request puts a whole object: S3 shows nothing before its end."""

    def __init__(self, place: str, client: Any | None) -> None:  # Any: a client of boto3
        bucket, _, prefix = place.partition("://")[2].partition("/")
        self._bucket, self._prefix = bucket, f"{prefix.rstrip('/')}/" if prefix else ""
        self._client = client
        self._process = os.getpid()
        self._is_own = client is None

    def write(self, name: str, content: bytes) -> None:
        """One PutObject."""
        if self._is_own and (self._client is None or self._process != os.getpid()):
            # A session of its own: those of boto3 are not to be shared by threads, nor a client's
            # connections by processes.
            session = importlib.import_module("boto3.session").Session()
            self._client, self._process = session.client("s3"), os.getpid()
        assert self._client is not None  # noqa: S101 - given, or made above
        try:
            self._client.put_object(Bucket=self._bucket, Key=self._prefix + name, Body=content)
        except Exception as error:
            if self._is_own and not _is_unanswered(error):
                # It keeps the credentials that were in a file or the environment as it was made:
                # those may be over, or there were none yet.
                self._client = None
            raise


def _is_unanswered(error: Exception) -> bool:
    """Whether nobody was there to answer: another client would not be either."""
    known = importlib.import_module("botocore.exceptions")
    return isinstance(error, (known.HTTPClientError, known.ConnectionError))


def trace_folder(place: str, s3: Any | None = None) -> TraceFolder:  # Any: a client of boto3
    """The folder of a path, a `file://` or an `s3://` address.

    Input:
        s3: boto3's client to use there; None: one with the usual chain of credentials.
    """
    return S3Folder(place, s3) if place.startswith(_S3) else DiskFolder(place)
