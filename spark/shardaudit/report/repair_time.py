"""Whether what an audit finds lost can still be read again before it leaves the stream."""

from datetime import timedelta

from shardaudit.model.retention import PAGE_BYTES, PUT_BYTES_PER_S, seconds_to_read
from shardaudit.report.plain import length

AUDIT_EVERY = timedelta(days=1)  # the schedule of the DAG nightly_audit


def too_short(retention: timedelta, *, read_share: float) -> str | None:
    """A sentence when the retention is shorter than the way from a loss to its repair.

    At worst a message is lost just after an audit, found by the next one, and all that its shard
    took in between is read again.
    """
    size_bytes = AUDIT_EVERY.total_seconds() * PUT_BYTES_PER_S
    seconds = seconds_to_read(size_bytes, calls=size_bytes / PAGE_BYTES, share=read_share)
    needed = AUDIT_EVERY + timedelta(seconds=seconds)
    if retention >= needed:
        return None
    return (
        f"the stream keeps records for {length(retention)}; an audit every {length(AUDIT_EVERY)} "
        f"and at most {length(timedelta(seconds=seconds))} to read a full shard's day again "
        f"(backfill.read_share = {read_share:g}) are {length(needed)}: what was lost may leave the "
        "stream before it is back"
    )
