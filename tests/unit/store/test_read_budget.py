"""The month of a budget, from audits that overlap, findings and gaps: nothing counts twice."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from shardaudit.adapters.lake.delta_rs import DeltaRs
from shardaudit.model.config.parts import Aws
from shardaudit.model.config.settings import Settings
from shardaudit.model.loss_budget import LossBudget, month_of
from shardaudit.model.tables.audit_tables import AUDITS, CELLS, FINDINGS
from shardaudit.model.tables.gap_tables import GAPS
from shardaudit.store.read_budget import newest_budget, read_budget
from tests.page_warehouse import Row, write_rows

HOUR = timedelta(hours=1)
START = datetime(2026, 11, 1, tzinfo=UTC)
NOW = START + 10 * HOUR


def settings(folder: Path, loss_budget: float | None) -> Settings:
    place = {"path": str(folder)}
    events = {"stream_name": "e", "bucket": HOUR, "traces": place, "sink": place}
    streams = {"events": events | {"loss_budget": loss_budget}}
    return Settings.model_validate({"warehouse": str(folder), "streams": streams})


def audit(audit_id: str, first: int, last: int, **more: object) -> Row:
    return {
        "audit_id": audit_id,
        "stream": "events",
        "window_start": START + first * HOUR,
        "window_end": START + last * HOUR,
        "as_of": START + last * HOUR,
        "status": "published",
        **more,
    }


def cells(audit_id: str, first: int, last: int, *, sent: int, verdict: str = "ok") -> list[Row]:
    return [
        {
            "audit_id": audit_id,
            "stream": "events",
            "shard_id": shard_id,
            "bucket_start": START + n * HOUR,
            "sent": sent + 3,  # a filter left out the others by design
            "matched": sent,
            "missing": 0,
            "pending": 0,
            "filtered": 3,
            "verdict": verdict,
        }
        for n in range(first, last)
        for shard_id in ("s1", "s2")
    ]


def finding(message_id: str, sent_at: datetime = START, **more: object) -> Row:
    kind = {"kind": "missing", "cause": "lost", "state": "open"}
    key = {"stream": "events", "message_id": message_id, "shard_id": "s1"}
    return {**key, **kind, "sent_at": sent_at, **more}


def test_no_minute_and_no_message_counts_twice_or_of_another_month(tmp_path: Path) -> None:
    again = {"as_of": NOW}  # a later look at two hours, as after a backfill
    write_rows(
        tmp_path,
        AUDITS,
        [
            audit("before", -4, 3),
            audit("night", 1, 6),
            audit("again", 2, 4, **again),
            audit("failed", 6, 9, status="failed"),
            audit("other", 0, 9, stream="orders"),
        ],
    )
    write_rows(
        tmp_path,
        CELLS,
        [
            *cells("before", -4, 3, sent=1000),
            *cells("night", 1, 6, sent=100),
            *cells("again", 2, 3, sent=10),
            *cells("again", 3, 4, sent=10, verdict="inconclusive"),
            *cells("failed", 6, 9, sent=5),
            *cells("other", 0, 9, sent=7),
        ],
    )
    write_rows(
        tmp_path,
        FINDINGS,
        [
            finding("lost"),
            finding("gone while it was stuck", cause="stuck", state="expired"),
            finding("known", state="accepted"),
            finding("known, and behind", cause="stuck", state="accepted"),
            finding("waits", cause="stuck"),
            finding("back", state="recovered"),
            finding("came", state="false_alarm"),
            finding("twice", kind="duplicated", cause="consumer_replay"),
            finding("in October", START - timedelta(microseconds=1)),
            finding("of others", stream="orders"),
        ],
    )
    gap = {"stream": "events", "bucket_start": START, "state": "open"}
    write_rows(
        tmp_path,
        GAPS,
        [
            {**gap, "shard_id": "s1", "cause": "lost", "count": 40},
            {**gap, "shard_id": "s2", "cause": "stuck", "count": 500},
            {**gap, "shard_id": "s3", "cause": "lost", "count": 9, "state": "recovered"},
        ],
    )
    # Of both shards: one hour of the audit before, three of the night, two of the later look.
    assert read_budget(settings(tmp_path, 0.001), "events", now=NOW) == LossBudget(
        allowed=0.001,
        month=month_of(NOW),
        as_of=NOW,
        sent=2 * (1000 + 3 * 100 + 2 * 10),
        lost=4 + 40,
        stuck=1 + 500,
        unaudited=4 * HOUR,
        inconclusive=HOUR,
    )


def test_without_a_budget_nothing_is_said_and_without_an_audit_nothing_is_known(
    tmp_path: Path,
) -> None:
    assert read_budget(settings(tmp_path, None), "events", now=NOW) is None
    for now in (START, NOW):
        found = read_budget(settings(tmp_path, 0.001), "events", now=now)
        assert found is not None
        assert (found.used, found.unaudited) == (None, now - START)


def test_of_several_samples_no_share_is_told(tmp_path: Path) -> None:
    """Ten lost of a thousand of a hundredth are not ten of a million."""
    inputs = json.dumps({"shape": {"bucket_s": 3600, "sample_rate": 0.01}})
    write_rows(tmp_path, AUDITS, [audit("all", 0, 3), audit("some", 3, 6, inputs=inputs)])
    write_rows(tmp_path, CELLS, [*cells("all", 0, 3, sent=1000), *cells("some", 3, 6, sent=10)])
    write_rows(tmp_path, FINDINGS, [finding(f"m{n}", START + 4 * HOUR) for n in range(10)])
    found = read_budget(settings(tmp_path, 0.001), "events", now=NOW)
    assert found is not None
    assert (found.sent, found.lost, found.used) == (2 * 3 * 1010, 10, None)


@pytest.mark.parametrize("seed", range(3))
def test_budget_is_that_of_cells_taken_one_by_one_also_when_it_is_read_again(
    tmp_path: Path, seed: int
) -> None:
    random, asked = Random(seed), settings(tmp_path, 0.001)  # noqa: S311 - a seed, to see it again
    audits: list[Row] = []
    stored: list[Row] = []
    for lot in range(3):  # between two readings come audits of old hours and of new ones
        looks, seen = zip(*(random_look(random, f"{lot}-{n}") for n in range(20)), strict=True)
        new = [cell for cells_of_one in seen for cell in cells_of_one]
        write_rows(tmp_path, AUDITS, [*looks])
        write_rows(tmp_path, CELLS, new)
        audits += looks
        stored += new
        found = read_budget(asked, "events", now=NOW)
        assert found is not None
        assert (found.sent, found.inconclusive) == one_by_one(audits, stored)
        assert read_budget(asked, "events", now=NOW) == found


def random_look(random: Random, name: str) -> tuple[Row, list[Row]]:
    """An audit, and its cells of three hours: also some outside of what it looked at."""
    first, looked = random.randrange(9), START + random.randrange(99) * HOUR
    found: list[Row] = []
    for hour in range(first, first + 3):
        sent, verdict = random.randrange(9), random.choice(("ok", "inconclusive"))
        found += cells(name, hour, hour + 1, sent=sent, verdict=verdict)
    return audit(name, first, random.randrange(first + 1, 11), as_of=looked), found


def one_by_one(audits: list[Row], stored: list[Row]) -> tuple[int, timedelta]:
    """Messages of each hour's newest audit, and in how many hours it was in doubt."""
    sent, doubtful = 0, set()
    for hour in (START + n * HOUR for n in range(10)):
        over_it = [one for one in audits if one["window_start"] <= hour < one["window_end"]]  # type: ignore[operator] # times of `audit`
        newest = max(over_it, key=lambda one: (one["as_of"], one["audit_id"]), default=None)
        for cell in stored:
            if newest and (cell["audit_id"], cell["bucket_start"]) == (newest["audit_id"], hour):
                sent += int(str(cell["matched"]))
                doubtful |= {hour} if cell["verdict"] == "inconclusive" else set()
    return sent, len(doubtful) * HOUR


def test_an_audit_that_ran_again_is_read_again(tmp_path: Path) -> None:
    write_rows(tmp_path, AUDITS, [audit("night", 0, 1)])
    write_rows(tmp_path, CELLS, cells("night", 0, 1, sent=3))
    sent = []
    for more in (4, 5):
        DeltaRs(str(tmp_path), Aws()).delete(CELLS, where="audit_id = 'night'")
        write_rows(tmp_path, CELLS, cells("night", 0, 1, sent=more))
        found = read_budget(settings(tmp_path, 0.001), "events", now=NOW)
        sent.append(found and found.sent)
    assert sent == [8, 10]


def test_before_a_month_is_audited_the_one_before_is_told(tmp_path: Path) -> None:
    first_night, asked = START + 5 * HOUR, settings(tmp_path, 0.001)
    unknown = newest_budget(asked, "events", now=first_night)
    assert unknown is not None
    assert (unknown.month, unknown.used) == (month_of(START), None)
    for name, first, last, now, month in (
        ("last of October", -24, 0, first_night, month_of(START - HOUR)),
        ("first of November", 0, 24, START + 25 * HOUR, month_of(START)),
    ):
        write_rows(tmp_path, AUDITS, [audit(name, first, last, as_of=now)])
        write_rows(tmp_path, CELLS, cells(name, first, last, sent=5))
        found = newest_budget(asked, "events", now=now)
        assert found is not None
        assert (found.month, found.sent, found.used) == (month, 24 * 2 * 5, 0)
