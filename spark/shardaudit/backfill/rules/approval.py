"""Whether a plan may be run: who lets it, and whether the sink may be written at all."""

from collections.abc import Mapping, Sequence

from shardaudit.backfill.rules.planned import WindowState
from shardaudit.model.choices import Approval, BackfillMode, SinkFormat
from shardaudit.model.config.parts import Backfill
from shardaudit.model.config.settings import Stream
from shardaudit.model.errors import ConfigError

POLICY = "policy"

# Delta's default store on S3 loses the commits of a second writer in silence. So do its others but
# one: they count on a rename or a create that one writer alone can win. Of a store of other people
# nothing is known, nor what another delegates to.
_LOG_STORE = "spark.delta.logStore.s3a.impl"
_MULTI_WRITER = "io.delta.storage.S3DynamoDBLogStore"


def approver(
    windows: Sequence[Mapping[str, object]], *, asked: str | None, backfill: Backfill
) -> str:
    """The name under which the plan runs: who approved it before, who asks now, or the policy.

    Input:
        windows: the plan's rows of BACKFILLS, at least one.

    Raises:
        ConfigError: nobody did, or the plan was cancelled.
    """
    plan_id = str(windows[0]["plan_id"])
    if any(row["state"] == WindowState.CANCELLED for row in windows):
        raise ConfigError("--plan", plan_id, "a plan that was not cancelled")
    before = [str(row["approved_by"]) for row in windows if row["approved_by"] is not None]
    if before and all(row["state"] != WindowState.PLANNED for row in windows):
        return before[0]
    if asked is not None and asked.strip():
        return asked.strip()
    size_bytes = sum(int(str(row["estimated_bytes"])) for row in windows)
    limit = backfill.auto_max_bytes
    if backfill.approve is Approval.AUTO and limit is not None and size_bytes <= limit:
        return f"{POLICY}: at most {size_bytes:,} of {limit:,} bytes"
    raise ConfigError(
        f"plan {plan_id}", "no approval", "--approve-as NAME, the person who lets it run"
    )


def check_sink_is_safe(name: str, stream: Stream, *, spark_settings: Mapping[str, str]) -> None:
    """Returns when the stream's sink may be written by a backfill, or is not written by it.

    Raises:
        ConfigError: commits are not safe.
    """
    if stream.backfill_mode is BackfillMode.MERGE:
        _check_commits(name, stream, spark_settings)


def why_not_run(name: str, stream: Stream, *, spark_settings: Mapping[str, str]) -> str | None:
    """What must be set before a backfill of the stream can run; None when it can."""
    try:
        check_sink_is_safe(name, stream, spark_settings=spark_settings)
    except ConfigError as error:
        return str(error)
    return None


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
    is_on_s3 = stream.sink.path.startswith("s3a://")
    is_safe = not is_on_s3 or spark.get(_LOG_STORE) == _MULTI_WRITER
    if not is_safe and not stream.sink.exclusive:
        raise ConfigError(
            f"streams.{name}.sink.exclusive",
            stream.sink.exclusive,
            "true, when nobody else writes the sink while a backfill merges, or all its writers "
            f'share a log store that keeps them apart; or "{_LOG_STORE}" = "{_MULTI_WRITER}" under '
            "[spark], for all writers: Delta on S3 otherwise loses the commits of a second writer "
            "in silence",
        )
