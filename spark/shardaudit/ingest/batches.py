"""The ledger of batches: planned, written, done. A crash leaves a planned one, which is redone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, Protocol, Self, TypeVar

import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.adapters.lake.delta_rs import Row
from shardaudit.ingest.rules.batch_inputs import DamagedFile
from shardaudit.model.config.eras import Eras
from shardaudit.model.source import SourceFile
from shardaudit.model.tables.audit_tables import BATCHES
from shardaudit.model.tables.table import Table
from shardaudit.model.verdict import BatchState
from shardaudit.model.window import EPOCH, Window
from shardaudit.store.warehouse import Warehouse


class Inputs(Protocol):
    """What a batch reads."""

    @property
    def shape(self) -> Eras:
        """How ids are put into cells."""

    @property
    def damaged(self) -> tuple[DamagedFile, ...]:
        """The files that it found unreadable."""

    def as_json(self) -> str:
        """The text that is stored."""

    def heals(self, damaged: SourceFile, /) -> bool:
        """Whether a file that was unreadable earlier does no harm any more."""

    def older(self) -> Self:
        """What of it is kept once there is a newer batch."""


SomeInputs = TypeVar("SomeInputs", bound=Inputs)
_MOST_BEHIND = timedelta(days=7)

_MANY_FILES, _LARGE_BYTES = 8, 2**22  # of all streams' batches; a large file is written once


def batch_id(stream: str, side: str, number: int) -> str:
    """The name that the rows of a batch bear."""
    return f"{stream}/{side}/{number}"


def batch_number(batch_id: str) -> int:
    """The number in such a name."""
    return int(batch_id.rpartition("/")[2])


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch of one side. Everything that it writes bears its number or its planning time."""

    stream: str
    side: str
    number: int
    planned_at: datetime
    is_resumed: bool = False

    @property
    def batch_id(self) -> str:
        """The name that its rows bear."""
        return batch_id(self.stream, self.side, self.number)

    @property
    def retried(self) -> str | None:
        """Its name, where an earlier try may have written its rows."""
        return self.batch_id if self.is_resumed else None


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What came of a batch. `damage`: the cells that unreadable files may have fed.

    `unplaced`: rows that lack their shard or time, less those of them that went.
    `counted`: ids (traces) or rows (sink) that it added to the ledger, less those it took away.
    """

    rows: int
    counted: int
    quarantined: int
    damage: Window | None = None
    unplaced: int = 0


class Batches(Generic[SomeInputs]):
    """The batches of one side of a stream."""

    def __init__(
        self, warehouse: Warehouse, stream: str, side: str, *, parse: Callable[[str], SomeInputs]
    ) -> None:
        self._warehouse, self._stream, self._side = warehouse, stream, side
        of_side = (pc.field("stream") == stream) & (pc.field("side") == side)
        rows = warehouse.rows(BATCHES, where=of_side)
        self._rows = sorted(rows, key=lambda row: int(row["number"]))
        self._inputs = [parse(row["inputs"]) for row in self._rows]

    @property
    def done(self) -> list[SomeInputs]:
        """The inputs of the finished batches, oldest first."""
        return self._inputs[:-1] if self.unfinished else self._inputs

    @property
    def last_done(self) -> datetime:
        """When a batch was finished last, at the earliest: long ago where none was."""
        times = (row["done_at"] for row in self._rows if row["state"] == BatchState.DONE)
        return max(filter(None, times), default=EPOCH)

    @property
    def used(self) -> list[SomeInputs]:
        """The inputs of the finished batches of which anything could be used."""
        rows = zip(self._rows, self._inputs, strict=True)
        return [inputs for row, inputs in rows if row["state"] == BatchState.DONE and row["rows"]]

    @property
    def unplaced(self) -> int:
        """How many rows lack their shard or time, as the finished batches counted them."""
        return sum(row["unplaced"] or 0 for row in self._rows if row["state"] == BatchState.DONE)

    @property
    def unfinished(self) -> tuple[Batch, SomeInputs] | None:
        """The batch that a crash left behind, with its inputs."""
        if not self._rows or self._rows[-1]["state"] == BatchState.DONE:
            return None
        row = self._rows[-1]
        batch = Batch(self._stream, self._side, row["number"], row["planned_at"], is_resumed=True)
        return batch, self._inputs[-1]

    def clock(self, now: datetime) -> datetime:
        """What it is by now at the earliest: an earlier batch's time, where this clock is behind.

        Where that one is far ahead, it was its own clock that was wrong.
        """
        planned: list[datetime] = [row["planned_at"] for row in self._rows]
        return max([now, *(at for at in planned if at <= now + _MOST_BEHIND)])

    def plan(self, inputs: SomeInputs, *, at: datetime) -> Batch:
        """Stores what the next batch is going to read, before it writes anything."""
        number = self._rows[-1]["number"] + 1 if self._rows else 1
        batch = Batch(self._stream, self._side, number, at)
        row = _row(batch, inputs, state=BatchState.PLANNED)
        # Each batch is a file of its own, and whoever looks at the batches opens all of them.
        self._warehouse.compact(BATCHES, above=_MANY_FILES, size=_LARGE_BYTES)
        self._warehouse.upsert([row], BATCHES)
        self._keep(row, inputs)
        return batch

    def plan_again(self, batch: Batch, inputs: SomeInputs) -> None:
        """Stores what an unfinished batch is going to read instead."""
        row = _row(batch, inputs, state=BatchState.PLANNED)
        self._warehouse.upsert([row], BATCHES)
        self._keep(row, inputs)

    def finish(
        self, batch: Batch, inputs: SomeInputs, *, result: BatchResult, at: datetime
    ) -> None:
        """Stores that the batch is complete, what it healed, and less of those before it."""
        row = _row(
            batch,
            inputs,
            state=BatchState.DONE,
            rows=result.rows,
            counted=result.counted,
            quarantined=result.quarantined,
            unplaced=result.unplaced,
            damaged_from=result.damage.start if result.damage else None,
            damaged_to=result.damage.end if result.damage else None,
            done_at=at,
        )
        self._keep(row, inputs)
        older = [each.older() for each in self._inputs[:-1]]
        shorter = {
            mine["number"]: mine | {"inputs": less.as_json()}
            for mine, each, less in zip(self._rows, self._inputs, older, strict=False)
            if less != each
        }
        self._rows = [shorter.get(each["number"], each) for each in self._rows]
        self._inputs = [*older, inputs]
        healed = _healed(list(zip(self._rows, self._inputs, strict=True)))
        changed = shorter | {each["number"]: each for each in (*healed, row)}
        self._warehouse.upsert(list(changed.values()), BATCHES)

    def _keep(self, row: Row, inputs: SomeInputs) -> None:
        """The newest batch, as it is now."""
        if self.unfinished:
            self._rows, self._inputs = self._rows[:-1], self._inputs[:-1]
        self._rows, self._inputs = [*self._rows, row], [*self._inputs, inputs]


def _row(batch: Batch, inputs: Inputs, *, state: BatchState, **fields: object) -> Row:
    mine = {
        "batch_id": batch.batch_id,
        "stream": batch.stream,
        "side": batch.side,
        "number": batch.number,
        "state": state,
        "inputs": inputs.as_json(),
        "planned_at": batch.planned_at,
    }
    return dict.fromkeys(BATCHES.names) | mine | fields


def _healed(batches: Sequence[tuple[Row, Inputs]]) -> list[Row]:
    """The batches, without their damage, whose unreadable files later ones replaced or dropped."""
    healed: list[Row] = []
    for position, (row, inputs) in enumerate(batches):
        later = [since for _, since in batches[position + 1 :]]
        files = [damage.file for damage in inputs.damaged]
        is_healed = all(any(since.heals(file) for since in later) for file in files)
        if row["damaged_from"] is not None and is_healed:
            healed.append(row | {"damaged_from": None, "damaged_to": None})
    return healed


def stored_rows(warehouse: Warehouse, table: Table, batch: Batch) -> DataFrame:
    """What is stored of a batch in a table."""
    own = (F.col("stream") == batch.stream) & (F.col("batch_id") == batch.batch_id)
    return warehouse.read(table).where(own)
