"""What one shard of Kinesis takes and gives, and how long a stream keeps a record.

Source: Kinesis Data Streams, "Quotas and limits". "2 MB" out is read as the lesser of its two
meanings and "1 MB" in as the greater: so no estimate of a reading is too short.
"""

from datetime import timedelta

PUT_RECORDS_PER_S, PUT_BYTES_PER_S = 1000, 2**20
CALLS_PER_S, READ_BYTES_PER_S = 5, 2 * 10**6
PAGE_RECORDS, PAGE_BYTES = 10_000, 10 * 2**20  # of one GetRecords call
RECORD_BYTES = 10 * 2**20  # the most that UpdateMaxRecordSize allows
MAX_RETENTION = timedelta(hours=8760)  # IncreaseStreamRetentionPeriod


def seconds_to_read(size_bytes: float, *, calls: float, share: float) -> float:
    """How long so many bytes and GetRecords calls take at that share of a shard's quotas."""
    return max(size_bytes / (READ_BYTES_PER_S * share), calls / (CALLS_PER_S * share))
