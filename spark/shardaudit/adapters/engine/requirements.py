"""What the engines want of a machine; looked at without importing PySpark."""

import os
import pwd
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from shardaudit.model.config.parts import Embedded
from shardaudit.model.errors import ConfigError, FinalError

# The least user id of a person: macOS counts from 501, Debian's adduser(8) from 1000.
_FIRST_PERSON = 501 if sys.platform == "darwin" else 1000
_NOBODY = 65534
_PLAIN = re.compile(r"(s3a:/|file://)?[A-Za-z0-9._=+@,~/-]*[A-Za-z0-9._=+@,~-]/*")
_NO_LOGIN = ("nologin", "false", "sync")
_CONTAINERS = (Path("/.dockerenv"), Path("/run/.containerenv"))
_OF_PODS = ("KUBERNETES_SERVICE_HOST", "ECS_CONTAINER_METADATA_URI_V4")
_SWITCH = Path("/etc/nsswitch.conf")
_OWN_ACCOUNTS = {"files", "compat", "db", "systemd", "altfiles", "extrausers", "mymachines"}

SUPPORTED = (17, 21)  # what Spark 4.1 is tested with
INSTALL = (
    "apt-get install openjdk-17-jre-headless (Debian), or brew install openjdk@17 and "
    'export JAVA_HOME="$(brew --prefix openjdk@17)" (macOS)'
)


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


def embedded_server() -> tuple[Any, str]:  # Any: pysail ships no types
    """The class of the engine's server, and the engine's name and version.

    Raises:
        EngineMissingError: pysail is not installed, or not for this machine.
    """
    try:
        import pysail  # noqa: PLC0415 - Apache Spark alone works without it
        from pysail.spark import SparkConnectServer  # noqa: PLC0415 - the same
    except ImportError as error:
        raise EngineMissingError(error) from error
    return SparkConnectServer, f"pysail {pysail.__version__} (embedded)"


def require_own_machine(embedded: Embedded) -> None:
    """Does nothing where the engine's port can be reached by nobody else, or that is accepted.

    Raises:
        OpenPortError: other people have accounts here.
    """
    others = [] if embedded.shared_machine else other_people()
    if others:
        raise OpenPortError(others)


def require_plain_path(warehouse: str) -> None:
    """Does nothing where the engine takes the warehouse's path as it is.

    Raises:
        ConfigError: it would take it for an address or a pattern of others.
    """
    if not _PLAIN.fullmatch(warehouse):
        raise ConfigError(
            "warehouse",
            warehouse,
            "a path of the letters A to Z, digits and . _ = + @ , ~ - / on the embedded engine; "
            'or engine = "spark"',
        )


def is_submitted() -> bool:
    """Whether spark-submit started this process, and a JVM before it."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def other_people() -> list[str]:
    """Who else could log in to this machine; nobody in a container."""
    if _is_container():
        return []
    return people(pwd.getpwall(), beside=os.getuid())


def unlisted_people() -> str | None:
    """Who may reach a port of this machine besides, whom it does not list; None: nobody is known.

    A container shares its ports with the others of its pod (Kubernetes) or task (ECS); a directory
    does not list its people to each machine that they can log in to.
    """
    if any(name in os.environ for name in _OF_PODS):
        return "another container of this pod or task"
    found = [] if _is_container() or not _SWITCH.exists() else directories(_SWITCH.read_text())
    return f"the people of a directory ({found[0]})" if found else None


def directories(switch: str) -> list[str]:
    """From where a machine takes accounts beside its own files, by its `nsswitch.conf`."""
    plain = re.sub(r"#.*|\[.*?\]", "", switch)
    named = [word for rest in re.findall(r"(?m)^\s*passwd:(.*)$", plain) for word in rest.split()]
    return [word for word in named if word not in _OWN_ACCOUNTS]


def _is_container() -> bool:
    return any(mark.exists() for mark in _CONTAINERS)


def people(
    accounts: Iterable[pwd.struct_passwd], *, beside: int, first: int = _FIRST_PERSON
) -> list[str]:
    """The names of the accounts that a person can log in to, without that of one user id.

    Input:
        first: the least user id of a person.
    """
    return [
        account.pw_name
        for account in accounts
        if account.pw_uid >= first
        and account.pw_uid not in {_NOBODY, beside}
        and not account.pw_shell.endswith(_NO_LOGIN)
    ]


def java_program() -> str | None:
    """The Java that Spark finds: `JAVA_HOME`'s, else that of the path; None: there is none."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    return java if java is not None and Path(java).exists() else None


def java_version() -> int | None:
    """The major version of that Java; None: no Java."""
    java = java_program()
    if java is None:
        return None
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(\d+)', answer.stderr + answer.stdout)
    return int(found[1]) if found and answer.returncode == 0 else None
