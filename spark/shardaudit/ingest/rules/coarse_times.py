"""Landing times that are cut, or cannot be: when the rows landed, for all that is known.

Somewhere hours and days begin at each whole half hour of UTC.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

COARSEST = timedelta(days=1)  # so much later than a cut time says a row may have landed

_HALF_HOUR_US = 1_800_000_000
_HOUR_US, _DAY_US = 2 * _HALF_HOUR_US, 48 * _HALF_HOUR_US
_MIDNIGHTS = 2  # somebody's midnights are two times of day: one of summer and one of winter


def is_between_hours(*, now: datetime) -> Column:
    """Whether a cell's last landing is at no whole half hour: somewhere hours and days begin so.

    NULL where it does not say, or was yet to come.
    """
    return F.when(F.col("last_at") < F.lit(now), ~_is_whole(F.unix_micros("last_at")))


def _is_whole(time_us: Column) -> Column:
    """Whether it may be cut: somewhere hours and days begin then."""
    return F.pmod(time_us, F.lit(_HALF_HOUR_US)) == 0


def with_sound_times(rows: DataFrame) -> DataFrame:
    """Rows of a sink; one that landed half an hour or more before it was sent does not say when.

    A consumer that writes local time, west of UTC: all would look at rest, since hours. Times that
    may be cut stay: they are judged with all others of their shard.
    """
    landed_us = F.unix_micros("landed_at")
    is_sound = _is_whole(landed_us) | (F.unix_micros("sent_at") - landed_us < _HALF_HOUR_US)
    return rows.withColumn(
        "landed_at", F.when(F.coalesce(is_sound, F.lit(True)), F.col("landed_at"))
    )


def landed_by(cells: DataFrame, shards: Iterable[str], *, now: datetime) -> DataFrame:
    """The same cells; of shards whose landing times are cut to hours or days: by now.

    Only where more rows came than went: what is rewritten did not land anew.
    """
    came = (F.col("n") > 0) & F.col("shard_id").isin(sorted(shards))
    return cells.withColumns(
        {
            name: F.when(came & F.col(name).isNotNull(), F.lit(now)).otherwise(F.col(name))
            for name in ("last_at", "unnumbered_at")
        }
    )


def landed_within(cells: DataFrame, *, now: datetime, came_by: datetime) -> DataFrame:
    """The same cells; of shards whose landing times are all cut, by the end of that hour or day.

    No later than by `came_by`: for cells that no batch counted, and that are made anew each time.

    Input:
        came_by: when an ingest last found such rows.
    """
    time_of_day = F.pmod(F.unix_micros("last_at"), F.lit(_DAY_US))
    # What lands in one or two hours alone may be cut to days as well.
    unit_us = F.when(F.size(F.collect_set(time_of_day)) > _MIDNIGHTS, _HOUR_US).otherwise(_DAY_US)
    is_fine = F.max(is_between_hours(now=now))
    of_shard = cells.groupBy("shard_id").agg(F.when(~is_fine, unit_us).alias("unit_us"))

    def landed(name: str) -> Column:
        end = F.timestamp_micros(F.unix_micros(name) + F.col("unit_us"))
        by = F.greatest(F.col(name), F.least(end, F.lit(min(now, came_by))))
        return F.when(F.col("unit_us").isNotNull() & F.col(name).isNotNull(), by).otherwise(
            F.col(name)
        )

    # Unique on the right, by its grouping.
    return (
        cells.join(F.broadcast(of_shard), ["shard_id"], how="left")
        .withColumns({name: landed(name) for name in ("last_at", "unnumbered_at")})
        .drop("unit_us")
    )
