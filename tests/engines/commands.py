"""Commands as a person types them, on a machine without Java."""

import os
import subprocess
import sys
from pathlib import Path

from shardaudit.simulate.s3proxy import S3Endpoint

WINDOW = ["--from", "2026-11-01T00:00:00Z", "--to", "2026-11-02T00:00:00Z"]
AS_OF = ["--as-of", "2026-11-02T00:30:00Z"]
STREAM = ["--stream", "events"]
FAULTS = ["--fault=lost=5", "--fault=replay=3", "--fault=untraced=2"]


def without_java(folder: Path) -> dict[str, str]:
    """An environment in which no `java` can be found."""
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    return dict(os.environ) | {
        "PATH": str(programs),
        "JAVA_HOME": str(folder / "nothing"),
        "SHARDAUDIT_ENGINE": "embedded",
    }


def reaching(endpoint: S3Endpoint) -> dict[str, str]:
    """This environment, with the credentials of that S3 and no others."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return kept | endpoint.environment()


def run(words: list[str], environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "shardaudit.cli.main", *words],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def of(lake: Path, *words: str) -> list[str]:
    return ["--config", str(lake / "shardaudit.toml"), *words]
