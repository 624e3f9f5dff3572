"""The door to files, local and in S3: listing them and opening them, for driver and workers alike.

`S3Access` and the paths are plain values, so that a Python worker can open what the driver listed.
"""

import logging
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
from pyarrow import fs

from shardaudit.adapters.files.access_refused import (
    AccessRefusedError,
    LastingError,
    MisplacedError,
    is_misplaced,
    is_refused,
    plain_words,
)
from shardaudit.adapters.pulse import call_ended
from shardaudit.model.config.parts import Aws
from shardaudit.model.errors import RetryableError, ShardauditError
from shardaudit.model.source import SourceFile

log = logging.getLogger(__name__)

_S3A = "s3a://"
_TIMEOUT_S = 20
_ATTEMPTS = 4
_AT_ONCE = 32  # requests that wait for S3, not work

Item = TypeVar("Item")
Result = TypeVar("Result")


class StorageError(RetryableError, OSError):
    """A file or a folder could not be reached; nothing is known about what is in it."""

    def __init__(self, path: str, error: object) -> None:
        super().__init__(f"{path} could not be read: {error}; try again, or check the access to it")


def storage_error(path: str, said: object) -> StorageError | LastingError:
    """Our error for what the storage said, to be raised from it."""
    words = plain_words(said)
    if is_refused(said):
        return AccessRefusedError(path, words)
    return MisplacedError(path, words) if is_misplaced(said) else StorageError(path, words)


@dataclass(frozen=True)
class S3Access:
    """How S3 is reached. Credentials come from the usual AWS chain of the process that reads."""

    endpoint: str | None = None
    region: str | None = None


def s3_access(aws: Aws) -> S3Access:
    """What the configuration says of S3."""
    return S3Access(endpoint=aws.endpoint("s3"), region=aws.region)


def list_files(folder: str, access: S3Access) -> list[SourceFile]:
    """Every file under a folder, sorted by path; none when there is no such folder.

    Names that begin with `_` or `.`, and all below folders named so, are left out as Spark does
    (markers, checksums, files in the making).

    Raises:
        StorageError: the folder could not be listed.
        LastingError: it may not be read, or is none.
    """
    store, root = _file_system(folder, access)
    try:
        if not folder.startswith(_S3A):
            return sorted(_local_files(root))
        found = store.get_file_info(fs.FileSelector(root, recursive=True, allow_not_found=True))
    except OSError as error:
        raise storage_error(folder, error) from error
    return sorted(
        SourceFile(_S3A + info.path, info.size, info.mtime_ns // 1_000_000)
        for info in found
        if info.type == fs.FileType.File and not is_hidden(info.path.removeprefix(root))
    )


def _local_files(root: str) -> Iterator[SourceFile]:
    """The files below a folder. Links in it are told and left out: they lead out or back.

    A name that is not UTF-8 is given in words, by which no file is found: it is damaged, by name.
    """
    links: list[str] = []
    for path, found in _walked(root):
        if stat.S_ISREG(found.st_mode):
            words = os.fsencode(path).decode(errors="backslashreplace")
            yield SourceFile(words, found.st_size, found.st_mtime_ns // 1_000_000)
        elif stat.S_ISLNK(found.st_mode):
            links.append(path)
    if links:
        log.warning("%s: %d links are not followed, as %s", root, len(links), min(links))


def links_below(folder: str) -> list[str]:
    """The links in a local folder, in order: nothing that they lead to is read. None in S3.

    Raises:
        StorageError, LastingError: as `list_files`.
    """
    if folder.startswith(_S3A):
        return []
    try:
        each = _walked(_key(folder))
        return sorted(path for path, found in each if stat.S_ISLNK(found.st_mode))
    except OSError as error:
        raise storage_error(folder, error) from error


def _walked(root: str) -> Iterator[tuple[str, os.stat_result]]:
    """What lies below a folder and is not hidden; links are not followed."""
    for place, folders, names in os.walk(root.rstrip("/") or "/", onerror=_unless_gone):
        folders[:] = [name for name in folders if not is_hidden(name)]
        for path in (f"{place}/{name}" for name in (*folders, *names) if not is_hidden(name)):
            with suppress(FileNotFoundError):  # it is gone by now
                yield path, os.lstat(path)


def _unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def is_hidden(relative: str) -> bool:
    """Whether no ingest reads it, as Spark does not: `_col=1` is a partition of an odd column."""
    return any(
        part.startswith(".") or (part.startswith("_") and "=" not in part)
        for part in relative.split("/")
    )


def has_folder(path: str, access: S3Access) -> bool:
    """Whether there is a folder with anything in it."""
    store, root = _file_system(path, access)
    try:
        return bool(store.get_file_info(root).type == fs.FileType.Directory)
    except OSError as error:
        raise storage_error(path, error) from error


def read_texts(paths: Sequence[str], access: S3Access) -> list[str]:
    """The whole texts of small UTF-8 files, in the order of their paths.

    Raises:
        FileNotFoundError: one is not there.
        StorageError: one could not be reached.
    """
    store = FileStore(access)

    def text(path: str) -> str:
        with store.open(path) as file:
            return str(file.read().decode())

    return at_once(text, paths)


def open_file(path: str, access: S3Access) -> AbstractContextManager[pa.NativeFile]:
    """A file open for reading at any place, see `FileStore.open`."""
    return FileStore(access).open(path)


def at_once(do: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """What comes of each item, in their order; many wait for the storage at the same time."""

    def done(item: Item) -> Result:
        result = do(item)
        call_ended()
        return result

    with ThreadPoolExecutor(_AT_ONCE) as threads:
        return list(threads.map(done, items))


def delete_folder(path: str, access: S3Access) -> None:
    """Deletes a folder with all that is in it, where there is one.

    Raises:
        StorageError: it could not be reached.
    """
    store, key = _file_system(path, access)
    try:
        store.delete_dir_contents(key, missing_dir_ok=True)
    except OSError as error:
        raise storage_error(path, error) from error


class FileStore:
    """The way to many files: one connection to each bucket, kept."""

    def __init__(self, access: S3Access) -> None:
        self._access = access
        self._stores: dict[str, fs.FileSystem] = {}

    @contextmanager
    def open(self, path: str) -> Iterator[pa.NativeFile]:
        """A file open for reading at any place, closed at the end of the block.

        Raises:
            FileNotFoundError: it is not there (any more).
            StorageError: it could not be reached, now or by what the block reads.
        """
        store, key = self._place(path)
        try:
            with store.open_input_file(key) as file:
                yield file
        except (FileNotFoundError, ShardauditError):
            raise
        except OSError as error:
            raise storage_error(path, error) from error

    def gives(self, path: str) -> bool:
        """Whether the file can be read now: its first byte was."""
        try:
            with self.open(path) as file:
                file.read(1)
        except OSError:
            return False
        return True

    def found(self, path: str) -> SourceFile | None:
        """The file as it is now; None when there is none.

        Raises:
            StorageError: it could not be reached.
        """
        store, key = self._place(path)
        try:
            info = store.get_file_info(key)
        except OSError as error:
            raise storage_error(path, error) from error
        if info.type != fs.FileType.File:
            return None
        return SourceFile(path, info.size, info.mtime_ns // 1_000_000)

    def copy(self, path: str, target: str) -> SourceFile:
        """Copies a file byte by byte; within S3 the storage does it. Gives the copy.

        Raises:
            FileNotFoundError: it is not there (any more).
            StorageError: it, or the place of the copy, could not be reached.
        """
        (store, key), (other, place) = self._place(path), self._place(target)
        try:
            if isinstance(other, fs.LocalFileSystem):
                other.create_dir(place.rpartition("/")[0])
            fs.copy_files(key, place, source_filesystem=store, destination_filesystem=other)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise storage_error(path, error) from error
        copy = self.found(target)
        if copy is None:
            raise StorageError(target, "it was written and is not there")
        return copy

    def _place(self, path: str) -> tuple[fs.FileSystem, str]:
        bucket = path.removeprefix(_S3A).partition("/")[0] if path.startswith(_S3A) else ""
        if bucket not in self._stores:
            self._stores[bucket] = _file_system(path, self._access)[0]
        return self._stores[bucket], _key(path)


def _file_system(path: str, access: S3Access) -> tuple[fs.FileSystem, str]:
    key = _key(path)
    if path.startswith(_S3A):
        try:
            return _s3(access, bucket=key.partition("/")[0]), key
        except OSError as error:  # the bucket's region is asked
            raise storage_error(path, error) from error
    return fs.LocalFileSystem(), key


def _key(path: str) -> str:
    """The path as its file system wants it."""
    if path.startswith(_S3A):
        return path.removeprefix(_S3A).rstrip("/")
    return path.removeprefix("file://")


def _s3(access: S3Access, *, bucket: str) -> fs.S3FileSystem:
    scheme, _, host = (access.endpoint or "").rpartition("://")
    is_aws = access.endpoint is None
    return fs.S3FileSystem(
        region=access.region or (fs.resolve_s3_region(bucket) if is_aws else None),
        endpoint_override=host or None,
        scheme=scheme or "https",
        connect_timeout=_TIMEOUT_S,
        request_timeout=_TIMEOUT_S,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
    )
