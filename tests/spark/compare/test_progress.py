"""Spark's aggregation gives the watch what the plain one of the simulated histories does."""

from datetime import timedelta

import pytest

from shardaudit.adapters.delta import Warehouse
from shardaudit.jobs.watch_ledger import Known, ledger_facts
from shardaudit.model.shard_state import Level
from shardaudit.model.tables import FINGERPRINTS
from shardaudit.watch.facts import Before, Progress
from tests.builders import sequence
from tests.unit.watch.aggregated import MINUTE, ShardLedger, instant
from tests.unit.watch.simulated import events, history

Row = dict[str, object]
TIMES = (400.0, 700.0, 1100.0, 1430.0)


def filled(seed: int, now: float) -> list[ShardLedger]:
    """The ledgers of a history's shards at a time."""
    past = history(seed)
    ledgers = []
    for shard in past.shards.values():
        ledger = ShardLedger(shard.name)
        for at, side, number in events(shard):
            if at <= now and side == "sent":
                ledger.send(number, shard.sent_at[number])
            elif at <= now:
                ledger.land(at, number, shard.sent_at[number])
        if ledger.cells:
            ledgers.append(ledger)
    return ledgers


def rows(ledger: ShardLedger, stream: str) -> list[Row]:
    """The ledger as fingerprints."""
    found: list[Row] = []
    for start, cell in ledger.cells.items():
        common = {"stream": stream, "shard_id": ledger.name, "bucket_start": instant(start)}
        common |= {"sent_day": instant(start).date(), "sum_lo": 0, "sum_hi": 0, "batch_id": "b"}
        if cell.sent_n:
            sent = {"side": "traces", "n": cell.sent_n, "location": "producer"}
            sent |= {"max_sequence_number": sequence(cell.sent_key)}
            found.append(common | sent | {"last_at": instant(ledger.produced_until or 0)})
        if cell.landed_n:
            landed = {"side": "sink", "n": cell.landed_n, "location": "sink"}
            landed |= {"max_sequence_number": sequence(cell.landed_key)}
            found.append(common | landed | {"last_at": instant(cell.last_landed or 0)})
    return found


@pytest.mark.parametrize("seed", range(9))
def test_spark_and_plain_python_see_the_same(warehouse: Warehouse, seed: int) -> None:
    ledgers = {f"at {now}": filled(seed, now) for now in TIMES}
    values = [row for name, some in ledgers.items() for one in some for row in rows(one, name)]
    tuples = [tuple(row.get(column) for column in FINGERPRINTS.names) for row in values]
    frame = warehouse.spark.createDataFrame(tuples, FINGERPRINTS.ddl)
    warehouse.append(frame, FINGERPRINTS)
    for now, (name, some) in zip(TIMES, ledgers.items(), strict=True):
        seen_at = instant(now) - timedelta(minutes=15)
        last = Before(seen_at, Level.NONE)
        found = ledger_facts(
            warehouse,
            name,
            as_of=instant(now),
            bucket=MINUTE,
            known=Known({ledger.name: last for ledger in some}, {}),
        ).progress
        expected: dict[str, Progress] = {one.name: one.progress(now, last) for one in some}
        assert found == expected
