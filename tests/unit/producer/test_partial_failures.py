"""Of a put that failed in part only that part is put again."""

from typing import Any  # of boto3's answers
from unittest.mock import Mock

import pytest

from shardaudit.producer.partial_failures import PUT_TRIES, RepeatedPut
from shardaudit.producer.prepared_records import Acknowledged
from tests.unit.producer.puts import FakeKinesis, records


def put(kinesis: FakeKinesis, count: int) -> tuple[dict[str, Any], list[int | None], list[int]]:
    """The answer, the attempt of each record that was acknowledged, and the pauses."""
    pauses: list[int] = []
    repeated = RepeatedPut(kinesis.put_records, pauses.append)
    acked: list[Acknowledged] = []
    answer = repeated.put_all_of({"StreamName": "events", "Records": records(count)}, acked)
    tried = attempts(acked)
    return answer, [tried.get(place) for place in range(count)], pauses


def attempts(acked: list[Acknowledged]) -> dict[int, int | None]:
    """By place."""
    return {place: each.occasion[2] for each in acked for place in each.places}


def number(record: dict[str, Any]) -> int:
    return int(record["PartitionKey"])


def test_answer_is_the_clients_own_when_nothing_fails() -> None:
    kinesis = FakeKinesis()
    answer, attempts, pauses = put(kinesis, 3)
    assert (attempts, pauses, len(kinesis.calls)) == ([1, 1, 1], [], 1)
    assert [entry["SequenceNumber"] for entry in answer["Records"]] == ["1", "2", "3"]


def test_only_the_failed_are_put_again_and_all_keep_their_places() -> None:
    kinesis = FakeKinesis(lambda call, record: number(record) in {1: {1, 3}, 2: {3}}.get(call, ()))
    answer, attempts, pauses = put(kinesis, 5)
    assert [[number(r) for r in call] for call in kinesis.calls] == [[0, 1, 2, 3, 4], [1, 3], [3]]
    assert (attempts, pauses) == ([1, 2, 1, 3, 1], [1, 2])
    assert answer["FailedRecordCount"] == 0
    assert [e["SequenceNumber"] for e in answer["Records"]] == ["1", "4", "2", "5", "3"]
    assert answer["EncryptionType"] == "NONE"


def test_failed_are_told_as_boto3_does_when_it_does_not_help() -> None:
    kinesis = FakeKinesis(lambda _, record: number(record) == 1)
    answer, attempts, pauses = put(kinesis, 2)
    assert (attempts, len(pauses), len(kinesis.calls)) == ([1, None], PUT_TRIES - 1, PUT_TRIES)
    assert answer["FailedRecordCount"] == 1
    assert answer["Records"][1] == {"ErrorCode": "InternalFailure", "ErrorMessage": "call 5"}


def test_error_is_the_callers_when_the_first_call_raises() -> None:
    kinesis = FakeKinesis(raising={1: ConnectionError("no way")})
    with pytest.raises(ConnectionError, match="no way"):
        put(kinesis, 2)


def test_what_was_achieved_is_told_when_a_later_call_raises() -> None:
    kinesis = FakeKinesis(lambda _, record: number(record) == 1, {2: ConnectionError("no way")})
    answer, attempts, _ = put(kinesis, 3)
    assert attempts == [1, None, 1]
    assert (answer["FailedRecordCount"], len(kinesis.calls)) == (1, 2)


def test_boto3s_own_attempts_count() -> None:
    def patient(**request: Any) -> dict[str, Any]:
        return kinesis.put_records(**request) | {"ResponseMetadata": {"RetryAttempts": 2}}

    kinesis = FakeKinesis(lambda call, record: call == 1 and number(record) == 0)
    repeated = RepeatedPut(patient, lambda _: None)
    acked: list[Acknowledged] = []
    repeated.put_all_of({"StreamName": "events", "Records": records(2)}, acked)
    assert attempts(acked) == {0: 6, 1: 3}


@pytest.mark.parametrize(
    "odd",
    [
        {"odd": 1},
        None,
        Mock(),
        {"Records": None},
        {"Records": [None, None]},
        {"Records": [{}, {}], "ResponseMetadata": None},
    ],
)
def test_answer_is_passed_on_when_it_is_none_of_kinesis(odd: Any) -> None:
    repeated = RepeatedPut(lambda **_: odd, lambda _: None)
    acked: list[Acknowledged] = []
    assert repeated.put_all_of({"Records": records(2)}, acked) is odd
    assert acked == []
