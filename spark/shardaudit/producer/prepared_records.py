"""Records as they are put, and the traces of those that are acknowledged: a column for each field.

A column is a list of texts: no object for each record, which takes time to make and which Python's
collector would go through.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from shardaudit.producer.sample import are_sampled
from shardaudit.producer.trace_queue import TraceColumns, TraceOccasion

NO_ROOM = "no room for an id or a time"

PutRecord = Mapping[str, Any]  # as boto3 takes it; Any: its values are the caller's


class Acknowledged(NamedTuple):
    """What one answer acknowledged: the places of records in their call, where each is, and when.

    `places` grow. Of a place of the route: what it received, sent or left out.
    """

    occasion: TraceOccasion
    places: Sequence[int]
    shard_ids: Sequence[str]
    sequence_numbers: Sequence[str]


class PreparedRecords(NamedTuple):
    """Records as they are put, and of each its message's id, time and parents.

    `parent_ids`: empty where nobody asks for them. `faults`: by place why there can be no trace.
    """

    records: list[PutRecord]
    message_ids: list[str]
    sent_ats: list[str | int]
    parent_ids: list[tuple[str, ...]]
    faults: dict[int, str]

    def as_given(self, records: Sequence[PutRecord]) -> "PreparedRecords":
        """The caller's own; there is no trace of one to which something had been added."""
        each = enumerate(zip(self.records, records, strict=True))
        added = {place: NO_ROOM for place, (put, own) in each if put is not own}
        return self._replace(records=list(records), faults=self.faults | added)

    def traces(self, acked: Acknowledged, sample_rate: float) -> list[TraceColumns | str]:
        """Those of the sample, and why there is none of others.

        Raises:
            ValueError: a column is too short, by a fault of ours.
        """
        occasion, places, shard_ids, sequence_numbers = acked
        columns: list[Sequence[Any]] = [self.message_ids, self.sent_ats, self.parent_ids]
        if len(places) < len(self.records):
            columns = [[column[at] for at in places] if column else [] for column in columns]
        message_ids, sent_ats, parent_ids = columns
        traces = TraceColumns(
            occasion, message_ids, sent_ats, shard_ids, sequence_numbers, parent_ids
        )
        if {len(column) for column in traces[1:-1]} != {len(places)}:
            raise ValueError(f"not each column has {len(places)} records")
        kept, faults = are_sampled(message_ids, sample_rate), self.faults
        if faults:
            each = zip(kept, places, strict=True)
            kept = [is_kept and at not in faults for is_kept, at in each]
        why = [faults[at] for at in places if at in faults] if faults else []
        return [traces if all(kept) else traces.only(kept), *why]
