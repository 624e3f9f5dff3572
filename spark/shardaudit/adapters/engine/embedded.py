"""The door to the embedded engine: Sail, Spark Connect in Rust, inside this process. No JVM.

Its server has no password, its settings are the process's environment, and it must not be started
before a fork: one process runs one command.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from pyspark.sql import SparkSession

from shardaudit.adapters.engine.connect import connected
from shardaudit.adapters.engine.requirements import (
    embedded_server,
    require_own_machine,
    require_plain_path,
)
from shardaudit.model.config.settings import Settings

_PREFIX, _LOCK = "shardaudit-engine-", "held"

# The setting of a session that says how many of our readers may work at the same time.
_READERS = "spark.shardaudit.readers"

# What the process takes beside the engine's pool: itself, Python, and what reads and writes files.
_BESIDE_THE_POOL = 2**30
_LEAST_POOL = 2**28
_POOL = "SAIL_RUNTIME__MEMORY_POOL__FAIR__MAX_SIZE"
_YEAR_S = "31536000"


@contextmanager
def scratch_folder() -> Iterator[str]:
    """A folder of our own; those that killed processes left behind are removed."""
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        _remove_if_left(left)
    # The kernel gives the lock back when the process ends.
    folder, lock = _held_folder()
    with lock:
        try:
            yield str(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _held_folder() -> tuple[Path, TextIO]:
    """A new folder and its lock, held; another one where a process that starts now removed it."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        lock = (folder / _LOCK).open("w")
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (folder / _LOCK).exists():
            return folder, lock
        lock.close()


def _remove_if_left(folder: Path) -> None:
    """Removes a folder whose process has ended; one without a lock yet is just being made."""
    try:
        with (folder / _LOCK).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    except OSError:  # held, of another user, or not there (any more)
        return


@contextmanager
def embedded_session(settings: Settings) -> Iterator[tuple[SparkSession, str]]:
    """A session of an engine of our own, and its name and version; both end with the block.

    Raises:
        EngineMissingError: pysail is not installed.
        OpenPortError: other people have accounts here, and the settings do not accept that.
        ConfigError: the engine would take the warehouse's path for another one.
    """
    require_own_machine(settings.embedded)
    require_plain_path(settings.warehouse)
    with scratch_folder() as folder:
        os.environ |= _make_folders(folder) | _environment(settings)
        with _served() as served:
            yield served


@contextmanager
def sibling_session() -> Iterator[SparkSession]:
    """A session of one more engine, in a child of the process that has one, set as that one is."""
    with scratch_folder() as folder:
        os.environ |= _make_folders(folder)
        with _served() as (session, _):
            yield session


@contextmanager
def _served() -> Iterator[tuple[SparkSession, str]]:
    of_server, version = embedded_server()
    server = of_server(ip="127.0.0.1", port=0)
    server.start(background=True)
    port = server.listening_address[1]
    try:
        # The server takes Ctrl-C for itself, and would leave a command waiting for minutes:
        # what ends a command is set anew behind it.
        with connected(f"sc://127.0.0.1:{port}") as session:
            # Or every call on a frame looks for a notebook, on all of the path, to say where
            # it stands.
            session.conf.set("spark.python.sql.dataFrameDebugging.enabled", "false")
            session.conf.set(_READERS, str(_cores()))
            # Our plans are as good after its first pass, and an audit of few rows is planning.
            session.sql("SET datafusion.optimizer.max_passes = 1").collect()
            yield session, version
    finally:
        server.stop()


def _cores() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # macOS


def engine_memory() -> int:
    """How much memory this process may take; where it has no engine, that of the machine."""
    if _POOL in os.environ:
        return int(os.environ[_POOL]) + _BESIDE_THE_POOL
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def most_readers(spark: SparkSession) -> int | None:
    """How many files may be read at a time; None on Apache Spark, whose tasks wait for a core."""
    found = spark.conf.get(_READERS, None)
    return int(found) if found else None


def is_embedded(spark: SparkSession) -> bool:
    """Whether it is a session of this engine."""
    return most_readers(spark) is not None


def _make_folders(folder: str) -> dict[str, str]:
    """Makes, in a folder of ours, those where the engine keeps what it lets go of."""
    for name in ("checkpoints", "spilled"):
        Path(folder, name).mkdir()
    return {
        "SAIL_EXECUTION__CHECKPOINT__PATH": f"file://{folder}/checkpoints",
        "SAIL_RUNTIME__TEMPORARY_FILES__PATHS": f'["{folder}/spilled"]',
    }


def _environment(settings: Settings) -> dict[str, str]:
    """The engine's settings, which it reads once. Credentials come from the usual AWS chain."""
    pool = max(settings.embedded.memory - _BESIDE_THE_POOL, _LEAST_POOL)
    values = {
        "SAIL_RUNTIME__MEMORY_POOL__TYPE": "fair",
        _POOL: str(pool),
        # Of checkpoints, which are read again at once: their writing takes half of the time.
        "SAIL_PARQUET__COMPRESSION": "lz4_raw",
        "SAIL_PARQUET__STATISTICS_ENABLED": "none",
        # In huge pages its allocator keeps what it no longer uses: of 50 million messages 3 GiB
        # instead of 1.7.
        "MIMALLOC_ALLOW_THP": "0",
        # It would end a session that asks nothing for 15 minutes, as while files are copied.
        "SAIL_SPARK__SESSION_TIMEOUT_SECS": _YEAR_S,
        "RUST_LOG": os.environ.get("RUST_LOG", "error"),
        # An endpoint that never answers is given up after two minutes.
        "AWS_TIMEOUT": "10s",
        "AWS_CONNECT_TIMEOUT": "5s",
    }
    endpoint = settings.aws.endpoint("s3")
    if settings.aws.region:
        values["AWS_REGION"] = settings.aws.region
    if endpoint:
        # Not AWS_ENDPOINT_URL: boto3 would take it for Kinesis, too.
        values["AWS_ENDPOINT"] = endpoint
        values["AWS_ALLOW_HTTP"] = str(endpoint.startswith("http://")).lower()
    return values
