"""A place between the producer and the sink: traces of messages received, sent on, left out.

The log is the producers' own (`producer/trace_log.py`): one thread writes, nobody waits for it, and
what it drops is counted.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from shardaudit.adapters.clock import now
from shardaudit.model.errors import ConfigError
from shardaudit.model.input_columns import CANARY, MAX_SHARD_CHARS
from shardaudit.model.route.route import ENDS
from shardaudit.model.sequence import is_sequence_number
from shardaudit.producer.log_holder import LogHolder, check_arguments, check_clients
from shardaudit.producer.message_fields import (
    FieldSource,
    MessageFields,
    instant_with_ms,
    is_utf8,
)
from shardaudit.producer.packed_lines import Teller
from shardaudit.producer.prepared_records import Acknowledged
from shardaudit.producer.sample import is_sampled
from shardaudit.producer.trace_folder import trace_folder
from shardaudit.producer.trace_log import LogLimits, TraceLog
from shardaudit.producer.trace_queue import TraceColumns

NO_LIST = "the records are no list"
NO_SHARD_ID = "the record has no ShardId, or none that an ingest takes"
NO_NUMBER = "the record has no SequenceNumber, or it is no text of 1 to 129 decimal digits"

ReceivedRecord = Mapping[str, Any]  # as boto3 names its keys; Any: each has a type of its own


def trace(  # noqa: PLR0913 - the contract
    to: str,
    *,
    stream: str,
    location: str,
    producer_id: str,
    sample_rate: float = 1.0,
    message_id: FieldSource = None,
    sent_at: FieldSource = None,
    s3: Any | None = None,  # a client of boto3
) -> "TracedPlace":
    """A place, writing its traces into a folder or below an `s3://` address.

    Input:
        stream: that of the audit, whatever stream the place sends on to.
        location: the place's name in the route; no place is called `producer` or `sink`.
        producer_id: which process or function it is, as the traces say it.
        sample_rate: the share of ids that is traced; not less than in the audit's configuration.
        message_id, sent_at: paths in a JSON payload (`meta.id`), or functions of the record; None:
            the payload's `message_id` and `sent_at`.
        s3: boto3's client for an `s3://` address; None: one with the usual chain of credentials.

    Raises:
        ConfigError: an argument cannot be used.
    """
    check_arguments(
        "trace()",
        texts={"to": to, "stream": stream, "location": location, "producer_id": producer_id},
        sources={"message_id": message_id, "sent_at": sent_at},
        sample_rate=sample_rate,
    )
    check_clients("trace()", {"s3": s3})
    if location in ENDS:  # the producer's would count as acknowledgements, the sink bears none
        wanted = "the name of a place between the producer and the sink"
        raise ConfigError("trace(): location", location, wanted)
    teller = Teller(producer_id, session="", location=location, sample_rate=sample_rate)
    log = TraceLog(trace_folder(to, s3), teller, LogLimits())
    # Named, so that nothing is added where they are absent: the message is somebody else's.
    fields = MessageFields(message_id or "message_id", sent_at or "sent_at")
    return TracedPlace(log, fields, stream, sample_rate)


class TracedPlace(LogHolder):
    """Traces what its place received, sent on or left out. Any thread may call it; none raises.

    A record has the payload as `Data`, and `ShardId` and `SequenceNumber` as Kinesis gave them to
    the producer: the same where it is received, sent on or left out, changed or not.
    """

    def __init__(
        self, log: TraceLog, fields: MessageFields, stream: str, sample_rate: float
    ) -> None:
        super().__init__(log)
        self._fields = fields
        self._stream, self._sample_rate = stream, sample_rate

    def received(self, records: Sequence[ReceivedRecord]) -> None:
        """Traces what has come in; what cannot be traced is counted.

        What is no list but a generator counts as one, however many records it would have given: to
        count them is to consume them.
        """
        self._trace("received", records)

    def sent(self, records: Sequence[ReceivedRecord]) -> None:
        """Traces what the next place has acknowledged, by the records that came in; a list, too."""
        self._trace("sent", records)

    def left_out(self, records: Sequence[ReceivedRecord]) -> None:
        """Traces what is not to land, by design, of what came in; a list, too."""
        self._trace("left_out", records)

    def _trace(self, event: str, records: Sequence[ReceivedRecord]) -> None:
        if not isinstance(records, Sequence):  # to read on may be to consume
            self._log.add([NO_LIST])
            return
        traces: list[TraceColumns | str]
        rate = self._sample_rate
        try:
            prepared = self._fields.prepared(records, at="")
            where = [_where(record) for record in prepared.records]
            shard_ids, sequence_numbers, why = ([one[at] for one in where] for at in range(3))
            each = enumerate(zip(prepared.message_ids, why, strict=True))
            odd = {at: told for at, (name, told) in each if told and is_sampled(name, rate)}
            prepared = prepared._replace(faults=odd | prepared.faults)
            occasion = (self._stream, instant_with_ms(now()), None, event)
            come = Acknowledged(occasion, range(len(where)), shard_ids, sequence_numbers)
            traces = prepared.traces(come, rate)
        except Exception as error:  # noqa: BLE001 - a list of the caller's own kind
            traces = [f"the records could not be read: {type(error).__name__}"]
        self._log.add(traces)


def _where(record: ReceivedRecord) -> tuple[str, str, str]:
    """Shard id and sequence number, and what is wrong with them."""
    shard_id = sequence_number = None
    with suppress(Exception):  # of a function's making, not even a record
        shard_id, sequence_number = record.get("ShardId"), record.get("SequenceNumber")
    if not isinstance(shard_id, str) or not _is_shard_id(shard_id):
        return "", "", NO_SHARD_ID
    if not isinstance(sequence_number, str) or not is_sequence_number(sequence_number):
        return "", "", NO_NUMBER
    return shard_id, sequence_number, ""


def _is_shard_id(text: str) -> bool:
    """Whether an ingest takes it."""
    return 0 < len(text) <= MAX_SHARD_CHARS and is_utf8(text) and not text.startswith(CANARY)
