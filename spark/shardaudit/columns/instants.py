"""Times as inputs write them, and the cells' buckets."""

from collections.abc import Callable, Sequence
from datetime import timedelta

from pyspark.sql import Column
from pyspark.sql import functions as F

from shardaudit.model.config.eras import CellShape, Eras
from shardaudit.model.input_columns import ISO_WITH_ZONE, MAX_MS
from shardaudit.model.window import Window

_YEAR_1_US = -62_135_596_800_000_000
_TO_THE_MINUTE = r"^([0-9T: -]{16})([Z+-][0-9:]*)\z"


def parsed_instant(text: Column) -> Column:
    """The instant that an ISO 8601 text with a zone names, else NULL; cut to the microsecond."""
    plain = F.translate(text, "tz,", "TZ.")
    spelled_out = F.regexp_replace(plain, _TO_THE_MINUTE, "$1:00$2")
    return F.when(
        has_zone(text),
        F.coalesce(text.try_cast("timestamp"), spelled_out.try_cast("timestamp")),
    )


def has_zone(text: Column) -> Column:
    """Whether a text has the form of an ISO 8601 time with a zone."""
    return text.rlike(rf"^{ISO_WITH_ZONE}\z")


def instant_text(instant: Column) -> Column:
    """An instant for people to read; where no calendar reaches, its microseconds."""
    micros = F.unix_micros(instant)
    is_on_calendar = micros.between(_YEAR_1_US, 1000 * MAX_MS)
    text = F.date_format(instant, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'")
    return F.when(is_on_calendar, text).otherwise(micros.cast("string"))


def epoch_ms_instant(epoch_ms: Column) -> Column:
    """The instant of a whole number of milliseconds; NULL when no calendar reaches there."""
    is_possible = epoch_ms.between(-MAX_MS, MAX_MS)
    return F.when(is_possible, F.timestamp_micros(epoch_ms * 1000))


def bucket_start(instant: Column, bucket: timedelta) -> Column:
    """The start of the time bucket that an instant from 1970 on lies in, counted from the epoch."""
    width_us = int(bucket / timedelta(microseconds=1))
    micros = F.unix_micros(instant)
    return F.timestamp_micros(micros - micros % width_us)


def cell_start(sent_at: Column, eras: Eras) -> Column:
    """The start of the cell in which a message counts that was sent then."""
    return by_era(sent_at, eras, lambda shape: bucket_start(sent_at, shape.bucket))


def cell_width(start: Column, eras: Eras) -> Column:
    """The width of the cell that begins then: an interval."""
    return by_era(start, eras, lambda shape: F.lit(shape.bucket))


def cell_share(start: Column, eras: Eras) -> Column:
    """The share of the ids that count in the cell that begins then."""
    return by_era(start, eras, lambda shape: F.lit(shape.sample_rate))


def by_era(sent_at: Column, eras: Eras, of: Callable[[CellShape], Column]) -> Column:
    """What `of` says of the shape that holds at a time; where there is no time, of the first."""
    found, *later = (of(shape) for _, shape in eras.spans)
    for (span, _), value in zip(eras.spans[1:], later, strict=True):
        found = F.when(sent_at >= F.lit(span.start), value).otherwise(found)
    return found


def seconds_between(earlier: Column, later: Column) -> Column:
    """How many seconds lie between two timestamps, as a double."""
    return (F.unix_micros(later) - F.unix_micros(earlier)) / F.lit(1_000_000)


def in_windows(instant: Column, windows: Sequence[Window]) -> Column:
    """Whether an instant lies in one of the windows."""
    return any_of(
        [(instant >= F.lit(window.start)) & (instant < F.lit(window.end)) for window in windows]
    )


def any_of(conditions: Sequence[Column]) -> Column:
    """Whether one of them holds; no more levels than needed: Spark Connect takes 100 of a plan."""
    if len(conditions) < 2:  # noqa: PLR2004 - one or none is no pair
        return conditions[0] if conditions else F.lit(False)
    half = len(conditions) // 2
    return any_of(conditions[:half]) | any_of(conditions[half:])
