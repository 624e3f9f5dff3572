"""How far each shard is proven complete: what holds its watermark, kept from audit to audit.

A shard's record is short: until when it was audited, and the spans of its time before that which no
audit could call complete. What lacks or is doubled is not among them: the findings tell that, and
go on telling it when they are repaired or accepted between two audits.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.audit.rules.cell_verdicts import MOST_SPANS
from shardaudit.columns.instants import any_of, in_windows
from shardaudit.columns.ledger_sums import CELL, SUMS, cell_sums, differs, is_any
from shardaudit.model.watermark import Held, Hold
from shardaudit.model.window import Window as Span
from shardaudit.model.window import joined

_DOUBTS, _SILENT = (Held.DAMAGED, Held.THIN), (Held.QUIET, Held.DOUBT)
TOUCHABLE = (Held.THIN, Held.QUIET)  # an audit may judge otherwise when something comes there


@dataclass(frozen=True, slots=True)
class ShardRecord:
    """What is known of one shard since the stream was first audited.

    `audited_from`: the beginning of that first audit; what is before it makes no gap, but what an
    audit finds there counts. `as_of`: the latest "now" of the audits that were counted.
    """

    audited_from: datetime
    audited_until: datetime
    as_of: datetime
    holds: tuple[Hold, ...]

    @property
    def audited(self) -> Span:
        """From the beginning of the first audit to the end of what was audited."""
        return Span(self.audited_from, self.audited_until)

    def unaudited(self, over: Span) -> list[Span]:
        """The parts of a span that nobody audited: the gaps, and what is before the first audit."""
        gaps = [hold.window for hold in self.holds if hold.why is Held.UNAUDITED]
        if over.start < self.audited_from:
            gaps.append(Span(over.start, self.audited_from))
        return [part for gap in gaps if (part := gap.common(over))]


def touched_cells(
    news: DataFrame, uncounted: DataFrame | None, *, looked_at: datetime
) -> DataFrame:
    """The cells that are not as the audits before saw them: one row per cell.

    Input:
        news: fingerprints of batches that no audit knew, with `planned_at` of the batch.
        uncounted: the same columns, not unique: by rows that no batch counts; `is_partial`: the
        sums know only the newest of these.
        looked_at: as of when the last of these audits was.
    Output:
        `shard_id`, `bucket_start`, `is_partial`, `is_cleared` (boolean: rows left the sink, and
        none came), `went_at` (when a batch first missed rows; NULL: none did that is known).
    """
    # Also traces of which none counts there: of messages of other minutes that landed here.
    has_traces = is_any(F.col("side") == "traces").alias("has_traces")
    # More went than came; what was written anew beside them had landed before.
    landed = (F.col("side") == "sink") & (
        (F.col("last_at") > F.lit(looked_at)) | (F.col("own_n") > 0)
    )
    has_landed = is_any(landed).alias("has_landed")
    has_come = F.col("has_traces") | F.col("has_landed") | (F.col("landed_n") >= 0)
    took_rows = (F.col("side") == "sink") & (F.col("n") < 0)
    went_at = F.min(F.when(took_rows, F.col("planned_at"))).alias("went_at")
    counted = (
        cell_sums(news, has_traces, has_landed, went_at)
        .where(any_of([F.col("has_traces"), *(F.col(f"landed_{name}") != 0 for name in SUMS)]))
        .select(*CELL, F.lit(False).alias("is_partial"), (~has_come).alias("is_cleared"), "went_at")
    )
    if uncounted is None:
        return counted
    others = uncounted.withColumn("went_at", F.lit(None).cast("timestamp"))
    return (
        counted.unionByName(others)
        .groupBy(*CELL)
        .agg(
            is_any(F.col("is_partial")).alias("is_partial"),
            (~is_any(~F.col("is_cleared"))).alias("is_cleared"),
            F.min("went_at").alias("went_at"),
        )
    )


def touched_buckets(touched: DataFrame, apart: DataFrame) -> DataFrame:
    """The buckets of touched cells, and those in which a message of them has another trace.

    Input:
        apart: traces that count in another bucket than their own.
    Output:
        `bucket_start`, unique; `is_cleared` (boolean): so are all that lead to it; `is_linked`
        (boolean): to a message of it another trace leads from a bucket to which something came.
    """
    pair = ("bucket_start", "counted_in")
    there = apart.select(*pair)
    links = there.union(there.select(*reversed(pair))).distinct()
    own = touched.select("bucket_start", "is_cleared", F.lit(False).alias("is_linked"))
    # Not unique: a bucket leads to several, and they are grouped below.
    linked = own.join(links, ["bucket_start"], how="inner").select(
        "counted_in", "is_cleared", (~F.col("is_cleared")).alias("is_linked")
    )
    both = own.union(linked).groupBy("bucket_start")
    return both.agg(
        (~is_any(~F.col("is_cleared"))).alias("is_cleared"),
        is_any(F.col("is_linked")).alias("is_linked"),
    )


def changed_cells(
    touched: DataFrame, buckets: DataFrame, sums: DataFrame, *, audited: Span, bucket: timedelta
) -> DataFrame:
    """The audited cells of touched buckets of which the two sides differ now.

    And those with no row too many of which a message was doubled: it may be repaired, or gone with
    all rows that a lake drops. What was sent before all that was audited, and came into the stream
    since, was to be audited, too.

    Whichever shard was touched: what a shard lands that stood still makes its own cell whole, and
    the row too many lies where the producer had sent the message again.
    Rows that leave the sink count while the stream still has them: after that a lake may clean up,
    and what lacks there is its doing, whatever comes to other shards in that minute.
    Of rows that no batch counted `sums` may know only the newest: such cells count as they are.

    Input:
        touched: of `touched_cells`; buckets: of `touched_buckets`; sums: `cell_sums` of all, with
        `vanished.last_arrival`, and `had_left` (boolean: whether the stream had none of the cell),
        `has_doubled` (true or NULL: whether messages of it are doubled, as far as audits know).
    Output:
        `shard_id`, `bucket_start`, `bucket_end`, `held_by`.
    """
    come = touched.where(~F.col("is_cleared")).select(*CELL, F.lit(True).alias("has_come"))
    is_lacking = F.col("sent_n") > F.col("landed_n")
    is_as_known = is_lacking & F.col("has_come").isNull() & ~F.col("is_linked")
    start, first = F.col("bucket_start"), F.lit(audited.start)
    is_of_time = (start >= first) | F.coalesce(F.col("arrived_until") >= first, F.lit(False))
    # Unique on the bucket on the right, by its grouping; and on the cell.
    near = sums.where(is_of_time).join(F.broadcast(buckets), ["bucket_start"], how="inner")
    differing = (
        near.where(differs())
        .join(come, CELL, how="left")
        .where(~(F.col("had_left") & (F.col("is_cleared") | is_as_known)))
    )
    has_too_many = F.col("landed_n") > F.col("sent_n")
    repaired = near.where(F.col("has_doubled") & ~has_too_many)
    partial = touched.where(F.col("is_partial") & (start >= first))
    cells = differing.select(*CELL).union(repaired.select(*CELL)).union(partial.select(*CELL))
    return as_changed(cells.distinct().where(start < F.lit(audited.end)), bucket)


def with_arrivals(sums: DataFrame, audited: Span) -> DataFrame:
    """The cells; what came since the first audit by its number has `arrived_until` so.

    A shard gives its numbers in the order of arrival, whatever a producer's clock says. The least
    of the cells' last numbers tells: a single message there may be of a clock that is ahead.

    Input:
        sums: as of `changed_cells`; audited: from the first audit on.
    """
    begin, came_at = F.lit(audited.start), F.col("arrived_until")
    since = sums.where(in_windows(F.col("bucket_start"), [audited])).groupBy("shard_id")
    given = since.agg(F.min("sent_key").alias("given_since"))
    has_come = F.coalesce(F.col("sent_key") > F.col("given_since"), F.lit(False))
    came = F.when(has_come, F.greatest(came_at, begin)).otherwise(came_at)
    # Unique on the shard on the right, by its grouping.
    near = sums.join(F.broadcast(given), ["shard_id"], how="left")
    return near.withColumn("arrived_until", came).drop("given_since")


def held_back_cells(sums: DataFrame, *, first: Span, bucket: timedelta) -> DataFrame:
    """What was sent before the first window, came into the stream since that began, and differs.

    Output:
        as of `changed_cells`, whose sums these are.
    """
    begin = F.lit(first.start)
    came_since = (F.col("bucket_start") < begin) & (F.col("arrived_until") >= begin)
    return as_changed(sums.where(came_since & differs()).select(*CELL), bucket)


def as_changed(cells: DataFrame, bucket: timedelta) -> DataFrame:
    """Some cells, in the shape of `changed_cells`."""
    end, why = F.col("bucket_start") + F.lit(bucket), F.lit(Held.CHANGED.value)
    return cells.withColumns({"bucket_end": end, "held_by": why})


def touched_doubts(holds: Iterable[Hold], touched: Sequence[Span]) -> list[Hold]:
    """What of times of no or too few traces was touched since: both sides may agree by now.

    Of a silence all is, where what came spans half of it: what is left may be as usual. A single
    message in it may be of a clock that is off.

    Input:
        touched: in order.
    """
    found: list[Hold] = []
    for hold in (hold for hold in holds if hold.why in TOUCHABLE):
        parts = [part for span in touched if (part := hold.window.common(span))]
        if hold.why is Held.QUIET and parts:
            is_healed = 2 * (parts[-1].end - parts[0].start) >= hold.end - hold.start
            parts = [hold.window] if is_healed else []
        found += [replace(hold, start=p.start, end=p.end, why=Held.CHANGED) for p in parts]
    return found


def recorded(
    before: ShardRecord | None,
    *,
    window: Span,
    as_of: datetime,
    found: Iterable[Hold],
    changed: Iterable[Hold] = (),
) -> ShardRecord:
    """The record after one more audit. Counting the same audit again changes nothing.

    An audit as of an earlier time than one before it knows less: it counts where nobody looked.

    Input:
        before: None when no audit of the stream was counted: the record begins with this one.
        found: what of the window cannot be called complete.
        changed: what was audited before is not as it was then.
    """
    if before is None:
        return ShardRecord(window.start, window.end, as_of, _joined(found))
    before = replace(before, holds=_joined([*before.holds, *changed]))
    holds = list(before.holds)
    if window.start > before.audited_until:
        holds.append(Hold(before.audited_until, window.start, Held.UNAUDITED))
    looked_at = _unseen(window, before) if as_of < before.as_of else [window]
    known = without(holds, looked_at)
    new = [
        replace(hold, start=part.start, end=part.end)
        for hold in found
        for span in looked_at
        if (part := hold.window.common(span))
    ]
    return ShardRecord(
        audited_from=before.audited_from,
        audited_until=max(before.audited_until, window.end),
        as_of=max(before.as_of, as_of),
        holds=_joined([*known, *new]),
    )


def unknown_before(records: Iterable[ShardRecord], *, as_of: datetime) -> ShardRecord | None:
    """The record of a shard of which no audit knew: they looked, and there was nothing of it.

    None when no audit was counted.
    """
    if not (known := list(records)):
        return None
    since = min(record.audited_from for record in known)
    return ShardRecord(since, max(record.audited_until for record in known), as_of, ())


def silenced(
    record: ShardRecord, silences: Iterable[Hold], quiet_times: Sequence[Span], *, as_of: datetime
) -> ShardRecord:
    """The record with the silences of now, though they began before the window.

    One that is told holds until an audit looks at it again, one in doubt as long as it is in doubt.

    Input:
        quiet_times: of which a person said that nothing was sent: they hold nothing any more.
        as_of: of the audit; another one may have seen later silences.
    """
    looked_at = record.audited
    seen = [
        replace(hold, start=part.start, end=part.end)
        for hold in silences
        if (part := hold.window.common(looked_at))
    ]
    holds = [h for h in record.holds if h.why is not Held.DOUBT or as_of < record.as_of]
    return replace(record, holds=_joined(without([*holds, *seen], quiet_times, of=_SILENT)))


def _unseen(window: Span, before: ShardRecord) -> list[Span]:
    """The parts of a window that nobody had looked at, as they are now."""
    fresh = [hold.window for hold in before.holds if hold.why in {Held.UNAUDITED, Held.CHANGED}]
    if window.start < before.audited_from:
        fresh.append(Span(window.start, before.audited_from))
    if window.end > before.audited_until:
        fresh.append(Span(before.audited_until, window.end))
    return [part for span in fresh if (part := span.common(window))]


def without(
    holds: Iterable[Hold], spans: Sequence[Span], *, of: Iterable[Held] = tuple(Held)
) -> list[Hold]:
    """What is left of the holds outside of the spans, where they are of some reasons."""
    left = list(holds)
    for span in spans:
        left = [
            replace(hold, start=start, end=end)
            for hold in left
            for start, end in (
                ((hold.start, min(hold.end, span.start)), (max(hold.start, span.end), hold.end))
                if hold.why in of
                else ((hold.start, hold.end),)
            )
            if start < end
        ]
    return left


def accepted(record: ShardRecord, times: Sequence[Span]) -> ShardRecord:
    """The record without what is inconclusive in these times: a person said that it may stay so.

    By a file that cannot be read, or for want of traces; a silence is another thing.
    """
    holds = without(record.holds, times, of=_DOUBTS)
    return replace(record, holds=tuple(sorted(holds, key=lambda h: (h.start, h.why.value))))


def first_hold(
    record: ShardRecord | None, unsettled_at: datetime | None, *, bucket: timedelta
) -> Hold | None:
    """What holds a shard's watermark: it is where that begins. None: nothing, up to the end.

    Input:
        record: None for a shard that only findings tell of.
        unsettled_at: when the first message that lacks or is doubled was sent.
    """
    holds = list(record.holds) if record else []
    if unsettled_at is not None:
        cell = Span(unsettled_at, unsettled_at + timedelta(microseconds=1)).aligned(bucket)
        holds.append(Hold(cell.start, cell.end, Held.FINDINGS))
    return min(holds, key=lambda hold: (hold.start, list(Held).index(hold.why)), default=None)


def _joined(holds: Iterable[Hold]) -> tuple[Hold, ...]:
    """Holds of one reason that touch or overlap as one; of more than MOST_SPANS the nearest."""
    spans: dict[Held, list[Span]] = {}
    for hold in holds:
        spans.setdefault(hold.why, []).append(hold.window)
    done = [
        Hold(span.start, span.end, why)
        for why, mine in spans.items()
        for span in joined(mine, most=MOST_SPANS)
    ]
    return tuple(sorted(done, key=lambda hold: (hold.start, hold.why.value)))
