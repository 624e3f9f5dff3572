"""What `backfill` and `dedupe` refuse before Spark starts."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from shardaudit.backfill.kinesis_source import decoder
from shardaudit.backfill.rules.approval import check_dedupe, check_sink_is_safe
from shardaudit.cli.backfill_command import work_lock
from shardaudit.cli.main import main
from shardaudit.model.config.settings import Settings, Stream
from shardaudit.model.errors import ConfigError, WarehouseBusyError
from shardaudit.model.exit_code import ExitCode
from shardaudit.store.lock import warehouse_lock
from tests.configurations import LEAST

LOG_STORE = "spark.delta.logStore.s3a.impl"
MULTI_WRITER = {"spark.delta.logStore.s3a.impl": "io.delta.storage.S3DynamoDBLogStore"}
Check = Callable[..., None]  # check_backfill or check_dedupe
SINGLE_WRITER = {"spark.delta.logStore.s3a.impl": "io.delta.storage.S3SingleDriverLogStore"}
BY_RENAME = {"spark.delta.logStore.s3a.impl": "io.delta.storage.HDFSLogStore"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("backfill plan --stream event", "did you mean events?"),
        ("backfill plan --stream events --from 2026-11-20T00:00:00Z", "both, or neither"),
        ("backfill plan --stream events --as-of 2026-11-20T00:00:00", "time with a zone"),
        (
            "backfill plan --stream events --from 2026-11-20T00:00:00Z --to 2026-11-20T02:00:00Z "
            "--as-of 2026-11-20T01:00:00Z",
            "--to: found",
        ),
        ("dedupe plan --stream event", "did you mean events?"),
        ("backfill verify --plan p-1", "a plan that `shardaudit backfill plan` printed"),
    ],
)
def test_wrong_argument_ends_with_2_and_its_name(
    config: Path, capsys: pytest.CaptureFixture[str], line: str, said: str
) -> None:
    assert main(["--config", str(config), *line.split()]) == ExitCode.USAGE
    assert said in capsys.readouterr().err


def stream(
    path: str, *, exclusive: bool = False, backfill: dict[str, object] | None = None
) -> Stream:
    return Stream.model_validate(
        {
            "stream_name": "events",
            "traces": {"path": "traces"},
            "sink": {"path": path, "exclusive": exclusive},
            "backfill": backfill or {},
        }
    )


def test_command_ends_with_2_before_spark_starts_when_commits_may_be_lost(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(LEAST.replace("file:///sink", "s3a://lake/events"))
    assert main(["--config", str(config), "dedupe", "plan", "--stream=events"]) == ExitCode.USAGE
    assert "loses the commits of a second writer in silence" in capsys.readouterr().err


def refusal(check: Check, events: Stream, settings: dict[str, str]) -> str | None:
    """What the check says against the sink; None when it takes it."""
    try:
        check("events", events, spark_settings=settings)
    except ConfigError as error:
        return str(error)
    return None


@pytest.mark.parametrize("check", [check_sink_is_safe, check_dedupe])
@pytest.mark.parametrize(
    ("path", "exclusive", "settings", "is_taken"),
    [
        ("s3a://lake/events", False, {}, False),
        ("s3a://lake/events", False, SINGLE_WRITER, False),
        ("s3a://lake/events", False, BY_RENAME, False),
        ("s3a://lake/events", False, MULTI_WRITER, True),
        ("s3a://lake/events", False, {LOG_STORE: "io.delta.storage.S3DynamoDBLogStore "}, False),
        ("s3a://lake/events", False, {LOG_STORE: "io.delta.storage.S3DynamoDbLogStore"}, False),
        ("s3a://lake/events", False, {LOG_STORE: "org.apache.spark.DelegatingLogStore"}, False),
        ("s3a://lake/events", True, {}, True),
        ("/lake/events", False, {}, True),
    ],
)
def test_sink_is_written_only_where_no_commit_can_be_lost(
    check: Check, path: str, exclusive: bool, settings: dict[str, str], is_taken: bool
) -> None:
    said = refusal(check, stream(path, exclusive=exclusive), settings)
    assert (said is None) == is_taken
    assert said is None or "exclusive: found False" in said


@pytest.mark.parametrize(
    ("backfill", "is_taken"),
    [
        ({"mode": "merge"}, False),
        ({"mode": "republish", "republish_to": "again"}, True),
        ({"mode": "request", "request_to": "asked"}, True),
    ],
)
def test_commits_need_to_be_safe_only_where_we_write(
    backfill: dict[str, object], is_taken: bool
) -> None:
    said = refusal(check_sink_is_safe, stream("s3a://lake/events", backfill=backfill), {})
    assert (said is None) == is_taken


@pytest.mark.parametrize(
    ("action", "plan_id", "is_taken"),
    [("replay", "events-2", False), ("verify", "events-1", False), ("verify", "events-2", True)],
)
def test_proof_goes_beside_the_replay_of_another_plan(
    tmp_path: Path, action: str, plan_id: str, is_taken: bool
) -> None:
    settings, name = Settings(warehouse=str(tmp_path), streams={}), "backfill-events"
    said: AbstractContextManager[object] = (
        nullcontext() if is_taken else pytest.raises(WarehouseBusyError, match="by backfill rep")
    )
    with (
        warehouse_lock(settings, owner="backfill replay events-1", name=name),
        said,
        work_lock(settings, name, action, owner=f"backfill {action}", plan_id=plan_id) as held,
    ):
        assert held is None


def test_rows_of_a_parquet_sink_are_not_removed() -> None:
    parquet = {"path": "s3a://lake/events", "format": "parquet"}
    events = Stream.model_validate(
        {"stream_name": "events", "traces": {"path": "traces"}, "sink": parquet}
    )
    assert refusal(check_sink_is_safe, events, {}) is None
    with pytest.raises(ConfigError, match="format: found 'parquet'"):
        check_dedupe("events", events, spark_settings={})


@pytest.mark.parametrize("decode", ["nowhere_at_all:decode", "json:not_there", "json:__name__"])
def test_decoder_that_is_not_there_is_refused(decode: str) -> None:
    with pytest.raises(ConfigError, match="on every worker"):
        decoder(decode)
