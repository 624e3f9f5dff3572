"""The door to the embedded engine: Sail, Spark Connect in Rust, inside this process. No JVM.

Its server has no password, its settings are the process's environment, and it must not be started
before a fork: one process runs one command.
"""

import os
import pwd
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

from shardaudit.model.config import Settings
from shardaudit.model.errors import ConfigError, FinalError

# The setting of a session that says how many of our readers may work at the same time.
READERS = "spark.shardaudit.readers"

# What the process takes beside the engine's pool: itself, Python, and what reads and writes files.
_BESIDE_THE_POOL = 2**30
_LEAST_POOL = 2**28
_FIRST_PERSON, _NOBODY = 1000, 65534  # Debian's adduser(8); macOS counts its people from 501
_NO_LOGIN = ("nologin", "false", "sync")
_CONTAINERS = (Path("/.dockerenv"), Path("/run/.containerenv"))


class EngineMissingError(ConfigError):
    """The embedded engine cannot be imported."""

    def __init__(self, error: ImportError) -> None:
        super().__init__(
            "engine", "embedded", f'"spark", as pysail cannot be imported here ({error})'
        )


class OpenPortError(FinalError, PermissionError):
    """Somebody else on this machine could run code as us, through the engine's port."""

    def __init__(self, others: list[str]) -> None:
        super().__init__(
            f"the embedded engine listens on this machine without a password, and {others[0]!r}"
            f"{f' and {len(others) - 1} more' if len(others) > 1 else ''} can log in here: "
            'set engine = "spark", or embedded.shared_machine = true if they may act as you'
        )


@contextmanager
def embedded_session(settings: Settings) -> Iterator[tuple[SparkSession, str]]:
    """A session of an engine of our own, and the engine's version; both end with the block.

    Raises:
        EngineMissingError: pysail is not installed.
        OpenPortError: other people have accounts here, and the settings do not accept that.
    """
    others = [] if settings.embedded.shared_machine else other_people()
    if others:
        raise OpenPortError(others)
    with TemporaryDirectory(prefix="shardaudit-", ignore_cleanup_errors=True) as folder:
        os.environ |= _environment(settings, folder)
        try:
            import pysail  # noqa: PLC0415 - Apache Spark alone works without it
            from pysail.spark import SparkConnectServer  # noqa: PLC0415 - the same
        except ImportError as error:
            raise EngineMissingError(error) from error
        server = SparkConnectServer(ip="127.0.0.1", port=0)
        server.start(background=True)
        if threading.current_thread() is threading.main_thread():
            # The server takes Ctrl-C for itself, and would leave a command waiting for minutes.
            signal.signal(signal.SIGINT, signal.default_int_handler)
        address = server.listening_address
        session = SparkSession.builder.remote(f"sc://127.0.0.1:{address[1]}").create()
        session.conf.set("spark.sql.session.timeZone", "UTC")
        session.conf.set(READERS, str(os.cpu_count() or 1))
        try:
            yield session, pysail.__version__
        finally:
            session.stop()
            server.stop()
            os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)  # or pyspark would ask for it again


def other_people() -> list[str]:
    """Who else could log in to this machine; nobody in a container."""
    if any(mark.exists() for mark in _CONTAINERS):
        return []
    return [
        account.pw_name
        for account in pwd.getpwall()
        if account.pw_uid >= _FIRST_PERSON
        and account.pw_uid not in {_NOBODY, os.getuid()}
        and not account.pw_shell.endswith(_NO_LOGIN)
    ]


def _environment(settings: Settings, folder: str) -> dict[str, str]:
    """The engine's settings, which it reads once. Credentials come from the usual AWS chain."""
    for name in ("checkpoints", "spilled"):
        Path(folder, name).mkdir()
    pool = max(settings.embedded.memory - _BESIDE_THE_POOL, _LEAST_POOL)
    values = {
        "SAIL_EXECUTION__CHECKPOINT__PATH": f"file://{folder}/checkpoints",
        "SAIL_RUNTIME__TEMPORARY_FILES__PATHS": f'["{folder}/spilled"]',
        "SAIL_RUNTIME__MEMORY_POOL__TYPE": "fair",
        "SAIL_RUNTIME__MEMORY_POOL__FAIR__MAX_SIZE": str(pool),
        "RUST_LOG": os.environ.get("RUST_LOG", "error"),
        # An endpoint that never answers is given up after a minute, not after three.
        "AWS_TIMEOUT": "20s",
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
