"""The days of the ledger of which the sums are kept, and are still those of its files.

A day's hours are kept with a digest of the files that the ledger has of that day. As long as these
are the same, so are its sums, whoever asks: what is kept may be deleted at any time.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from hashlib import sha256

import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.adapters.engine.held import bare, own_rows
from shardaudit.model.config.eras import Eras, newest_eras
from shardaudit.model.config.settings import Stream
from shardaudit.model.tables.audit_tables import BATCHES, FINGERPRINTS
from shardaudit.model.tables.ledger_tables import LEDGER_HOURS
from shardaudit.model.tables.route_tables import SIGHTING_COUNTS
from shardaudit.store.warehouse import Warehouse

FORMAT = 1  # one more when a row of LEDGER_HOURS means something else: all is summed up anew
_LATEST = ("rested_at", "last_arrival")


@dataclass(frozen=True, slots=True)
class KeptDay:
    """When what landed first landed at the latest, and when what was sent arrived; or None."""

    rested_at: datetime | None
    last_arrival: datetime | None

    def has_arrivals_after(self, then: datetime) -> bool:
        """Whether traces of it may tell of messages that arrived after a time."""
        return self.last_arrival is not None and self.last_arrival > then


@dataclass(frozen=True, slots=True)
class LedgerDays:
    """The ledger of a stream by UTC days.

    `of`: what is kept of each day; None: nothing, or of other files than the ledger has now.
    `shape`: how ids are put into its cells; None: as they are to be.
    """

    warehouse: Warehouse
    stream: str
    of: Mapping[date, KeptDay | None]
    shape: Eras | None = None

    @property
    def rows(self) -> DataFrame:
        """All of it: FINGERPRINTS."""
        # Not `bare` before days are chosen: the embedded engine would open the files of all.
        return self.warehouse.read(FINGERPRINTS).where(F.col("stream") == self.stream)

    def cells(self, stream: Stream) -> Eras:
        """How ids are put into its cells."""
        return self.shape or Eras(stream.cell_shape)

    def rows_of(self, days: Collection[date]) -> DataFrame:
        """Some days of it, in full: FINGERPRINTS."""
        return bare(self.rows.where(F.col("sent_day").isin(sorted(days))))

    def hours_of(self, days: Collection[date]) -> DataFrame:
        """What is kept of some days: LEDGER_HOURS."""
        return hours_of(self.warehouse, self.stream, days)

    @property
    def kept(self) -> frozenset[date]:
        """The days of which the sums are kept."""
        return frozenset(day for day, kept in self.of.items() if kept is not None)

    def rest_since(self, then: datetime) -> frozenset[date]:
        """The days of which the sums are kept and to which no trace came after a time."""
        of = ((day, kept) for day, kept in self.of.items() if kept is not None)
        return frozenset(day for day, kept in of if not kept.has_arrivals_after(then))


def ledger_days(warehouse: Warehouse, stream: str) -> LedgerDays:
    """The days of a stream's ledger, as its files are now."""
    digests = day_digests(warehouse, stream)
    kept = kept_days(warehouse, stream, digests)
    of = {day: kept.get(day) for day in digests}
    return LedgerDays(warehouse, stream, of, stored_eras(warehouse, stream))


def day_digests(warehouse: Warehouse, stream: str) -> dict[date, str]:
    """By day of a stream's ledger, what tells whether it has other files."""
    paths: dict[date, list[str]] = {}
    for file in warehouse.files(FINGERPRINTS):
        if file["partition.stream"] == stream:
            paths.setdefault(file["partition.sent_day"], []).append(file["path"])
    return {
        day: sha256("\n".join([str(FORMAT), *sorted(mine)]).encode()).hexdigest()
        for day, mine in paths.items()
    }


def first_day(warehouse: Warehouse, stream: str) -> date:
    """The first day of which anybody knows a message, a place of its route too; or the last."""
    files = warehouse.files(FINGERPRINTS) + warehouse.files(SIGHTING_COUNTS)
    mine = (f["partition.sent_day"] for f in files if f["partition.stream"] == stream)
    return min(mine, default=date.max)


def kept_days(
    warehouse: Warehouse, stream: str, digests: Mapping[date, str]
) -> dict[date, KeptDay]:
    """The days of which the sums are kept as they are.

    Input:
        digests: of `day_digests`.
    """
    names = ["stream", "sent_day", "day_digest", *_LATEST]
    found = warehouse.columns(LEDGER_HOURS, names=names, where=pc.field("stream") == stream)
    if found is None:
        return {}
    latest = [(name, "max") for name in _LATEST]
    days = found.group_by(["sent_day", "day_digest"]).aggregate(latest).to_pylist()
    return {
        day["sent_day"]: KeptDay(*(day[f"{name}_max"] for name in _LATEST))
        for day in days
        if digests.get(day["sent_day"]) == day["day_digest"]
    }


def hours_of(warehouse: Warehouse, stream: str, days: Collection[date]) -> DataFrame:
    """What is kept of some days: LEDGER_HOURS."""
    if not days:
        return own_rows(warehouse.spark, [], LEDGER_HOURS.ddl)
    of_days = (F.col("stream") == stream) & F.col("sent_day").isin(sorted(days))
    return bare(warehouse.read(LEDGER_HOURS).where(of_days))


def ledger_eras(warehouse: Warehouse, name: str, stream: Stream) -> Eras:
    """How the stream's ids are put into cells; as configured where nothing was ingested yet."""
    return stored_eras(warehouse, name) or Eras(stream.cell_shape)


def stored_eras(warehouse: Warehouse, name: str) -> Eras | None:
    """How the stream's ids are put into cells, as the newest batch says; None: there is none."""
    of_stream, names = pc.field("stream") == name, ["stream", "side", "number", "inputs"]
    batches = warehouse.columns(BATCHES, names=names, where=of_stream)
    return None if batches is None else newest_eras(batches.to_pylist())
