"""Whether a backfill may write a sink at all: known before Spark starts."""

from collections.abc import Mapping

from shardaudit.model.choices import BackfillMode, SinkFormat
from shardaudit.model.config import Stream
from shardaudit.model.errors import ConfigError

# Delta's default store on S3 loses the commits of a second writer in silence (STACK 6).
_LOG_STORE = "spark.delta.logStore.s3a.impl"
_SINGLE_WRITER = "S3SingleDriverLogStore"


def check_sink(name: str, stream: Stream, *, spark_settings: Mapping[str, str]) -> None:
    """Returns when the stream's sink may be written by a backfill.

    Raises:
        ConfigError: this mode or decoder is not there, or commits are not safe.
    """
    _check_mode(name, stream)
    _check_commits(name, stream, spark_settings)


def _check_mode(name: str, stream: Stream) -> None:
    mode = stream.backfill.mode
    if stream.sink.format is not SinkFormat.DELTA or mode not in (None, BackfillMode.MERGE):
        raise ConfigError(
            f"streams.{name}.backfill.mode",
            mode.value if mode else f"nothing, for a {stream.sink.format} sink",
            "merge, into a Delta sink: this version of shardaudit has no other mode",
        )
    if stream.backfill.decoder != "json":
        raise ConfigError(
            f"streams.{name}.backfill.decoder",
            stream.backfill.decoder,
            "json: this version of shardaudit has no other decoder",
        )


def _check_commits(name: str, stream: Stream, spark: Mapping[str, str]) -> None:
    store = spark.get(_LOG_STORE, _SINGLE_WRITER)
    is_safe = not stream.sink.path.startswith("s3a://") or not store.endswith(_SINGLE_WRITER)
    if not is_safe and not stream.sink.exclusive:
        raise ConfigError(
            f"streams.{name}.sink.exclusive",
            stream.sink.exclusive,
            "true, when nobody else writes the sink while a backfill merges; or a multi-writer "
            f'"{_LOG_STORE}" under [spark], for all writers: Delta on S3 otherwise loses the '
            "commits of a second writer in silence",
        )
