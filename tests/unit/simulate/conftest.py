"""A stand-in in this process, on a clock that only the test moves."""

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.config import Config

from shardaudit.simulate.stand_in.account import Account
from shardaudit.simulate.stand_in.server import StandIn
from shardaudit.simulate.stand_in_process import StandInControl
from tests.unit.simulate.kinesis import Kinesis, Machine

if TYPE_CHECKING:
    from mypy_boto3_kinesis import KinesisClient


@pytest.fixture
def machine() -> Machine:
    """The machine's clock."""
    return Machine()


@pytest.fixture
def server(machine: Machine) -> Iterator[StandIn]:
    """A running stand-in whose streams are ACTIVE at once."""
    with StandIn(Account(machine.read)) as server:
        server.account.control.change({"transition_s": 0})
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def aws() -> boto3.Session:
    """Shared, because each session reads the service's model anew."""
    return boto3.Session(aws_access_key_id="any", aws_secret_access_key="any")


@pytest.fixture
def client(server: StandIn, aws: boto3.Session) -> "Iterator[KinesisClient]":
    """boto3 without retries."""
    client = aws.client(
        "kinesis",
        endpoint_url=server.url,
        region_name="us-east-1",
        config=Config(retries={"total_max_attempts": 1}, read_timeout=10),
    )
    yield client
    client.close()


@pytest.fixture
def control(server: StandIn) -> StandInControl:
    """The second door."""
    return StandInControl(server.url)


@pytest.fixture
def kinesis(client: "KinesisClient") -> Kinesis:
    """The client with the shorthands of these tests."""
    return Kinesis(client)
