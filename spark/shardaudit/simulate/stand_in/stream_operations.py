"""The operations on whole streams: create, describe, retention, reshard."""

import re
from collections.abc import Callable

from shardaudit.simulate.stand_in.account import Account
from shardaudit.simulate.stand_in.fan_out import consumers_of
from shardaudit.simulate.stand_in.requests import Request, Response, invalid_argument, invalid_field
from shardaudit.simulate.stand_in.served_stream import ServedStream, Status
from shardaudit.simulate.stand_in.shard_listing import described_shard

ON_DEMAND_SHARDS = 4  # Kinesis: an on-demand stream begins with four
_MIN_RETENTION_HOURS, _MAX_RETENTION_HOURS = 24, 8760  # Kinesis API, both retention operations
MAX_SHARDS = 10_000


def create_stream(account: Account, request: Request) -> Response:
    """CreateStream."""
    name = request.text("StreamName")
    if re.fullmatch(r"[a-zA-Z0-9_.-]{1,128}", name) is None:
        raise invalid_field("streamName", "satisfy regular expression pattern: [a-zA-Z0-9_.-]+")
    details = request.optional_part("StreamModeDetails")
    mode = details.text("StreamMode") if details else "PROVISIONED"
    shards = request.optional_whole("ShardCount", at_least=1, at_most=MAX_SHARDS)
    if shards is None and mode == "PROVISIONED":
        raise invalid_argument("ShardCount is required for a stream in PROVISIONED mode.")
    account.create(name, shards=shards or ON_DEMAND_SHARDS, mode=mode)
    return {}


def delete_stream(account: Account, request: Request) -> Response:
    """DeleteStream, at once."""
    account.delete(account.stream(request))
    return {}


def list_streams(account: Account, request: Request) -> Response:
    """ListStreams, by name, in pages."""
    after = request.optional_text("NextToken") or request.optional_text("ExclusiveStartStreamName")
    limit = request.optional_whole("Limit", at_least=1, at_most=10_000) or 100
    names = sorted(name for name in account.streams if name > (after or ""))
    page: dict[str, object] = {
        "StreamNames": names[:limit],
        "HasMoreStreams": len(names) > limit,
        "StreamSummaries": [
            {
                "StreamName": name,
                "StreamARN": account.streams[name].arn,
                "StreamStatus": account.streams[name].status_at(account.machine_ms()),
            }
            for name in names[:limit]
        ],
    }
    return page | {"NextToken": names[limit - 1]} if len(names) > limit else page


def describe_stream(account: Account, request: Request) -> Response:
    """DescribeStream: with the shards, in pages."""
    stream = account.stream(request)
    limit = request.optional_whole("Limit", at_least=1, at_most=10_000) or 100
    after = request.optional_text("ExclusiveStartShardId") or ""
    shards = [s for s in stream.kept_shards(account.now_ms()) if s.shard_id > after]
    return {
        "StreamDescription": {
            **_facts(account, stream),
            "Shards": [described_shard(shard) for shard in shards[:limit]],
            "HasMoreShards": len(shards) > limit,
        }
    }


def describe_stream_summary(account: Account, request: Request) -> Response:
    """DescribeStreamSummary: without the shards."""
    stream = account.stream(request)
    return {
        "StreamDescriptionSummary": {
            **_facts(account, stream),
            "OpenShardCount": len(stream.open_shards),
            "ConsumerCount": len(consumers_of(account, stream)),
        }
    }


def increase_retention(account: Account, request: Request) -> Response:
    """IncreaseStreamRetentionPeriod."""
    return _set_retention(account, request, shorter=False)


def decrease_retention(account: Account, request: Request) -> Response:
    """DecreaseStreamRetentionPeriod."""
    return _set_retention(account, request, shorter=True)


def split_shard(account: Account, request: Request) -> Response:
    """SplitShard."""
    new_start = _hash_key(request.text("NewStartingHashKey"))

    def split(stream: ServedStream, now_ms: int) -> None:
        stream.split(stream.shard(request.text("ShardToSplit"), now_ms), new_start, now_ms)

    _reshard(account, request, split)
    return {}


def merge_shards(account: Account, request: Request) -> Response:
    """MergeShards."""

    def merge(stream: ServedStream, now_ms: int) -> None:
        shard = stream.shard(request.text("ShardToMerge"), now_ms)
        stream.merge(shard, stream.shard(request.text("AdjacentShardToMerge"), now_ms), now_ms)

    _reshard(account, request, merge)
    return {}


def update_shard_count(account: Account, request: Request) -> Response:
    """UpdateShardCount: to at most double and at least half."""
    target = request.whole("TargetShardCount", at_least=1, at_most=MAX_SHARDS)
    if request.text("ScalingType") != "UNIFORM_SCALING":
        raise invalid_field("scalingType", "satisfy enum value set: [UNIFORM_SCALING]")
    before = len(account.stream(request).open_shards)
    if not before <= 2 * target <= 4 * before:
        raise invalid_argument(
            f"UpdateShardCount cannot scale from {before} to {target} shards: "
            "at most to the double, at least to the half of the current open shards"
        )
    stream = _reshard(account, request, lambda stream, now_ms: stream.scale(target, now_ms))
    return {
        "StreamName": stream.name,
        "StreamARN": stream.arn,
        "CurrentShardCount": before,
        "TargetShardCount": target,
    }


def _reshard(
    account: Account, request: Request, act: Callable[[ServedStream, int], None]
) -> ServedStream:
    stream = account.stream(request)
    with stream.lock:
        stream.require_active(account.machine_ms())
        act(stream, account.now_ms())
        account.mark_busy(stream, Status.UPDATING)
    return stream


def _facts(account: Account, stream: ServedStream) -> dict[str, object]:
    return {
        "StreamName": stream.name,
        "StreamARN": stream.arn,
        "StreamStatus": stream.status_at(account.machine_ms()),
        "StreamModeDetails": {"StreamMode": stream.mode},
        "RetentionPeriodHours": stream.retention_hours,
        "StreamCreationTimestamp": stream.created_ms / 1000,
        "EnhancedMonitoring": [{"ShardLevelMetrics": []}],
        "EncryptionType": "NONE",
    }


def _set_retention(account: Account, request: Request, *, shorter: bool) -> Response:
    stream = account.stream(request)
    hours = request.whole("RetentionPeriodHours", at_least=-(2**31))
    if hours < _MIN_RETENTION_HOURS:
        raise invalid_argument(
            f"Minimum allowed retention period is {_MIN_RETENTION_HOURS} hours. "
            f"Requested retention period ({hours} hours) is too short."
        )
    if hours > _MAX_RETENTION_HOURS:
        raise invalid_argument(
            f"Maximum allowed retention period is {_MAX_RETENTION_HOURS} hours. "
            f"Requested retention period ({hours} hours) is too long."
        )
    with stream.lock:
        before = stream.retention_hours
        if hours > before if shorter else hours < before:
            raise invalid_argument(
                f"Requested retention period ({hours} hours) for stream {stream.name} can not be "
                f"{'longer' if shorter else 'shorter'} than existing retention period "
                f"({before} hours)."
            )
        stream.keep_for(hours, account.now_ms())
    return {}


def _hash_key(text: str) -> int:
    if re.fullmatch(r"0|[1-9]\d{0,38}", text) is None:
        raise invalid_field(
            "newStartingHashKey", r"satisfy regular expression pattern: 0|([1-9]\d{0,38})"
        )
    return int(text)
