"""The files of a Delta log: its commits, checkpoints, and the statistics of its files.

delta-rs (1.6) lists a version's data files without their deletion vectors; and where commits are
gone but for a `.crc` file, or empty, it lists what is left as if it were all. All of that is looked
up here.
Source: Delta's protocol, "Checkpoints", "Sidecar Files".
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from shardaudit.adapters.clock import now
from shardaudit.adapters.files.files import (
    FileStore,
    S3Access,
    StorageError,
    at_once,
    list_files,
    read_texts,
)
from shardaudit.adapters.lake.parquet_file import unreadable
from shardaudit.model.source import DeletionVector, SourceFile

_CHECKPOINT = re.compile(
    r"(?P<version>[0-9]{20})\.checkpoint"
    r"(\.(?P<part>[0-9]{10})\.(?P<parts>[0-9]{10})|\.[0-9a-fA-F-]{36})?\.(parquet|json)"
)
_COMMIT = re.compile(r"[0-9]{20}\.json")
_FIRST, _HINT = f"{0:020d}.json", "_last_checkpoint"
_WANTED = re.compile(r"add\.path$|add\.deletionVector\.|sidecar\.path$")

LogAction = dict[str, Any]  # Any: one JSON object of Delta's log, as its protocol defines it

TimeSpan = tuple[datetime, datetime]

# Who writes the newest commit may be at work, but not for so long; no two clocks are as far apart.
_AT_WORK = timedelta(hours=1)
_CUT = timedelta(milliseconds=1)  # Spark cuts the statistics of times to it
_INSTANT = pa.timestamp("us", "UTC")


class CommitGoneError(LookupError):
    """A commit file was cleaned up, or is empty. Never leaves the ingest: it reads all anew."""


@dataclass(frozen=True, slots=True)
class LogStart:
    """Where the replay of a log begins: a checkpoint's files and version, or nothing and -1."""

    version: int
    checkpoint: tuple[str, ...] = ()


def commit_texts(folder: str, after: int, upto: int, access: S3Access) -> list[str]:
    """The texts of a table's commits after a version up to another, in order.

    Raises:
        CommitGoneError: not all of them are there any more, or one is empty.
    """
    paths = [commit_path(folder, version) for version in range(after + 1, upto + 1)]
    try:
        texts = read_texts(paths, access)
    except FileNotFoundError as error:
        raise CommitGoneError(str(error)) from error
    if "" in texts:
        raise CommitGoneError(paths[texts.index("")])
    return texts


def last_commits(folder: str, upto: int, access: S3Access, *, limit: int) -> list[str]:
    """The texts of the newest commits up to a version that are still there, in order.

    Raises:
        CommitGoneError: one went while they were read.
    """
    names = (file.path.rpartition("/")[2] for file in list_files(log_folder(folder), access))
    versions = {int(name[:-5]) for name in names if _COMMIT.fullmatch(name)}
    found = sorted(version for version in versions if version <= upto)[-limit:]
    try:
        return read_texts([commit_path(folder, version) for version in found], access)
    except FileNotFoundError as error:
        raise CommitGoneError(str(error)) from error


def log_start(folder: str, version: int, access: S3Access) -> LogStart:
    """From where on a version can be made: its newest whole checkpoint, or the first commit.

    Raises:
        StorageError: there is neither, or a commit from there on is empty.
    """
    log = log_folder(folder)
    files = _named_files(log, access)
    whole = [start for start in _checkpoints(files) if start.version <= version]
    if not whole and _FIRST not in files:
        raise StorageError(log, f"commits before version {version} are gone, and no checkpoint is")
    start = max(whole, key=lambda start: start.version, default=LogStart(-1))
    needed = {f"{number:020d}.json" for number in range(start.version + 1, version + 1)}
    for name in sorted(needed & files.keys()):
        if files[name].size_bytes == 0:
            raise StorageError(files[name].path, "it is empty")
    return start


def log_fault(folder: str, access: S3Access) -> str | None:
    """Why a log is not whole, as its newest version needs it; None: it is, or there is none.

    Raises:
        StorageError: it could not be reached.
    """
    log, store = log_folder(folder), FileStore(access)
    files = _named_files(log, access)
    commits = {int(name[:-5]) for name in files if _COMMIT.fullmatch(name)}
    start = max(_checkpoints(files), key=lambda one: one.version, default=LogStart(-1))
    hinted, newest = _hinted(store, log), max(commits, default=-1)
    if hinted > start.version:
        return f"{log}/{_HINT} names a checkpoint of version {hinted}, which is not there"
    if lacking := sorted({*range(start.version + 1, newest)} - commits):
        path = commit_path(folder, lacking[0])
        return f"{path} is not there, of a log up to version {newest}"
    faults = [_checkpoint_fault(store, path) for path in start.checkpoint]
    needed = [commit_path(folder, version) for version in range(start.version + 1, newest + 1)]
    if needed and _is_at_work(files[f"{newest:020d}.json"]):
        needed.pop()
    faults += at_once(lambda path: _lines_fault(store, path), needed)
    return next((fault for fault in faults if fault), None)


def _named_files(log: str, access: S3Access) -> dict[str, SourceFile]:
    return {file.path.rpartition("/")[2]: file for file in list_files(log, access)}


def _is_at_work(commit: SourceFile) -> bool:
    """Whether somebody may still write a commit, the newest one."""
    return now().timestamp() - commit.modified_ms / 1000 < _AT_WORK.total_seconds()


def _hinted(store: FileStore, log: str) -> int:
    """The version of the checkpoint that the log says to be its last; -1: it says none."""
    try:
        with store.open(f"{log}/{_HINT}") as file:
            return int(json.loads(file.read())["version"])
    except (FileNotFoundError, LookupError, TypeError, ValueError):
        return -1  # it is a hint: who reads the log can do without


def _checkpoint_fault(store: FileStore, path: str) -> str | None:
    if path.endswith(".json"):
        return _lines_fault(store, path)
    with store.open(path) as file:
        try:
            [None for _ in pq.ParquetFile(file).iter_batches()]
        except (pa.ArrowException, OSError) as error:
            return f"{path}: {unreadable(file, error)}"
    return None


def _lines_fault(store: FileStore, path: str) -> str | None:
    try:
        with store.open(path) as file:
            actions = [json.loads(line) for line in file.read().split(b"\n") if line]
    except ValueError as error:
        return f"{path} cannot be read: {error}"
    return None if actions else f"{path} is empty"


def vectors_at(folder: str, version: int, access: S3Access) -> dict[str, DeletionVector]:
    """The deletion vectors of a version's files, by the path that the log has.

    Raises:
        StorageError: the log could not be read.
    """
    start = log_start(folder, version, access)
    vectors = dict(_stored_vectors(folder, start, access))
    try:
        commits = commit_texts(folder, start.version, version, access)
    except CommitGoneError as error:
        raise StorageError(log_folder(folder), error) from error
    for commit in commits:
        actions = [json.loads(line) for line in commit.split("\n") if line]
        for action in actions:
            vectors.pop(action.get("remove", {}).get("path"), None)
        for file in (action["add"] for action in actions if "add" in action):
            vectors.pop(file["path"], None)
            vector = DeletionVector.from_log(file.get("deletionVector"))
            if vector is not None:
                vectors[file["path"]] = vector
    return vectors


def log_folder(folder: str) -> str:
    """The folder of a table's log."""
    return f"{folder}/_delta_log"


def commit_path(folder: str, version: int) -> str:
    """The file of a version's commit."""
    return f"{log_folder(folder)}/{version:020d}.json"


def _checkpoints(files: Mapping[str, SourceFile]) -> Iterator[LogStart]:
    """The checkpoints of which every part is there."""
    found: dict[tuple[str, str], list[str]] = {}
    for name in sorted(files):
        match = _CHECKPOINT.fullmatch(name)
        if match is not None:
            # Several whole ones of a version differ in nothing but their names.
            key = match["parts"] or name
            found.setdefault((match["version"], key), []).append(files[name].path)
    for (version, parts), paths in found.items():
        if not parts.isdigit() or int(parts) == len(paths):
            yield LogStart(int(version), tuple(paths))


def _stored_vectors(
    folder: str, start: LogStart, access: S3Access
) -> Iterator[tuple[str, DeletionVector]]:
    """The deletion vectors of the files that a checkpoint lists, here or in its sidecars."""
    store = FileStore(access)
    listed = list(start.checkpoint)
    while listed:
        path = listed.pop()
        is_json = path.endswith(".json")
        adds, sidecars = _json_actions(path, access) if is_json else _parquet_actions(store, path)
        for add in adds:
            vector = DeletionVector.from_log(add.get("deletionVector"))
            if vector is not None:
                yield add["path"], vector
        names = (sidecar.rpartition("/")[2] for sidecar in sidecars)
        listed += [f"{log_folder(folder)}/_sidecars/{name}" for name in names]


def _json_actions(path: str, access: S3Access) -> tuple[list[LogAction], list[str]]:
    """The files that a checkpoint lists, and its sidecars."""
    actions = [
        json.loads(line) for text in read_texts([path], access) for line in text.split("\n") if line
    ]
    sidecars = [action["sidecar"]["path"] for action in actions if "sidecar" in action]
    return [action["add"] for action in actions if "add" in action], sidecars


def _parquet_actions(store: FileStore, path: str) -> tuple[list[LogAction], list[str]]:
    """The same, of files only those that have a vector, and of them only what tells it."""
    adds: list[LogAction] = []
    sidecars: list[str] = []
    with store.open(path) as file:
        source = pq.ParquetFile(file)
        leaves = [source.schema.column(i).path for i in range(len(source.schema))]
        wanted = [leaf for leaf in leaves if _WANTED.match(leaf)]
        has_vectors = any(".deletionVector." in leaf for leaf in wanted)
        for batch in source.iter_batches(columns=wanted):
            if has_vectors:
                files = batch.column("add")
                kept = pc.is_valid(pc.struct_field(files, ["deletionVector", "storageType"]))
                adds += files.filter(kept).to_pylist()
            if "sidecar" in batch.schema.names:
                named = pc.struct_field(batch.column("sidecar"), "path")
                sidecars += named.drop_null().to_pylist()
    return adds, sidecars


def may_hold(actions: pa.Table, column: str, spans: Sequence[TimeSpan]) -> pa.Array:
    """Whether a file may hold a value of a column in a span, for each file.

    Input:
        actions: the files as `DeltaTable.get_add_actions` gives them; column: its physical name;
        spans: half-open. Where the log says nothing of a column, every file may hold it.
    """
    least, most = (_edges(actions, name, column) for name in ("min", "max"))
    if least is None or most is None:
        return pa.repeat(pa.scalar(True), actions.num_rows)
    inside = [
        pc.and_(
            pc.less(least, pa.scalar(end, _INSTANT)),
            pc.greater(most, pa.scalar(start - _CUT, _INSTANT)),
        )
        for start, end in spans
    ]
    found = reduce(pc.or_, inside, pa.repeat(pa.scalar(False), actions.num_rows))
    return pc.fill_null(found, True)


def may_lack_by_log(actions: pa.Table, column: str) -> pa.Array:
    """Whether a row of a file may have NULL in a column, for each file.

    Input:
        actions: as for `may_hold`; column: its physical name. Where the log says nothing, it may.
    """
    found = actions.column("null_count").combine_chunks() if _has_nulls(actions) else None
    if found is None or found.type.get_field_index(column) < 0:
        return pa.repeat(pa.scalar(True), actions.num_rows)
    nulls = pc.struct_field(found, [found.type.get_field_index(column)])
    return pc.fill_null(pc.not_equal(nulls, 0), True)


def _has_nulls(actions: pa.Table) -> bool:
    return "null_count" in actions.column_names


def _edges(actions: pa.Table, name: str, column: str) -> pa.Array | None:
    """The least or greatest times of the files; a time without a zone is one in UTC."""
    if name not in actions.column_names:
        return None
    found = actions.column(name).combine_chunks()
    index = found.type.get_field_index(column)
    if index < 0 or not pa.types.is_timestamp(found.type.field(index).type):
        return None
    zone = found.type.field(index).type.tz
    times = pc.struct_field(found, [index]).cast(pa.timestamp("us", zone))
    return times.cast(pa.int64()).cast(_INSTANT)
