"""What `backfill` and `dedupe` refuse before Spark starts."""

from pathlib import Path

import pytest

from shardaudit.backfill.safety import check_sink
from shardaudit.jobs.main import main
from shardaudit.model.config import Stream
from shardaudit.model.errors import ConfigError, ExitCode
from tests.unit.model.test_config import LEAST

MULTI_WRITER = {"spark.delta.logStore.s3a.impl": "io.delta.storage.S3DynamoDBLogStore"}
SINGLE_WRITER = {"spark.delta.logStore.s3a.impl": "io.delta.storage.S3SingleDriverLogStore"}


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


@pytest.mark.parametrize("settings", [{}, SINGLE_WRITER])
def test_shared_sink_on_s3_is_refused_when_its_commits_may_be_lost(
    settings: dict[str, str],
) -> None:
    with pytest.raises(ConfigError, match="exclusive: found False"):
        check_sink("events", stream("s3a://lake/events"), spark_settings=settings)


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
    check_sink("events", stream(path, exclusive=exclusive), spark_settings=settings)


@pytest.mark.parametrize("backfill", [{"mode": "republish"}, {"decoder": "mine:decode"}])
def test_what_this_version_does_not_have_is_refused(backfill: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="this version"):
        check_sink("events", stream("/lake/events", backfill=backfill), spark_settings={})
