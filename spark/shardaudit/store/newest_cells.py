"""The cells that differed, as the newest published audit of each saw them."""

from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.adapters.engine.held import own_rows
from shardaudit.adapters.lake.delta_rs import Row
from shardaudit.columns.ledger_sums import CELL
from shardaudit.model.audit_id import audit_order
from shardaudit.model.tables.audit_tables import AUDITS, CELLS
from shardaudit.model.window import Window as Span
from shardaudit.store.audits import published_of
from shardaudit.store.cell_grid import Segment, audit_spans, newest_segments
from shardaudit.store.warehouse import Warehouse


def audited_cells(
    warehouse: Warehouse, name: str, window: Span, *, but: str | None = None
) -> DataFrame | None:
    """Rows of CELLS with the audit's `as_of`, unique on the cell; None where no audit looked.

    Where the newest saw a message on its way, the newest that saw none, if there is one.

    Input:
        name: of the stream; but: the audit that is left out.
    """
    audits = _audits(warehouse, name, but=but)
    segments = newest_segments(audit_spans(audits.values()), window)
    if not segments:
        return None
    newest = _of_newest(warehouse, audits, segments)
    if not any(audits[of.audit_id]["pending"] for of in segments):
        return newest
    on_their_way = newest.where(F.col("pending") > 0).select(*CELL).localCheckpoint()
    return newest.join(on_their_way, CELL, how="left_anti").unionByName(
        _before(warehouse, on_their_way, audits.values()).select(newest.columns)
    )


def unnamed_cells(
    warehouse: Warehouse, name: str, window: Span, *, but: str | None = None
) -> DataFrame | None:
    """The differing cells that the newest audits saw of which untraced ids were only counted.

    Not all of these cells have some. Also those with findings are in their `untraced`.

    Input:
        but: as of `audited_cells`.
    Output:
        CELLS with the audit's `as_of`, unique on the cell; None: there was no such audit.
    """
    return _of_newest_with("unnamed", warehouse, name, window, but=but)


def filtered_cells(
    warehouse: Warehouse, name: str, window: Span, *, but: str | None = None
) -> DataFrame | None:
    """The cells of which filters of the route left something out, as the newest audits saw them.

    Input:
        but: as of `audited_cells`.
    Output:
        CELLS with the audit's `as_of`, unique on the cell; None: there was no such audit.
    """
    cells = _of_newest_with("filtered", warehouse, name, window, but=but)
    return None if cells is None else cells.where(F.col("filtered") > 0)


def _of_newest_with(
    count: str, warehouse: Warehouse, name: str, window: Span, *, but: str | None
) -> DataFrame | None:
    """`_of_newest`, of the audits that have some of a column of AUDITS; None: none has."""
    audits = _audits(warehouse, name, but=but)
    segments = newest_segments(audit_spans(audits.values()), window)
    some = [of for of in segments if audits[of.audit_id][count]]
    return _of_newest(warehouse, audits, some) if some else None


def _audits(warehouse: Warehouse, name: str, *, but: str | None) -> dict[str, Row]:
    published = warehouse.rows(AUDITS, where=published_of(name))
    return {row["audit_id"]: row for row in published if row["audit_id"] != but}


def _of_newest(
    warehouse: Warehouse, audits: Mapping[str, Row], segments: Sequence[Segment]
) -> DataFrame:
    """The cells that differed, each as the audit saw it of whose segment it is; with its `as_of`.

    Input:
        audits: by id.
    """
    of_newest = own_rows(
        warehouse.spark,
        [(of.audit_id, of.start, of.end, audits[of.audit_id]["as_of"]) for of in segments],
        "audit_id string, audited_from timestamp, audited_until timestamp, as_of timestamp",
    )
    return (
        warehouse.read(CELLS)
        .where(F.col("audit_id").isin(sorted({segment.audit_id for segment in segments})))
        .where(F.col("sums_digest").isNotNull())
        # Segments do not overlap: each cell is in one of them.
        .join(F.broadcast(of_newest), ["audit_id"], how="inner")
        .where(F.col("bucket_start") >= F.col("audited_from"))
        .where(F.col("bucket_start") < F.col("audited_until"))
        .drop("audited_from", "audited_until")
    )


def _before(warehouse: Warehouse, cells: DataFrame, audits: Iterable[Row]) -> DataFrame:
    """The cells as the newest audit saw them that saw none of their messages on its way."""
    starts = [row.bucket_start for row in collected(cells.select("bucket_start").distinct())]
    in_order = sorted(audits, key=audit_order)
    near = [
        (row["audit_id"], row["as_of"], nth)
        for nth, row in enumerate(in_order)
        if any(row["window_start"] <= start < row["window_end"] for start in starts)
    ]
    looked = own_rows(warehouse.spark, near, "audit_id string, as_of timestamp, nth int")
    newest_first = Window.partitionBy(*CELL).orderBy(F.desc("nth"))
    return (
        warehouse.read(CELLS)
        .where(F.col("audit_id").isin(sorted(audit_id for audit_id, *_ in near)))
        .where(F.col("bucket_start").isin(starts) & (F.col("pending") == 0))
        .join(cells, CELL, how="left_semi")
        # Unique on the audit.
        .join(F.broadcast(looked), ["audit_id"], how="inner")
        .withColumn("rank", F.row_number().over(newest_first))
        .where((F.col("rank") == 1) & F.col("sums_digest").isNotNull())
    )
