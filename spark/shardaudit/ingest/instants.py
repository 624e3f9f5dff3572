"""Times as inputs write them, and the cells' buckets."""

from datetime import timedelta

from pyspark.sql import Column
from pyspark.sql import functions as F

# Date and time to at least the minute, with a zone; what Spark's cast then makes of it, it may
# still refuse (February 30).
_ISO_WITH_ZONE = r"^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d([.,]\d{1,9})?)?([Zz]|[+-]\d\d(:?\d\d)?)\z"
_MAX_MS = 10**14  # year 5138: no time of ours, and safe from overflow
_TO_THE_MINUTE = r"^(.{16})([Z+-].*)\z"


def parsed_instant(text: Column) -> Column:
    """The instant that an ISO 8601 text with a zone names, else NULL; cut to the microsecond."""
    spelled_out = F.regexp_replace(F.translate(F.upper(text), ",", "."), _TO_THE_MINUTE, "$1:00$2")
    return F.when(
        text.rlike(_ISO_WITH_ZONE),
        F.coalesce(text.try_cast("timestamp"), spelled_out.try_cast("timestamp")),
    )


def epoch_ms_instant(epoch_ms: Column) -> Column:
    """The instant of a whole number of milliseconds; NULL when no calendar reaches there."""
    is_possible = epoch_ms.between(-_MAX_MS, _MAX_MS)
    return F.when(is_possible, F.timestamp_millis(epoch_ms))


def bucket_start(instant: Column, bucket: timedelta) -> Column:
    """The start of the time bucket that an instant from 1970 on lies in, counted from the epoch."""
    width_us = int(bucket / timedelta(microseconds=1))
    micros = F.unix_micros(instant)
    return F.timestamp_micros(micros - micros % width_us)


def in_sample(message_id: Column, sample_rate: float) -> Column:
    """Whether an id belongs to the audited share: the same on both sides, and from run to run."""
    parts = 1_000_000
    return F.pmod(F.xxhash64(message_id), F.lit(parts)) < round(sample_rate * parts)
