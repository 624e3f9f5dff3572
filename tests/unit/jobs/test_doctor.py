import argparse
from pathlib import Path

import pytest

from shardaudit.jobs.command import Desk
from shardaudit.jobs.doctor import Line, run
from shardaudit.model.errors import ExitCode
from shardaudit.report.progress import SILENT
from tests.unit.model.test_config import LEAST


def checked(config: Path) -> tuple[dict[str, Line], ExitCode]:
    reply = run(argparse.Namespace(), Desk(config=config, progress=lambda _: SILENT))
    assert isinstance(reply.document, dict)
    return {line.check: line for line in reply.document["checks"]}, reply.exit_code


def test_wrong_configuration_is_one_line_and_ends_with_2(tmp_path: Path) -> None:
    lines, exit_code = checked(tmp_path / "none.toml")
    assert lines["configuration"].level == "fail"
    assert "warehouse" not in lines
    assert exit_code is ExitCode.USAGE


def test_absent_places_fail_with_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    config = tmp_path / "shardaudit.toml"
    config.write_text(LEAST.replace("file:///sink", "sink"))
    lines, exit_code = checked(config)
    assert lines["warehouse"].level == "ok"
    assert lines["expectations"].level == "ok"
    assert lines["events: traces"].found == f"there is no folder {tmp_path}/traces"
    assert lines["events: sink"].found == f"there is no Delta table {tmp_path}/sink"
    assert lines["events: sink"].cure
    assert exit_code is ExitCode.FAILED


def test_java_is_missing_when_java_home_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    lines, _ = checked(tmp_path / "none.toml")
    assert lines["Java"].level == "fail"
    assert "openjdk-17" in lines["Java"].cure
