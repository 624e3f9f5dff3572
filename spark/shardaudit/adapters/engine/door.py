"""The choice of an engine, made here and nowhere else: one session for the life of a command."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import SparkSession

from shardaudit.adapters.engine.apache_spark import spark_session
from shardaudit.adapters.engine.embedded import embedded_session
from shardaudit.adapters.engine.requirements import is_submitted
from shardaudit.model.config.choices import EngineName
from shardaudit.model.config.settings import Settings


@dataclass(frozen=True, slots=True)
class Engine:
    """A session and what runs it. `version`: its name and version, for people and `audits`."""

    session: SparkSession
    version: str


@contextmanager
def started(settings: Settings, *, app: str) -> Iterator[Engine]:
    """The engine that the settings name; under spark-submit it is always Apache Spark.

    Raises:
        EngineMissingError: pysail is not installed; nothing falls back to the other engine.
        OpenPortError: the embedded engine's port could be reached by other people.
        JarsMissingError: Apache Spark, and set-up has not run.
    """
    try:
        if chosen(settings) is EngineName.EMBEDDED:
            with embedded_session(settings) as (session, version):
                yield Engine(session, version)
        else:
            with spark_session(settings, app=app) as session:
                yield Engine(session, f"Apache Spark {session.version}")
    finally:
        signal.alarm(0)  # of an interruption: all is tidied up


def chosen(settings: Settings) -> EngineName:
    """The engine that will run: spark-submit has started one already."""
    return EngineName.SPARK if is_submitted() else settings.engine


def works_here(settings: Settings) -> bool:
    """Whether all of the engine is below this process: no cluster, and no spark-submit above it."""
    if chosen(settings) is EngineName.EMBEDDED:
        return True
    return not is_submitted() and settings.spark.get("spark.master", "local").startswith("local")
