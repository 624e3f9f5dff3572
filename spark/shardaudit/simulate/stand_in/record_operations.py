"""The operations on records: put, iterate, get."""

import base64
import binascii
import hashlib
import json
import re

from shardaudit.model.sequence import is_sequence_number
from shardaudit.simulate.stand_in.account import Account, seal, unseal
from shardaudit.simulate.stand_in.requests import (
    ACCOUNT,
    ApiError,
    Request,
    Response,
    in_use,
    invalid_argument,
    invalid_field,
    throttled,
)
from shardaudit.simulate.stand_in.served_stream import ServedStream, Status
from shardaudit.simulate.stand_in.shard import Page, ServedShard, shard_index_of, shard_name
from shardaudit.simulate.stand_in.shard_listing import child_facts

MAX_BATCH_RECORDS = 500  # Kinesis API, PutRecords
MAX_BATCH_BYTES = 10 * 2**20
MAX_RECORD_BYTES = 2**20  # the default; UpdateMaxRecordSize is not here
MAX_PAGE_RECORDS = 10_000  # Kinesis API, GetRecords
MAX_KEY_LENGTH = 256


def put_records(account: Account, request: Request) -> Response:
    """PutRecords: each record succeeds or fails on its own."""
    stream = _writable(account, request)
    records = request.parts("Records", at_most=MAX_BATCH_RECORDS)
    sizes = [_check_record(record) for record in records]
    if sum(sizes) > MAX_BATCH_BYTES:
        raise invalid_argument("Records size exceeds 10 MB limit")
    with stream.lock:
        results = [
            _put(account, stream, record, size) for record, size in zip(records, sizes, strict=True)
        ]
    failed = sum("ErrorCode" in result for result in results)
    return {"FailedRecordCount": failed, "Records": results, "EncryptionType": "NONE"}


def put_record(account: Account, request: Request) -> Response:
    """PutRecord."""
    stream = _writable(account, request)
    size_bytes = _check_record(request)
    with stream.lock:
        result = _put(account, stream, request, size_bytes)
    if "ErrorCode" in result:
        raise ApiError(result["ErrorCode"], result["ErrorMessage"])
    return {**result, "EncryptionType": "NONE"}


def get_shard_iterator(account: Account, request: Request) -> Response:
    """GetShardIterator, of all five types."""
    stream = account.stream(request)
    now_ms = account.now_ms()
    with stream.lock:
        shard = stream.shard(request.text("ShardId"), now_ms)
        position = start_position(
            request.text("ShardIteratorType"),
            request,
            shard,
            number="StartingSequenceNumber",
            now_ms=now_ms,
        )
    return {"ShardIterator": _iterator(stream, shard, position, now_ms)}


def get_records(account: Account, request: Request) -> Response:
    """GetRecords, as JSON text: its records were made ready when they were put."""
    token = unseal(request.text("ShardIterator"), "stream", "shard", "position", "made_ms")
    if token is None:
        raise invalid_argument("Invalid ShardIterator.")
    now_ms = account.now_ms()
    ttl_ms = account.control.switches.iterator_ttl_s * 1000
    if now_ms - int(token["made_ms"]) > ttl_ms:
        raise ApiError(
            "ExpiredIteratorException",
            f"Iterator expired. The iterator was created at time {token['made_ms']} while right "
            f"now it is {now_ms} which is further in the future than the tolerated delay of "
            f"{ttl_ms:.0f} milliseconds.",
        )
    limit = request.optional_whole("Limit", at_least=1, at_most=2**31 - 1)
    if limit is not None and limit > MAX_PAGE_RECORDS:
        raise invalid_argument(f"Limit {limit} is above {MAX_PAGE_RECORDS}.")
    stream = account.stream_named(token["stream"])
    with stream.lock:
        shard = stream.shard(token["shard"], now_ms)
        page = _read(account, stream, shard, int(token["position"]), limit or MAX_PAGE_RECORDS)
    answer: dict[str, object] = {"MillisBehindLatest": page.behind_ms}
    if page.is_last and not shard.is_open:
        answer["ChildShards"] = [child_facts(one) for one in stream.children(shard.shard_id)]
    else:
        answer["NextShardIterator"] = _iterator(stream, shard, page.position, now_ms)
    return f'{json.dumps(answer)[:-1]},"Records":[{",".join(page.records)}]}}'


def _writable(account: Account, request: Request) -> ServedStream:
    stream = account.stream(request)
    if stream.status_at(account.machine_ms()) is Status.CREATING:
        raise in_use(f"Stream {stream.name} under account {ACCOUNT} is being created.")
    return stream


def _check_record(record: Request) -> int:
    """The size of a record's data, after the checks of the API's model."""
    if not 1 <= len(record.text("PartitionKey")) <= MAX_KEY_LENGTH:
        raise invalid_field("partitionKey", "have length between 1 and 256")
    hash_key = record.optional_text("ExplicitHashKey")
    if hash_key is not None and re.fullmatch(r"0|[1-9]\d{0,38}", hash_key) is None:
        raise invalid_field("explicitHashKey", r"satisfy pattern: 0|([1-9]\d{0,38})")
    try:
        size_bytes = len(base64.b64decode(record.text("Data"), validate=True))
    except binascii.Error as error:
        raise ApiError("SerializationException", "Data is not base64") from error
    if size_bytes > MAX_RECORD_BYTES:
        raise invalid_field("data", f"have length less than or equal to {MAX_RECORD_BYTES}")
    return size_bytes


def _put(
    account: Account, stream: ServedStream, record: Request, size_bytes: int
) -> dict[str, str]:
    partition_key = record.text("PartitionKey")
    explicit = record.optional_text("ExplicitHashKey")
    # MD5 is what Kinesis spreads partition keys by.
    digest = hashlib.md5(partition_key.encode(), usedforsecurity=False).digest()
    shard = stream.shard_of(int(explicit) if explicit else int.from_bytes(digest, "big"))
    now_ms = account.now_ms()
    refusal = _put_refusal(account, stream, shard, size_bytes)
    if refusal is not None:
        return {"ErrorCode": refusal.code, "ErrorMessage": refusal.text}
    number = shard.append(partition_key, record.text("Data"), size_bytes=size_bytes, now_ms=now_ms)
    account.control.clock.tick()
    return {"SequenceNumber": number, "ShardId": shard.shard_id}


def _put_refusal(
    account: Account, stream: ServedStream, shard: ServedShard, size_bytes: int
) -> ApiError | None:
    switches, now_ms = account.control.switches, account.now_ms()
    fault = account.control.take_fault("PutRecords", per_record=True) if switches.faults else None
    if fault is not None:
        return ApiError(fault.error, "injected")
    if switches.throttle:
        if not shard.put_usage.allows(now_ms=now_ms, size_bytes=size_bytes):
            return throttled(shard.shard_id, stream.name)
        shard.put_usage.count(now_ms=now_ms, size_bytes=size_bytes)
    return None


def start_position(
    kind: str, request: Request, shard: ServedShard, *, number: str, now_ms: int
) -> int:
    """The place in the shard where a reader of that kind begins; `number` is a field's name."""
    match kind:
        case "TRIM_HORIZON":
            return 0
        case "LATEST":
            return shard.position_after_all()
        case "AT_TIMESTAMP":
            return shard.position_at(_start_ms(request, now_ms))
        case "AT_SEQUENCE_NUMBER":
            return _start_sequence(request, shard, number)
        case "AFTER_SEQUENCE_NUMBER":
            return _start_sequence(request, shard, number) + 1
    raise invalid_field("shardIteratorType", "satisfy enum value set: the five iterator types")


def _start_ms(request: Request, now_ms: int) -> float:
    at_ms = request.optional_ms("Timestamp")
    if at_ms is None:
        raise invalid_argument(
            "Must specify timestampInMillis parameter for iterator of type AT_TIMESTAMP."
        )
    if at_ms > now_ms + 1:
        raise invalid_argument(
            "The timestampInMillis parameter cannot be greater than the currentTimestampInMillis. "
            f"timestampInMillis: {at_ms:.0f}, currentTimestampInMillis: {now_ms}"
        )
    return at_ms


def _start_sequence(request: Request, shard: ServedShard, field: str) -> int:
    number = request.optional_text(field)
    if number is None:
        raise invalid_argument(f"Must specify {field} for this type of iterator.")
    if not is_sequence_number(number):
        raise invalid_field(field[0].lower() + field[1:], r"satisfy pattern: 0|([1-9]\d{0,128})")
    came_from = shard_name(shard_index_of(int(number)))
    if number != "0" and came_from != shard.shard_id:
        raise invalid_argument(
            f"Invalid {field}. It encodes {came_from}, while it was used in a call "
            f"to a shard with {shard.shard_id}"
        )
    return int(number)


def _iterator(stream: ServedStream, shard: ServedShard, position: int, now_ms: int) -> str:
    # The position as text: JSON readers elsewhere may not hold 186 bits.
    return seal(stream=stream.name, shard=shard.shard_id, position=str(position), made_ms=now_ms)


def _read(
    account: Account, stream: ServedStream, shard: ServedShard, position: int, limit: int
) -> Page:
    switches, now_ms = account.control.switches, account.now_ms()
    if switches.throttle and not shard.get_usage.allows(now_ms=now_ms):
        raise throttled(shard.shard_id, stream.name)
    shard.reads += 1
    empty = switches.empty_pages > 0 and shard.reads % switches.empty_pages == 0
    page = shard.page(position, limit=limit, now_ms=now_ms, empty=empty)
    if switches.throttle:
        shard.get_usage.count(now_ms=now_ms, size_bytes=page.size_bytes)
    return page
