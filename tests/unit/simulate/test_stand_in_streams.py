from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from shardaudit.simulate.stand_in_process import StandInControl
from tests.unit.simulate.kinesis import START, Kinesis, Machine, code_of, name, refused

if TYPE_CHECKING:
    from mypy_boto3_kinesis.literals import ShardFilterTypeType


def reshard(kinesis: Kinesis, machine: Machine) -> None:
    """An hour apart: two shards and ten records, 0 split into 2 and 3, 3 and 1 merged into 4."""
    kinesis.create(2, hours=168)
    kinesis.put(10)
    machine.go_on(hours=1)
    kinesis.split(0)
    kinesis.put(10)
    machine.go_on(hours=1)
    kinesis.merge(3, 1)
    kinesis.put(10)
    machine.go_on(hours=1)


def test_nothing_is_lost_or_doubled_when_shards_are_split_and_merged(
    kinesis: Kinesis, machine: Machine
) -> None:
    reshard(kinesis, machine)
    read = [kinesis.contents("TRIM_HORIZON", name(shard)) for shard in range(5)]
    assert sorted(content for shard in read for content in shard) == list(range(30))
    assert max(read[0]) < 10
    assert min(read[2]) >= 10
    assert min(read[4]) >= 20


def test_parents_are_named_and_closed_when_shards_are_resharded(
    kinesis: Kinesis, machine: Machine
) -> None:
    reshard(kinesis, machine)
    shards = kinesis.shards()
    assert [
        (shard.get("ParentShardId"), shard.get("AdjacentParentShardId")) for shard in shards
    ] == [(None, None), (None, None), (name(0), None), (name(0), None), (name(3), name(1))]
    is_closed = ["EndingSequenceNumber" in shard["SequenceNumberRange"] for shard in shards]
    assert is_closed == [True, True, False, True, False]
    open_ranges = sorted(
        (int(s["HashKeyRange"]["StartingHashKey"]), int(s["HashKeyRange"]["EndingHashKey"]))
        for s, closed in zip(shards, is_closed, strict=True)
        if not closed
    )
    assert open_ranges[0][0] == 0
    assert open_ranges[1] == (open_ranges[0][1] + 1, 2**128 - 1)


def test_the_end_of_a_closed_shard_names_its_children_when_it_is_reached(
    kinesis: Kinesis, machine: Machine
) -> None:
    reshard(kinesis, machine)
    last = kinesis.get(kinesis.iterator("TRIM_HORIZON", name(0)))
    assert "NextShardIterator" not in last
    assert [child["ShardId"] for child in last["ChildShards"]] == [name(2), name(3)]
    merged = kinesis.get(kinesis.iterator("LATEST", name(1)))
    assert merged["ChildShards"][0]["ParentShards"] == [name(3), name(1)]


def test_the_six_filters_choose_the_shards_that_the_api_documents(
    kinesis: Kinesis, machine: Machine
) -> None:
    reshard(kinesis, machine)
    half, later = START + timedelta(minutes=30), START + timedelta(minutes=90)
    assert kinesis.numbers({"Type": "FROM_TRIM_HORIZON"}) == [0, 1, 2, 3, 4]
    assert kinesis.numbers({"Type": "AT_TRIM_HORIZON"}) == [0, 1]
    assert kinesis.numbers({"Type": "AT_LATEST"}) == [2, 4]
    assert kinesis.numbers({"Type": "AT_TIMESTAMP", "Timestamp": half}) == [0, 1]
    assert kinesis.numbers({"Type": "AT_TIMESTAMP", "Timestamp": later}) == [1, 2, 3]
    assert kinesis.numbers({"Type": "FROM_TIMESTAMP", "Timestamp": later}) == [1, 2, 3, 4]
    assert kinesis.numbers({"Type": "AFTER_SHARD_ID", "ShardId": name(2)}) == [3, 4]


@pytest.mark.parametrize("kind", ["AT_TIMESTAMP", "FROM_TIMESTAMP", "AFTER_SHARD_ID"])
def test_a_filter_is_refused_when_its_value_is_missing(
    kinesis: Kinesis, kind: "ShardFilterTypeType"
) -> None:
    kinesis.create()
    with refused("InvalidArgumentException"):
        kinesis.shards({"Type": kind})


def test_a_closed_shard_leaves_the_list_when_the_retention_has_passed(
    kinesis: Kinesis, machine: Machine
) -> None:
    reshard(kinesis, machine)
    machine.go_on(days=7, minutes=-119)
    assert kinesis.numbers() == [1, 2, 3, 4]
    assert kinesis.numbers({"Type": "AT_TRIM_HORIZON"}) == [1, 2, 3]
    with refused("ResourceNotFoundException"):
        kinesis.iterator("TRIM_HORIZON")


def test_shards_come_in_pages_when_a_limit_is_given(kinesis: Kinesis) -> None:
    kinesis.create(5)
    page = kinesis.client.list_shards(StreamName="s", MaxResults=2)
    names = [shard["ShardId"] for shard in page["Shards"]]
    while "NextToken" in page:
        page = kinesis.client.list_shards(NextToken=page["NextToken"], MaxResults=2)
        names += [shard["ShardId"] for shard in page["Shards"]]
    assert names == [name(shard) for shard in range(5)]


def test_a_page_keeps_the_filter_when_it_is_asked_for_by_token(
    kinesis: Kinesis, machine: Machine
) -> None:
    reshard(kinesis, machine)
    page = kinesis.client.list_shards(
        StreamName="s", MaxResults=1, ShardFilter={"Type": "AT_LATEST"}
    )
    rest = kinesis.client.list_shards(NextToken=page["NextToken"])
    assert [shard["ShardId"] for shard in rest["Shards"]] == [name(4)]


def test_a_token_is_refused_when_it_is_old_or_not_alone(kinesis: Kinesis, machine: Machine) -> None:
    kinesis.create(3)
    token = kinesis.client.list_shards(StreamName="s", MaxResults=1)["NextToken"]
    with refused("InvalidArgumentException"):
        kinesis.client.list_shards(StreamName="s", NextToken=token)
    with refused("InvalidArgumentException"):
        kinesis.client.list_shards(NextToken="AAAA")
    machine.go_on(minutes=5, milliseconds=1)
    with refused("ExpiredNextTokenException"):
        kinesis.client.list_shards(NextToken=token)


@pytest.mark.parametrize(("before", "after"), [(2, 4), (4, 2), (4, 5), (5, 3), (3, 3)])
def test_ranges_are_equal_when_the_shard_count_is_updated(
    kinesis: Kinesis, before: int, after: int
) -> None:
    kinesis.create(before)
    kinesis.put(40)
    kinesis.client.update_shard_count(
        StreamName="s", TargetShardCount=after, ScalingType="UNIFORM_SCALING"
    )
    kinesis.put(40)
    starts = sorted(
        int(shard["HashKeyRange"]["StartingHashKey"])
        for shard in kinesis.shards({"Type": "AT_LATEST"})
    )
    assert starts == [2**128 // after * shard for shard in range(after)]
    read = [kinesis.contents("TRIM_HORIZON", shard["ShardId"]) for shard in kinesis.shards()]
    assert sorted(content for shard in read for content in shard) == list(range(80))


def test_a_reshard_is_refused_when_the_shards_do_not_allow_it(kinesis: Kinesis) -> None:
    kinesis.create(3)
    split, merge = kinesis.client.split_shard, kinesis.client.merge_shards
    assert code_of(split, StreamName="s", ShardToSplit=name(0), NewStartingHashKey="0") == (
        "InvalidArgumentException"
    )
    assert code_of(split, StreamName="s", ShardToSplit=name(9), NewStartingHashKey="9") == (
        "ResourceNotFoundException"
    )
    assert (
        code_of(merge, StreamName="s", ShardToMerge=name(0), AdjacentShardToMerge=name(2))
        == "InvalidArgumentException"
    )
    kinesis.merge(0, 1)
    with refused("InvalidArgumentException"):
        kinesis.split(0)
    with refused("InvalidArgumentException"):
        kinesis.client.update_shard_count(
            StreamName="s", TargetShardCount=9, ScalingType="UNIFORM_SCALING"
        )


def test_a_stream_is_busy_for_a_moment_when_it_is_made_or_resharded(
    kinesis: Kinesis, control: StandInControl, machine: Machine
) -> None:
    control.change({"transition_s": 2})
    kinesis.create(2)
    with refused("ResourceInUseException"):
        kinesis.put(1)
    machine.go_on(seconds=2)
    kinesis.put(1)
    kinesis.split(0)
    summary = kinesis.client.describe_stream_summary(StreamName="s")["StreamDescriptionSummary"]
    assert summary["StreamStatus"] == "UPDATING"
    assert summary["OpenShardCount"] == 3
    kinesis.put(1)
    with refused("ResourceInUseException"):
        kinesis.split(1)


@pytest.mark.parametrize(
    ("operation", "hours", "code"),
    [
        ("increase_stream_retention_period", 168, "ok"),
        ("increase_stream_retention_period", 47, "InvalidArgumentException"),
        ("increase_stream_retention_period", 8761, "InvalidArgumentException"),
        ("decrease_stream_retention_period", 24, "ok"),
        ("decrease_stream_retention_period", 1, "InvalidArgumentException"),
        ("decrease_stream_retention_period", 49, "InvalidArgumentException"),
    ],
)
def test_the_retention_changes_only_within_its_limits(
    kinesis: Kinesis, operation: str, hours: int, code: str
) -> None:
    kinesis.create(hours=48)
    change = getattr(kinesis.client, operation)
    assert code_of(change, StreamName="s", RetentionPeriodHours=hours) == code
    summary = kinesis.client.describe_stream_summary(StreamName="s")["StreamDescriptionSummary"]
    assert summary["RetentionPeriodHours"] == (hours if code == "ok" else 48)


def test_streams_are_listed_and_described_when_they_exist(kinesis: Kinesis) -> None:
    kinesis.create(3)
    kinesis.client.create_stream(StreamName="t", StreamModeDetails={"StreamMode": "ON_DEMAND"})
    assert kinesis.client.list_streams()["StreamNames"] == ["s", "t"]
    first = kinesis.client.list_streams(Limit=1)
    assert (first["StreamNames"], first["HasMoreStreams"]) == (["s"], True)
    description = kinesis.client.describe_stream(StreamName="s", Limit=2)["StreamDescription"]
    assert (len(description["Shards"]), description["HasMoreShards"]) == (2, True)
    by_arn = kinesis.client.describe_stream_summary(StreamARN=description["StreamARN"])
    assert by_arn["StreamDescriptionSummary"]["StreamName"] == "s"
    kinesis.client.delete_stream(StreamName="t")
    assert kinesis.client.list_streams()["StreamNames"] == ["s"]
    with refused("ResourceInUseException"):
        kinesis.client.create_stream(StreamName="s", ShardCount=1)
