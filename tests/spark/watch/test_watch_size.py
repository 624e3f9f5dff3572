"""A week of 1,800 shards: 18 million cells on each side, watched by two cores."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.canary_frames import canary
from shardaudit.audit.evidence import ingested, sources
from shardaudit.audit.kept_days import keep_ledger_sums
from shardaudit.audit.rules.classify import Damage
from shardaudit.model.config.settings import Stream, load_settings
from shardaudit.model.retention import Retention
from shardaudit.model.tables.audit_tables import FINGERPRINTS
from shardaudit.model.tables.table import LATENCY_BINS
from shardaudit.model.verdict import Level
from shardaudit.model.window import Window
from shardaudit.store.warehouse import Warehouse
from tests.bench.commands import run, shardaudit
from tests.spark.watch.ledger import NOBODY

SHARDS, DAYS = 1800, 7
MINUTES = DAYS * 1440
START = datetime(2026, 11, 13, tzinfo=UTC)
STUCK = "shardId-000000000997"  # stopped after two of the seven days
LIMIT_S, LIMIT_GIB = 60, 2


pytestmark = pytest.mark.usefixtures("_any_credentials")


def week(warehouse: Warehouse, day: int, side: str) -> DataFrame:
    """The fingerprints of one side of a day; sequence numbers are as long and random as real."""
    cells = warehouse.spark.range(SHARDS * 1440, numPartitions=4)
    minute = (F.col("id") / SHARDS).cast("int") + F.lit(day * 1440)
    after = 60 if side == "traces" else 120
    is_sink = side == "sink"
    noise = F.lpad(F.abs(F.xxhash64("id", F.lit(1))).cast("string"), 19, "0")
    number = F.concat(F.lit("4968042876864449"), F.lpad(minute.cast("string"), 8, "0"), noise)
    start = F.timestamp_seconds(F.lit(int(START.timestamp())) + minute * 60)
    rows = cells.select(
        F.lit(f"events/{side}/{day + 1}").alias("batch_id"),
        F.lit("events").alias("stream"),
        F.lit(side).alias("side"),
        F.lit("producer" if side == "traces" else "sink").alias("location"),
        F.format_string("shardId-%012d", F.col("id") % SHARDS).alias("shard_id"),
        start.alias("bucket_start"),
        F.lit(60).alias("n"),
        F.xxhash64("id").alias("sum_lo"),
        F.xxhash64("id", F.lit(2)).alias("sum_hi"),
        F.concat(number, F.lit("9876543210123")).alias("max_sequence_number"),
        (start + F.make_dt_interval(secs=F.lit(after - 1))).alias("last_at"),
        (F.array(*(F.lit(60 * (i == 7)) for i in range(LATENCY_BINS))) if is_sink else F.lit(None))
        .cast("array<bigint>")
        .alias("latency_counts"),
        F.to_date(start).alias("sent_day"),
        F.lit(0).alias("own_n"),
        F.lit(0).alias("without_landed_at"),
        *(F.lit(None).alias(n) for n in ("unnumbered_at", "arrived_from", "arrived_until")),
        (F.lit(None) if is_sink else number).alias("min_sequence_number"),
    )
    stands = (F.col("shard_id") == STUCK) & (minute >= 2 * 1440)
    return rows.where(~stands) if is_sink else rows


def keep_sums(warehouse: Warehouse, stream: Stream, day: datetime) -> None:
    """What the audit of a day keeps of the ledger."""
    window = Window(day, day + timedelta(days=1))
    at = window.end + timedelta(minutes=5)
    request = AuditRequest("events", stream, window, at, Retention(timedelta(days=7)))
    planted = canary(warehouse.spark, request, Damage())
    keep_ledger_sums(
        warehouse, request, sources(warehouse, request, ingested(warehouse, "events"), planted)
    )


CONFIG = """
warehouse = "{folder}/warehouse"
engine = "embedded"

[embedded]
shared_machine = true

[aws]
region = "us-east-1"

[aws.endpoints]
kinesis = "{nobody}"
dynamodb = "{nobody}"

[streams.events]
stream_name = "events"
retention = "7d"
traces = {{ path = "{folder}/traces" }}
sink = {{ path = "{folder}/sink", format = "parquet" }}
"""


@pytest.mark.drill
def test_a_week_of_1800_shards_is_watched_within_seconds(
    warehouse: Warehouse, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sink").mkdir()
    config = tmp_path / "shardaudit.toml"
    config.write_text(CONFIG.format(folder=tmp_path, nobody=NOBODY))
    stream = load_settings(config).stream("events")
    for day in range(DAYS):
        for side in ("traces", "sink"):
            rows = week(warehouse, day, side)
            warehouse.append(rows, FINGERPRINTS)
        keep_sums(warehouse, stream, START + timedelta(days=day))
    as_of = START + timedelta(days=DAYS)
    watches = []
    for turn in range(3):
        at = (as_of + turn * timedelta(minutes=5)).isoformat()
        words = ["--config", str(config), "--json", "watch", "--stream", "events", "--as-of", at]
        watches.append(run(shardaudit(words)))
    with capsys.disabled():
        took = [f"{one.seconds:.1f} s, {one.peak_gib:.2f} GiB" for one in watches]
        print(f"\n{SHARDS} shards x {DAYS} days: {took}")  # noqa: T201
    [line] = json.loads(watches[-1].said)["shards"]
    assert (line["shard_id"], line["level"]) == (STUCK, Level.URGENT.value)
    assert max(one.seconds for one in watches) < LIMIT_S
    assert max(one.peak_gib for one in watches) < LIMIT_GIB
