"""The choice of an engine, made here and nowhere else: one session for the life of a command."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from shardaudit.adapters.engine.apache_spark import spark_session
from shardaudit.adapters.engine.embedded import embedded_session
from shardaudit.model.choices import EngineName
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
    if chosen(settings) is EngineName.EMBEDDED:
        with embedded_session(settings) as (session, version):
            yield Engine(session, version)
        return
    session = spark_session(settings, app=app)
    try:
        yield Engine(session, f"Apache Spark {session.version}")
    finally:
        with suppress(Py4JError, OSError):  # it may be gone, which the block says better
            session.stop()


def chosen(settings: Settings) -> EngineName:
    """The engine that will run: spark-submit has started one already."""
    return EngineName.SPARK if "PYSPARK_GATEWAY_PORT" in os.environ else settings.engine
