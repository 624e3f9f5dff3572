"""The first rows of a big table by some order, with the memory of a part of it.

A row group at a time, of which only the columns are read that the order and the condition need; of
the row groups in which the first rows turned out to be, all columns. What a search may read can be
bounded: it says whether it saw everything.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from shardaudit.adapters.lake.delta_rs import Row
from shardaudit.adapters.lake.delta_schema import in_utc
from shardaudit.adapters.lake.table_files import TableFile
from shardaudit.model.window import EPOCH

_PART = "_sa_part"


@dataclass(frozen=True, slots=True)
class Searched:
    """A file in which rows may be, and the least of the order's first column among them.

    None: they have none there, which comes last.
    """

    file: TableFile
    least: datetime | None


@dataclass(frozen=True, slots=True)
class Search:
    """The first `limit` rows that meet a condition, by an order in which no two are alike.

    `names`: the columns that the condition is about; `text`: the column of the order by which rows
    are found again; `near`: what the condition says of times; `most_read`: rows that may be
    looked at.
    """

    where: pc.Expression
    names: Sequence[str]
    order: Sequence[str]
    text: str
    limit: int
    near: pc.Expression | None = None
    most_read: int | None = None

    def first(self, rows: pa.Table) -> pa.Table:
        """The first of some rows, in no order; NULL comes last."""
        keys = [(name, "ascending") for name in self.order]
        return rows.take(pc.select_k_unstable(rows, self.limit, sort_keys=keys))

    def in_order(self, rows: pa.Table) -> list[Row]:
        """All of some rows in the order, their columns in it alone and the number of their part."""
        keys = [(name, "ascending") for name in self.order]
        ordered = rows.take(pc.sort_indices(rows, sort_keys=keys))
        return [in_utc(row) for row in ordered.select([*self.order, _PART]).to_pylist()]


@dataclass(frozen=True, slots=True)
class FirstRows:
    """What a search found: `matched` of the rows that it looked at meet its condition.

    `is_whole`: no row before these is one that it did not look at; `saw_all`: nor behind them.
    """

    rows: list[Row]
    matched: int
    is_whole: bool
    saw_all: bool


def first_rows(files: Iterable[Searched], search: Search, columns: Sequence[str]) -> FirstRows:
    """The first rows of some files in the search's order, with these columns.

    Input:
        columns: those of the order among them.
    """
    best = _Best(search, [])
    ordered = sorted(files, key=lambda one: (one.least is None, one.least or EPOCH))
    is_whole = saw_all = True
    for searched in ordered:
        if best.is_before(searched.least):
            saw_all = False
            break
        if not best.look_into(searched.file):
            is_whole = saw_all = False
            break
    return FirstRows(best.whole(columns), best.matched, is_whole, saw_all)


@dataclass(slots=True)
class _Best:
    """The first rows so far, by what is read of all, and the row groups in which they are."""

    search: Search
    parts: list[TableFile]
    rows: pa.Table | None = None
    matched: int = 0
    read: int = 0

    def is_before(self, least: datetime | None) -> bool:
        """Whether no row that begins with `least` or more can be among them."""
        if self.rows is None or self.rows.num_rows < self.search.limit:
            return False
        firsts = self.rows[self.search.order[0]]
        if firsts.null_count:
            return False
        return least is None or pc.max(firsts).as_py() < least

    def look_into(self, file: TableFile) -> bool:
        """Whether all of a file could be looked into."""
        most = self.search.most_read
        for part in file.row_groups(where=self.search.near):
            rows = part.num_rows
            if most is not None and self.read + rows > most:
                return False
            self.read += rows
            self._add(part)
        return True

    def _add(self, part: TableFile) -> None:
        search, number = self.search, len(self.parts)
        self.parts.append(part)
        for batch in part.batches(sorted({*search.order, *search.names})):
            found = pa.Table.from_batches([batch]).filter(search.where)
            self.matched += found.num_rows
            numbered = found.append_column(_PART, pa.repeat(pa.scalar(number), found.num_rows))
            parts = [numbered] if self.rows is None else [self.rows, numbered]
            self.rows = search.first(pa.concat_tables(parts))

    def whole(self, columns: Sequence[str]) -> list[Row]:
        """The rows in their order."""
        if self.rows is None:
            return []
        search = self.search
        first = search.in_order(self.rows)
        place = {tuple(row[name] for name in search.order): n for n, row in enumerate(first)}
        is_one = search.where & is_among(search.text, {row[search.text] for row in first})
        found: dict[int, Row] = {}
        for number in sorted({row[_PART] for row in first}):
            for row in rows_in_part(self.parts[number], is_one, columns):
                at = place.get(tuple(row[name] for name in search.order))
                if at is not None:
                    found[at] = row
        return [found[at] for at in sorted(found)]


def rows_in_part(part: TableFile, where: pc.Expression, columns: Sequence[str]) -> Iterator[Row]:
    """The rows of a part of a table that meet a condition on some of these columns."""
    for batch in part.batches(columns):
        yield from map(in_utc, pa.Table.from_batches([batch]).filter(where).to_pylist())


def is_among(name: str, texts: Iterable[str]) -> pc.Expression:
    """The condition that a column has one of these values."""
    return pc.field(name).isin(pa.array(sorted(texts), pa.string()))
