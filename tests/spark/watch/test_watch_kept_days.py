"""What a watch makes of the days of the ledger that are kept."""

from datetime import timedelta
from pathlib import Path

import pytest

from shardaudit.model.tables.audit_tables import FINGERPRINTS
from shardaudit.model.tables.ledger_tables import LEDGER_HOURS
from shardaudit.model.tables.table import LATENCY_BINS
from shardaudit.store.ledger_days import day_digests, ledger_days
from shardaudit.store.warehouse import Warehouse
from shardaudit.watch.watch_ledger import usual_patience
from tests.spark.watch.ledger import MINUTE, START, cell, facts, fill, settings

STREAM = settings(Path("any")).stream("events")
SIDES = ("traces", "sink")
SLOW = 13  # its bin: within 2^13 s


def keep(warehouse: Warehouse, **of_hour: object) -> None:
    """Keeps the first hour of the ledger as all of its first day."""
    day = START.date()
    whose = {"stream": "events", "sent_day": day, "shard_id": "s0", "hour": START}
    digest = day_digests(warehouse, "events")[day]
    warehouse.upsert([whose | {"day_digest": digest} | of_hour], LEDGER_HOURS)


def test_the_hour_in_which_it_looks_counts_as_far_as_it_is_over(warehouse: Warehouse) -> None:
    early, late = (cell("s0", minute, "sink") for minute in (0, 40))
    late["latency_counts"] = [100 * (n == SLOW) for n in range(LATENCY_BINS)]
    fill(warehouse, [early, late])
    keep(warehouse, latency_bin=SLOW)
    patience = [
        usual_patience(
            ledger_days(warehouse, "events"),
            STREAM,
            as_of=START + after,
            retention=timedelta(days=7),
        )
        for after in (30 * MINUTE, timedelta(days=1))
    ]
    assert patience == [{"s0": STREAM.settle_grace}, {"s0": timedelta(seconds=1 << SLOW)}]


def test_the_files_of_a_day_that_is_kept_are_not_opened(
    warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = 14 * 60
    fill(warehouse, [cell("s0", minute, side) for minute in (0, later) for side in SIDES])
    keep(warehouse, first_sent_at=START)
    monkeypatch.setattr("shardaudit.store.warehouse.FEW_ROWS", 0)
    of_day = [f for f in warehouse.files(FINGERPRINTS) if f["partition.sent_day"] == START.date()]
    assert of_day
    for file in of_day:
        (tmp_path / "warehouse" / "fingerprints" / file["path"]).unlink()
    found = facts(warehouse)["s0"]
    assert (found.landed_until, found.ahead) == (START + later * MINUTE, None)
    week = timedelta(days=7)
    as_of = START + timedelta(days=1)
    days = ledger_days(warehouse, "events")
    assert usual_patience(days, STREAM, as_of=as_of, retention=week)
