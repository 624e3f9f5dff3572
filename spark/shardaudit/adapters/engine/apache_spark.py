"""The door to Spark: one way to get a session, on one machine or on a cluster."""

import os
import sys
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from shardaudit.model.config.settings import Aws, Settings
from shardaudit.model.errors import FinalError

JARS = Path(__file__).parents[4] / ".cache" / "jars" / "spark"
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

# One machine (STACK 3). Whoever submits to a cluster, or writes [spark], overrides them.
_ONE_MACHINE = {
    "spark.master": "local[*]",
    "spark.driver.memory": "2500m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Java keeps what each thread read at once outside of the heap; above 256 KiB it need not.
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC -Djdk.nio.maxCachedBufferSize=262144 "
    f"-Dlog4j2.configurationFile={_LOGGING}",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    # An audit has more plans than Spark's 100: each run of it would compile them all again.
    "spark.sql.codegen.cache.maxEntries": "1000",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Every call on a frame would tell the JVM of its place in our files.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}


class JarsMissingError(FinalError, FileNotFoundError):
    """The jars that set-up fetches are not there."""

    def __init__(self) -> None:
        super().__init__(f"no jars in {JARS}: run `make setup` once, with the network on")


def spark_session(settings: Settings, *, app: str) -> SparkSession:
    """The session of this process, made or found.

    Precedence: `[spark]` of the configuration > what keeps our meaning > spark-submit > one
    machine.

    Raises:
        JarsMissingError: not under spark-submit, and set-up has not run.
    """
    under_submit = "PYSPARK_GATEWAY_PORT" in os.environ  # set by spark-submit
    wanted = _MEANING | settings.spark | _s3a(settings.aws)
    if under_submit:
        SparkContext._ensure_initialized()  # noqa: SLF001 - SparkConf cannot see the submit's settings before it
        submitted = SparkConf()
        # --jars, the master and the memory are the submitter's; the rest only where it was silent.
        silent = {k: v for k, v in _ONE_MACHINE.items() if not submitted.contains(k)}
        local = (submitted.get("spark.master") or "").startswith("local")
        wanted = (silent if local else {}) | wanted
    else:
        # Python's workers have to see the packages that we do, whatever `python3` is on the PATH.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # or Spark warns of the host's name
        wanted = _ONE_MACHINE | {"spark.jars": _jars()} | wanted
    builder = SparkSession.builder.appName(app)
    for key, value in wanted.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")  # Spark itself sets WARN again
    return session


def _jars() -> str:
    jars = sorted(str(jar) for jar in JARS.glob("*.jar"))
    if not jars:
        raise JarsMissingError
    return ",".join(jars)


def _s3a(aws: Aws) -> dict[str, str]:
    """The settings of s3a; credentials come from the usual chain, never from the configuration."""
    options = {
        "spark.hadoop.fs.s3a.attempts.maximum": "3",
        "spark.hadoop.fs.s3a.retry.limit": "3",
        "spark.hadoop.fs.s3a.connection.establish.timeout": "5s",
    }
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
