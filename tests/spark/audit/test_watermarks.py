"""The stream's watermark where rows of the sink have neither a shard nor, yet, a trace."""

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from shardaudit.audit.records import stored_holds, stored_watermark
from shardaudit.model.watermark import Held, Hold
from shardaudit.store.warehouse import Warehouse
from tests.history import Question, SinkRow, Trace
from tests.spark.trial import Trial

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
ASK = Question(NOON, NOON + HOUR, NOON + 1.1 * HOUR, bucket=MINUTE, trace_coverage_floor=0.9)
NEXT = replace(ASK, start=ASK.end, end=ASK.end + HOUR, as_of=NOON + 2.3 * HOUR)
LATER = replace(ASK, start=NEXT.end, end=NEXT.end + HOUR, as_of=NOON + 3.3 * HOUR)


def message(minute: int) -> tuple[Trace, SinkRow]:
    """One that landed at once, in a row that does not say on which shard it was."""
    at, name = NOON + minute * MINUTE, f"m{minute}"
    row = SinkRow(name, "none", str(minute), at, at + MINUTE / 2, lacks=frozenset({"shard_id"}))
    return Trace(name, "shard-0", str(1_000 + minute), at), row


@pytest.fixture
def trial(warehouse: Warehouse, tmp_path: Path) -> Trial:
    """A stream whose sink has no column for the shard."""
    trial = Trial(warehouse, tmp_path, ASK)
    trial.sink_lacks = frozenset({"shard_id"})
    return trial


def feed(trial: Trial, *, traced: range, landed: range) -> None:
    trial.log([message(minute)[0] for minute in traced])
    trial.land([message(minute)[1] for minute in landed])
    trial.ingest()


def test_rows_whose_traces_come_later_hold_only_until_somebody_looks_again(trial: Trial) -> None:
    feed(trial, traced=range(50), landed=range(60))
    assert trial.audit().watermark == NOON + 50 * MINUTE
    feed(trial, traced=range(50, 120), landed=range(60, 120))
    assert trial.audit(NEXT).watermark == NOON + 50 * MINUTE
    assert trial.audit(replace(ASK, as_of=NEXT.as_of)).watermark == NEXT.end
    assert stored_watermark(trial.warehouse, "events").at == NEXT.end


@pytest.mark.drill
def test_window_in_which_every_row_has_its_trace_makes_no_gap(trial: Trial) -> None:
    feed(trial, traced=range(40), landed=range(41))  # one in forty has no trace
    trial.audit(replace(ASK, as_of=NEXT.as_of))
    feed(trial, traced=range(60, 120), landed=range(60, 120))
    trial.audit(replace(NEXT, as_of=LATER.as_of))
    feed(trial, traced=range(120, 150), landed=range(120, 151))
    published = trial.audit(replace(LATER, as_of=LATER.as_of + HOUR))
    assert (published.watermark, published.audit.watermark_reason) == (LATER.end, None)


def test_stream_that_lost_half_of_its_traces_is_not_passed(trial: Trial) -> None:
    feed(trial, traced=range(0, 60, 2), landed=range(60))
    published = trial.audit(replace(ASK, as_of=LATER.as_of))
    assert published.watermark == NOON + MINUTE
    assert published.audit.watermark_reason.startswith(
        "(unknown): too few of its landed messages have a trace"
    )
    feed(trial, traced=range(1, 60, 2), landed=range(0))
    assert trial.audit(replace(ASK, as_of=LATER.as_of + HOUR)).watermark == ASK.end


def test_stream_of_which_no_trace_was_ever_read_is_complete_until_no_time(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    trial = Trial(warehouse, tmp_path, ASK)
    rows = [message(minute)[1] for minute in range(60)]
    trial.land([replace(row, shard_id="shard-0", lacks=frozenset()) for row in rows])
    trial.ingest()
    published = trial.audit(ASK)
    assert published.watermark is None
    assert published.audit.watermark_reason == "no trace of it was ever read"
    trial.log([message(minute)[0] for minute in range(60)])
    trial.ingest()
    assert trial.audit(replace(ASK, as_of=NEXT.as_of)).watermark == ASK.end


def test_nobody_has_to_audit_what_was_before_the_day_of_the_first_message(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    """Kinesis knew the shard for days before, and an audit had looked at it."""
    trial = Trial(warehouse, tmp_path, ASK)
    midnight, day = NOON - 12 * HOUR, 24 * HOUR
    trial.list_shards({"shard-0"}, at=NOON - 3 * day)
    feed(trial, traced=range(0), landed=range(0))
    early = replace(ASK, start=NOON - 3 * day, end=NOON - 2 * day, as_of=NOON - 2 * day + HOUR)
    trial.audit(early)
    assert stored_watermark(warehouse, "events").at == early.end
    rows = [replace(message(n)[1], shard_id="shard-0", lacks=frozenset()) for n in range(60)]
    trial.land(rows)
    feed(trial, traced=range(60), landed=range(0))
    assert trial.audit(ASK).watermark == midnight
    since = replace(ASK, start=midnight, as_of=NEXT.as_of)
    assert trial.audit(since).watermark == ASK.end
    # A message of the day before comes: that nobody looked at it counts.
    feed(trial, traced=range(-900, -899), landed=range(0))
    assert trial.audit(replace(since, as_of=LATER.as_of)).watermark == midnight - day
    # So does what a file may hide that cannot be read.
    cut, written = tmp_path / trial.name / "traces" / "cut.jsonl.gz", early.end + HOUR
    cut.write_bytes(b"no gzip")
    os.utime(cut, (written.timestamp(), written.timestamp()))
    trial.ingest()
    assert trial.audit(replace(since, as_of=LATER.as_of + HOUR)).watermark == early.end


@pytest.mark.drill
def test_an_audit_as_of_a_time_that_is_still_to_come_moves_nothing(trial: Trial) -> None:
    feed(trial, traced=range(60), landed=range(60))
    trial.audit(replace(ASK, as_of=NEXT.as_of))
    to_come = replace(LATER, as_of=LATER.as_of + 30 * 24 * HOUR)
    published = trial.audit(to_come, now=NEXT.as_of)
    assert published.watermark == ASK.end
    assert (
        published.audit.watermark_reason == "as of a time that is still to come: it moves nothing"
    )
    feed(trial, traced=range(60, 120), landed=range(60, 120))
    assert trial.audit(replace(NEXT, as_of=LATER.as_of)).watermark == NEXT.end


def test_rows_that_come_and_go_after_the_audit_are_not_passed(trial: Trial) -> None:
    feed(trial, traced=range(60), landed=range(60))
    trial.audit(replace(ASK, as_of=NEXT.as_of))
    row = {minute: message(minute)[1] for minute in (7, 17, 27)}
    trial.remove([message(37)[1]])
    trial.land(
        [
            replace(row[7], landed_at=NEXT.as_of + MINUTE),
            replace(row[17], landed_at=NEXT.as_of - MINUTE),  # it was in a file still to come
            replace(row[27], landed_at=None),
        ]
    )
    feed(trial, traced=range(60, 120), landed=range(60, 120))
    trial.audit(replace(NEXT, as_of=LATER.as_of))
    holds = stored_holds(trial.warehouse, "events")["shard-0"]
    assert [((h.start - NOON) // MINUTE, h.why) for h in holds] == [
        (minute, Held.CHANGED) for minute in (7, 17, 27, 37)
    ]


def test_sink_that_is_emptied_after_the_audit_is_not_passed(trial: Trial) -> None:
    feed(trial, traced=range(60), landed=range(60))
    trial.audit(replace(ASK, as_of=NEXT.as_of))
    trial.remove([message(minute)[1] for minute in range(60)])
    trial.ingest()
    trial.audit(replace(NEXT, as_of=LATER.as_of))
    holds = stored_holds(trial.warehouse, "events")["shard-0"]
    assert Hold(ASK.start, ASK.end, Held.CHANGED) in holds


@pytest.mark.parametrize(
    ("hours", "seen_at", "is_held"),
    [
        (20, 25, True),
        pytest.param(0, 25, False, marks=pytest.mark.drill),
        pytest.param(0, 23, True, marks=pytest.mark.drill),
    ],
    ids=["held back", "of old", "seen in time, audited later"],
)
def test_row_that_is_deleted_holds_it_while_the_stream_has_the_message(
    warehouse: Warehouse, tmp_path: Path, hours: int, seen_at: int, is_held: bool
) -> None:
    acked_at, deleted_at = NOON + hours * HOUR, NOON + seen_at * HOUR
    trial = Trial(warehouse, tmp_path, replace(ASK, as_of=NOON + 21 * HOUR))
    trial.log([Trace("m0", "shard-0", "1", NOON, acked_at=acked_at)])
    row = SinkRow("m0", "shard-0", "1", NOON, acked_at + MINUTE)
    trial.land([row])
    trial.ingest()
    assert trial.audit().watermark == ASK.end
    trial.remove([row])
    trial.ingest(now=deleted_at)
    published = trial.audit(replace(NEXT, as_of=NOON + 25 * HOUR + MINUTE))
    assert published.watermark == (NOON if is_held else NEXT.end)


def test_what_lands_by_a_retry_after_the_window_is_looked_at_where_it_was_sent_first(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    trial = Trial(warehouse, tmp_path, ASK)
    beside = [Trace(f"b{n}", "shard-0", str(100 + n), NOON + n * MINUTE) for n in range(60)]
    trial.log([*beside, Trace("m7", "shard-0", "107", NOON + 7 * MINUTE)])
    trial.land(
        [
            SinkRow(b.message_id, b.shard_id, b.sequence_number, b.sent_at, b.sent_at + MINUTE)
            for b in beside
        ]
    )
    trial.ingest()
    trial.audit(replace(ASK, as_of=NEXT.as_of - HOUR))
    again = NOON + 125 * MINUTE
    trial.log([Trace("m7", "shard-0", "300", again)])
    trial.land([SinkRow("m7", "shard-0", "300", again, again + MINUTE)])
    trial.ingest(now=NEXT.as_of)
    trial.audit(NEXT)
    [hold] = stored_holds(warehouse, "events")["shard-0"]
    minute = NOON + 7 * MINUTE
    assert hold == Hold(minute, minute + MINUTE, Held.CHANGED)
