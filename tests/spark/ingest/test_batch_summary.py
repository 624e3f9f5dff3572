"""What is told of a batch: what was taken in, what was refused, and why."""

from datetime import UTC, date, datetime

from pyspark.sql import Row, SparkSession

from shardaudit.ingest.rules.batch_summary import batch_summaries
from shardaudit.model.config.eras import CellShape, Eras

OLD = datetime(2000, 1, 1, tzinfo=UTC)
NEW = datetime(2026, 11, 20, tzinfo=UTC)
PLACED_DDL = "batch_id string, shard_id string, bucket_start timestamp, n bigint"
REFUSED_DDL = "batch_id string, reason string"


def test_both_tables_are_told_of_by_batch(spark: SparkSession) -> None:
    placed = [
        ("a", "s1", NEW, 5),
        ("a", "s2", OLD, 2),
        ("a", "s3", OLD, -9),  # taken out of a cell again: nothing that was sent then
        ("b", "s1", NEW, 1),
    ]
    foreign = "the trace is of another stream than events"
    refused = [
        *[("a", "message_id is missing")] * 3,
        ("a", "sent_at is before 2000"),
        ("a", "acked_at is over a day ahead"),
        ("c", foreign),
        ("c", foreign),
        ("c", "the trace is of another location than producer"),
        ("d", "gap: 20000 traces were dropped by the producer"),
    ]
    told = batch_summaries(
        spark.createDataFrame(placed, PLACED_DDL),
        spark.createDataFrame(refused, REFUSED_DDL),
        shape=Eras(CellShape(60, 0.1), ((date(2026, 11, 20), CellShape(60, 0.5)),)),
    ).collect()
    found = sorted((in_utc(row) for row in told), key=lambda row: str(row["batch_id"]))
    assert found == [
        summary(
            "a",
            too_old=2,
            shards=2,
            refused=5,
            clock_refused=2,
            sent_from=OLD,
            sent_to=NEW,
            main_reason="message_id is missing",
            share=7 / (5 / 0.5 + 2 / 0.1),
        ),
        summary("b", share=0.5, shards=1, sent_from=NEW, sent_to=NEW),
        summary("c", refused=3, foreign=3, elsewhere=1, main_reason=foreign),
        summary(
            "d", refused=1, gaps=1, main_reason="gap: 20000 traces were dropped by the producer"
        ),
    ]


def in_utc(row: Row) -> dict[str, object]:
    return {
        name: value.astimezone(UTC) if isinstance(value, datetime) else value
        for name, value in row.asDict().items()
    }


def summary(batch_id: str, **fields: object) -> dict[str, object]:
    counts = dict.fromkeys(
        ("too_old", "shards", "refused", "foreign", "elsewhere", "clock_refused", "gaps"), 0
    )
    texts = dict.fromkeys(("sent_from", "sent_to", "main_reason", "share"))
    return {"batch_id": batch_id, **counts, **texts, **fields}
