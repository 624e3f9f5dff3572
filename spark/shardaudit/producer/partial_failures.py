"""One put of many records: what failed of it is put again, what was acknowledged is not."""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

from shardaudit.adapters.clock import now
from shardaudit.producer.message_fields import instant_with_ms
from shardaudit.producer.prepared_records import Acknowledged

PUT_TRIES = 5
_REFUSALS = {"ValidationException", "InvalidArgumentException"}
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 2.0

PutAnswer = dict[str, Any]  # of boto3; Any: each key has a type of its own
PutRequest = Mapping[str, Any]  # the same


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

    def put_all_of(self, request: PutRequest, acked: list[Acknowledged]) -> PutAnswer:
        """The answer to all records in boto3's shape.

        Input:
            acked: empty; as soon as Kinesis has answered it says who was acknowledged, however this
                ends: an interruption between two tries is raised like any.

        Raises:
            whatever the first call raises: as without us. A later one's error leaves what failed
                as failed.
        """
        answer = self.put(**request)
        places = range(len(request["Records"]))
        try:
            entries: list[PutAnswer] = list(answer["Records"])
            sent = _attempts(answer)
            told = _acknowledged(entries, places, request, sent)
        except Exception:  # noqa: BLE001 - of no Kinesis, but of a test's stub, say
            return answer  # the caller's to judge
        if len(entries) != len(places):
            return answer
        acked.append(told)
        failed = _without(places, told)
        tries = 1
        while failed and tries < PUT_TRIES:
            self.wait(tries)
            again = self._put_again(request, failed, sent)
            if again is None:
                break
            answered, told = again
            acked.append(told)
            sent += _attempts(answered)
            tries += 1
            for at, entry in zip(failed, answered["Records"], strict=True):
                entries[at] = entry
            failed = _without(failed, told)
        if tries > 1:
            answer = {**answer, "Records": entries, "FailedRecordCount": len(failed)}
        return answer

    def _put_again(
        self, request: PutRequest, failed: Sequence[int], sent: int
    ) -> tuple[PutAnswer, Acknowledged] | None:
        """What failed, put once more after it was sent so many times."""
        records = request["Records"]
        try:
            again = self.put(**{**request, "Records": [records[at] for at in failed]})
            told = _acknowledged(again["Records"], failed, request, sent + _attempts(again))
        except Exception:  # noqa: BLE001 - the caller must learn what the first call achieved
            return None
        return (again, told) if len(again["Records"]) == len(failed) else None


def acknowledged(answer: PutAnswer, request: PutRequest) -> Acknowledged:
    """The answer to `put_record`, which raises where it fails."""
    return _acknowledged([answer], range(1), request, _attempts(answer))


def is_refusal(error: Exception) -> bool:
    """Whether Kinesis took a request for a faulty one, as it does where a record is too large.

    Nothing of it was put then. The error is one of boto3's clients, by its shape: the import of
    their classes takes longer than ours.
    """
    response = getattr(error, "response", None)
    told = response.get("Error") if isinstance(response, dict) else None
    return isinstance(told, dict) and told.get("Code") in _REFUSALS


def _acknowledged(
    entries: Sequence[PutAnswer], places: Sequence[int], request: PutRequest, attempt: int
) -> Acknowledged:
    """What an answer says of the records that were at these places of the caller's."""
    stream = request.get("StreamName") or str(request.get("StreamARN", "")).rpartition("/")[2]
    numbers = [entry.get("SequenceNumber") for entry in entries]
    shard_ids = [entry.get("ShardId", "") for entry in entries]
    columns = (list(compress(column, numbers)) for column in (places, shard_ids, numbers))
    return Acknowledged((stream, instant_with_ms(now()), attempt, None), *columns)


def _without(places: Sequence[int], acked: Acknowledged) -> list[int]:
    if len(acked.places) == len(places):
        return []
    return sorted({*places}.difference(acked.places))


def _attempts(answer: PutAnswer) -> int:
    """How many times boto3 itself sent it."""
    return 1 + int(answer.get("ResponseMetadata", {}).get("RetryAttempts", 0))
