"""The cells that differed, as the newest published audit of each saw them."""

import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.adapters.engine.held import own_rows
from shardaudit.model.tables.audit_tables import AUDITS, CELLS
from shardaudit.model.window import Window
from shardaudit.store.cell_grid import audit_spans, newest_segments
from shardaudit.store.warehouse import Warehouse


def audited_cells(
    warehouse: Warehouse, name: str, window: Window, *, but: str | None = None
) -> DataFrame | None:
    """Rows of CELLS with the audit's `as_of`, unique on the cell; None where no audit looked.

    Input:
        name: of the stream; but: the audit that is left out.
    """
    published = (pc.field("stream") == name) & (pc.field("status") == "published")
    audits = [r for r in warehouse.rows(AUDITS, where=published) if r["audit_id"] != but]
    segments = newest_segments(audit_spans(audits), window)
    if not segments:
        return None
    as_of = {row["audit_id"]: row["as_of"] for row in audits}
    of_newest = own_rows(
        warehouse.spark,
        [(of.audit_id, of.start, of.end, as_of[of.audit_id]) for of in segments],
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
    )
