"""The door to DynamoDB: the lease table in which a KCL consumer keeps how far it is."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from shardaudit.adapters.aws.kinesis import PATIENCE, said_and_advice
from shardaudit.adapters.aws.whole_answers import with_whole_answers
from shardaudit.model.config.choices import PositionSource
from shardaudit.model.config.settings import Settings
from shardaudit.model.errors import FinalError, RetryableError, ShardauditError
from shardaudit.model.sequence import CHECKPOINT_WORDS, Position, is_sequence_number, sequence_order

if TYPE_CHECKING:  # the stubs are installed for development only
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef, ScanInputTypeDef

# Answers that do not change by asking again, and what to do.
_FINAL = {
    "ResourceNotFoundException": "check positions.table and [aws] region and endpoint",
    "AccessDeniedException": "allow dynamodb:Scan on it",
    "UnrecognizedClientException": "these credentials are not known there",
    "ExpiredTokenException": "get new credentials",
    "ValidationException": "check positions.table",
}


class LeaseTableRefusedError(FinalError, PermissionError):
    """DynamoDB said no, and will say so again; or the table is none of KCL's."""

    def __init__(self, table: str, found: str, *, advice: str) -> None:
        super().__init__(f"lease table {table}: {found}; {advice}")
        self.table, self.found = table, found


class LeaseTableUnavailableError(RetryableError, ConnectionError):
    """DynamoDB did not answer, was too busy, or had a fault of its own."""

    def __init__(self, table: str, found: str) -> None:
        super().__init__(f"lease table {table}: {found}; a later try may work")
        self.table, self.found = table, found


def dynamodb_client(settings: Settings) -> "DynamoDBClient":
    """A client with the usual credential chain; a stand-in's address comes from the settings."""
    client = boto3.client(
        "dynamodb",
        region_name=settings.aws.region,
        endpoint_url=settings.aws.endpoint("dynamodb"),
        config=PATIENCE,
    )
    return with_whole_answers(client)


def read_leases(settings: Settings, table: str, *, stream_name: str) -> list[Position]:
    """The positions of a KCL 2 or 3 consumer, one per shard, in the order of the shards.

    Raises:
        LeaseTableRefusedError: no such table, no permission, or a table of something else.
        LeaseTableUnavailableError: throttled, timed out, or failing on the other side.
    """
    try:
        client = dynamodb_client(settings)
        items = list(_scan(client, table))
    except (BotoCoreError, ClientError) as error:
        raise _ours(table, error) from error
    leases = {item["leaseKey"]["S"]: item for item in items if "leaseKey" in item}
    if items and not leases:
        advice = "name the application's own table, not KCL's others"
        raise LeaseTableRefusedError(table, "its rows have no leaseKey", advice=advice)
    begin = _begin_of_keys(leases, stream_name)
    return [
        _position(leases[key], table, key.removeprefix(begin))
        for key in sorted(leases)
        # Without a checkpoint it is not begun yet.
        if key[: key.rfind(":") + 1] == begin and "checkpoint" in leases[key]
    ]


def _begin_of_keys(keys: Iterable[str], stream_name: str) -> str:
    """With what the stream's lease keys begin: nothing where a consumer has one stream alone.

    KCL, StreamIdentifier: else with `account:stream:creation epoch:`; of a stream that was made
    anew the newest counts.
    """
    identifiers = {key.rpartition(":")[0] for key in keys}
    mine = [found for found in identifiers if found.split(":")[1:2] == [stream_name]]
    newest = max(mine, key=lambda found: sequence_order(found.rpartition(":")[2]), default="")
    return f"{newest}:" if newest else ""


def _scan(client: "DynamoDBClient", table: str) -> "Iterator[Mapping[str, AttributeValueTypeDef]]":
    asked: ScanInputTypeDef = {"TableName": table}
    while True:
        page = client.scan(**asked)
        yield from page["Items"]
        last = page.get("LastEvaluatedKey")
        if not last:
            return
        asked = {"TableName": table, "ExclusiveStartKey": last}


def _position(item: "Mapping[str, AttributeValueTypeDef]", table: str, shard_id: str) -> Position:
    checkpoint = item["checkpoint"]["S"]
    if checkpoint not in CHECKPOINT_WORDS and not is_sequence_number(checkpoint):
        wanted = f"wanted a sequence number or one of {', '.join(CHECKPOINT_WORDS)}"
        raise LeaseTableRefusedError(
            table, f"{shard_id} has the checkpoint {checkpoint!r}", advice=wanted
        )
    return Position(
        source=PositionSource.KCL,
        consumer=table,
        shard_id=shard_id,
        checkpoint=checkpoint,
        sub_sequence=_number(item, "checkpointSubSequenceNumber"),
        lease_owner=item.get("leaseOwner", {}).get("S"),
        lease_counter=_number(item, "leaseCounter"),
    )


def _number(item: "Mapping[str, AttributeValueTypeDef]", name: str) -> int | None:
    text = item.get(name, {}).get("N")
    return None if text is None else int(text)


def _ours(table: str, error: BotoCoreError | ClientError) -> ShardauditError:
    text, advice = said_and_advice(error, _FINAL)
    if advice is not None:
        return LeaseTableRefusedError(table, text, advice=advice)
    return LeaseTableUnavailableError(table, text)
