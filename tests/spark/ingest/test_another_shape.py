"""When another bucket or sample rate begins, and that both sides know it."""

from datetime import UTC, datetime, timedelta

import pytest

from shardaudit.model.config.eras import Eras
from shardaudit.model.errors import ConfigError
from shardaudit.store.ledger_days import stored_eras
from tests.builders import T0, sink_row, trace_line
from tests.spark.lake import Lake

DAY = timedelta(days=1)


def ingested_anew(lake: Lake, number: int, *, bucket: str) -> Eras:
    """What the ledger says after a message more, so many seconds after the first."""
    lake.settings["bucket"] = bucket
    lake.log(f"{number}.jsonl", [trace_line(number)])
    lake.land([sink_row(number)])
    lake.ingest(now=T0 + timedelta(seconds=number))
    eras = stored_eras(lake.warehouse, lake.name)
    assert eras is not None
    return eras


def test_another_bucket_begins_on_a_day_of_which_nothing_was_read_and_may_be_taken_back(
    lake: Lake,
) -> None:
    day = DAY // timedelta(seconds=1)
    steps = [
        (0, "60s", []),
        (60, "5m", [("2026-11-22", 300)]),
        (120, "60s", []),  # taken back
        (180, "5m", [("2026-11-22", 300)]),
        (240, "10m", [("2026-11-22", 600)]),  # another one instead
        # From now on messages of that day may have been read.
        (day, "60s", [("2026-11-22", 600), ("2026-11-23", 60)]),
        (day + 60, "5m", [("2026-11-22", 600), ("2026-11-23", 300)]),
        (2 * day, "5m", [("2026-11-22", 600), ("2026-11-23", 300)]),
    ]
    for number, bucket, later in steps:
        eras = ingested_anew(lake, number, bucket=bucket)
        assert [(str(since), shape.bucket_s) for since, shape in eras.later] == later
    at = int((T0 + 2 * DAY).timestamp())
    both = [max(start for _, start in lake.ledger(side)) for side in ("traces", "sink")]
    assert both == 2 * [at - at % 600]


def test_a_day_is_told_when_it_is_noted_which_takes_an_input(lake: Lake) -> None:
    lake.log("a.jsonl", [trace_line()])
    lake.land([sink_row()])
    lake.ingest(now=T0)
    lake.settings["bucket"] = "5m"
    assert lake.ingest(now=T0).notes == ()
    lake.log("b.jsonl", [trace_line(1)])
    [note] = lake.ingest(now=T0 + DAY).notes  # the sink has nothing new
    assert note.startswith("bucket 300s, sample_rate 1 from 2026-11-23 on")
    assert lake.ingest(now=T0 + DAY).notes == (note,)


def test_another_bucket_is_refused_where_days_far_ahead_are_in_the_ledger(lake: Lake) -> None:
    lake.log("a.jsonl", [trace_line()])
    ahead = datetime(2026, 12, 24, tzinfo=UTC)
    lake.land([sink_row(), sink_row(1, sent_at=ahead, landed_at=None)])
    lake.ingest(now=T0)
    lake.settings["bucket"] = "5m"
    with pytest.raises(
        ConfigError, match=r"sent on 2026-12-24 are in the ledger.* from 2026-12-25"
    ):
        lake.ingest(now=T0)


def test_another_sample_is_refused_where_a_place_says_what_is_to_land(lake: Lake) -> None:
    lake.settings["locations"] = {"valid": {"after": ["producer"], "share": "traced"}}
    ingested_anew(lake, 0, bucket="60s")
    lake.settings["sample_rate"] = 0.5
    with pytest.raises(ConfigError, match=r"sample_rate.*1, as before: a place says"):
        ingested_anew(lake, 60, bucket="60s")
    lake.settings["sample_rate"] = 1.0
    assert ingested_anew(lake, 120, bucket="5m").later
