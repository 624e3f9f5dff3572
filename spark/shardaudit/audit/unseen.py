"""Messages that came too late for the window of any audit: which cells lack some, and how many.

Their producer held them back for longer than a nightly audit looks back, so none ever looks there.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.rules.cells import differs, sums_digest
from shardaudit.audit.rules.classify import is_damaged, seconds_between
from shardaudit.audit.rules.deadlines import had_left
from shardaudit.audit.rules.drill_down import CELL
from shardaudit.audit.rules.vanished import Deadlines
from shardaudit.model.window import Window
from shardaudit.store.newest_cells import audited_cells
from shardaudit.store.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class Unseen:
    """`messages` lack, at least; `spans`: by shard, the minutes around them."""

    messages: int
    spans: Mapping[str, Window]

    @property
    def span(self) -> Window | None:
        """Around all of them; None when there are none."""
        if not self.spans:
            return None
        windows = self.spans.values()
        return Window(min(w.start for w in windows), max(w.end for w in windows))


NOTHING = Unseen(0, {})


def unseen_messages(warehouse: Warehouse, request: AuditRequest, cells: DataFrame) -> Unseen:
    """What lacks before the window of what came within it, and that no audit looked at.

    Input:
        cells: of `unseen_cells`.
    """
    rows = collected(unseen_shards(cells))
    if rows:
        around = Window(min(row.first for row in rows), request.aligned.start)
        audited = audited_cells(warehouse, request.name, around, but=request.audit_id)
        if audited is not None:
            rows = collected(unseen_shards(less_the_audited(cells, audited)))
    return Unseen(
        messages=sum(row.lacking for row in rows),
        spans={row.shard_id: Window(row.first, row.last + request.stream.bucket) for row in rows},
    )


def unseen_cells(sums: DataFrame, facts: DataFrame, by: Deadlines, *, window: Window) -> DataFrame:
    """The cells before the window that differ, and of which messages came after its first bucket.

    Only where the consumer is past them, or may be, or stands still: others are on their way. Not
    those from which rows are gone, once the stream has none of their messages: what a lake drops
    is no loss. Nor those that an unreadable file may have fed.

    Input:
        sums: `cell_sums` of all, with `vanished.last_arrival`; facts: of `shard_facts`.
    Output:
        `shard_id`, `bucket_start`, unique; `lacking` (bigint: messages, at least), `digest`.
    """
    is_late = F.col("arrived_until") >= F.lit(window.start + by.bucket)
    is_over = had_left(by.kept, bucket=by.bucket, as_of=by.as_of, since=by.as_of)
    is_dark = is_damaged(by.damage.traces + by.damage.sink)
    is_told = is_late & differs() & ~(F.col("has_lost_rows") & is_over) & ~is_dark
    late = sums.where((F.col("bucket_start") < F.lit(window.start)) & is_told)
    standing = facts.select(
        "shard_id", "settled_frontier", "has_position", "patience", "shard_state"
    )
    # Unique on the shard on the right.
    return (
        late.join(standing, ["shard_id"], how="inner")
        .where(_is_landed_or_never(by))
        .select(
            *CELL,
            F.greatest(F.col("sent_n") - F.col("landed_n"), F.lit(1)).alias("lacking"),
            sums_digest().alias("digest"),
        )
    )


def _is_landed_or_never(by: Deadlines) -> Column:
    """Whether what has not landed by now will not, as the consumer goes on by itself."""
    came_by = F.col("arrived_until") + F.lit(by.bucket)
    is_overdue = seconds_between(came_by, F.lit(by.as_of)) >= F.col("patience")
    is_passed = F.coalesce(F.col("sent_key") <= F.col("settled_frontier"), F.lit(False))
    goes_on = F.col("has_position") & F.col("sent_key").isNotNull()
    goes_on &= F.col("shard_state") == "advancing"
    return is_passed | (is_overdue & ~goes_on)


def less_the_audited(unseen: DataFrame, audited: DataFrame) -> DataFrame:
    """The cells less those that an audit saw as they are, when nothing of them was on its way.

    Input:
        unseen: of `unseen_cells`; audited: CELLS of the newest audits, unique on the cell.
    """
    known = audited.where(F.col("pending") == 0).select(*CELL, F.col("sums_digest").alias("digest"))
    # Presence only.
    return unseen.join(known, [*CELL, "digest"], how="left_anti")


def unseen_shards(unseen: DataFrame) -> DataFrame:
    """One row per shard: `shard_id`, `lacking`, `first`, `last` (starts of cells)."""
    return unseen.groupBy("shard_id").agg(
        F.sum("lacking").alias("lacking"),
        F.min("bucket_start").alias("first"),
        F.max("bucket_start").alias("last"),
    )
