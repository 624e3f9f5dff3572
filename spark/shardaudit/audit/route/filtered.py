"""What filters of a route left out of what was sent: to be known before both sides are compared.

What a filter says itself that it left out is that. Else nobody can tell it of one message from a
loss in the filter. The filters' shares tell it by counts, hour by hour: see
`model/route/filters.py`. Where they do not, where no trace says that a message came to the filter,
and where an unreadable file may lack some, it stays missing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.adapters.engine.held import own_rows
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.evidence import Sources
from shardaudit.audit.placing import buckets_of
from shardaudit.audit.route.left_out import (
    FILTERED_IDS,
    passage_counts,
    places_passed,
    with_filtered_digest,
    without_left_out,
)
from shardaudit.audit.rules.canary.canary_answers import without_canary
from shardaudit.audit.rules.cell_verdicts import is_settled
from shardaudit.audit.rules.classify import is_damaged
from shardaudit.audit.rules.hours import hour_start, slot
from shardaudit.audit.rules.ledger_hours import LedgerSums
from shardaudit.columns.instants import in_windows
from shardaudit.columns.ledger_sums import CELL, SUMS, cell_hash, id_hash
from shardaudit.ingest.sightings import sightings_for_filters
from shardaudit.model.config.settings import DAY
from shardaudit.model.route.filters import (
    FilterTime,
    Passage,
    RouteFilter,
    Unexplained,
    UnexplainedHours,
    filter_times,
    filters,
    unexplained_hours,
)
from shardaudit.model.window import Window
from shardaudit.store.warehouse import Warehouse

_AT_ONCE = 4_000_000  # messages whose traces are grouped at once
_COUNTS = ("received", "passed", "told", "left_out")
_HOURS_DDL = "filter int, shard_id string, hour timestamp"


@dataclass(frozen=True, slots=True)
class Filtered:
    """What filters left out of an audit's window.

    `settled`: FILTERED_IDS and the places of `places_passed`, of settled cells, read: it counts as
    never sent; `recent`: the same of others, of which each id is judged by itself, read; `unsent`:
    what no producer traced, read.
    `of`: the filters; `hours`, `times`: of each what its share does not explain.
    """

    settled: DataFrame
    recent: DataFrame
    unsent: DataFrame
    of: tuple[RouteFilter, ...]
    hours: tuple[UnexplainedHours, ...]
    times: tuple[tuple[FilterTime, ...], ...]

    @property
    def left_out(self) -> DataFrame:
        """All that a producer traced."""
        return self.settled.unionByName(self.recent)

    @property
    def seen(self) -> DataFrame:
        """All of it: where places traced it."""
        return self.left_out.unionByName(self.unsent)

    def never_sent(self, cells: DataFrame) -> DataFrame:
        """The cells, as if what is settled had never been sent.

        Input:
            cells: of `with_bucket_digest`.
        """
        return with_filtered_digest(without_left_out(cells, self.settled), self.settled)

    def lost_at(self, start: datetime) -> tuple[str, ...]:
        """The places that have lost, by their share, what they left out of an hour."""
        known = (Unexplained.BELOW, Unexplained.NOTHING)
        return tuple(
            name
            for each, hours in zip(self.of, self.hours, strict=True)
            if any(at == start and why in known for (_, at), why in hours.items())
            for name in each.places
        )


def filtered(
    warehouse: Warehouse,
    request: AuditRequest,
    both: Sources,
    sums: LedgerSums,
    *,
    facts: DataFrame,
) -> Filtered | None:
    """What filters left out of what was sent in the window; None: the route has none.

    Input:
        sums: of `keep_ledger_sums`; facts: of `shard_facts`.
    """
    of = filters(request.stream.route)
    if not of:
        return None
    looked = _Looked(warehouse, request, both, sums, facts, of)
    candidates, came = looked.passages()
    landed = looked.landed(candidates).localCheckpoint()
    # Presence only, both times.
    back = candidates.join(landed, ["id_hash"], how="left_semi")
    left = candidates.join(landed, ["id_hash"], how="left_anti")
    passages = looked.with_landed(came, back)
    hours = tuple(
        {} if each.tells else unexplained_hours(passages[n], each.share)
        for n, each in enumerate(of)
    )
    width = slot(request.stream.bucket)
    window = request.aligned
    times = tuple(
        tuple(
            one
            for one in filter_times(passages[n], hours[n], width=width)
            if one.since < window.end and one.until > window.start
        )
        for n in range(len(of))
    )
    known = _explained(left, hours, warehouse, width)
    own = known.where(in_windows(F.col("bucket_start"), [window])).localCheckpoint()
    is_sent = F.col("shard_id").isNotNull()
    # Of what no producer traced nothing is settled.
    settled, recent = own.where(F.col("is_settled")), own.where(is_sent & ~F.col("is_settled"))
    return Filtered(settled, recent, own.where(~is_sent), of, hours, times)


@dataclass(frozen=True, slots=True)
class _Looked:
    """What is looked at: whole days, so that the audit of some minutes judges by the same hours."""

    warehouse: Warehouse
    request: AuditRequest
    both: Sources
    sums: LedgerSums
    facts: DataFrame
    of: Sequence[RouteFilter]

    @property
    def span(self) -> Window:
        """The days of the window, and of the time by whose totals it is judged."""
        own, over = self.request.aligned, self.request.judged_over or self.request.aligned
        return Window(min(own.start, over.start), max(own.end, over.end)).aligned(DAY)

    def settled(self) -> DataFrame:
        """The cells of which all that was sent would have landed: `cell`, `is_settled`.

        What is on its way is neither left out yet, nor passed on.
        """
        end = F.col("bucket_start") + F.lit(self.request.stream.bucket)
        # Unique on the shard on the right.
        known = self._cells().join(F.broadcast(self.facts), ["shard_id"], how="inner")
        said = known.withColumns({"bucket_end": end, "sent": F.col("sent_n")})
        settled = said.where(is_settled(self.request.as_of))
        return settled.select(cell_hash(), F.lit(True).alias("is_settled"))

    def passages(self) -> tuple[DataFrame, list[dict[tuple[str, datetime], Passage]]]:
        """What no filter was seen to pass on; and by filter, shard and hour how many came to it."""
        route, bucket = self.request.stream.route, self.request.stream.bucket
        damage = self.both.planted.plan.judged_damage
        traces = self.both.traces.within([self.span]).where(
            F.col("counted") & ~is_damaged(damage.traces + damage.sink)
        )
        known = sightings_for_filters(self.both.traces, [self.span], route, bucket=bucket)
        came: list[dict[tuple[str, datetime], Passage]] = [{} for _ in self.of]
        parts, frames = 1 + self._sent() // _AT_ONCE, list[DataFrame]()
        settled = self.settled().localCheckpoint()
        for part in range(parts):
            is_of_part = F.pmod(id_hash(), F.lit(parts)) == part
            seen = places_passed(traces.where(is_of_part), known.where(is_of_part), route, self.of)
            # Unique on the cell on the right.
            messages = (
                seen.withColumn("cell", cell_hash())
                .join(settled, ["cell"], how="left")
                .fillna(False, subset=["is_settled"])
                .drop("cell")
                .localCheckpoint()
            )
            counted = messages.where(F.col("is_settled"))
            for row in collected(passage_counts(counted, self.of, bucket=bucket)):
                for n, found in enumerate(came):
                    counts = [row[f"{name}_{n}"] for name in _COUNTS]
                    new = Passage(row.shard_id, row.hour, *counts)
                    key = (row.shard_id, row.hour)
                    found[key] = found[key] + new if key in found else new
            places = [f"{of}_{n}" for n in range(len(route.places)) for of in ("at", "kept")]
            left = messages.where(F.col("filter").isNotNull()).select(
                *FILTERED_IDS, "is_settled", *places
            )
            frames.append(left.localCheckpoint())
        return reduce(DataFrame.unionByName, frames), came

    def _sent(self) -> int:
        n = F.coalesce(F.sum("sent_n"), F.lit(0)).alias("n")
        [found] = collected(self._cells().select(n))
        return int(found.n)

    def _cells(self) -> DataFrame:
        names = [f"{side}_{name}" for side in ("sent", "landed") for name in SUMS]
        near = self.sums.cells.where(in_windows(F.col("bucket_start"), [self.span]))
        return without_canary(near).select(*CELL, *names, "sent_key")

    def landed(self, candidates: DataFrame) -> DataFrame:
        """Those of the messages that landed all the same: `id_hash`, unique.

        They make their cell differ from what else was sent to it; or the one that they landed in.
        """
        cells = without_left_out(self._cells(), candidates)
        starts = buckets_of(cells.where(F.col("differs")))
        return self.both.within(starts).landed_among(candidates)

    def with_landed(
        self, came: Sequence[Mapping[tuple[str, datetime], Passage]], back: DataFrame
    ) -> list[list[Passage]]:
        """By filter what came to it and what of it passed, the landed messages too.

        Input:
            back: FILTERED_IDS of these.
        """
        hour = hour_start(slot(self.request.stream.bucket)).alias("hour")
        settled = back.where(F.col("is_settled"))
        counts = settled.groupBy("filter", "shard_id", hour).agg(
            F.count("*").alias("ids"), F.count_if("is_told").alias("told")
        )
        more = {(r["filter"], r.shard_id, r.hour): (r.ids, r.told) for r in collected(counts)}
        return [
            [
                of + _landed_after_all(key, *more.get((n, *key), (0, 0)))
                for key, of in sorted(found.items())
                if of.received
            ]
            for n, found in enumerate(came)
        ]


def _landed_after_all(key: tuple[str, datetime], ids: int, told: int) -> Passage:
    """What is to be added for messages that landed, some of which a filter says it left out."""
    return Passage(*key, 0, ids, 0, -told)


def _explained(
    left: DataFrame, hours: Sequence[UnexplainedHours], warehouse: Warehouse, width: timedelta
) -> DataFrame:
    """What was left out, without that of hours in which the filter's share does not explain it."""
    rows = [(n, shard_id, at) for n, of in enumerate(hours) for shard_id, at in of]
    if not rows:
        return left
    # What a filter told itself it left out, whatever the hour: NULL is like none of them.
    timed = left.withColumn("hour", F.when(~F.col("is_told"), hour_start(width)))
    told = own_rows(warehouse.spark, rows, _HOURS_DDL)
    whole, apart = told.where(F.col("shard_id").isNull()), told.where(F.col("shard_id").isNotNull())
    # Presence only, both times.
    return (
        timed.join(F.broadcast(whole.select("filter", "hour")), ["filter", "hour"], how="left_anti")
        .join(F.broadcast(apart), ["filter", "shard_id", "hour"], how="left_anti")
        .drop("hour")
    )
