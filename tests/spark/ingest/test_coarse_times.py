"""Landing times that are cut to hours or days: by when the rows landed, for all that is known."""

from datetime import UTC, datetime, timedelta

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from shardaudit.ingest.rules.coarse_times import (
    is_between_hours,
    landed_by,
    landed_within,
    with_sound_times,
)
from tests.builders import NOW, SHARD, T0, sink_row
from tests.spark.audit.frames import frame

ROW_DDL = (
    "message_id string, shard_id string, sequence_number string, sent_at timestamp, "
    "landed_at timestamp"
)


def test_rows_that_landed_long_before_they_were_sent_do_not_say_when(spark: SparkSession) -> None:
    minutes = {"before it": -1, "as a clock is off": 29, "local time": 30, "of the west": 300}
    told = [
        sink_row(message_id=m, landed_at=T0 - timedelta(minutes=n, seconds=7))
        for m, n in minutes.items()
    ]
    cut = sink_row(message_id="cut to the day", landed_at=T0.replace(hour=0, minute=0))
    lines = [*told, cut, sink_row(message_id="no time", sent_at=None)]
    rows = frame(spark, ROW_DDL, lines)
    found = with_sound_times(rows).where(F.col("landed_at").isNull()).collect()
    assert {row.message_id for row in found} == {"local time", "of the west"}
    assert with_sound_times(rows).columns == rows.columns


def test_times_that_are_cut_to_hours_are_told_and_stand_for_the_ingest(spark: SparkSession) -> None:
    # When it landed, how many rows came: whether that is no whole half hour, and what stands then.
    second, half_hour = timedelta(seconds=1), timedelta(minutes=30)
    cases: list[tuple[datetime | None, int, bool | None, datetime | None]] = [
        (T0, 1, False, NOW),
        (T0 + half_hour, 1, False, NOW),
        (T0 - 12 * 2 * half_hour, 1, False, NOW),
        (T0 + second, 1, True, NOW),
        (T0 + timedelta(microseconds=1), 1, True, NOW),
        (T0, 0, False, T0),
        (T0, -1, False, T0),
        (NOW, 1, None, NOW),
        (None, 1, None, None),
    ]
    rows = [(n, at, came, at) for n, (at, came, *_) in enumerate(cases)]
    ddl = "number int, last_at timestamp, n bigint, unnumbered_at timestamp"
    cells = spark.createDataFrame(rows, ddl).withColumns(
        {"between": is_between_hours(now=NOW), "shard_id": F.lit(SHARD)}
    )
    for name in ("last_at", "unnumbered_at"):
        found = landed_by(cells, [SHARD], now=NOW).withColumn("at", F.unix_seconds(name))
        told = [(r.between, r.at) for r in found.orderBy(F.col("number")).collect()]
        assert told == [(is_so, at and int(at.timestamp())) for *_, is_so, at in cases]


# Of shards the last landings of their cells, and what stands then; at 12:30 an ingest looked last.
MIDNIGHT = T0.replace(hour=0)
WITHIN: dict[str, list[tuple[timedelta | None, timedelta | None]]] = {
    "fine": [(timedelta(hours=8), timedelta(hours=8)), (timedelta(hours=9, seconds=1),) * 2],
    "hours": [
        (timedelta(hours=8), timedelta(hours=9)),
        (timedelta(hours=9), timedelta(hours=10)),
        (timedelta(hours=10.5), timedelta(hours=11.5)),
        (timedelta(hours=12), timedelta(hours=12.5)),  # no later than that ingest
        (timedelta(hours=13), timedelta(hours=13)),  # nor earlier than it says
        (None, None),
    ],
    "days": [
        (timedelta(days=-1), timedelta(0)),
        (timedelta(days=-2), timedelta(days=-1)),
        (timedelta(0), timedelta(hours=12.5)),
    ],
    "midnights of summer and winter": [
        (timedelta(days=-3), timedelta(days=-2)),
        (timedelta(days=-2, hours=-1), timedelta(days=-1, hours=-1)),
    ],
    "nothing known": [(None, None)],
}


def test_what_is_cut_landed_by_the_end_of_its_hour_or_day(spark: SparkSession) -> None:
    rows = [
        {"shard_id": shard, "last_at": then, "unnumbered_at": then}
        for shard, cells in WITHIN.items()
        for then in (None if at is None else MIDNIGHT + at for at, _ in cells)
    ]
    cells = frame(spark, "shard_id string, last_at timestamp, unnumbered_at timestamp", rows)
    found = landed_within(cells, now=NOW, came_by=MIDNIGHT + timedelta(hours=12.5))
    assert found.columns == cells.columns
    told: dict[str, list[datetime | None]] = {shard: [] for shard in WITHIN}
    for row in found.collect():
        assert row.last_at == row.unnumbered_at
        told[row.shard_id].append(row.last_at and row.last_at.astimezone(UTC))
    assert {shard: sorted(map(str, times)) for shard, times in told.items()} == {
        shard: sorted(str(by if by is None else MIDNIGHT + by) for _, by in cells)
        for shard, cells in WITHIN.items()
    }
