"""Times of inputs: whatever is taken from one place is taken from all, and means the same."""

from datetime import UTC, datetime

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from shardaudit.columns.instants import parsed_instant
from shardaudit.model.errors import ConfigError
from shardaudit.model.window import parse_instant
from tests.history import EPOCH
from tests.odd_times import ODD_TIMES, time_texts

FIRST, LAST = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) * 10**6 for year in (2000, 2200))


def understood(text: str) -> datetime | None:
    try:
        return parse_instant(text, where="test")
    except ConfigError:
        return None


@settings(
    max_examples=12,
    phases=[Phase.generate],
    suppress_health_check=[
        HealthCheck.large_base_example,
        HealthCheck.data_too_large,
    ],  # one frame for all
)
@given(texts=st.lists(time_texts(), min_size=30, max_size=60))
def test_an_argument_is_read_as_an_input_is_when_both_are_times(
    spark: SparkSession, texts: list[str]
) -> None:
    frame = spark.createDataFrame([(text,) for text in (*ODD_TIMES, *texts)], "text string")
    rows = frame.select("text", F.unix_micros(parsed_instant(F.col("text"))).alias("us")).collect()
    taken = {row.text: row.us for row in rows if row.us is not None}
    assert sum(text in taken for text in ODD_TIMES) == 9
    told = {text: understood(text) for text in taken}
    can_be = {text: us if FIRST <= us < LAST else None for text, us in taken.items()}
    assert {text: at and (at - EPOCH) // at.resolution for text, at in told.items()} == can_be
