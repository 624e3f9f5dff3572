"""What Delta is told to commit by is loaded first: a merge must not die in the middle of it."""

import json
import subprocess
from pathlib import Path

import pytest

from shardaudit.model.exit_code import ExitCode
from tests.configurations import LEAST
from tests.spark.commands import command

RUN = ["dedupe", "run", "--plan", "p-1", "--approve-as", "ann"]


def ended(folder: Path, words: list[str], *, log_store: str) -> "subprocess.CompletedProcess[str]":
    """The command, where commits to S3 are made by that class."""
    key = "spark.delta.logStore.s3a.impl"
    config = f'{LEAST}[spark]\n"{key}" = "io.delta.storage.{log_store}"\n'
    (folder / "shardaudit.toml").write_text(config)
    done = command(folder, words)
    return subprocess.run(done, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.apache_spark
def test_a_log_store_is_refused_with_its_jars_before_anything_is_written_when_it_is_not_there(
    tmp_path: Path,
) -> None:
    done = ended(tmp_path, RUN, log_store="S3DynamoDBLogStore")
    assert done.returncode == ExitCode.USAGE, done.stderr
    assert "io.delta:delta-storage-s3-dynamodb:4.4.0" in done.stderr
    assert {path.name for path in (tmp_path / "lake").iterdir()} <= {"_claims"}
    found = ended(tmp_path, ["--json", "doctor"], log_store="S3SingleDriverLogStore").stdout
    levels = {line["check"]: line["level"] for line in json.loads(found)["checks"]}
    assert levels["log store"] == "ok"
