from datetime import timedelta

import pytest
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    EndpointConnectionError,
    NoCredentialsError,
    ReadTimeoutError,
)

from shardaudit.adapters.aws.kinesis import (
    ListedShard,
    StreamRefusedError,
    StreamUnavailableError,
    kinesis_client,
    kinesis_error,
    stream_facts,
)
from shardaudit.model.config.settings import Settings
from shardaudit.model.exit_code import ExitCode
from shardaudit.simulate.stand_in_process import StandInControl
from tests.unit.simulate.kinesis import Kinesis, name


def test_facts_are_the_retention_and_every_shard(kinesis: Kinesis) -> None:
    kinesis.create(2, hours=168)
    kinesis.merge(0, 1)
    facts = stream_facts(kinesis.client, "s")
    assert facts.retention == timedelta(hours=168)
    assert facts.shards == (
        ListedShard(name(0), (), "0", str(2**127 - 1), is_open=False),
        ListedShard(name(1), (), str(2**127), str(2**128 - 1), is_open=False),
        ListedShard(name(2), (name(0), name(1)), "0", str(2**128 - 1), is_open=True),
    )


def test_facts_hold_every_page_when_there_are_more_shards_than_fit_on_one(
    kinesis: Kinesis,
) -> None:
    kinesis.create(1203)
    assert len(stream_facts(kinesis.client, "s").shards) == 1203


def test_a_missing_stream_is_final_and_says_what_to_check(kinesis: Kinesis) -> None:
    with pytest.raises(StreamRefusedError, match=r"stream none.*check stream_name"):
        stream_facts(kinesis.client, "none")


def test_a_throttled_call_can_be_tried_again(kinesis: Kinesis, control: StandInControl) -> None:
    kinesis.create()
    fault = {"operation": "ListShards", "error": "LimitExceededException", "status": 400}
    control.change({"faults": [fault]})
    with pytest.raises(StreamUnavailableError, match="LimitExceeded"):
        stream_facts(kinesis.client, "s")


def test_the_listing_begins_anew_when_its_token_expired(
    kinesis: Kinesis, control: StandInControl
) -> None:
    kinesis.create(2)
    fault = {"operation": "ListShards", "error": "ExpiredNextTokenException", "status": 400}
    control.change({"faults": [fault]})
    assert len(stream_facts(kinesis.client, "s").shards) == 2
    control.change({"faults": [fault | {"times": 2}]})
    with pytest.raises(StreamUnavailableError, match="ExpiredNextToken"):
        stream_facts(kinesis.client, "s")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ClientError({"Error": {"Code": "AccessDeniedException"}}, "ListShards"), ExitCode.FAILED),
        (ClientError({"Error": {"Code": "InternalFailure"}}, "ListShards"), ExitCode.RETRY),
        (ClientError({"Error": {"Code": "503"}}, "ListShards"), ExitCode.RETRY),
        (EndpointConnectionError(endpoint_url="http://127.0.0.1:1"), ExitCode.RETRY),
        (ReadTimeoutError(endpoint_url="http://127.0.0.1:1"), ExitCode.RETRY),
        (NoCredentialsError(), ExitCode.FAILED),
    ],
)
def test_an_error_tells_whether_a_later_try_may_work(
    error: BotoCoreError | ClientError, code: ExitCode
) -> None:
    ours = kinesis_error("s", error)
    assert ours.exit_code == code
    assert "stream s" in str(ours)


def test_the_client_goes_to_the_endpoint_of_the_settings() -> None:
    aws = {"region": "eu-west-1", "endpoints": {"kinesis": "http://127.0.0.1:5"}}
    settings = Settings.model_validate({"warehouse": "w", "aws": aws, "streams": {}})
    client = kinesis_client(settings)
    assert client.meta.endpoint_url == "http://127.0.0.1:5"
    assert client.meta.region_name == "eu-west-1"
    client.close()
