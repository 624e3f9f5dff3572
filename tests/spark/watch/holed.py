"""Shards in whose minutes something is missing, as tables, and what a watch says of them."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from shardaudit.columns.ledger_sums import sums_digest
from shardaudit.model.tables.audit_tables import AUDITS, CELLS, FINDINGS, FINGERPRINTS
from shardaudit.store.warehouse import Warehouse
from shardaudit.watch.job import WatchRequest, watch
from shardaudit.watch.watch_report import WatchReport
from tests.builders import NOW, sequence
from tests.spark.watch.ledger import MINUTE, fill, settings

START = NOW - timedelta(hours=6)
LAST = 6 * 60 - 2  # the newest minute: it landed a minute ago
QUARTER = timedelta(minutes=15)


@dataclass
class Shard:
    """Three messages a minute; message number n is 3 × minute + 0, 1 or 2.

    `lost` never land, `doubled` land twice, `moved` land in the given minute.
    """

    name: str
    lost: Sequence[int] = ()
    doubled: Sequence[int] = ()
    moved: dict[int, int] = field(default_factory=dict)
    stops_at: int = LAST + 1
    until: int = LAST + 1

    def rows(self) -> list[dict[str, object]]:
        return [row for m in range(self.until) for row in self._minute(m)]

    def _minute(self, minute: int) -> list[dict[str, object]]:
        sent = [3 * minute + i for i in range(3)]
        away = {*self.lost, *self.moved}
        landed = [n for n in sent if n not in away] if minute < self.stops_at else []
        landed += [n for n in sent if n in self.doubled]
        landed += [n for n, to in self.moved.items() if to == minute]
        found = [minute_row(self.name, minute, "traces", sent)]
        return [*found, minute_row(self.name, minute, "sink", landed)] if landed else found


def minute_row(shard: str, minute: int, side: str, numbers: Sequence[int]) -> dict[str, object]:
    start = START + minute * MINUTE
    bins = [0] * 22
    bins[6] = len(numbers)
    return {
        "batch_id": f"events/{side}/1",
        "stream": "events",
        "side": side,
        "location": "any",
        "shard_id": shard,
        "bucket_start": start,
        "n": len(numbers),
        "sum_lo": sum(zlib.crc32(b"%d" % n) for n in numbers),
        "sum_hi": 0,
        "max_sequence_number": sequence(max(numbers)),
        "last_at": start + MINUTE,
        "latency_counts": bins if side == "sink" else None,
        "sent_day": start.date(),
    }


def filled(warehouse: Warehouse, *shards: Shard) -> None:
    fill(warehouse, [row for shard in shards for row in shard.rows()])


def look(warehouse: Warehouse, folder: Path, as_of: datetime) -> WatchReport:
    return watch(warehouse, WatchRequest(settings(folder), "events", as_of)).report


def run(warehouse: Warehouse, folder: Path, as_of: datetime = NOW) -> WatchReport:
    """The second of two watches."""
    look(warehouse, folder, as_of - QUARTER)
    return look(warehouse, folder, as_of)


def holes(report: WatchReport) -> dict[str, tuple[int, int]]:
    """Per shard the cells with a hole, and the messages missing in them, at least."""
    return {s.shard_id: (s.holes, s.hole_messages) for s in report.shards if s.holes}


def at(minute: int) -> datetime:
    return START + minute * MINUTE


def audited(
    warehouse: Warehouse, minute: int, *, state: str, pending: int = 0, as_of: datetime = NOW
) -> None:
    """An audit that saw the ledger as it is, with one missing message in that minute of `s`."""
    rows = warehouse.read(FINGERPRINTS).collect()
    sums = {
        side: (r.n, r.sum_lo, r.sum_hi)
        for r in rows
        for side in [r.side]
        if r.shard_id == "s" and r.bucket_start.timestamp() == at(minute).timestamp()
    }
    frame = warehouse.spark.createDataFrame(
        [(*sums["traces"], *sums["sink"])],
        "sent_n bigint, sent_sum_lo bigint, sent_sum_hi bigint, landed_n bigint, "
        "landed_sum_lo bigint, landed_sum_hi bigint",
    )
    digest = frame.select(sums_digest().alias("d")).collect()[0].d
    audit = {"audit_id": "a", "stream": "events", "status": "published", "as_of": as_of}
    warehouse.upsert([audit | {"window_start": START, "window_end": as_of}], AUDITS)
    cell = {"audit_id": "a", "stream": "events", "shard_id": "s", "bucket_start": at(minute)}
    warehouse.upsert([cell | {"pending": pending, "sums_digest": digest}], CELLS)
    finding = {"stream": "events", "shard_id": "s", "message_id": "m", "kind": "missing"}
    warehouse.upsert([finding | {"state": state, "sent_at": at(minute) + MINUTE / 2}], FINDINGS)
