"""The stand-in of the simulator's tests."""

from tests.unit.simulate.conftest import aws, client, kinesis, machine, server

__all__ = ["aws", "client", "kinesis", "machine", "server"]
