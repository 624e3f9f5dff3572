"""The jars of Spark and of the S3 stand-in: fetched once by coordinates, checked by their hashes.

Spark's own resolver (Ivy) fetches them; `jars.lock` says which files with which content are ours.
At run time nothing is fetched: Spark gets the files (decision 003).
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from shardaudit.model.errors import FinalError, RetryableError

_PACKAGE = Path(__file__).parents[2]
_HOME = Path(os.environ.get("HOME", "/"))  # an account without a name may have none
_OF_USER = Path(os.environ.get("XDG_CACHE_HOME") or _HOME / ".cache", "shardaudit")
_IS_INSTALLED = (_PACKAGE / "jars.lock").exists()  # in the wheel beside the code

LOCK = _PACKAGE / "jars.lock" if _IS_INSTALLED else _PACKAGE.parents[1] / "jars.lock"
CACHE = _OF_USER if _IS_INSTALLED else LOCK.with_name(".cache")
FETCH = "run `shardaudit doctor --fetch-jars` once, with the network on"

_DELTA = "4.4.0"
_HADOOP = "3.4.2"  # what Spark 4.1 ships as hadoop-client
_AWS_SDK = "2.29.52"  # what hadoop-aws 3.4.2 was built with

# One Spark start that does nothing but resolve: coordinates, excludes, the folder.
_RESOLVE = """
import sys
from pyspark.sql import SparkSession
(SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
    .config("spark.jars.packages", sys.argv[1]).config("spark.jars.excludes", sys.argv[2])
    .config("spark.jars.ivy", sys.argv[3]).getOrCreate().stop())
"""


@dataclass(frozen=True, slots=True)
class JarSet:
    """What to ask for, and what of it not to take (`group:artifact`, * for all of a group)."""

    coordinates: tuple[str, ...]
    excludes: tuple[str, ...] = ()


SETS = {
    "spark": JarSet(
        (
            f"io.delta:delta-spark_4.1_2.13:{_DELTA}",
            f"org.apache.hadoop:hadoop-aws:{_HADOOP}",
            *(
                f"software.amazon.awssdk:{module}:{_AWS_SDK}"
                for module in ("s3", "sts", "s3-transfer-manager", "apache-client")
            ),
            f"software.amazon.awssdk:netty-nio-client:{_AWS_SDK}",
        ),
        (
            "software.amazon.awssdk:bundle",  # 640 MB: every service of AWS in one jar
            # What Spark ships itself and, its classes coming first, would use anyway.
            "org.apache.hadoop:hadoop-client-api",
            "org.apache.hadoop:hadoop-client-runtime",
            "org.scala-lang:scala-library",
            "org.apache.parquet:*",
            "org.apache.logging.log4j:*",
            "org.apache.httpcomponents:*",
            "org.locationtech.jts:*",
            "org.roaringbitmap:*",
            "org.slf4j:*",
            "org.xerial.snappy:*",
            "com.fasterxml.jackson.core:*",
            "com.github.luben:*",
            "com.google.code.findbugs:*",
            "commons-codec:*",
            "commons-logging:*",
            "commons-pool:*",
            "io.airlift:*",
            "io.netty:*",
        ),
    ),
    "s3proxy": JarSet(("org.gaul:s3proxy:4.1.0",)),
}


class JarsUnavailableError(RetryableError, ConnectionError):
    """The jars could not be fetched."""


class JarsWrongError(FinalError, ValueError):
    """What was fetched is not what the lock says."""


def jar_problems(
    names: Iterable[str] = tuple(SETS), *, cache: Path = CACHE, lock: Path = LOCK
) -> list[str]:
    """What is missing, wrong or too much in the cache, by the lock; empty when all is right."""
    problems = []
    for name in names:
        wanted, folder = _locked(name, lock), cache / "jars" / name
        found = {path.name for path in folder.glob("*.jar")}
        problems += [f"{name}/{jar} is missing" for jar in sorted(wanted.keys() - found)]
        problems += [f"{name}/{jar} is not in jars.lock" for jar in sorted(found - wanted.keys())]
        problems += [
            f"{name}/{jar} has another content than jars.lock says"
            for jar in sorted(wanted.keys() & found)
            if _sha256(folder / jar) != wanted[jar]
        ]
    return problems


def fetch_jars(name: str) -> None:
    """Fills the cache's folder of this set with exactly the jars of the lock.

    Raises:
        JarsUnavailableError: the resolver failed; says where it wrote why.
        JarsWrongError: a jar is missing or has another content than the lock says.
    """
    resolved = _resolved(name)
    folder = CACHE / "jars" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for jar in _locked(name, LOCK):
        if (resolved / jar).exists():
            shutil.copyfile(resolved / jar, folder / jar)
    problems = jar_problems([name])
    if problems:
        raise JarsWrongError(f"fetched jars differ from jars.lock: {'; '.join(problems[:5])}")
    shutil.rmtree(resolved.parent)


def lock_jars() -> None:
    """Writes the lock anew from what the coordinates resolve to today."""
    lines = []
    for name in SETS:
        resolved = _resolved(name)
        lines += [f"{_sha256(jar)}  {name}/{jar.name}\n" for jar in sorted(resolved.glob("*.jar"))]
    LOCK.write_text("".join(lines))


def _resolved(name: str) -> Path:
    """The folder into which Spark resolved the set."""
    ivy, log = CACHE / "ivy" / name, CACHE / f"ivy-{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    packages, excludes = ",".join(SETS[name].coordinates), ",".join(SETS[name].excludes)
    with log.open("wb") as output:
        command = [sys.executable, "-c", _RESOLVE, packages, excludes, str(ivy)]
        ended = subprocess.run(command, stdout=output, stderr=output, check=False)
    if ended.returncode != 0:
        raise JarsUnavailableError(
            f"could not fetch the {name} jars: is the network on? The resolver's words are in {log}"
        )
    return ivy / "jars"


def _locked(name: str, lock: Path) -> dict[str, str]:
    """The jars of a set by name, with their hashes."""
    lines = (line.split("  ") for line in lock.read_text().splitlines())
    prefix = f"{name}/"
    return {jar.removeprefix(prefix): sha for sha, jar in lines if jar.startswith(prefix)}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
