"""Whether a backfill may write a sink at all: known before Spark starts."""

from collections.abc import Mapping

from shardaudit.model.choices import BackfillMode, SinkFormat
from shardaudit.model.config import Stream
from shardaudit.model.errors import ConfigError

# Delta's default store on S3 loses the commits of a second writer in silence (STACK 6). Its others
# do so there, too: they count on a rename or a create that one writer alone can win.
_LOG_STORE = "spark.delta.logStore.s3a.impl"
_DEFAULT = "S3SingleDriverLogStore"
_SINGLE_WRITER = (_DEFAULT, "HDFSLogStore", "AzureLogStore", "GCSLogStore", "LocalLogStore")


def check_backfill(name: str, stream: Stream, *, spark_settings: Mapping[str, str]) -> None:
    """Returns when the stream's sink may be written by a backfill, or is not written by it.

    Raises:
        ConfigError: commits are not safe.
    """
    if stream.backfill_mode is BackfillMode.MERGE:
        _check_commits(name, stream, spark_settings)


def check_dedupe(name: str, stream: Stream, *, spark_settings: Mapping[str, str]) -> None:
    """Returns when rows of the stream's sink may be removed.

    Raises:
        ConfigError: it is no Delta table, or commits are not safe.
    """
    if stream.sink.format is not SinkFormat.DELTA:
        found = f"{stream.sink.format}"
        wanted = "delta: rows of a Parquet sink cannot be removed in one step"
        raise ConfigError(f"streams.{name}.sink.format", found, wanted)
    _check_commits(name, stream, spark_settings)


def _check_commits(name: str, stream: Stream, spark: Mapping[str, str]) -> None:
    store = spark.get(_LOG_STORE, _DEFAULT)
    is_safe = not stream.sink.path.startswith("s3a://") or not store.endswith(_SINGLE_WRITER)
    if not is_safe and not stream.sink.exclusive:
        raise ConfigError(
            f"streams.{name}.sink.exclusive",
            stream.sink.exclusive,
            "true, when nobody else writes the sink while a backfill merges; or a multi-writer "
            f'"{_LOG_STORE}" under [spark], for all writers: Delta on S3 otherwise loses the '
            "commits of a second writer in silence",
        )
