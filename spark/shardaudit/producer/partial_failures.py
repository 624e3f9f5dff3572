"""One put of many records: what failed of it is put again, what was acknowledged is not."""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shardaudit.adapters.clock import now
from shardaudit.producer.message_fields import instant_with_ms
from shardaudit.producer.trace_queue import TraceOccasion

PUT_TRIES = 5
_REFUSALS = {"ValidationException", "InvalidArgumentException"}
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 2.0

PutAnswer = dict[str, Any]  # of boto3; Any: each key has a type of its own
PutRequest = Mapping[str, Any]  # the same


# The answer to one record: shard id, sequence number, and when it was. Plain, as a trace is.
Acknowledged = tuple[str, str, TraceOccasion]


def pause(tries: int) -> None:
    """Waits longer from try to try, and not as long as all the others do."""
    longest = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** (tries - 1))
    time.sleep(random.uniform(longest / 2, longest))  # noqa: S311 - to be apart, not to be secret


@dataclass(slots=True)
class RepeatedPut:
    """`put_records` until all is acknowledged, or five times.

    `put`: boto3's own. `wait`: between two tries, with how many there were.
    """

    put: Callable[..., PutAnswer]
    wait: Callable[[int], None] = pause

    def all_of(self, request: PutRequest, acks: list[Acknowledged | None]) -> PutAnswer:
        """The answer to all records in boto3's shape.

        Input:
            acks: empty; as soon as Kinesis has answered it says who was acknowledged, however this
                ends: an interruption between two tries is raised like any.

        Raises:
            whatever the first call raises: as without us. A later one's error leaves what failed
                as failed.
        """
        answer = self.put(**request)
        try:
            entries: list[PutAnswer] = list(answer["Records"])
            sent = _attempts(answer)
            told = _acks(entries, request, sent)
        except Exception:  # noqa: BLE001 - of no Kinesis, but of a test's stub, say
            return answer  # the caller's to judge
        if len(entries) != len(request["Records"]):
            return answer
        acks += told
        failed = [at for at, ack in enumerate(acks) if ack is None]
        tries = 1
        while failed and tries < PUT_TRIES:
            self.wait(tries)
            again = self._again(request, failed)
            if again is None:
                break
            sent += _attempts(again)
            tries += 1
            told = _acks(again["Records"], request, sent)
            for at, entry, ack in zip(failed, again["Records"], told, strict=True):
                entries[at], acks[at] = entry, ack
            failed = [at for at in failed if acks[at] is None]
        if tries > 1:
            answer = {**answer, "Records": entries, "FailedRecordCount": len(failed)}
        return answer

    def _again(self, request: PutRequest, failed: Sequence[int]) -> PutAnswer | None:
        records = request["Records"]
        try:
            again = self.put(**{**request, "Records": [records[at] for at in failed]})
            _acks(again["Records"], request, _attempts(again))
        except Exception:  # noqa: BLE001 - the caller must learn what the first call achieved
            return None
        return again if len(again["Records"]) == len(failed) else None


def acknowledged(answer: PutAnswer, request: PutRequest) -> Acknowledged | None:
    """The answer to `put_record`, which raises where it fails."""
    return _acks([answer], request, _attempts(answer))[0]


def is_refusal(error: Exception) -> bool:
    """Whether Kinesis took a request for a faulty one, as it does where a record is too large.

    Nothing of it was put then. The error is one of boto3's clients, by its shape: the import of
    their classes takes longer than ours.
    """
    response = getattr(error, "response", None)
    told = response.get("Error") if isinstance(response, dict) else None
    return isinstance(told, dict) and told.get("Code") in _REFUSALS


def _acks(
    entries: Sequence[PutAnswer], request: PutRequest, attempt: int
) -> list[Acknowledged | None]:
    stream = request.get("StreamName") or str(request.get("StreamARN", "")).rpartition("/")[2]
    occasion = (stream, instant_with_ms(now()), attempt, None)
    return [
        (entry.get("ShardId", ""), entry["SequenceNumber"], occasion)
        if entry.get("SequenceNumber")
        else None
        for entry in entries
    ]


def _attempts(answer: PutAnswer) -> int:
    """How many times boto3 itself sent it."""
    return 1 + int(answer.get("ResponseMetadata", {}).get("RetryAttempts", 0))
