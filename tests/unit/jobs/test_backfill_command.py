"""What `backfill` and `dedupe` refuse before Spark starts."""

from pathlib import Path

import pytest

from shardaudit.adapters.entry_point import decoder
from shardaudit.backfill.safety import check_backfill, check_dedupe
from shardaudit.jobs.main import main
from shardaudit.model.config import Stream
from shardaudit.model.errors import ConfigError, ExitCode
from tests.unit.model.test_config import LEAST

MULTI_WRITER = {"spark.delta.logStore.s3a.impl": "io.delta.storage.S3DynamoDBLogStore"}
SINGLE_WRITER = {"spark.delta.logStore.s3a.impl": "io.delta.storage.S3SingleDriverLogStore"}
BY_RENAME = {"spark.delta.logStore.s3a.impl": "io.delta.storage.HDFSLogStore"}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "shardaudit.toml"
    file.write_text(LEAST)
    return file


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


@pytest.mark.parametrize("settings", [{}, SINGLE_WRITER, BY_RENAME])
def test_shared_sink_on_s3_is_refused_when_its_commits_may_be_lost(
    settings: dict[str, str],
) -> None:
    with pytest.raises(ConfigError, match="exclusive: found False"):
        check_backfill("events", stream("s3a://lake/events"), spark_settings=settings)
    with pytest.raises(ConfigError, match="exclusive: found False"):
        check_dedupe("events", stream("s3a://lake/events"), spark_settings=settings)


@pytest.mark.parametrize("line", ["backfill plan --stream events", "dedupe plan --stream events"])
def test_command_ends_with_2_before_spark_starts_when_commits_may_be_lost(
    config: Path, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    config.write_text(LEAST.replace("file:///sink", "s3a://lake/events"))
    assert main(["--config", str(config), *line.split()]) == ExitCode.USAGE
    assert "loses the commits of a second writer in silence" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("path", "exclusive", "settings"),
    [
        ("/lake/events", False, {}),
        ("s3a://lake/events", True, {}),
        ("s3a://lake/events", False, MULTI_WRITER),
    ],
)
def test_sink_with_safe_commits_is_taken(
    path: str, exclusive: bool, settings: dict[str, str]
) -> None:
    check_backfill("events", stream(path, exclusive=exclusive), spark_settings=settings)


@pytest.mark.parametrize(
    "backfill",
    [{"mode": "republish", "republish_to": "again"}, {"mode": "request", "request_to": "asked"}],
)
def test_sink_that_is_not_written_by_us_needs_no_safe_commits(backfill: dict[str, object]) -> None:
    check_backfill("events", stream("s3a://lake/events", backfill=backfill), spark_settings={})


def test_rows_of_a_parquet_sink_are_not_removed() -> None:
    parquet = {"path": "s3a://lake/events", "format": "parquet"}
    events = Stream.model_validate(
        {"stream_name": "events", "traces": {"path": "traces"}, "sink": parquet}
    )
    check_backfill("events", events, spark_settings={})
    with pytest.raises(ConfigError, match="format: found 'parquet'"):
        check_dedupe("events", events, spark_settings={})


@pytest.mark.parametrize("decode", ["nowhere_at_all:decode", "json:not_there", "json:__name__"])
def test_decoder_that_is_not_there_is_refused(decode: str) -> None:
    with pytest.raises(ConfigError, match="on every worker"):
        decoder(decode)
