"""Judged traces of places → what is kept of them, how many there are, what they say of messages."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.columns.ledger_sums import CELL
from shardaudit.model.input_columns import RECEIVED, SENT

_CELL = ("location", *CELL)
_MANY = 2  # is more than once
_COPIED = (
    *("message_id", "shard_id", "sequence_number", "sent_at", "bucket_start", "location"),
    *("event", "producer_id", "session", "session_seq", "acked_at"),
)


def new_sightings(judged: DataFrame, known: DataFrame) -> DataFrame:
    """The traces of places that no batch brought before, as SIGHTINGS has them; without the batch.

    Input:
        judged: `judged_traces`, good ones of places alone; known: SIGHTINGS of other batches.
    """
    fresh = judged.withColumn("event", F.coalesce("event", F.lit(RECEIVED)))
    same = ["message_id", "location", "event", "told"]
    # Presence only: a file that is read again brings nothing new.
    old = known.withColumn("told", _told()).select(*same)
    return fresh.withColumn("told", _told()).join(old, same, how="left_anti").select(*_COPIED)


def counted_sightings(sightings: DataFrame) -> DataFrame:
    """How many messages a place traced: one row per place and cell.

    Input:
        sightings: of `new_sightings`.
    Output:
        `location`, `shard_id`, `bucket_start`, unique together; `received`, `sent` (bigint).
    """
    messages = sightings.groupBy("message_id", *_CELL).agg(
        F.max(F.when(F.col("event") == RECEIVED, 1).otherwise(0)).alias("received"),
        F.max(F.when(F.col("event") == SENT, 1).otherwise(0)).alias("sent"),
    )
    return messages.groupBy(*_CELL).agg(
        F.sum("received").alias("received"), F.sum("sent").alias("sent")
    )


def seen_at(sightings: DataFrame) -> DataFrame:
    """Where messages were seen: one row per message.

    A line that stands there twice is one.

    Input:
        sightings: SIGHTINGS.
    Output:
        `message_id`, `seen`: a text of `place:received:sent`, in order, a number up to 2.
    """
    once = sightings.select("message_id", "location", "event", _told().alias("told")).distinct()
    events = once.groupBy("message_id", "location").agg(
        F.count_if(F.col("event") == RECEIVED).alias("received"),
        F.count_if(F.col("event") == SENT).alias("sent"),
    )
    numbers = [F.least(F.col(name), F.lit(_MANY)).cast("string") for name in ("received", "sent")]
    told = events.select("message_id", F.concat_ws(":", "location", *numbers).alias("told"))
    listed = told.groupBy("message_id").agg(F.sort_array(F.collect_list("told")).alias("told"))
    return listed.select("message_id", F.concat_ws(",", "told").alias("seen"))


def handings_over(sightings: DataFrame) -> DataFrame:
    """What a place handed over: one row per message and line that says it was sent on.

    A line that stands there twice is one.

    Input:
        sightings: SIGHTINGS of one place.
    Output:
        `batch_id`, `message_id`, `shard_id`, `sequence_number`, `sent_at`, `landed_at`.
    """
    sent = sightings.where(F.col("event") == SENT).withColumn("told", _told())
    return sent.groupBy("batch_id", "message_id", "told").agg(
        *(F.min(name).alias(name) for name in ("shard_id", "sequence_number", "sent_at")),
        F.min("acked_at").alias("landed_at"),
    )


def _told() -> Column:
    """What tells a line from others of the same message and place."""
    texts = (
        F.col("producer_id"),
        F.col("session"),
        F.col("session_seq").cast("string"),
        F.unix_micros("acked_at").cast("string"),
    )
    # Each has its place, also where it is absent.
    return F.concat_ws("\n", *(F.coalesce(text, F.lit("")) for text in texts))
