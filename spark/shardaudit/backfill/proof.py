"""What the audit that verifies a plan says of each of its windows."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.adapters.engine.held import own_rows
from shardaudit.adapters.lake.delta_rs import Row
from shardaudit.backfill.round import Replay
from shardaudit.backfill.rules.windows import ASKED_FOR
from shardaudit.model.tables.audit_tables import CELLS, FINDINGS
from shardaudit.model.verdict import Kind, State, Verdict

LEFT = (State.OPEN.value, State.PLANNED.value, State.REPLAYED.value)


@dataclass(frozen=True, slots=True)
class Proof:
    """Of a window's messages: how many are there by now, expired, or still missing.

    `gone`: of the missing ones, those that reached the stream before its oldest record.
    `unsettled`: cells of which the audit cannot say yet that nothing is missing.
    `unjudged`: cells of which it cannot say so at all; `reason` is that of one of them.
    """

    back: int = 0
    expired: int = 0
    left: int = 0
    gone: int = 0
    unsettled: int = 0
    unjudged: int = 0
    reason: str = ""

    def __add__(self, other: "Proof") -> "Proof":
        return Proof(
            self.back + other.back,
            self.expired + other.expired,
            self.left + other.left,
            self.gone + other.gone,
            self.unsettled + other.unsettled,
            self.unjudged + other.unjudged,
            self.reason or other.reason,
        )


def proofs(replay: Replay, audit_id: str) -> dict[str, Proof]:
    """By window: of its planned messages, and where a range was asked for, of all that lie in it.

    Input:
        audit_id: of an audit of exactly the plan's time.
    """
    rows = replay.ledger.rows
    found: dict[str, Proof] = defaultdict(Proof)
    for window_id, proof in _of_planned(replay, rows):
        found[window_id] += proof
    asked = [row for row in rows if row["because"] == ASKED_FOR and row["sent_from"] is not None]
    if asked:
        for window_id, proof in [*_of_others(replay, asked), *_of_cells(replay, asked, audit_id)]:
            found[window_id] += proof
    return {str(row["window_id"]): found[str(row["window_id"])] for row in rows}


def _of_planned(replay: Replay, rows: Sequence[Row]) -> list[tuple[str, Proof]]:
    # Unique on message_id on both sides: the key of findings within a stream and kind, and that
    # of the ids within a plan.
    states = replay.planned_ids().join(
        _missing(replay).select("message_id", "state"), ["message_id"], how="inner"
    )
    windows = _begins(replay, rows)
    arrived = F.coalesce("acked_at", "sent_at")
    judged = states.join(windows, ["window_id"], how="left")
    return _counted(judged, arrived)


def _of_others(replay: Replay, asked: Sequence[Row]) -> list[tuple[str, Proof]]:
    """The messages in the ranges that nobody knew to be missing when the plan was made."""
    found = _in_parts(replay, asked, _missing(replay), F.col("sent_at"))
    planned = replay.planned_ids().select("message_id")
    others = found.join(planned, ["message_id"], how="left_anti")
    return _counted(others, F.col("sent_at"))


def _of_cells(replay: Replay, asked: Sequence[Row], audit_id: str) -> list[tuple[str, Proof]]:
    """What is on its way, as far as the audit knows, and what it cannot judge yet, or at all."""
    is_unjudged = F.col("verdict") == Verdict.INCONCLUSIVE.value
    is_open = (F.col("pending") > 0) | (F.col("verdict") == Verdict.PENDING.value) | is_unjudged
    cells = replay.warehouse.read(CELLS).where((F.col("audit_id") == audit_id) & is_open)
    sums = (
        _in_parts(replay, asked, cells, F.col("bucket_start"))
        .groupBy("window_id")
        .agg(
            F.sum("pending").alias("left"),
            F.count_if(~is_unjudged).alias("unsettled"),
            F.count_if(is_unjudged).alias("unjudged"),
            F.coalesce(F.max("reason"), F.lit("")).alias("reason"),
        )
    )
    counted = [row.asDict() for row in collected(sums)]
    return [(str(row.pop("window_id")), Proof(**row)) for row in counted]


def _missing(replay: Replay) -> DataFrame:
    return replay.warehouse.read(FINDINGS).where(
        (F.col("stream") == replay.name) & (F.col("kind") == Kind.MISSING.value)
    )


def _counted(judged: DataFrame, arrived: Column) -> list[tuple[str, Proof]]:
    """Counts rows with `window_id`, `state` and `begins_at`."""
    is_left = F.col("state").isin(*LEFT)
    is_expired = F.col("state") == State.EXPIRED.value
    sums = judged.groupBy("window_id").agg(
        F.count_if(is_left).alias("left"),
        F.count_if(is_expired).alias("expired"),
        F.count_if(~is_left & ~is_expired).alias("back"),
        F.count_if(is_left & (arrived < F.col("begins_at"))).alias("gone"),
    )
    return [
        (str(row.window_id), Proof(row.back, row.expired, row.left, row.gone))
        for row in collected(sums)
    ]


def _begins(replay: Replay, rows: Sequence[Row]) -> DataFrame:
    values = [(str(row["window_id"]), row["begins_at"]) for row in rows]
    ddl = "window_id string, begins_at timestamp"
    return F.broadcast(own_rows(replay.warehouse.spark, values, ddl))


def _in_parts(replay: Replay, asked: Sequence[Row], rows: DataFrame, instant: Column) -> DataFrame:
    """The rows that lie in one of the ranges of their shard, with `window_id` and `begins_at`."""
    values = [
        (row["shard_id"], row["window_id"], row["sent_from"], row["sent_to"], row["begins_at"])
        for row in asked
    ]
    ddl = (
        "shard_id string, window_id string, sent_from timestamp, sent_to timestamp, "
        "begins_at timestamp"
    )
    parts = F.broadcast(own_rows(replay.warehouse.spark, values, ddl))
    start, end = _edges(asked)
    near = rows.where((instant >= F.lit(start)) & (instant < F.lit(end)))
    # The parts of a shard are disjoint: a row lies in one of them at most.
    inside = (instant >= F.col("sent_from")) & (instant < F.col("sent_to"))
    return near.join(parts, ["shard_id"], how="inner").where(inside)


def _edges(asked: Sequence[Row]) -> tuple[datetime, datetime]:
    return min(row["sent_from"] for row in asked), max(row["sent_to"] for row in asked)
