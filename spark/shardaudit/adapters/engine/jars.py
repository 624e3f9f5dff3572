"""The jars of Spark and of the S3 stand-in: fetched once by coordinates, checked by their hashes.

`jars.lock` says which files with which content are ours. Ivy, which Spark brings, fetches them, in
a JVM that has none of them on its classpath; they come into place once their hashes are right.
At run time nothing is fetched: Spark gets the files (decision 003).
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from importlib.metadata import distribution
from pathlib import Path

from shardaudit.adapters.engine.requirements import INSTALL, java_program
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

# Which class commits to a Delta table, by kind of address; Delta loads it at the first table.
LOG_STORE_KEYS = "spark.delta.logStore."
# What it is in, where it is in none of ours: Delta's speaks to DynamoDB by the AWS SDK 1.
JARS_OF_CLASSES = {
    "io.delta.storage.S3DynamoDBLogStore": f"io.delta:delta-storage-s3-dynamodb:{_DELTA}, and of "
    "com.amazonaws:aws-java-sdk-dynamodb:1.12.262 with all that it needs,"
}

# As Spark's own resolver has it: another address than Ivy's for what is not in ~/.m2.
_MIRROR = "DEFAULT_ARTIFACT_REPOSITORY"
_SETTINGS = """<ivysettings>
  <settings defaultResolver="all"/>
  <caches defaultCacheDir="{cache}"/>
  <timeout-constraints>
    <timeout-constraint name="quick" connectionTimeout="20000" readTimeout="60000"/>
  </timeout-constraints>
  <resolvers><chain name="all" returnFirst="true">
    <ibiblio name="own" m2compatible="true" usepoms="false" root="{own}"/>
    <ibiblio name="central" m2compatible="true" usepoms="false" timeoutConstraint="quick"{root}/>
  </chain></resolvers>
</ivysettings>
"""
_MODULE = """<ivy-module version="2.0">
  <info organisation="shardaudit" module="{name}"/>
  <dependencies>{dependencies}</dependencies>
</ivy-module>
"""
_DEPENDENCY = '<dependency org="{}" name="{}" rev="{}" transitive="false" conf="default"/>'
_FILE = "[organization]_[artifact]-[revision].[ext]"
# Group, artifact and version in such a name: no group has an underscore.
_PARTS = re.compile(r"([^_]+)_(.+?)-(\d.*|v\d+-rev.*)\.jar")

# One Spark start that does nothing but resolve, to lock anew: coordinates, excludes, the folder.
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
    return [
        problem
        for name in names
        for problem in _differing(name, locked_jars(name, lock), cache / "jars" / name)
    ]


def _differing(name: str, wanted: Mapping[str, str], folder: Path) -> list[str]:
    found = {path.name for path in folder.glob("*.jar")}
    problems = [f"{name}/{jar} is missing" for jar in sorted(wanted.keys() - found)]
    problems += [f"{name}/{jar} is not in jars.lock" for jar in sorted(found - wanted.keys())]
    return problems + [
        f"{name}/{jar} has another content than jars.lock says"
        for jar in sorted(wanted.keys() & found)
        if _sha256(folder / jar) != wanted[jar]
    ]


def fetch_jars(name: str, *, cache: Path = CACHE, lock: Path = LOCK) -> None:
    """Fills the cache's folder of this set with exactly the jars of the lock, once all are right.

    Raises:
        JarsUnavailableError: they could not be fetched; says where the words are that say why.
        JarsWrongError: a jar is missing or has another content than the lock says.
    """
    wanted = locked_jars(name, lock)
    draft, folder = cache / "ivy" / name, cache / "jars" / name
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    _download(wanted, draft, log=cache / f"ivy-{name}.log")
    problems = _differing(name, wanted, draft / "jars")
    if problems:
        raise JarsWrongError(f"fetched jars differ from jars.lock: {'; '.join(problems[:5])}")
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    (draft / "jars").replace(folder)
    shutil.rmtree(draft)


def _download(jars: Iterable[str], draft: Path, *, log: Path) -> None:
    """Has Ivy put these jars, and nothing that they ask for, into `<draft>/jars`."""
    java = java_program()
    if java is None:
        raise JarsUnavailableError(f"the jars are fetched by Java, and there is none: {INSTALL}")
    mirror = os.environ.get(_MIRROR)
    own = f"{(_HOME / '.m2' / 'repository').as_uri()}/"
    root = f' root="{escape(mirror)}"' if mirror else ""
    settings, module = draft / "settings.xml", draft / "ivy.xml"
    cache = escape(str(draft / "cache"))
    settings.write_text(_SETTINGS.format(cache=cache, own=escape(own), root=root))
    dependencies = "".join(_DEPENDENCY.format(*map(escape, coordinates(jar))) for jar in jars)
    module.write_text(_MODULE.format(name=draft.name, dependencies=dependencies))
    brought = Path(str(distribution("pyspark").locate_file("pyspark/jars")))
    ivy = ":".join(str(jar) for jar in brought.glob("ivy-*.jar"))
    command = [java, "-cp", ivy, "org.apache.ivy.Main", "-settings", str(settings)]
    command += ["-ivy", str(module), "-retrieve", f"{draft}/jars/{_FILE}"]
    _run_logged(log, command, f"could not fetch the {draft.name} jars")


def coordinates(jar: str) -> tuple[str, str, str]:
    """Group, artifact and version of a file of the lock."""
    found = _PARTS.fullmatch(jar)
    if found is None:
        raise JarsWrongError(f"{jar} in jars.lock is not named <group>_<artifact>-<version>.jar")
    return found[1], found[2], found[3]


def lock_jars() -> None:
    """Writes the lock anew from what the coordinates resolve to today."""
    lines = []
    for name in SETS:
        resolved = _resolve(name)
        lines += [f"{_sha256(jar)}  {name}/{jar.name}\n" for jar in sorted(resolved.glob("*.jar"))]
    LOCK.write_text("".join(lines))


def _resolve(name: str) -> Path:
    """The folder into which Spark resolved the set."""
    ivy, log = CACHE / "ivy" / name, CACHE / f"ivy-{name}.log"
    packages, excludes = ",".join(SETS[name].coordinates), ",".join(SETS[name].excludes)
    command = [sys.executable, "-c", _RESOLVE, packages, excludes, str(ivy)]
    _run_logged(log, command, f"could not resolve the {name} jars")
    return ivy / "jars"


def _run_logged(log: Path, command: list[str], failed: str) -> None:
    """Runs a command whose words go into a file."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        ended = subprocess.run(command, stdout=output, stderr=output, check=False)
    if ended.returncode != 0:
        said = f"{failed}: is the network on? The resolver's words are in {log}"
        raise JarsUnavailableError(said)


def locked_jars(name: str, lock: Path = LOCK) -> dict[str, str]:
    """The jars of a set by name, with their hashes."""
    lines = (line.split("  ") for line in lock.read_text().splitlines())
    prefix = f"{name}/"
    return {jar.removeprefix(prefix): sha for sha, jar in lines if jar.startswith(prefix)}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
