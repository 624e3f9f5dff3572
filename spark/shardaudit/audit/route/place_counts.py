"""How many messages of an audit's window each place traced, beside what landed of them.

What the ledger counts is summed. Where several ingests brought a place's traces of a minute, they
may name other shards than before, or an older version may have counted a message in each of them:
where it matters they are counted message by message.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.route.filtered import Filtered
from shardaudit.audit.route.left_out import seen_of_left_out
from shardaudit.audit.rules.canary.canary_answers import without_canary
from shardaudit.columns.instants import in_windows
from shardaudit.ingest.producer_numbers import producer_lines
from shardaudit.ingest.rules.sighted import had_messages, is_kept
from shardaudit.ingest.sightings import sighting_counts, sightings_within
from shardaudit.ingest.stream_traces import StreamTraces
from shardaudit.model.input_columns import LEFT_OUT, SENT
from shardaudit.model.route.route import Sighting
from shardaudit.model.route.trace_loss import Traced
from shardaudit.model.verdict import Kind
from shardaudit.model.window import SCAN_WINDOWS, Window, joined
from shardaudit.report.summary import AuditedPlace
from shardaudit.store.warehouse import Warehouse

_ABOUT = timedelta(hours=1)  # before and after: a retry that is stamped anew comes sooner
_NOTHING = Row(received=0, sent=0, kept=0, traced=0, ended=0)


@dataclass(frozen=True, slots=True)
class OfWindow:
    """What the places traced in an audit's window.

    `places`: in the route's order; `traced`: what they traced where all has landed; `later`: by
    place that traced nothing in the window's first bucket, when its traces begin; `missing`:
    messages, also those of gaps.
    """

    places: tuple[AuditedPlace, ...]
    traced: Traced
    later: Mapping[str, datetime]
    missing: int


@dataclass(frozen=True, slots=True)
class SeenAlike:
    """So many found messages of a bucket that were seen alike. `text`: of `seen_at`."""

    bucket_start: datetime
    kind: str
    text: str
    ids: int
    seen: Mapping[str, Sighting]

    @property
    def is_missing(self) -> bool:
        """Whether they did not land."""
        return self.kind == Kind.MISSING.value


@dataclass(frozen=True, slots=True)
class PlaceCounts:
    """Messages of a window by bucket: those that landed or not, and what each place traced.

    `cells`: `bucket_start`, unique; `landed`, `missing`, `pending`, `filtered` (bigint).
    `traced`: `location`, `bucket_start`, unique together; `received`, `sent`, `kept` (traced as
        left out), `traced` (bigint), messages, again for each shard that their traces name;
        `is_split`: several ingests brought them; `left_out`: of `traced` those that a filter left
        out, sent by a producer that traced them or not, `behind`: those of them that the place was
        to pass on; and what `cells` has.
    """

    warehouse: Warehouse
    request: AuditRequest
    cells: DataFrame
    traced: DataFrame

    def of_window(self) -> OfWindow:
        """What the places traced in all."""
        is_whole = _is_whole()
        landed = F.sum(F.when(is_whole, F.col("landed"))).alias("landed")
        [cells] = collected(self.cells.agg(landed, F.sum("missing").alias("missing")))
        sums = self.traced.groupBy("location").agg(
            F.min("bucket_start").alias("begin"),
            F.sum("received").alias("received"),
            F.sum("sent").alias("sent"),
            F.sum("kept").alias("kept"),
            F.sum(F.when(is_whole, F.col("traced") - F.col("left_out"))).alias("traced"),
            F.sum(F.when(is_whole, F.col("traced") - F.col("kept"))).alias("passed_on"),
            F.sum(F.when(is_whole, F.col("sent"))).alias("ended"),
            F.sum(F.when(is_whole, F.col("behind"))).alias("behind"),
        )
        found = {row.location: row for row in collected(sums)}
        places = tuple(
            AuditedPlace(
                location=name,
                after=place.after,
                share=None if place.tells else place.share,
                received=row.received,
                sent=row.sent,
                told_left_out=row.kept,
            )
            for name, place in self.request.stream.route.places.items()
            for row in [found.get(name, _NOTHING)]
        )
        told = (
            {name: row[of] or 0 for name, row in found.items()}
            for of in ("traced", "passed_on", "ended", "behind")
        )
        start = self.request.aligned.start
        later = {name: row.begin for name, row in found.items() if row.begin > start}
        return OfWindow(places, Traced(cells.landed or 0, *told), later, cells.missing or 0)

    def landed_since(self, begins: Mapping[str, datetime]) -> dict[str, int]:
        """By new place how many messages landed, of those sent since its traces begin.

        Of buckets of which all has landed.
        """
        if not begins:
            return {}
        since = (
            F.sum(F.when(_is_whole() & (F.col("bucket_start") >= F.lit(at)), F.col("landed")))
            for at in begins.values()
        )
        [row] = collected(self.cells.agg(*(n.alias(f"of_{at}") for at, n in enumerate(since))))
        return {name: landed or 0 for name, landed in zip(begins, row, strict=True)}

    def whole(self) -> dict[datetime, Traced]:
        """By bucket of which all has landed, what its places traced of it."""
        by_bucket, passed_on, behind = (defaultdict[datetime, dict[str, int]](dict) for _ in "123")
        counts = ["traced", "left_out", "kept", "behind"]
        whole = self.traced.where(_is_whole()).select("location", "bucket_start", *counts)
        for row in collected(whole):
            by_bucket[row.bucket_start][row.location] = row.traced - row.left_out
            passed_on[row.bucket_start][row.location] = row.traced - row.kept
            behind[row.bucket_start][row.location] = row.behind
        cells = collected(self.cells.where(_is_whole()).select("bucket_start", "landed"))
        return {
            at: Traced(landed, by_bucket[at], passed_on[at], behind=behind[at])
            for at, landed in ((row.bucket_start, row.landed) for row in cells)
        }

    def landed(
        self, missing: Sequence[SeenAlike], told: DataFrame
    ) -> tuple[dict[datetime, Traced], set[datetime]]:
        """By bucket with missing messages what its places traced of what landed, at least.

        Of messages on their way, and those of gaps, no traces were looked up: places may have
        traced all of them, and so much less of what landed. And the buckets without such ones.

        Input:
            missing: all that are; told: what was found, of which each is in one of its buckets.
        """
        buckets = told.where(F.col("kind") == Kind.MISSING.value).select("bucket_start").distinct()
        cells, traced = (
            # Presence only.
            collected(rows.join(F.broadcast(buckets), ["bucket_start"], how="left_semi"))
            for rows in (self.cells, self.traced)
        )
        by_bucket, passed_on, sent, behind = (
            defaultdict[datetime, Counter[str]](Counter) for _ in "1234"
        )
        named = Counter[datetime]()
        # Again, message by message: what a place traced twice would stand for what it did not.
        split = {row.bucket_start for row in traced if row.is_split}
        messages = self._messages(
            Window(start, start + self.request.stream.bucket) for start in split
        )
        for row in traced:
            each = messages.get((row.location, row.bucket_start), row)
            by_bucket[row.bucket_start][row.location] += each.traced - row.left_out
            passed_on[row.bucket_start][row.location] += each.traced - each.kept
            sent[row.bucket_start][row.location] += each.sent
            behind[row.bucket_start][row.location] += row.behind
        for group in missing:
            named[group.bucket_start] += group.ids
            had = {name for name, told in group.seen.items() if told.sent or not told.left_out}
            by = [name for name, told in group.seen.items() if told.sent]
            for names, counts in ((group.seen, by_bucket), (had, passed_on), (by, sent)):
                counts[group.bucket_start].update(dict.fromkeys(names, -group.ids))
        landed, exact = {}, set[datetime]()
        for row in cells:
            if not (unseen := row.pending + max(0, row.missing - named[row.bucket_start])):
                exact.add(row.bucket_start)
            of_landed = (
                {name: max(0, ids - unseen) for name, ids in of[row.bucket_start].items()}
                for of in (by_bucket, passed_on, sent)
            )
            landed[row.bucket_start] = Traced(row.landed, *[*of_landed, behind[row.bucket_start]])
        return landed, exact

    def unsent(self) -> Counter[tuple[str, datetime]]:
        """By place and bucket, the messages traced beyond all that were sent, or landed.

        Only of buckets of which the producers' traces may be expected to be there. A place's time
        may be cut otherwise than the producer's: what the buckets beside one lack may be in it.
        """
        bucket, window = self.request.stream.bucket, self.request.aligned
        # Beyond the window nothing is known of what lacks.
        end = min(self.request.as_of - self.request.stream.settle_grace, window.end - bucket)
        due = F.coalesce(F.col("landed") + F.col("missing") + F.col("pending"), F.lit(0))
        start, is_more = F.col("bucket_start"), F.col("traced") - F.col("left_out") > due
        is_within = (start > F.lit(window.start)) & (start <= F.lit(end - bucket))
        rows = self.traced.where(is_more & is_within).select("location", "bucket_start")
        more = collected(rows)
        if not more:
            return Counter()
        around = [Window(row.bucket_start - bucket, row.bucket_start + 2 * bucket) for row in more]
        near = in_windows(start, joined(around, most=SCAN_WINDOWS))
        # Again, message by message: a place may have traced one in several ingests.
        traced = Counter({place: row.traced for place, row in self._messages(around).items()})
        for row in collected(self.traced.where(near).select("location", start, "left_out")):
            traced[row.location, row.bucket_start] -= row.left_out
        of_cells = self.cells.where(near).select(start, due.alias("due"))
        known = Counter({row.bucket_start: row.due for row in collected(of_cells)})
        unsent = Counter[tuple[str, datetime]]()
        for name, at in more:
            lacking = sum(max(0, known[by] - traced[name, by]) for by in (at - bucket, at + bucket))
            unsent[name, at] = max(0, traced[name, at] - known[at] - lacking)
        # A retry that is stamped anew a place may see at both of its times.
        return unsent & self._untraced(+unsent) if +unsent else +unsent

    def _untraced(self, found: Iterable[tuple[str, datetime]]) -> Counter[tuple[str, datetime]]:
        """By place and bucket, the messages of which no producer has a trace about that time."""
        length = self.request.stream.bucket
        starts = sorted({at for _, at in found})
        name, of_places = self.request.name, ["location", "bucket_start"]
        own = joined([Window(at, at + length) for at in starts], most=SCAN_WINDOWS)
        wide = joined([Window(at - _ABOUT, at + _ABOUT) for at in starts], most=SCAN_WINDOWS)
        ids = sightings_within(self.warehouse, name, own).select(*of_places, "message_id")
        ids = ids.distinct().localCheckpoint()
        traces = StreamTraces.of(self.warehouse, name).within(wide, ids=ids)
        # Presence only.
        left = ids.join(traces.select("message_id"), ["message_id"], how="left_anti")
        rows = collected(left.groupBy(*of_places).agg(F.count("*").alias("untraced")))
        return Counter({(row.location, row.bucket_start): row.untraced for row in rows})

    def _messages(self, spans: Iterable[Window]) -> dict[tuple[str, datetime], Row]:
        """By place and bucket `traced`, `sent` and `kept`, of messages that may have come again."""
        if not (near := joined(spans, most=SCAN_WINDOWS)):
            return {}
        each = ["location", "bucket_start", "message_id"]
        sightings = sightings_within(self.warehouse, self.request.name, near)
        happened = (
            F.max(F.when(F.col("event") == event, 1).otherwise(0)).alias(event)
            for event in (SENT, LEFT_OUT)
        )
        messages = sightings.groupBy(*each).agg(*happened)
        sums = messages.groupBy(*each[:2]).agg(
            F.count("*").alias("traced"),
            F.sum(SENT).alias("sent"),
            F.sum(is_kept(SENT, LEFT_OUT)).alias("kept"),
        )
        return {(row.location, row.bucket_start): row for row in collected(sums)}


def _is_whole() -> Column:
    """Whether all of a bucket has landed."""
    return (F.col("missing") == 0) & (F.col("pending") == 0)


def with_unread(
    warehouse: Warehouse,
    request: AuditRequest,
    landed: Mapping[datetime, Traced],
    groups: Sequence[SeenAlike],
    dark: Mapping[datetime, Collection[str]],
) -> dict[datetime, Traced]:
    """The minutes with `unread`, by the numbers of places that never came in their time.

    Input:
        landed: of `PlaceCounts.landed`, whose missing messages are in `groups`; dark: by minute the
            places of which hardly any traces of it came.
    """
    bucket, places = request.stream.bucket, request.stream.route.places
    span, as_of = request.aligned, request.as_of
    lines = producer_lines(warehouse, request.name, span, as_of=as_of, among=places)
    missing, lacking = Counter[datetime](), defaultdict[datetime, Counter[str]](Counter)
    for group in groups:
        missing[group.bucket_start] += group.ids if group.is_missing else 0
    holes = [(line.location, hole) for line in lines for hole in line.holes]
    for start in +missing:
        for place, hole in holes:
            if (hole.since or start) < start + bucket and (hole.until or start) >= start:
                lacking[start][place] += hole.last - hole.first + 1
    unread = {
        start: {name: min(1.0, of / missing[start]) for name, of in lacking[start].items()}
        | dict.fromkeys(dark.get(start, ()), 1.0)
        for start in landed
    }
    return {start: replace(minute, unread=unread[start]) for start, minute in landed.items()}


def place_counts(
    warehouse: Warehouse, request: AuditRequest, cells: DataFrame, filtered: Filtered | None
) -> PlaceCounts:
    """What the places of an audit's route traced.

    Input:
        cells: of `judged_cells`; filtered: of `filtered`.
    """
    sums = ("received", "sent", "kept")
    traced = (
        sighting_counts(warehouse, request.name, request.aligned)
        .withColumn("kept", F.coalesce("left_out", F.lit(0)))
        .groupBy("location", "bucket_start")
        .agg(
            *(F.sum(name).alias(name) for name in sums),
            (F.min("batch_id") < F.max("batch_id")).alias("is_split"),
        )
        .withColumn("traced", had_messages("kept"))
    )
    if filtered is None:
        traced = traced.withColumns({n: F.lit(0).cast("bigint") for n in ("left_out", "behind")})
    else:
        seen = seen_of_left_out(filtered.seen, request.stream.route)
        # Unique on the place and bucket on the right, by its grouping.
        traced = traced.join(seen, ["location", "bucket_start"], how="left")
        traced = traced.fillna(0, subset=["left_out", "behind"])
    landed = (F.col("matched") + F.col("untraced")).alias("landed")
    unlanded = ("missing", "pending", "filtered")
    counted = without_canary(cells).select("bucket_start", landed, *unlanded)
    names = ("landed", *unlanded)
    by_bucket = counted.groupBy("bucket_start").agg(*(F.sum(n).alias(n) for n in names))
    # Unique on the bucket on the right, by its grouping.
    joint = traced.join(by_bucket, ["bucket_start"], how="left")
    return PlaceCounts(warehouse, request, by_bucket, joint)
