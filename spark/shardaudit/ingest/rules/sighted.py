"""Judged traces of places → what is kept of them, how many there are, what they say of messages."""

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.columns.ledger_sums import CELL
from shardaudit.ingest.rules.fingerprint import latency_bin
from shardaudit.model.input_columns import LEFT_OUT, RECEIVED, SENT
from shardaudit.model.tables.table import LATENCY_BINS

_CELL = ("location", *CELL)
_EVENTS = (RECEIVED, SENT)
_CLOCKS_APART_US = 1_000_000  # of two hosts: it counts as no time at all, see `latency_bin`
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


def counted_sightings(sightings: DataFrame, known: DataFrame) -> DataFrame:
    """How many messages more a place traced, and how late: one row per place and cell.

    A message counts once, whatever batches bring it, with the first time of each event that the
    first of them brought; of no bin where it has none, or one of more than a second before it was
    sent. So the rows of all batches add up.

    Input:
        sightings: of `new_sightings`; known: as for that.
    Output:
        `location`, `shard_id`, `bucket_start`, unique together; `received`, `sent`, `left_out`
        (bigint: and did not send; less than 0 where it now says that it did), of each of the first
        two `…_latency_counts` (array<bigint>), `…_early` (bigint).
    """
    each = ["message_id", *_CELL]
    ids = sightings.select("message_id").distinct()
    # Presence only.
    again = known.join(ids, ["message_id"], how="left_semi")
    lines = (
        of.select(*each, "sent_at", "event", "acked_at", F.lit(is_new).alias("is_new"))
        for of, is_new in ((sightings, 1), (again, 0))
    )
    messages = (
        reduce(DataFrame.unionByName, lines)
        .groupBy(*each)
        .agg(
            F.max("is_new").alias("is_new"),
            F.min("sent_at").alias("sent_at"),
            *(column for event in (*_EVENTS, LEFT_OUT) for column in _event(event)),
        )
        .where(F.col("is_new") == 1)
        .withColumns(_news())
    )
    bins = [_bin(event) for event in _EVENTS]
    is_early = [F.coalesce(_is_early(event), F.lit(False)) for event in _EVENTS]
    timed = messages.select(
        *(*_CELL, *_EVENTS, LEFT_OUT),
        *(each.alias(f"{event}_bin") for event, each in zip(_EVENTS, bins, strict=True)),
        *(each.alias(f"{event}_early") for event, each in zip(_EVENTS, is_early, strict=True)),
    )
    # Over few rows then: a sum per bin is dear for each message.
    told = [f"{event}_{what}" for event in _EVENTS for what in ("bin", "early")]
    alike = timed.groupBy(*_CELL, *told).agg(
        F.count("*").alias("ids"), *(F.sum(event).alias(event) for event in (*_EVENTS, LEFT_OUT))
    )
    return alike.groupBy(*_CELL).agg(
        *(column for event in _EVENTS for column in _sums(event)),
        F.sum(LEFT_OUT).alias(LEFT_OUT),
    )


def _event(event: str) -> tuple[Column, ...]:
    """Whether it happened, by all that is known and before; and when, by what is new."""
    is_it, is_new = F.col("event") == event, F.col("is_new") == 1
    return (
        F.max(F.when(is_it, 1).otherwise(0)).alias(event),
        F.max(F.when(is_it & ~is_new, 1).otherwise(0)).alias(f"{event}_before"),
        F.min(F.when(is_it & is_new, F.col("acked_at"))).alias(f"{event}_first_at"),
    )


def _news() -> dict[str, Column]:
    """What is to be added for a message to what was counted of it."""
    found: dict[str, Column] = {}
    for event in _EVENTS:
        before = F.col(f"{event}_before")
        found[event] = F.col(event) - before
        found[f"{event}_first_at"] = F.when(before == 0, F.col(f"{event}_first_at"))
    kept, kept_before = (is_kept(f"{SENT}{of}", f"{LEFT_OUT}{of}") for of in ("", "_before"))
    return found | {LEFT_OUT: kept - kept_before}


def is_kept(sent: str, left_out: str) -> Column:
    """Whether a place left a message out for good, by whether it sent it on and left it out.

    All three are 1 or 0. One that was started anew may leave out first what it sends on then.
    """
    return F.when(F.col(sent) == 0, F.col(left_out)).otherwise(0)


def had_messages(kept: str) -> Column:
    """How many messages a place had, of rows with `received`, `sent` and those it kept.

    Of a message that it sent on, or left out, it may have lost the other trace.
    """
    return F.greatest("received", F.col("sent") + F.col(kept))


def _is_early(event: str) -> Column:
    before_us = F.unix_micros("sent_at") - F.unix_micros(f"{event}_first_at")
    return before_us > _CLOCKS_APART_US


def _bin(event: str) -> Column:
    found = latency_bin(F.col("sent_at"), F.col(f"{event}_first_at"))
    return F.when(~_is_early(event), found)


def _sums(event: str) -> tuple[Column, ...]:
    of_bin, ids = F.col(f"{event}_bin"), F.col("ids")
    counts = (F.sum(F.when(of_bin == i, ids).otherwise(0)) for i in range(LATENCY_BINS))
    early = F.sum(F.when(F.col(f"{event}_early"), ids).otherwise(0))
    return (
        F.sum(event).alias(event),
        F.array(*counts).alias(f"{event}_latency_counts"),
        early.alias(f"{event}_early"),
    )


def seen_at(sightings: DataFrame) -> DataFrame:
    """Where messages were seen: one row per message.

    A line that stands there twice is one.

    Input:
        sightings: SIGHTINGS.
    Output:
        `message_id`, `seen`: a text of `place:received:sent:left_out`, in order, a number up to 2.
    """
    once = sightings.select("message_id", "location", "event", _told().alias("told")).distinct()
    events = once.groupBy("message_id", "location").agg(
        *(F.count_if(F.col("event") == name).alias(name) for name in (*_EVENTS, LEFT_OUT))
    )
    numbers = [F.least(F.col(n), F.lit(_MANY)).cast("string") for n in (*_EVENTS, LEFT_OUT)]
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
