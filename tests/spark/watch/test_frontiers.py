"""Spark's aggregations give the watch what the plain ones of the simulated histories do."""

import zlib
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.canary_frames import canary
from shardaudit.audit.evidence import ingested, sources
from shardaudit.audit.kept_days import keep_ledger_sums
from shardaudit.audit.rules.classify import Damage
from shardaudit.model.config.eras import always
from shardaudit.model.retention import Retention
from shardaudit.model.tables.audit_tables import FINGERPRINTS
from shardaudit.model.verdict import Level
from shardaudit.model.window import Window
from shardaudit.store.ledger_days import LedgerDays, ledger_days
from shardaudit.store.warehouse import Warehouse
from shardaudit.watch.rules.facts import LOOKS_APART, EarlierWatch, Holes, LedgerProgress, Rules
from shardaudit.watch.watch_holes import Standing, found_holes
from shardaudit.watch.watch_ledger import Known, ledger_progress
from tests.builders import sequence
from tests.spark.watch.ledger import settings
from tests.unit.watch.aggregated import MINUTE, ShardLedger, instant
from tests.unit.watch.simulated import events, history, kinds

Row = dict[str, object]
STREAM = settings(Path("any")).stream("events")
TIMES = (400.0, 700.0, 1100.0, 1430.0)


def filled(seed: int, now: float) -> list[ShardLedger]:
    """The ledgers of a history's shards at a time."""
    past = history(seed, kinds(seed)[0])
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
        # What is on both sides adds the same to both, so here nothing.
        apart = sum(
            times * zlib.crc32(f"{ledger.name} {number}".encode())
            for number, times in cell.apart.items()
        )
        if cell.sent_n:
            sent = {"side": "traces", "n": cell.sent_n, "location": "producer"}
            sent |= {} if cell.landed_n else {"sum_lo": apart}
            sent |= {"max_sequence_number": sequence(cell.sent_key)}
            found.append(common | sent | {"last_at": instant(ledger.produced_until or 0)})
        if cell.landed_n:
            landed = {"side": "sink", "n": cell.landed_n, "location": "sink", "sum_lo": -apart}
            landed |= {"max_sequence_number": sequence(cell.landed_key)}
            found.append(common | landed | {"last_at": instant(cell.last_landed or 0)})
    return found


def store(warehouse: Warehouse, ledgers: dict[str, list[ShardLedger]]) -> None:
    """Each list of ledgers as a stream."""
    values = [row for name, some in ledgers.items() for one in some for row in rows(one, name)]
    tuples = [tuple(row.get(column) for column in FINGERPRINTS.names) for row in values]
    frame = warehouse.spark.createDataFrame(tuples, FINGERPRINTS.ddl)
    warehouse.append(frame, FINGERPRINTS)


def hour(progress: LedgerProgress) -> datetime | None:
    at = progress.relanded_until
    return at and at.replace(minute=0)


def keep(warehouse: Warehouse, name: str, *, until: datetime) -> None:
    """What an audit keeps of a stream's days."""
    window = Window(until - timedelta(days=2), until)
    request = AuditRequest(name, STREAM, window, until, Retention(timedelta(days=7)))
    planted = canary(warehouse.spark, request, Damage())
    both = sources(warehouse, request, ingested(warehouse, name), planted)
    keep_ledger_sums(warehouse, request, both)


@pytest.mark.parametrize("seed", range(9))
def test_spark_and_plain_python_see_the_same(warehouse: Warehouse, seed: int) -> None:
    ledgers = {f"at {now}": filled(seed, now) for now in TIMES}
    store(warehouse, ledgers)
    for now, (name, some) in zip(TIMES, ledgers.items(), strict=True):
        seen_at = instant(now) - timedelta(minutes=15)
        last = EarlierWatch(seen_at, Level.NONE)
        found = ledger_progress(
            ledger_days(warehouse, name),
            STREAM,
            as_of=instant(now),
            known=Known({ledger.name: last for ledger in some}, {}),
        )
        expected: dict[str, LedgerProgress] = {one.name: one.progress(now, last) for one in some}
        assert found == expected


@pytest.mark.parametrize("seed", [6, 8, *(9 + 13 * n for n in range(3)), 10, 11, 12, 23, 24, 25])
def test_spark_and_plain_python_find_the_same_holes(warehouse: Warehouse, seed: int) -> None:
    ledgers = {f"at {now}": filled(seed, now) for now in TIMES}
    store(warehouse, ledgers)
    for now, (name, some) in zip(TIMES, ledgers.items(), strict=True):
        look_before = now - LOOKS_APART / MINUTE
        settled = {
            one.name: frontier
            for one in filled(seed, look_before)
            if (frontier := one.progress(look_before, None).settled_frontier) is not None
        }
        progress = {one.name: one.progress(now, None) for one in some}
        rules = Rules(
            as_of=instant(now), retention=timedelta(days=1), cells=always(MINUTE), read_share=0.5
        )
        standing = Standing(STREAM, rules, progress, {}, settled, {})
        expected = {
            one.name: one.holes(settled=int(settled[one.name][-20:]), told={}).facts
            for one in some
            if one.name in settled
        }
        found = found_holes(ledger_days(warehouse, name), standing).holes
        assert found == {shard: holes for shard, holes in expected.items() if holes != Holes()}


@pytest.mark.parametrize("seed", [6, 8, 9, 10, 23, 24])
def test_days_of_which_the_sums_are_kept_say_what_their_cells_do(
    warehouse: Warehouse, seed: int
) -> None:
    now, day = instant(TIMES[-1]), timedelta(days=1)
    ledgers = {f"at {stop}": filled(seed, stop) for stop in TIMES}
    store(warehouse, ledgers)
    for name, some in ledgers.items():
        keep(warehouse, name, until=now + day)
        days = ledger_days(warehouse, name)
        as_of = now + 3 * day
        rules = Rules(as_of=as_of, retention=7 * day, cells=always(MINUTE), read_share=0.5)
        before = {one.name: EarlierWatch(as_of - day, Level.NONE) for one in some}
        found = []
        for of in (days, LedgerDays(warehouse, name, dict.fromkeys(days.of))):
            progress = ledger_progress(of, STREAM, as_of=as_of, known=Known(before, {}))
            # The hour in which the cell that landed last begins is told, and so much is asked.
            told = {name: replace(one, relanded_until=hour(one)) for name, one in progress.items()}
            settled = {one.name: "9" * 56 for one in some}
            standing = Standing(STREAM, rules, progress, {}, settled, before)
            found.append((told, found_holes(of, standing).holes))
        assert days.kept == set(days.of)
        assert found[0] == found[1]
