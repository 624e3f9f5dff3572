"""The door to Spark: one way to get a session, on one machine or on a cluster.

The program speaks Spark Connect with a server that this driver's own JVM starts: a plan travels
there whole and is analysed once. By py4j each column of it would be a call, 24,000 in an audit.
"""

import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any  # py4j's objects have no closer type

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from shardaudit.adapters.engine.connect import MODE, TOKEN, connected
from shardaudit.adapters.engine.jars import CACHE, FETCH, JARS_OF_CLASSES, LOG_STORE_KEYS
from shardaudit.adapters.engine.requirements import is_submitted
from shardaudit.model.config.parts import NAMED_JARS, Aws
from shardaudit.model.config.settings import Settings
from shardaudit.model.errors import ConfigError, FinalError

JARS = CACHE / "jars" / "spark"
_LOGGING = Path(__file__).with_name("log4j2.properties")

# The meaning of our results hangs on these: they are set wherever the job runs.
_MEANING = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Spark's own choice, INT96, has no statistics: a minute's rows would be looked for in all.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # max(text) would sort every row; above this many groups a hash aggregate turns to sorting too.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "1000000",
    # Without it Spark 4.1 cannot tell two columns of a checkpointed frame apart in some joins.
    "spark.sql.adaptive.enabled": "true",
}

# When S3A gives up. Hadoop's own limits ask a throttled S3 for hours, a silent one for half of one.
# These give 2 tries of 15 s, Hadoop's least. Delta asks five times for where a table begins, and a
# command that gets no answer is to end within three minutes.
_S3A_LIMITS = {
    "connection.establish.timeout": "15s",
    "connection.timeout": "15s",  # without a byte
    "connection.request.timeout": "15s",  # with the SDK's own tries; uploads apart:
    "connection.part.upload.timeout": "10m",  # many parts at a time share what goes up
    "multipart.size": "32M",
    "attempts.maximum": "3",  # the SDK's, after the first; of what fails at once
    "retry.limit": "1",  # S3A's own, after the first
    "retry.throttle.limit": "1",  # 3 took 107 s for one call, as measured; 1 takes 7
    "retry.throttle.interval": "1s",  # the pause before it, about
}

# What suits our program, many small plans and small tables, on one machine and on a cluster.
_PROGRAM = {f"spark.hadoop.fs.s3a.{name}": value for name, value in _S3A_LIMITS.items()} | {
    # An audit has more plans than Spark's 100: each run of it would compile them all again.
    "spark.sql.codegen.cache.maxEntries": "1000",
    # Java compiles no method above 8,000 bytes: it would interpret what judges a trace, row by row.
    "spark.sql.codegen.hugeMethodLimit": "8000",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Every call on a frame would tell the JVM of its place in our files.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

# One machine. Whoever submits to a cluster, or writes [spark], overrides them.
_ONE_MACHINE = {
    "spark.master": "local[*]",
    "spark.driver.memory": "2500m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Java keeps what each thread read at once outside of the heap; above 256 KiB it need not.
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC -Djdk.nio.maxCachedBufferSize=262144 "
    f"-Dlog4j2.configurationFile={_LOGGING}",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
}

# A server of our own, which takes no one without the token, on a port of this machine.
_PLUGINS = "spark.plugins"
_SERVER_PLUGIN = "org.apache.spark.sql.connect.SparkConnectPlugin"
_SERVICE = "org.apache.spark.sql.connect.service.SparkConnectService"
_SERVER = {
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
    # It would end a session that asks nothing for an hour, as while files are copied.
    "spark.connect.session.manager.defaultSessionTimeout": "-1",
    # One program, one session: nobody's classes have to be kept apart.
    "spark.sql.artifact.isolation.enabled": "false",
}


class JarsMissingError(FinalError, FileNotFoundError):
    """Spark's jars are not there."""

    def __init__(self) -> None:
        super().__init__(f"no jars in {JARS}: {FETCH}")


@contextmanager
def spark_session(settings: Settings, *, app: str) -> Iterator[SparkSession]:
    """A session of Spark; it ends with the block, and Spark with it.

    Precedence: what the server needs > `[spark]` of the configuration > what keeps our meaning >
    spark-submit > what suits our program, and one machine. `spark.jars` comes beside our own jars;
    under spark-submit its `--jars` hold alone: no other would be there for the driver.

    Raises:
        JarsMissingError: not under spark-submit, and nobody fetched the jars.
        ConfigError: a log store that Delta was told to commit by is in none of the jars.
    """
    os.environ.pop(MODE, None)  # of a session that started this process
    token = secrets.token_hex()
    context = SparkContext.getOrCreate(_conf(settings, app, token))
    context.setLogLevel("ERROR")  # Spark itself sets WARN again
    try:
        _check_log_stores(context)
        SparkSession(context)  # the first session starts the server
        # No other host's name would be taken with a token and without a certificate.
        with connected(f"sc://localhost:{_port(context)}/;token={token}") as session:
            for path in _submitted_sources(context):
                session.addArtifacts(path, pyfile=True)
            yield session
    finally:
        with suppress(Py4JError, OSError):  # it may be gone, which the block says better
            context.stop()


def _conf(settings: Settings, app: str, token: str) -> SparkConf:
    wanted = _MEANING | settings.spark | _s3a(settings.aws)
    named = wanted.pop(NAMED_JARS, "").split(",")
    if is_submitted():
        SparkContext._ensure_initialized()  # noqa: SLF001 - SparkConf cannot see the submit's settings before it
        submitted = SparkConf()
        # --jars, the master and the memory are the submitter's; the rest only where it was silent.
        local = (submitted.get("spark.master") or "").startswith("local")
        ours = _PROGRAM | (_ONE_MACHINE if local else {})
        silent = {k: v for k, v in ours.items() if not submitted.contains(k)}
        wanted = silent | {"spark.connect.authenticate.token": token} | wanted
    else:
        # Python's workers have to see the packages that we do, whatever `python3` is on the PATH.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ[TOKEN] = token  # not in a command line
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # or Spark warns of the host's name
        jars = ",".join(dict.fromkeys(filter(None, [*_jars(), *named])))
        wanted = _PROGRAM | _ONE_MACHINE | wanted | {NAMED_JARS: jars}
    conf = SparkConf().setAppName(app).setAll(list((wanted | _SERVER).items()))
    return conf.set(_PLUGINS, ",".join(filter(None, (conf.get(_PLUGINS), _SERVER_PLUGIN))))


def hadoop_files() -> tuple[Any, Any]:
    """Java's package `org.apache.hadoop.fs`, and the configuration of Spark's file systems."""
    context = SparkContext.getOrCreate()  # what runs in this process
    hadoop = context._jvm.org.apache.hadoop.fs  # type: ignore[union-attr] # noqa: SLF001 - the way to Hadoop
    return hadoop, context._jsc.hadoopConfiguration()  # noqa: SLF001


def _port(context: SparkContext) -> int:
    """Where the server listens; py4j knows a Scala object by its class's name alone."""
    service = getattr(context._jvm, f"{_SERVICE}$")  # noqa: SLF001
    return int(getattr(service, "MODULE$").localPort())


def _submitted_sources(context: SparkContext) -> list[str]:
    """The files of --py-files, which Spark Connect gives to workers only when it is told.

    A cluster that hands them out itself, as YARN does, may leave addresses that are not of here.
    """
    names = context.getConf().get("spark.submit.pyFiles", "") or ""
    paths = [path.removeprefix("file://").removeprefix("file:") for path in names.split(",")]
    return [path for path in paths if path and Path(path).is_file()]


def _jars() -> list[str]:
    jars = sorted(str(jar) for jar in JARS.glob("*.jar"))
    if not jars:
        raise JarsMissingError
    return jars


def _check_log_stores(context: SparkContext) -> None:
    for key, name in context.getConf().getAll():
        if key.startswith(LOG_STORE_KEYS) and (lacks := _lacks(context, name)):
            where = JARS_OF_CLASSES.get(name, "the jars that have it")
            wanted = f"a class that can be loaded ({lacks}): the files of {where} "
            raise ConfigError(key, name, f'{wanted}belong into "{NAMED_JARS}" under [spark]')


def _lacks(context: SparkContext, name: str) -> str | None:
    """Java's words of what is not there: the class, or one that its fields and methods name."""
    java = context._jvm.java.lang  # type: ignore[union-attr] # noqa: SLF001 - no other way to a class
    try:
        loader = java.Thread.currentThread().getContextClassLoader()
        found = java.Class.forName(name, True, loader)
        found.getDeclaredFields()
        found.getDeclaredMethods()
    except Py4JJavaError as error:
        return str(error.java_exception)
    return None


def _s3a(aws: Aws) -> dict[str, str]:
    """The settings of s3a; credentials come from the usual chain, never from the configuration."""
    options: dict[str, str] = {}
    if aws.region:
        options["spark.hadoop.fs.s3a.endpoint.region"] = aws.region
    endpoint = aws.endpoint("s3")
    if endpoint:
        options |= {
            "spark.hadoop.fs.s3a.endpoint": endpoint,
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.connection.ssl.enabled": str(endpoint.startswith("https")).lower(),
        }
    return options
