"""A configuration, and the stand-in of the simulator's tests."""

from pathlib import Path

import pytest

from tests.configurations import LEAST
from tests.unit.simulate.conftest import aws, client, kinesis, machine, server

__all__ = ["aws", "client", "kinesis", "machine", "server"]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The least that may stand in one."""
    file = tmp_path / "shardaudit.toml"
    file.write_text(LEAST)
    return file
