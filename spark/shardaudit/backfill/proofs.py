"""What an audit proves of a backfill: by the findings and gaps that its windows are of."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.adapters.engine.held import own_rows
from shardaudit.backfill.replay_run import Replay
from shardaudit.backfill.rules.planned import StoredWindow
from shardaudit.backfill.rules.ranges import ASKED_FOR
from shardaudit.columns.instants import cell_start, in_windows
from shardaudit.columns.ledger_sums import CELL
from shardaudit.model.tables.audit_tables import CELLS
from shardaudit.model.tables.gap_tables import GAPS
from shardaudit.model.verdict import ENDED, LIVE, UNSETTLED, State, Verdict
from shardaudit.model.window import Window

AskedRange = tuple[StoredWindow, Window]  # of a range by hand: when its messages were sent


@dataclass(frozen=True, slots=True)
class Proof:
    """Of a window's messages: how many are there by now, expired, or still missing.

    `gone`: of the missing ones, those that reached the stream before its oldest record.
    `accepted`: missing, and a person said that this is well.
    `unsettled`: cells of which the audit cannot say yet that nothing is missing.
    `unjudged`: cells of which it cannot say so at all; `reason` is that of one of them.
    """

    back: int = 0
    expired: int = 0
    left: int = 0
    gone: int = 0
    unsettled: int = 0
    unjudged: int = 0
    accepted: int = 0
    reason: str = ""

    def __add__(self, other: "Proof") -> "Proof":
        return Proof(
            self.back + other.back,
            self.expired + other.expired,
            self.left + other.left,
            self.gone + other.gone,
            self.unsettled + other.unsettled,
            self.unjudged + other.unjudged,
            self.accepted + other.accepted,
            self.reason or other.reason,
        )


def proofs(replay: Replay, *audit_ids: str) -> dict[str, Proof]:
    """By window: of its `named_ids`, and where a range was asked for, of all that lie in it.

    Input:
        audit_ids: of audits of exactly the plan's time.
    """
    windows = replay.ledger.windows
    found: dict[str, Proof] = defaultdict(Proof)
    for window_id, proof in [*_of_planned(replay, windows), *_of_gaps(replay, windows)]:
        found[window_id] += proof
    asked = [(w, w.sent) for w in windows if w.because == ASKED_FOR and w.sent is not None]
    if asked:
        for window_id, proof in [*_of_others(replay, asked), *_of_cells(replay, asked, audit_ids)]:
            found[window_id] += proof
    return {window.window_id: found[window.window_id] for window in windows}


def _of_planned(replay: Replay, stored: Sequence[StoredWindow]) -> list[tuple[str, Proof]]:
    # Unique on message_id on both sides: the key of findings within a stream and kind, and that
    # of the ids within a plan.
    states = replay.named_ids().join(
        replay.findings().select("message_id", "state"), ["message_id"], how="inner"
    )
    windows = _begins(replay, stored)
    arrived = F.coalesce("acked_at", "sent_at")
    judged = states.join(windows, ["window_id"], how="left")
    return _counted(judged, arrived)


def _of_gaps(replay: Replay, stored: Sequence[StoredWindow]) -> list[tuple[str, Proof]]:
    """What became of the plan's gaps, by the counts of their cells.

    What is left of one of which some came back findings name, which nobody had planned. Those of a
    range by hand are told with the others in it.
    """
    planned = replay.planned_gaps().select("window_id", *CELL, "arrived_until")
    planned = planned.join(_begins(replay, stored), ["window_id"], how="left").localCheckpoint()
    gaps = replay.warehouse.read(GAPS).where(F.col("stream") == replay.name)
    # Unique on the cell on both sides: by their keys, of a plan and of a stream.
    judged = planned.join(gaps.select(*CELL, "state", "count"), CELL, how="inner")
    asked = [(window.window_id,) for window in stored if window.because == ASKED_FOR]
    of_plan = planned.join(
        F.broadcast(own_rows(replay.warehouse.spark, asked, "window_id string")),
        ["window_id"],
        how="left_anti",
    )
    named = (
        replay.findings(*UNSETTLED)
        .withColumn("bucket_start", cell_start(F.col("sent_at"), replay.cells))
        .join(replay.planned_ids().select("message_id"), ["message_id"], how="left_anti")
        .select(*CELL, "state", "sent_at")
        .join(of_plan, CELL, how="inner")
    )
    return [
        *_counted(judged, F.col("arrived_until"), weight=F.col("count")),
        *_counted(named, F.col("sent_at")),
    ]


def _of_others(replay: Replay, asked: Sequence[AskedRange]) -> list[tuple[str, Proof]]:
    """The messages in the ranges that nobody knew to be missing when the plan was made.

    What had ended by then this run did not bring back.
    """
    planned_at = min(window.created_at for window, _ in asked)
    is_of_run = ~F.col("state").isin(*ENDED) | (F.col("updated_at") >= F.lit(planned_at))
    found = _in_parts(replay, asked, replay.findings().where(is_of_run), F.col("sent_at"))
    planned = replay.planned_ids().select("message_id")
    others = found.join(planned, ["message_id"], how="left_anti")
    gaps = replay.warehouse.read(GAPS).where((F.col("stream") == replay.name) & is_of_run)
    known = replay.planned_gaps().select(*CELL)
    more = _in_parts(replay, asked, gaps.join(known, CELL, how="left_anti"), F.col("bucket_start"))
    return [
        *_counted(others, F.col("sent_at")),
        *_counted(more, F.col("arrived_until"), weight=F.col("count")),
    ]


def _of_cells(
    replay: Replay, asked: Sequence[AskedRange], audit_ids: Sequence[str]
) -> list[tuple[str, Proof]]:
    """What is on its way, as far as the audit knows, and what it cannot judge yet, or at all."""
    is_unjudged = F.col("verdict") == Verdict.INCONCLUSIVE.value
    is_open = (F.col("pending") > 0) | (F.col("verdict") == Verdict.PENDING.value) | is_unjudged
    cells = replay.warehouse.read(CELLS).where(F.col("audit_id").isin(list(audit_ids)) & is_open)
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


def _counted(
    judged: DataFrame, arrived: Column, *, weight: Column | None = None
) -> list[tuple[str, Proof]]:
    """Counts the messages of rows with `window_id`, `state` and `begins_at`: one each, or more."""
    is_left = F.col("state").isin(*LIVE)
    messages_of = F.lit(1) if weight is None else weight
    told = {
        "left": is_left,
        "expired": F.col("state") == State.EXPIRED.value,
        "accepted": F.col("state") == State.ACCEPTED.value,
        "back": F.col("state").isin(*ENDED),
        "gone": is_left & (arrived < F.col("begins_at")),
    }
    sums = judged.groupBy("window_id").agg(
        *(F.sum(F.when(is_so, messages_of).otherwise(0)).alias(n) for n, is_so in told.items())
    )
    counted = [row.asDict() for row in collected(sums)]
    return [(str(row.pop("window_id")), Proof(**row)) for row in counted]


def _begins(replay: Replay, windows: Sequence[StoredWindow]) -> DataFrame:
    values = [(window.window_id, window.begins_at) for window in windows]
    ddl = "window_id string, begins_at timestamp"
    return F.broadcast(own_rows(replay.warehouse.spark, values, ddl))


def _in_parts(
    replay: Replay, asked: Sequence[AskedRange], rows: DataFrame, instant: Column
) -> DataFrame:
    """The rows that lie in one of the ranges of their shard, with `window_id` and `begins_at`."""
    values = [
        (window.shard_id, window.window_id, sent.start, sent.end, window.begins_at)
        for window, sent in asked
    ]
    ddl = (
        "shard_id string, window_id string, sent_from timestamp, sent_to timestamp, "
        "begins_at timestamp"
    )
    parts = F.broadcast(own_rows(replay.warehouse.spark, values, ddl))
    first, last = min(sent.start for _, sent in asked), max(sent.end for _, sent in asked)
    near = rows.where(in_windows(instant, [Window(first, last)]))
    # The parts of a shard are disjoint: a row lies in one of them at most.
    inside = (instant >= F.col("sent_from")) & (instant < F.col("sent_to"))
    return near.join(parts, ["shard_id"], how="inner").where(inside)
