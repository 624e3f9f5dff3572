"""boto3's Kinesis client, and a trace of each record that it gets acknowledged."""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from shardaudit.adapters.clock import now
from shardaudit.model.input_columns import PRODUCER
from shardaudit.producer.log_holder import LogHolder, check_arguments, check_clients
from shardaudit.producer.message_fields import FieldSource, MessageFields, instant_with_ms
from shardaudit.producer.packed_lines import Teller
from shardaudit.producer.partial_failures import (
    PutAnswer,
    PutRequest,
    RepeatedPut,
    acknowledged,
    is_refusal,
)
from shardaudit.producer.prepared_records import Acknowledged, PreparedRecords, PutRecord
from shardaudit.producer.trace_folder import trace_folder
from shardaudit.producer.trace_log import LogLimits, TraceLog

log = logging.getLogger(__name__)

Client = Any  # boto3 makes its clients' methods at run time


def traced(  # noqa: PLR0913 - the contract
    client: Client,
    to: str,
    *,
    producer_id: str,
    sample_rate: float = 1.0,
    message_id: FieldSource = None,
    sent_at: FieldSource = None,
    parent_ids: FieldSource = None,
    s3: Client | None = None,
) -> "TracedKinesis":
    """The client, writing traces into a folder or below an `s3://` address.

    Input:
        producer_id: who puts, as the traces say it.
        sample_rate: the share of ids that is traced; not less than in the audit's configuration.
        message_id, sent_at: paths in a JSON payload (`meta.id`), or functions of the record; None:
            taken from the payload's `message_id` and `sent_at`, added where it has none.
        parent_ids: the same, of the ids from which a message was made (one, or a list).
        s3: boto3's client for an `s3://` address; None: one with the usual chain of credentials.

    Raises:
        ConfigError: an argument cannot be used.
    """
    check_arguments(
        "traced()",
        texts={"to": to, "producer_id": producer_id},
        sources={"message_id": message_id, "sent_at": sent_at, "parent_ids": parent_ids},
        sample_rate=sample_rate,
    )
    check_clients("traced()", {"client": client, "s3": s3})
    teller = Teller(producer_id, session="", location=PRODUCER, sample_rate=sample_rate)
    log = TraceLog(trace_folder(to, s3), teller, LogLimits())
    return TracedKinesis(client, log, MessageFields(message_id, sent_at, parent_ids), sample_rate)


class TracedKinesis(LogHolder):
    """Puts and traces; what else the client has is the client's. Any thread may call it.

    Closed, it ends the log alone: the client stays open, and puts without traces then.
    """

    def __init__(
        self, client: Client, log: TraceLog, fields: MessageFields, sample_rate: float
    ) -> None:
        super().__init__(log)
        self._client, self._fields = client, fields
        self._sample_rate = sample_rate
        self._is_faulty = False

    def put_record(self, **request: Any) -> PutAnswer:
        """boto3's `put_record`."""
        prepared = self._fields.prepared([request], instant_with_ms(now()))
        return _put_or_as_given(self._put_one, request, prepared, records=[request])

    def put_records(self, **request: Any) -> PutAnswer:
        """boto3's `put_records`; entries that fail are put again, up to five times in all."""
        records = request.get("Records")
        if not isinstance(records, Sequence):
            return self._client.put_records(**request)  # type: ignore[no-any-return] # boto3's
        prepared = self._fields.prepared(records, instant_with_ms(now()))
        return _put_or_as_given(self._put_all, request, prepared, records=records)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # asked before it is made, as by copy()
            raise AttributeError(name)
        return getattr(self._client, name)

    def _put_one(self, request: PutRequest, prepared: PreparedRecords) -> PutAnswer:
        answer: PutAnswer = self._client.put_record(**prepared.records[0])
        acked = list[Acknowledged]()
        with suppress(Exception):  # an answer that is none of Kinesis is the caller's to judge
            acked = [acknowledged(answer, request)]
        self._trace(prepared, acked)
        return answer

    def _put_all(self, request: PutRequest, prepared: PreparedRecords) -> PutAnswer:
        acked = list[Acknowledged]()
        put = RepeatedPut(self._client.put_records)
        try:
            return put.put_all_of({**request, "Records": prepared.records}, acked)
        finally:
            self._trace(prepared, acked)

    def _trace(self, prepared: PreparedRecords, acked: Sequence[Acknowledged]) -> None:
        """Never raises: what is put is put, and a fault of ours is a gap, not the caller's."""
        if not acked:
            return
        try:
            rate = self._sample_rate
            traces = [trace for each in acked for trace in prepared.traces(each, rate)]
        except Exception as error:  # noqa: BLE001 - as it says
            self._tell_once()
            why = f"no trace could be made: {type(error).__name__}"
            traces = [why] * sum(len(each.places) for each in acked)
        try:
            self._log.add(traces)
        except Exception:  # noqa: BLE001 - of no memory, say: what it has numbered is counted
            self._tell_once()

    def _tell_once(self) -> None:
        if not self._is_faulty:
            self._is_faulty = True
            with suppress(Exception):  # as of a handler of the caller's
                log.exception("a put could not be traced, by a fault of shardaudit; told once")


def _put_or_as_given(
    put: Callable[[PutRequest, PreparedRecords], PutAnswer],
    request: PutRequest,
    prepared: PreparedRecords,
    *,
    records: Sequence[PutRecord],
) -> PutAnswer:
    """Puts; where Kinesis refuses what may be our addition, puts once more what the caller gave.

    Raises:
        whatever the caller's own request is answered with.
    """
    try:
        return put(request, prepared)
    except Exception as error:
        if not is_refusal(error) or (given := prepared.as_given(records)) == prepared:
            raise
    return put(request, given)
