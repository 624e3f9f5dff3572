"""Lease tables that the real KCL wrote, served by moto's DynamoDB."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto import mock_aws

from shardaudit.adapters.aws.dynamodb import (
    LeaseTableRefusedError,
    LeaseTableUnavailableError,
    read_leases,
)
from shardaudit.model.config.settings import Settings
from shardaudit.model.exit_code import ExitCode
from shardaudit.model.sequence import Position
from shardaudit.model.verdict import Level, ShardState
from shardaudit.watch.rules.facts import EarlierWatch, LedgerProgress, Span
from tests.builders import NOW
from tests.builders import shard as name
from tests.unit.watch.witnesses import judge

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

Item = dict[str, dict[str, Any]]  # Any: a text, a list of texts, bytes
TABLES = json.loads(Path(__file__).with_name("kcl3_leases.json").read_text())
LEASES: list[Item] = TABLES["orders-consumer"]
MINUTE = timedelta(minutes=1)


pytestmark = pytest.mark.usefixtures("_any_credentials")


@pytest.fixture
def dynamodb() -> "Iterator[DynamoDBClient]":
    with mock_aws():
        yield boto3.client("dynamodb", region_name="us-east-1")


def settings(**aws: object) -> Settings:
    region = {"region": "us-east-1"}
    return Settings.model_validate({"warehouse": "w", "aws": region | aws, "streams": {}})


def write(client: "DynamoDBClient", items: list[Item], table: str, key: str = "leaseKey") -> None:
    client.create_table(
        TableName=table,
        KeySchema=[{"AttributeName": key, "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    put(client, items, table)


def put(client: "DynamoDBClient", items: list[Item], table: str) -> None:
    for item in items:
        client.put_item(TableName=table, Item=item)


def read(table: str) -> dict[str, Position]:
    found = read_leases(settings(), table, stream_name="orders")
    return {position.shard_id: position for position in found}


def test_the_leases_of_kcl_3_are_understood(dynamodb: "DynamoDBClient") -> None:
    write(dynamodb, LEASES, "orders-consumer")
    found = read("orders-consumer")
    assert list(found) == [name(i) for i in range(6)]
    first = found[name(0)]
    assert first.sequence_number == "49680428768644499595436582172240646617504927253666988034"
    assert (first.sub_sequence, first.lease_owner, first.lease_counter) == (0, "worker-1", 27)
    assert found[name(1)].is_at_end
    assert (found[name(3)].checkpoint, found[name(3)].sequence_number) == ("TRIM_HORIZON", None)


def kcl2_lease(key: str, checkpoint: str, more: Item | None = None) -> Item:
    """A lease as KCL 2 writes it: all of KCL 3's but throughputKBps and checkpointOwner.

    Source: awslabs/amazon-kinesis-client, software/amazon/kinesis/leases/dynamodb/
    DynamoDBLeaseSerializer.java, `toDynamoRecord` and `getDynamoUpdateLeaseUpdate`
    (054cd88 of KCL 2, without hash keys; a754364 of KCL 3).
    """
    required: Item = {
        "leaseKey": {"S": key},
        "leaseCounter": {"N": "7"},
        "ownerSwitchesSinceCheckpoint": {"N": "1"},
        "checkpoint": {"S": checkpoint},
        "checkpointSubSequenceNumber": {"N": "0"},
        "startingHashKey": {"S": "0"},
        "endingHashKey": {"S": "85070591730234615865843651857942052863"},
    }
    return required | (more or {})


def test_the_leases_of_kcl_2_are_understood(dynamodb: "DynamoDBClient") -> None:
    owner: Item = {"leaseOwner": {"S": "host:uuid"}}
    prepared: Item = {
        "checkpointSubSequenceNumber": {"N": "12"},
        "pendingCheckpoint": {"S": "4970"},
        "pendingCheckpointSubSequenceNumber": {"N": "0"},
        "pendingCheckpointState": {"B": b"prepared"},
    }
    lineage: Item = {
        "parentShardId": {"SS": [name(0)]},
        "childShardIds": {"SS": [name(4), name(5)]},
    }
    items = [
        kcl2_lease(name(0), "LATEST"),  # evicted: no leaseOwner
        kcl2_lease(name(1), "AT_TIMESTAMP", owner),
        kcl2_lease(name(2), "4965", owner | prepared),
        kcl2_lease(name(3), "SHARD_END", lineage),
    ]
    write(dynamodb, items, "old")
    found = read("old")
    said = [(p.checkpoint, p.sub_sequence, p.lease_owner, p.lease_counter) for p in found.values()]
    assert said == [
        ("LATEST", 0, None, 7),
        ("AT_TIMESTAMP", 0, "host:uuid", 7),
        ("4965", 12, "host:uuid", 7),  # what is only prepared does not count
        ("SHARD_END", 0, None, 7),
    ]
    assert found[name(3)].is_at_end


def multi_stream_lease(stream: str, epoch: int, shard_id: str, checkpoint: str) -> Item:
    """A lease of a consumer of several streams.

    Source: the same repository, DynamoDBMultiStreamLeaseSerializer.java (0c5042d),
    MultiStreamLease.getLeaseKey, and StreamIdentifier.serialize: account:stream:creationEpoch.
    """
    identifier = f"123456789012:{stream}:{epoch}"
    both = {"streamName": {"S": identifier}, "shardId": {"S": shard_id}}
    return kcl2_lease(f"{identifier}:{shard_id}", checkpoint, both)


def test_leases_of_another_stream_in_a_common_table_are_left_out(
    dynamodb: "DynamoDBClient",
) -> None:
    items = [
        multi_stream_lease("orders", 1795263644, name(0), "4965"),
        multi_stream_lease("else", 1795263644, name(1), "4965"),
    ]
    write(dynamodb, items, "many")
    assert list(read("many")) == [name(0)]


@pytest.mark.parametrize("turn", [1, -1])
def test_of_a_stream_that_was_made_anew_the_newest_leases_count(
    dynamodb: "DynamoDBClient", turn: int
) -> None:
    items = [
        multi_stream_lease("orders", 999999999, name(0), "SHARD_END"),
        multi_stream_lease("orders", 1795263644, name(0), "4965"),
    ]
    write(dynamodb, items[::turn], "anew")
    assert [p.checkpoint for p in read_leases(settings(), "anew", stream_name="orders")] == ["4965"]


@pytest.mark.slow
def test_every_page_of_a_large_table_is_read(dynamodb: "DynamoDBClient") -> None:
    padding = {"note": {"S": "x" * 2000}}  # a page of Scan holds 1 MB
    items: list[Item] = [
        {"leaseKey": {"S": name(i)}, "checkpoint": {"S": "TRIM_HORIZON"}, **padding}
        for i in range(700)
    ]
    write(dynamodb, items, "large")
    assert len(read("large")) == 700


def ahead(shard: str, *, landed: bool) -> LedgerProgress:
    """A shard to which messages came for an hour, of which all or none landed."""
    if landed:
        at = {"frontier": "1", "frontier_at": NOW, "last_landed_at": NOW, "landed_until": NOW}
        return LedgerProgress(shard, produced_until=NOW, **at)  # type: ignore[arg-type]  # as named
    return LedgerProgress(shard, produced_until=NOW, ahead=Span(60, NOW - 60 * MINUTE, NOW))


def test_a_processor_that_hangs_is_reported_though_its_lease_is_renewed(
    dynamodb: "DynamoDBClient",
) -> None:
    write(dynamodb, LEASES, "orders-consumer")
    old = read("orders-consumer")
    hung = name(3)
    put(dynamodb, [_a_quarter_later(item, hung) for item in LEASES], "orders-consumer")
    now = read("orders-consumer")
    found = {
        shard: judge(
            ahead(shard, landed=shard != hung),
            position=position,
            before=EarlierWatch(NOW - 15 * MINUTE, Level.NONE, position=old[shard]),
            is_open=not position.is_at_end,
        )
        for shard, position in now.items()
    }
    quiet = {shard: j.level for shard, j in found.items() if shard != hung}
    assert set(quiet.values()) == {Level.NONE}
    assert (found[hung].state, found[hung].level) == (ShardState.SILENT, Level.NOTICE)
    assert found[hung].evidence == (
        "its processor hangs or is blocked: worker-1 renews the lease (26 → 51), the checkpoint "
        "stays at TRIM_HORIZON",
        "orders-consumer never stored a checkpoint, only TRIM_HORIZON",
    )


def _a_quarter_later(item: Item, hung: str) -> Item:
    """The lease after 25 more renewals; whose processor does not hang has got on."""
    counter = {"leaseCounter": {"N": str(int(item["leaseCounter"]["N"]) + 25)}}
    checkpoint = item["checkpoint"]["S"]
    if item["leaseKey"]["S"] == hung or not checkpoint.isdigit():
        return item | counter
    return item | counter | {"checkpoint": {"S": str(int(checkpoint) + 10**30)}}


def test_a_table_of_kcl_s_that_holds_no_leases_is_refused(dynamodb: "DynamoDBClient") -> None:
    rows: list[Item] = TABLES["orders-consumer-CoordinatorState"]
    flat = [{"key": item["key"]} for item in rows]
    write(dynamodb, flat, "orders-consumer-CoordinatorState", key="key")
    with pytest.raises(LeaseTableRefusedError, match="name the application's own table"):
        read("orders-consumer-CoordinatorState")


def test_a_checkpoint_that_is_none_is_refused(dynamodb: "DynamoDBClient") -> None:
    write(dynamodb, [kcl2_lease(name(0), "12 or so")], "odd")
    with pytest.raises(LeaseTableRefusedError, match="has the checkpoint '12 or so'"):
        read("odd")


@pytest.mark.usefixtures("dynamodb")
def test_a_table_that_is_not_there_is_final_and_says_what_to_check() -> None:
    with pytest.raises(LeaseTableRefusedError, match=r"none.*check positions.table") as refused:
        read("none")
    assert refused.value.exit_code is ExitCode.FAILED


def test_a_dynamodb_that_does_not_answer_may_do_so_later() -> None:
    nobody = settings(endpoints={"dynamodb": "http://127.0.0.1:1"})
    with pytest.raises(LeaseTableUnavailableError) as unavailable:
        read_leases(nobody, "leases", stream_name="orders")
    assert unavailable.value.exit_code is ExitCode.RETRY
