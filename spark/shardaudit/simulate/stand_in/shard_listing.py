"""ListShards: the six filters, pages and their tokens."""

import json

from shardaudit.simulate.stand_in.account import Account, seal, unseal
from shardaudit.simulate.stand_in.requests import (
    ApiError,
    Request,
    Response,
    invalid_argument,
    invalid_field,
)
from shardaudit.simulate.stand_in.served_stream import ServedStream
from shardaudit.simulate.stand_in.shard import ServedShard

PAGE_SHARDS = 1000  # Kinesis API: the default of MaxResults, and the most that comes


def list_shards(account: Account, request: Request) -> Response:
    """ListShards."""
    limit = request.optional_whole("MaxResults", at_least=1, at_most=10_000) or PAGE_SHARDS
    limit = min(limit, PAGE_SHARDS)
    now_ms = account.now_ms()
    if request.has("NextToken"):
        stream, after, shard_filter = _from_token(account, request, now_ms)
    else:
        stream = account.stream(request)
        after = request.optional_text("ExclusiveStartShardId") or ""
        shard_filter = _filter_of(request)
    shards = [shard for shard in _matching(stream, shard_filter, now_ms) if shard.shard_id > after]
    answer: dict[str, object] = {"Shards": [described_shard(shard) for shard in shards[:limit]]}
    if len(shards) > limit:
        answer["NextToken"] = seal(
            stream=stream.name,
            after=shards[limit - 1].shard_id,
            filter=json.dumps(shard_filter),
            made_ms=now_ms,
        )
    return answer


def described_shard(shard: ServedShard) -> dict[str, object]:
    """A shard as Kinesis describes it."""
    numbers = {"StartingSequenceNumber": shard.first_sequence}
    if not shard.is_open:
        numbers["EndingSequenceNumber"] = str(shard.last_sequence)
    parents = dict(zip(("ParentShardId", "AdjacentParentShardId"), shard.parents, strict=False))
    return {
        "ShardId": shard.shard_id,
        "HashKeyRange": _hash_range(shard),
        "SequenceNumberRange": numbers,
        **parents,
    }


def child_facts(shard: ServedShard) -> dict[str, object]:
    """A shard as the last answer of its parent names it."""
    return {
        "ShardId": shard.shard_id,
        "ParentShards": list(shard.parents),
        "HashKeyRange": _hash_range(shard),
    }


def _hash_range(shard: ServedShard) -> dict[str, str]:
    """The hash keys that it takes, both ends included."""
    return {"StartingHashKey": str(shard.hash_start), "EndingHashKey": str(shard.hash_end)}


Filter = dict[str, str | float | None]


def _filter_of(request: Request) -> Filter:
    wanted = request.optional_part("ShardFilter")
    if wanted is None:
        return {"type": "FROM_TRIM_HORIZON"}
    kind, at_ms = wanted.text("Type"), wanted.optional_ms("Timestamp")
    shard_id = wanted.optional_text("ShardId")
    if kind in {"AT_TIMESTAMP", "FROM_TIMESTAMP"} and at_ms is None:
        raise invalid_argument(f"Timestamp must be provided for ShardFilter type {kind}.")
    if kind == "AFTER_SHARD_ID" and shard_id is None:
        raise invalid_argument(f"ShardId must be provided for ShardFilter type {kind}.")
    return {"type": kind, "at_ms": at_ms, "shard_id": shard_id}


def _from_token(
    account: Account, request: Request, now_ms: int
) -> tuple[ServedStream, str, Filter]:
    clashing = ("StreamName", "StreamARN", "ExclusiveStartShardId", "StreamCreationTimestamp")
    for name in clashing:
        if request.has(name):
            raise invalid_argument(f"NextToken and {name} cannot be provided together.")
    token = unseal(request.text("NextToken"), "stream", "after", "filter", "made_ms")
    if token is None:
        raise invalid_argument("NextToken is invalid.")
    if now_ms - int(token["made_ms"]) > account.control.switches.token_ttl_s * 1000:
        raise ApiError("ExpiredNextTokenException", "The provided NextToken is expired.")
    return account.stream_named(token["stream"]), token["after"], json.loads(token["filter"])


def _matching(stream: ServedStream, shard_filter: Filter, now_ms: int) -> list[ServedShard]:
    kept = stream.kept_shards(now_ms)
    horizon_ms = stream.horizon_ms(now_ms)
    at_ms = float(shard_filter.get("at_ms") or 0)
    match shard_filter["type"]:
        case "FROM_TRIM_HORIZON":
            return kept
        case "AT_LATEST":
            return [shard for shard in kept if shard.is_open]
        case "AT_TRIM_HORIZON":
            return _open_at(kept, max(horizon_ms, stream.created_ms))
        case "AT_TIMESTAMP":
            return _open_at(kept, max(at_ms, stream.created_ms))
        case "FROM_TIMESTAMP":
            return [s for s in kept if s.closed_ms is None or s.closed_ms >= at_ms]
        case "AFTER_SHARD_ID":
            return [s for s in kept if s.shard_id > str(shard_filter["shard_id"])]
    raise invalid_field("shardFilter.type", "satisfy enum value set: the six filter types")


def _open_at(shards: list[ServedShard], at_ms: float) -> list[ServedShard]:
    return [
        shard
        for shard in shards
        if shard.opened_ms <= at_ms and (shard.closed_ms is None or shard.closed_ms >= at_ms)
    ]
