"""Sightings → what filters of a route passed on, and what each left out: described, never run.

What is left out counts as never sent before two sides of a cell are compared: so a cell of which
nothing else lacks is alike, and no id of it is read in the sink.
"""

from collections.abc import Sequence
from datetime import timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.audit.rules.classify import is_missing
from shardaudit.audit.rules.hours import hour_start, slot
from shardaudit.columns.instants import any_of
from shardaudit.columns.ledger_sums import CELL, SUMS, cell_hash, differs, id_hash
from shardaudit.ingest.rules.fingerprint import fingerprint_sums
from shardaudit.model.input_columns import LEFT_OUT, SENT
from shardaudit.model.route.filters import RouteFilter, filters
from shardaudit.model.route.route import Route
from shardaudit.model.verdict import FILTERED, Kind, State

BY_FILTER = "a filter left it out"
FILTERED_IDS = ("id_hash", *CELL, "filter", "is_told")
_FILTERED = [f"filtered_{name}" for name in SUMS]


def places_passed(
    traces: DataFrame, sightings: DataFrame, route: Route, of: Sequence[RouteFilter]
) -> DataFrame:
    """Where messages were seen that came to a filter: one row per message.

    Input:
        traces: of `StreamTraces.within`, those that count; sightings: SIGHTINGS, a while longer.
    Output:
        `id_hash`, CELL of the producer's trace (none: no `shard_id`, and the `bucket_start` of a
        place); by the number of a filter, 0 or 1: `in_0` (it was
        there), `out_0` (it went on from there, or was never to go there), `told_0` (a trace says
        that it was sent on), `left_0` (that it was left out there); by the number of a place
        `at_0`: it was there, `kept_0`: a trace says that it was left out there; `filter`: the
        number of the last one that it came to and was not seen to leave, of one that tells what it
        leaves out: and told so; NULL: it left all; `is_told`: that filter says that it left it out.
    """
    flags: dict[str, Column] = {}
    for n, name in enumerate(route.places):
        is_at = F.col("location") == name
        flags |= {f"at_{n}": is_at, f"kept_{n}": is_at & (F.col("event") == LEFT_OUT)}
    for n, each in enumerate(of):
        is_here = F.col("location").isin(*each.places)
        is_told = is_here & (F.col("event") == SENT)
        flags |= {f"in_{n}": is_here, f"told_{n}": is_told, f"out_{n}": _has_left(route, each)}
    # One trace of an id counts: it says the cell.
    messages = (
        _sent_and_seen(traces, sightings)
        .groupBy("id_hash")
        .agg(
            F.max("shard_id").alias("shard_id"),
            F.coalesce(F.max("bucket_start"), F.min("seen_start")).alias("bucket_start"),
            *(F.max(F.when(is_so, 1).otherwise(0)).alias(name) for name, is_so in flags.items()),
        )
    )
    came = any_of([F.col(f"in_{n}") == 1 for n in range(len(of))])
    known = messages.where(came)
    ends = {name: column for n in range(len(of)) for name, column in _ends(route, of, n).items()}
    known = known.withColumns(ends)
    # Where one by counts and another by its word may have left it out, the counts decide.
    order = sorted(range(len(of)), key=lambda n: (of[n].tells, -n))
    last = F.coalesce(*(F.when(_stays(of[n], n), n) for n in order))
    says = [(F.col("filter") == n) & (F.col(f"left_{n}") == 1) for n in range(len(of))]
    told = F.coalesce(any_of(says), F.lit(False))
    return known.withColumn("filter", last).withColumn("is_told", told)


def without_told(sent: DataFrame, sightings: DataFrame, route: Route) -> DataFrame:
    """The messages but those that a filter says it left out, and of which no trace says more.

    Input:
        sent: `message_id`, unique, CELL and more; sightings: of `sightings_for_filters`.
    """
    if not (of := filters(route)):
        return sent
    told = places_passed(sent, sightings, route, of).where(F.col("is_told")).select("id_hash")
    # Presence only.
    hashed = sent.withColumn("id_hash", id_hash())
    return hashed.join(told, ["id_hash"], how="left_anti").drop("id_hash")


def _sent_and_seen(traces: DataFrame, sightings: DataFrame) -> DataFrame:
    """The traces of producers, of no `location`, and of places, of no cell but `seen_start`."""
    nowhere, never = F.lit(None).cast("string"), F.lit(None).cast("timestamp")
    elsewhere = (nowhere.alias("location"), nowhere.alias("event"))
    sent = traces.select(id_hash(), *CELL, never.alias("seen_start"), *elsewhere)
    seen = sightings.select(
        id_hash(),
        nowhere.alias("shard_id"),
        never.alias("bucket_start"),
        F.col("bucket_start").alias("seen_start"),
        "location",
        "event",
    )
    return sent.unionByName(seen)


def _ends(route: Route, of: Sequence[RouteFilter], n: int) -> dict[str, Column]:
    """`left_0` and `out_0` of a filter, where all that was seen of a message is known."""
    names = list(route.places)
    mine = [names.index(name) for name in of[n].places]
    says = [F.col(f"kept_{i}") == 1 for i in mine]
    # Places beside each other are one filter: none of them may have it still.
    is_left = any_of(says) & ~any_of([_has(i) for i in mine])
    others = _others(route, of[n])
    elsewhere = [_has(names.index(name)) for name in route.telling if name in others]
    is_out = any_of([F.col(f"out_{n}") == 1, *elsewhere])
    flags = {f"left_{n}": is_left, f"out_{n}": is_out}
    return {name: F.when(is_so, 1).otherwise(0) for name, is_so in flags.items()}


def _has(i: int) -> Column:
    """Whether a place had a message and does not say that it left it out."""
    return (F.col(f"at_{i}") == 1) & (F.col(f"kept_{i}") == 0)


def _stays(one: RouteFilter, n: int) -> Column:
    """Whether a message may have been left out by a filter."""
    is_here = F.col(f"left_{n}" if one.tells else f"in_{n}") == 1
    return is_here & (F.col(f"out_{n}") == 0)


def _others(route: Route, each: RouteFilter) -> list[str]:
    """The places that a message of a filter is on no way to, or from."""
    known = {*each.before, *each.places, *each.behind}
    return [name for name in route.places if name not in known]


def _has_left(route: Route, each: RouteFilter) -> Column:
    """Whether a sighting says that the message is behind a filter, or went by other ways.

    Of places on these that tell what they leave out it says `_ends`.
    """
    others = _others(route, each)
    whole = [name for name in others if _is_to_pass_on(route, name, each)]
    location, is_sent = F.col("location"), F.col("event") == SENT
    told = [is_sent & location.isin(*each.places, *others)]
    return any_of([*told, *(location.isin(*names) for names in (each.behind, whole) if names)])


def _is_to_pass_on(route: Route, name: str, each: RouteFilter) -> bool:
    """Whether a place on another way than a filter is to pass on all that it receives.

    One that reads all may leave a part to the places beside it, and so to a filter behind these.
    """
    place = route.places[name]
    if place.share == 1 or not each.tells:
        return place.share == 1 and not place.tells
    beside = {one for other in each.before for one in route.places[other].after}
    return not place.tells and not beside & {*place.after}


def passage_counts(
    messages: DataFrame, of: Sequence[RouteFilter], *, bucket: timedelta
) -> DataFrame:
    """How many messages came to each filter, and left it, by shard and hour.

    Input:
        messages: of `places_passed`.
    Output:
        `shard_id`, `hour`, unique together; `received_0`, `passed_0`, `told_0`, `left_out_0`
        (bigint).
    """
    counts = []
    for n in range(len(of)):
        is_in = F.col(f"in_{n}") == 1
        for name, is_so in {
            "received": is_in,
            "passed": is_in & (F.col(f"out_{n}") == 1),
            "told": is_in & (F.col(f"told_{n}") == 1),
            "left_out": F.col("is_told") & (F.col("filter") == n),
        }.items():
            counts.append(F.count_if(is_so).alias(f"{name}_{n}"))
    hour = hour_start(slot(bucket)).alias("hour")
    return messages.groupBy("shard_id", hour).agg(*counts)


def without_left_out(cells: DataFrame, left_out: DataFrame) -> DataFrame:
    """The cells as if what filters left out had never been sent.

    Input:
        cells: CELL, the sums of both sides; left_out: `id_hash`, CELL.
    Output:
        also `filtered_n` (bigint: how many these are), `differs` anew.
    """
    sums = zip(fingerprint_sums(F.col("id_hash"), F.lit(1)), _FILTERED, strict=True)
    counts = (
        left_out.withColumn("cell", cell_hash())
        .groupBy("cell")
        .agg(*(column.alias(name) for column, name in sums))
    )
    less = {f"sent_{n}": F.col(f"sent_{n}") - F.col(f"filtered_{n}") for n in SUMS}
    # Unique on the cell on the right, by its grouping.
    found = (
        cells.drop(*_FILTERED)
        .withColumn("cell", cell_hash())
        .join(counts, ["cell"], how="left")
        .fillna(0, subset=_FILTERED)
        .withColumns(less)
    )
    return found.withColumn("differs", differs()).drop("cell", *_FILTERED[1:])


def with_filtered_digest(cells: DataFrame, left_out: DataFrame) -> DataFrame:
    """The cells with another `bucket_digest` where filters left something else out of the bucket.

    Input:
        cells: with `bucket_digest`; left_out: as of `without_left_out`.
    """
    sums = zip(fingerprint_sums(F.col("id_hash"), F.lit(1)), _FILTERED, strict=True)
    counts = left_out.groupBy("bucket_start").agg(*(c.alias(f"of_{name}") for c, name in sums))
    names = [f"of_{name}" for name in _FILTERED]
    # Unique on the bucket on the right, by its grouping.
    found = cells.join(counts, ["bucket_start"], how="left")
    digest = F.when(F.col(names[0]).isNotNull(), F.xxhash64("bucket_digest", *names))
    return found.withColumn("bucket_digest", F.coalesce(digest, F.col("bucket_digest"))).drop(
        *names
    )


def with_filtered_ids(classified: DataFrame, left_out: DataFrame) -> DataFrame:
    """The ids; what is said to be missing, and was left out by a filter, is `filtered`.

    Input:
        classified: of `classified_ids`; left_out: `id_hash`, unique.
    """
    known = left_out.select("id_hash", F.lit(True).alias("is_left_out"))
    is_filtered = F.coalesce(is_missing("not_landed") & F.col("is_left_out"), F.lit(False))
    # Unique on the id on the right.
    return (
        classified.withColumn("id_hash", id_hash())
        .join(known, ["id_hash"], how="left")
        .withColumn("not_landed", F.when(is_filtered, FILTERED).otherwise(F.col("not_landed")))
        .drop("id_hash", "is_left_out")
    )


def closed_by_filter(folded: DataFrame, left_out: DataFrame) -> DataFrame:
    """What became of findings; those that closed as a filter left their message out say so.

    Nothing brought that about, not even a replay.

    Input:
        folded: of `folded_findings`; left_out: `id_hash`, unique.
    """
    is_closed = _is_closed() & (F.col("kind") == Kind.MISSING.value)
    ids = folded.where(is_closed).select(id_hash()).distinct()
    found = left_out.select("id_hash").join(F.broadcast(ids), ["id_hash"], how="left_semi")
    known = found.withColumn("was_left_out", F.lit(True))
    # Unique on the id on the right.
    told = folded.withColumn("id_hash", id_hash()).join(known, ["id_hash"], how="left")
    is_so = is_closed & F.coalesce("was_left_out", F.lit(False))
    says = {"state": State.FALSE_ALARM.value, "state_reason": BY_FILTER}
    changed = {n: F.when(is_so, of).otherwise(F.col(n)) for n, of in says.items()}
    return told.withColumns(changed).drop("id_hash", "was_left_out")


def gaps_by_filter(folded: DataFrame, left_out: DataFrame) -> DataFrame:
    """What became of gaps; of a closed one of whose cell a filter left some out its reason says so.

    Input:
        folded: of `folded_gaps`; left_out: CELL.
    """
    some = left_out.select(*CELL, F.lit(True).alias("was_left_out")).distinct()
    reason = F.concat("state_reason", F.lit(f", or {BY_FILTER}"))
    is_so = _is_closed() & F.coalesce("was_left_out", F.lit(False))
    # Unique on the cell on the right.
    return (
        folded.join(some, CELL, how="left")
        .withColumn("state_reason", F.when(is_so, reason).otherwise(F.col("state_reason")))
        .drop("was_left_out")
    )


def _is_closed() -> Column:
    """Whether an audit closed it, as it is missing no more."""
    is_gone = F.col("state").isin(State.FALSE_ALARM.value, State.RECOVERED.value)
    return is_gone & ~F.col("state").eqNullSafe(F.col("from_state"))


def seen_of_left_out(left_out: DataFrame, route: Route) -> DataFrame:
    """How many of what filters left out each place traced, by bucket.

    Input:
        left_out: of `places_passed`.
    Output:
        `location`, `bucket_start`, unique together; `left_out` (bigint, above 0); `behind`
        (bigint): those of them that it was to pass on.
    """
    sums = left_out.groupBy("bucket_start").agg(
        *(F.sum(f"at_{n}").alias(f"at_{n}") for n in range(len(route.places))),
        *(F.count_if(_has(n)).alias(f"had_{n}") for n in range(len(route.places))),
    )
    each = [
        F.struct(
            F.lit(name).alias("location"),
            F.col(f"at_{n}").alias("left_out"),
            F.col(f"had_{n}").alias("behind"),
        )
        for n, name in enumerate(route.places)
    ]
    told = sums.select("bucket_start", F.explode(F.array(*each)).alias("told"))
    found = told.select("told.location", "bucket_start", "told.left_out", "told.behind")
    return found.where(F.col("left_out") > 0)
