"""The silences of an audit's shards, and of its stream as a whole, that are not as usual."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.adapters.engine.held import own_rows
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.rules.quiet import (
    BUSY_HOURS_OF_THE_NEW,
    DAY_HOURS,
    QUIET_LOOK_BACK,
    WEEK_HOURS,
    Silence,
    doubtful_silences,
    inherited,
    resharded,
)
from shardaudit.audit.rules.watermark import without
from shardaudit.columns.shard_listings import closed_shards
from shardaudit.ingest.ask_kinesis import parents_of
from shardaudit.ingest.rules.placed_rows import UNKNOWN_SHARD
from shardaudit.model.tables.watch_tables import SHARDS
from shardaudit.model.watermark import Held, Hold
from shardaudit.model.window import EPOCH, unix_micros
from shardaudit.model.window import Window as Span
from shardaudit.store.transitions import SaidTimes, said_times, times_of
from shardaudit.store.warehouse import Warehouse

_HOUR = timedelta(hours=1)
_BIRTH = ("begins", "timely", "hour")  # a shard is as old as the first of these that it has
_DDL = "shard_id string, silence string, since bigint, until bigint"


@dataclass(frozen=True, slots=True)
class Silences:
    """By shard, the spans of silence that are told (QUIET) or open to doubt (DOUBT).

    `quiet`: what people said.
    """

    holds: Mapping[str, tuple[Hold, ...]]
    quiet: SaidTimes

    def of(self, shard_id: str) -> Sequence[Hold]:
        """Those of the shard."""
        return self.holds.get(shard_id, ())

    def quiet_times(self, shard_id: str) -> list[Span]:
        """When the shard was quiet, as a person said."""
        return times_of(self.quiet, shard_id)

    def frame(self, spark: SparkSession) -> DataFrame | None:
        """`shard_id, silence, since, until` (microseconds since 1970); None when there is none."""
        rows = [
            (shard_id, hold.why.value, unix_micros(hold.start), unix_micros(hold.end))
            for shard_id, holds in sorted(self.holds.items())
            for hold in holds
        ]
        return own_rows(spark, rows, _DDL) if rows else None


@dataclass(frozen=True, slots=True)
class _Shard:
    """The hours of a shard with messages, the first of its record, and the end of its last bucket.

    `patience`: how long a landing may take; before that nobody knows that an hour is silent.
    """

    hours: list[int]
    born: int
    last: datetime
    patience: timedelta


def silences(
    warehouse: Warehouse, request: AuditRequest, hours: DataFrame, facts: DataFrame
) -> Silences:
    """What of the ledger is silent and should not be, whatever window the audit looks at.

    Input:
        hours: of `shard_hours`, of the stream's whole ledger.
        facts: of `shard_facts`.
    """
    shards = _shards(hours, facts, request)
    quiet = said_times(warehouse, request.name, None)
    lines = _with_lines(warehouse, request.name, shards)
    found = {name: _holds(shard, request, times_of(quiet, name)) for name, shard in lines.items()}
    found = {name: holds for name, holds in found.items() if holds}
    whole = _whole(shards)
    of_stream = _holds(whole, request, times_of(quiet, None)) if whole else []
    if not found and not of_stream:
        return Silences({}, quiet)
    closed = _closed(warehouse, request.name)
    if closed is None:
        lasting = [name for name, holds in found.items() if holds[-1].end == request.as_of]
        ended = {name: shards[name].hours[-1] for name in lasting}
        closed = resharded(ended, {name: shard.born for name, shard in shards.items()})
    told = {}
    for name in shards:
        own = [] if name in closed else found.get(name, [])
        told[name] = tuple(_merged(without(of_stream, times_of(quiet, name)), own))
    return Silences({name: holds for name, holds in told.items() if holds}, quiet)


def _shards(hours: DataFrame, facts: DataFrame, request: AuditRequest) -> dict[str, _Shard]:
    """The shards that ever had a message: a row of some hundred numbers each."""
    bucket = _widest(request)
    active = _active_hours(hours, begins=(request.aligned.start - EPOCH) // _HOUR)
    # Unique on shard_id on the right.
    shards = active.join(facts.select("shard_id", "patience"), ["shard_id"], how="left")
    more = max(1, -(-bucket // _HOUR))
    return {
        row.shard_id: _Shard(
            hours=sorted({hour + k for hour in row.hours for k in range(more)}),
            born=row.born,
            last=EPOCH + timedelta(microseconds=row.last) + bucket,
            patience=timedelta(seconds=row.patience),
        )
        for row in shards.collect()
    }


def _widest(request: AuditRequest) -> timedelta:
    """The width of the widest cell of which hours are read: of one no hour is known by itself."""
    own, back = request.aligned, QUIET_LOOK_BACK * _HOUR
    return request.cells.within(Span(own.start - back, max(own.end, request.as_of))).widest


def _active_hours(hours: DataFrame, *, begins: int) -> DataFrame:
    """By shard the hours with messages, from a look back before the one that begins the window.

    Output:
        `shard_id`, `hours` (of the epoch), `born` (the first that begins a record), `last`
        (microseconds: the newest message).
    """
    hour_us = _HOUR // timedelta(microseconds=1)
    of_shard = Window.partitionBy("shard_id")
    return (
        hours.where((F.col("shard_id") != UNKNOWN_SHARD) & F.col("last_active").isNotNull())
        .select(
            "shard_id",
            F.unix_micros("hour").alias("hour_us"),
            F.unix_micros("last_active").alias("last"),
            F.coalesce(F.col("came_after_us") > DAY_HOURS * hour_us, F.lit(False)).alias("is_late"),
        )
        .withColumn("hour", (F.col("hour_us") / F.lit(hour_us)).cast("bigint"))
        .withColumn("begins", F.when(~F.col("is_late") & _begins_a_record(), F.col("hour")))
        .withColumn("timely", F.when(~F.col("is_late"), F.col("hour")))
        .withColumn("born", F.coalesce(*(F.min(n).over(of_shard) for n in _BIRTH)))
        .withColumn("before", F.max(F.when(F.col("hour") < begins, F.col("hour"))).over(of_shard))
        .where(F.col("hour") >= F.coalesce("before", F.lit(begins)) - QUIET_LOOK_BACK)
        .groupBy("shard_id")
        .agg(
            F.collect_list("hour").alias("hours"),
            F.min("born").alias("born"),
            F.max("last").alias("last"),
        )
    )


def _begins_a_record() -> Column:
    """Whether others follow upon an hour, as none do where a device's clock was days behind."""
    backwards = Window.partitionBy("shard_id", "is_late").orderBy(F.desc("hour"))
    after = F.lag("hour", 1).over(backwards)
    eighth = F.lag("hour", BUSY_HOURS_OF_THE_NEW - 1).over(backwards)
    return (after <= F.col("hour") + DAY_HOURS) & (eighth < F.col("hour") + WEEK_HOURS)


def _with_lines(
    warehouse: Warehouse, stream: str, shards: Mapping[str, _Shard]
) -> Mapping[str, _Shard]:
    """The shards, children as busy as those whose place they took."""
    found, parents = dict(shards), parents_of(warehouse, stream)
    hours = {name: shard.hours for name, shard in shards.items()}
    born = {name: shard.born for name, shard in shards.items()}
    for name, line in inherited(hours, born, parents).items():
        own = shards[name]
        both = sorted({*line, *own.hours})
        found[name] = replace(own, hours=both, born=max(own.born, line[0]))
    return found


def _whole(shards: Mapping[str, _Shard]) -> _Shard | None:
    """The stream as if it were one shard, as slow as its slowest."""
    if not shards:
        return None
    hours = sorted({hour for shard in shards.values() for hour in shard.hours})
    born = min(shard.born for shard in shards.values())
    last = max(shard.last for shard in shards.values())
    return _Shard(hours, born, last, max(shard.patience for shard in shards.values()))


def _holds(shard: _Shard, request: AuditRequest, quiet: list[Span]) -> list[Hold]:
    until = (request.as_of - shard.patience - EPOCH) // _HOUR
    # A bucket that is not over says nothing.
    until -= until % max(1, _widest(request) // _HOUR)

    def is_quiet(hour: int) -> bool:
        return any(span.covers(EPOCH + hour * _HOUR) for span in quiet)

    found = doubtful_silences(shard.hours, until=until, born=shard.born, is_quiet=is_quiet)
    return without([_hold(silence, shard, request.as_of) for silence in found], quiet)


def _hold(silence: Silence, shard: _Shard, as_of: datetime) -> Hold:
    """From the end of the last bucket with a message on, where that is known, or until now."""
    start, end = (EPOCH + hour * _HOUR for hour in (silence.start, silence.end))
    is_last = start - _HOUR < shard.last <= start
    why = Held.QUIET if silence.is_told else Held.DOUBT
    return Hold(shard.last if is_last else start, as_of if silence.lasts else end, why)


def _merged(of_stream: Iterable[Hold], own: Iterable[Hold]) -> list[Hold]:
    """A shard's own silences, and those of the stream around them."""
    first = list(of_stream)
    told = [hold.window for hold in first]
    return [*first, *without(own, told)]


def _closed(warehouse: Warehouse, stream: str) -> set[str] | None:
    """The shards that Kinesis says are closed; None when it was never asked."""
    seen = collected(closed_shards(warehouse.read(SHARDS).where(F.col("stream") == stream)))
    if not any(row.was_listed for row in seen):
        return None
    return {row.shard_id for row in seen if row.is_closed}
