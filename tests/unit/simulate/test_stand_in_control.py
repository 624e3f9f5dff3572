import urllib.request
from datetime import timedelta

import boto3
import pytest
from botocore.config import Config

from shardaudit.simulate.stand_in.account import Account
from shardaudit.simulate.stand_in.server import PortTakenError, StandIn
from shardaudit.simulate.stand_in_process import ControlRefusedError, StandInControl
from tests.unit.simulate.kinesis import START, Kinesis, Machine, refused


def test_records_arrive_a_step_apart_when_the_clock_is_held(
    kinesis: Kinesis, control: StandInControl
) -> None:
    past = START - timedelta(days=6)
    control.hold(past)
    kinesis.create(hours=168)
    control.hold(past, step_ms=432.5)
    kinesis.put(4)
    arrivals = [
        (record["ApproximateArrivalTimestamp"] - past) / timedelta(milliseconds=1)
        for record in kinesis.get(kinesis.iterator("TRIM_HORIZON"))["Records"]
    ]
    assert arrivals == [0, 432, 865, 1297]


def test_time_goes_on_from_there_when_the_clock_is_moved(
    kinesis: Kinesis, control: StandInControl, machine: Machine
) -> None:
    kinesis.create()
    kinesis.put(1)
    control.run_from(START + timedelta(hours=24))
    assert kinesis.contents("TRIM_HORIZON") == [0]
    machine.go_on(milliseconds=1)
    assert kinesis.contents("TRIM_HORIZON") == []
    control.change({"clock": "machine"})
    assert control.change({})["now"] == "2026-11-01T00:00:00.001+00:00"


@pytest.mark.parametrize(
    "wanted",
    [
        {"speed": 2},
        {"clock": "tomorrow"},
        {"clock": {"hold": "2026-11-01T00:00:00"}},
        {"clock": {"hold": "2026-11-01T00:00:00Z", "run_from": "2026-11-01T00:00:00Z"}},
        {"clock": {"hold": "2026-11-01T00:00:00Z", "step_ms": "1"}},
        {"throttle": 1},
        {"empty_pages": "2"},
        {"faults": [{"times": 2}]},
        {"faults": [{"operation": "PutRecords", "often": True}]},
    ],
)
def test_a_change_is_refused_when_it_cannot_be_understood(
    control: StandInControl, wanted: dict[str, object]
) -> None:
    before = control.change({"throttle": True})
    with pytest.raises(ControlRefusedError, match="wanted"):
        control.change({"empty_pages": 3, **wanted})
    assert control.change({}) == before


def test_what_holds_can_be_read(control: StandInControl) -> None:
    control.change({"iterator_ttl_s": 1.5})
    with urllib.request.urlopen(f"{control.url}/_control") as answer:  # noqa: S310 - our own
        assert b'"iterator_ttl_s": 1.5' in answer.read()


def test_a_call_fails_as_often_as_the_fault_says(kinesis: Kinesis, control: StandInControl) -> None:
    kinesis.create()
    fault = {"operation": "GetRecords", "error": "InternalFailure", "status": 500, "times": 2}
    control.change({"faults": [fault]})
    iterator = kinesis.iterator("TRIM_HORIZON")
    for _ in range(2):
        with refused("InternalFailure"):
            kinesis.get(iterator)
    kinesis.get(iterator)


def test_some_records_of_a_batch_fail_when_the_fault_is_per_record(
    kinesis: Kinesis, control: StandInControl
) -> None:
    kinesis.create()
    fault = {"operation": "PutRecords", "times": 2, "per_record": True}
    control.change({"faults": [fault]})
    answer = kinesis.client.put_records(
        StreamName="s", Records=[{"Data": b"1", "PartitionKey": "p"}] * 5
    )
    assert answer["FailedRecordCount"] == 2
    assert ["ErrorCode" in record for record in answer["Records"]] == [True, True] + [False] * 3
    assert len(kinesis.contents("TRIM_HORIZON")) == 3


def test_a_batch_is_stored_twice_when_its_first_answer_is_lost(
    kinesis: Kinesis, control: StandInControl, aws: boto3.Session
) -> None:
    kinesis.create()
    control.change({"faults": [{"operation": "PutRecords", "lose_answer": True}]})
    patient = aws.client(
        "kinesis",
        endpoint_url=control.url,
        region_name="us-east-1",
        config=Config(retries={"total_max_attempts": 3, "mode": "standard"}),
    )
    patient.put_records(StreamName="s", Records=[{"Data": b"1", "PartitionKey": "p"}] * 2)
    patient.close()
    assert kinesis.contents("TRIM_HORIZON") == [1, 1, 1, 1]


def test_an_unknown_operation_is_refused(kinesis: Kinesis) -> None:
    with refused("UnknownOperationException"):
        kinesis.client.describe_limits()


def test_a_port_is_refused_when_it_is_taken(server: StandIn, machine: Machine) -> None:
    with pytest.raises(PortTakenError, match=str(server.server_port)):
        StandIn(Account(machine.read), port=server.server_port)
    with pytest.raises(PortTakenError, match="80000"):
        StandIn(Account(machine.read), port=80_000)
    assert server.server_address[0] == "127.0.0.1"
