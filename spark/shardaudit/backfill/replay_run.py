"""A run of a plan: what its rounds have in common, and one of them, from Kinesis into the sink."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shardaudit.adapters.aws.kinesis_fan_out import (
    consumer_name,
    registered_consumer,
    remove_consumers,
)
from shardaudit.adapters.engine.held import bare
from shardaudit.audit.placing import buckets_of
from shardaudit.audit.route.left_out import BY_FILTER, without_told
from shardaudit.backfill.kinesis_source import ReadSettings, read_outcome_of, read_windows
from shardaudit.backfill.landing import Landing
from shardaudit.backfill.ledger import Ledger, plan_ids, sent_range
from shardaudit.backfill.rules.decode import (
    ID,
    ORDER,
    POSITION,
    RAW,
    REASON,
    SENT_AT,
    WINDOW,
    unique_rows,
)
from shardaudit.backfill.rules.planned import StoredWindow, WindowState
from shardaudit.backfill.rules.reading import ReadOutcome, ReadWindow
from shardaudit.backfill.rules.republished import PUT_AGAIN
from shardaudit.backfill.stamped_apart import edges_of_apart
from shardaudit.columns.instants import in_windows
from shardaudit.columns.ledger_sums import CELL
from shardaudit.ingest.quarantine import Refuser, quarantine_rows
from shardaudit.ingest.sightings import sightings_for_filters
from shardaudit.ingest.stream_traces import StreamTraces
from shardaudit.model.config.eras import Eras
from shardaudit.model.retention import Retention
from shardaudit.model.route.route import Route
from shardaudit.model.tables.audit_tables import FINDINGS, QUARANTINE
from shardaudit.model.tables.backfill_tables import BACKFILL_GAPS, BACKFILL_IDS
from shardaudit.model.tables.gap_tables import GAPS
from shardaudit.model.verdict import Kind, State
from shardaudit.model.words import messages
from shardaudit.store.transitions import NewState, change_state, findings_in, without_accepted
from shardaudit.store.warehouse import Warehouse

log = logging.getLogger(__name__)

SOURCE = "backfill"  # in the quarantine


@dataclass(frozen=True, slots=True)
class Replay:
    """What the rounds of one run have in common. `now` is the run's --as-of, or the clock.

    Without a `landing` nothing is read here: somebody else is asked to. `writing` holds the
    warehouse for a block of writes: while the stream is read, audits and watches have theirs.
    `route`: its filters leave messages out by design. `cells`: how the stream's ids are put into
    cells: those of its messages can change no more.
    """

    warehouse: Warehouse
    ledger: Ledger
    landing: Landing | None
    reading: ReadSettings
    retention: Retention
    cells: Eras
    now: Callable[[], datetime]
    route: Route
    writing: Callable[[], AbstractContextManager[None]] = nullcontext

    @property
    def plan_id(self) -> str:
        """The plan's."""
        return self.ledger.windows[0].plan_id

    @property
    def name(self) -> str:
        """The stream's name in the configuration."""
        return self.ledger.windows[0].stream

    def planned_ids(self) -> DataFrame:
        """The missing messages of the plan: rows of BACKFILL_IDS."""
        ids = self.warehouse.read(BACKFILL_IDS)
        return ids.where(F.col("plan_id") == self.plan_id)

    def named_ids(self) -> DataFrame:
        """Those of them that are to land: not what an audit since found a filter to leave out."""
        is_left_out = F.col("state_reason") == BY_FILTER
        left_out = self.findings(State.FALSE_ALARM).where(is_left_out).select("message_id")
        # Presence only.
        return self.planned_ids().join(left_out, ["message_id"], how="left_anti")

    def planned_gaps(self, windows: Sequence[StoredWindow] | None = None) -> DataFrame:
        """The gaps of the plan, or of these windows of it: rows of BACKFILL_GAPS."""
        gaps = self.warehouse.read(BACKFILL_GAPS).where(F.col("plan_id") == self.plan_id)
        if windows is None:
            return gaps
        return gaps.where(F.col("window_id").isin([window.window_id for window in windows]))

    def gaps(self, *states: State, windows: Sequence[StoredWindow] | None = None) -> DataFrame:
        """Those of `planned_gaps` that are in these states: rows of GAPS."""
        # Presence only.
        planned = F.broadcast(self.planned_gaps(windows).select(*CELL))
        return (
            self.warehouse.read(GAPS)
            .where(F.col("stream") == self.name)
            .where(F.col("state").isin(*states))
            .join(planned, CELL, how="left_semi")
        )

    def gap_ids(self, windows: list[StoredWindow]) -> DataFrame:
        """The messages that were to land in the gaps of these windows, there or not: `message_id`.

        Not what a filter says that it left out: it is not to land; nor of a gap that was accepted.
        """
        accepted = self.gaps(State.ACCEPTED, windows=windows).select(*CELL)
        cells = self.planned_gaps(windows).select(*CELL).join(accepted, CELL, how="left_anti")
        cells = cells.localCheckpoint()
        starts = self.cells.covering(buckets_of(cells))
        if not starts:
            return self.planned_ids().where(F.lit(False)).select("message_id")
        traces = StreamTraces.of(self.warehouse, self.name)
        counted = traces.within(starts).where(F.col("counted"))
        sent = counted.join(F.broadcast(cells), CELL, how="left_semi")
        bucket = self.cells.widest
        sightings = sightings_for_filters(traces, starts, self.route, bucket=bucket)
        return without_told(sent, sightings, self.route).select("message_id")

    def wanted_ids(self, windows: list[StoredWindow]) -> DataFrame:
        """What a round of these windows lands where it finds it: `message_id`, unique."""
        named = self.named_ids().select("message_id")
        ids = bare(named).union(bare(self.gap_ids(windows))).distinct()
        return without_accepted(self.warehouse, self.name, Kind.MISSING, ids)

    def findings(self, *states: State) -> DataFrame:
        """The stream's findings of missing messages in these states, or in any."""
        return findings_in(self.warehouse, self.name, Kind.MISSING, *states)

    def change(
        self,
        states: Sequence[State],
        change: NewState,
        *,
        ids: DataFrame | None = None,
        windows: Sequence[StoredWindow] | None = None,
    ) -> None:
        """Of findings and gaps in these states: of the plan, or of these ids and windows."""
        ids = (self.planned_ids() if ids is None else ids).select("message_id")
        findings = self.findings(*states).join(ids, ["message_id"], how="left_semi")
        change_state(self.warehouse, FINDINGS, findings, change)
        change_state(self.warehouse, GAPS, self.gaps(*states, windows=windows), change)

    def run_round(self, windows: list[StoredWindow]) -> int:
        """Reads these windows, lands what was found, stores what came of each: bytes read."""
        assert self.landing is not None  # noqa: S101 - or there are no rounds
        started = self.now()
        running = {w.window_id: replace(w, state=WindowState.RUNNING, error=None) for w in windows}
        with self.writing():
            self.ledger.store(running.values(), now=started)
        rows = self._records(windows, horizon=started - self.retention.length).localCheckpoint()
        told = rows.where(F.col("outcome").isNotNull()).select("outcome").collect()
        outcomes = [read_outcome_of(row.outcome) for row in told]
        records = rows.where(F.col("outcome").isNull())
        decoded = self.landing.sink.decoded(records, landed_at=self.now())
        wanted = self._wanted(decoded, windows).localCheckpoint()
        rows_to_land = unique_rows(wanted.where(F.col(REASON).isNull())).localCheckpoint()
        with self.writing():
            self._quarantine(wanted.where(F.col(REASON).isNotNull()))
            if not rows_to_land.isEmpty():
                self._mark(rows_to_land, windows)
            landed = self._land(self.landing, rows_to_land, records)
            ended = [self._ended(running[o.window_id], o, landed) for o in outcomes]
            self.ledger.store(ended, now=self.now())
        return sum(o.size_bytes for o in outcomes)

    def _records(self, windows: list[StoredWindow], *, horizon: datetime) -> DataFrame:
        wanted = [
            ReadWindow(
                window_id=window.window_id,
                shard_id=window.shard_id,
                start=window.window_start,
                end=window.window_end,
                horizon=horizon,
                start_sequence=window.start_sequence_number,
                end_sequence=window.end_sequence_number,
                is_expected=window.expected_ids > 0,
            )
            for window in windows
        ]
        spark = self.warehouse.spark
        return read_windows(spark, self.reading, wanted)

    def _wanted(self, decoded: DataFrame, windows: list[StoredWindow]) -> DataFrame:
        """The planned messages, or with a range by hand all that were sent in it.

        What cannot be decoded may be one of them: it stays in, for the quarantine.
        """
        if self.ledger.windows[0].takes_all:
            sent = F.coalesce(SENT_AT, f"{ORDER}.arrived_at")
            return decoded.where(in_windows(sent, [sent_range(self.ledger.windows)]))
        # Unique on the id on the right.
        planned = self.wanted_ids(windows).select(
            F.col("message_id").alias(ID), F.lit(True).alias("_sa_is_planned")
        )
        return (
            decoded.join(planned, [ID], how="left")
            .where(F.col("_sa_is_planned") | F.col(ID).isNull())
            .drop("_sa_is_planned")
        )

    def _quarantine(self, refused: DataFrame) -> None:
        """Stores what does not fit, once however often it is read."""
        place = F.concat(F.lit(f"kinesis:{self.reading.address.stream_name}/"), F.col(POSITION))
        rows = refused.groupBy(place.alias("file"), F.col(REASON).alias("reason")).agg(
            F.min(RAW).alias("raw"), F.lit(None).alias("line")
        )
        if not rows.isEmpty():
            by = Refuser(self.plan_id, self.name, SOURCE, self.now())
            self.warehouse.merge(quarantine_rows(rows, by), QUARANTINE)

    def _mark(self, rows: DataFrame, windows: list[StoredWindow]) -> None:
        """Marks what was read again: an audit after a crash would else call it false alarms."""
        reason = f"read again by backfill {self.plan_id}"
        change = NewState(State.REPLAYED, reason, self.now())
        found = rows.select(F.col(ID).alias("message_id"))
        self.change((State.OPEN, State.PLANNED), change, ids=found, windows=windows)

    def _land(self, landing: Landing, rows: DataFrame, records: DataFrame) -> dict[str, int]:
        """Lands what the sink does not have: how many rows, by window."""
        if rows.isEmpty():
            return {}
        placed = rows.select(F.col(ID).alias("message_id"), F.col(SENT_AT).alias("sent_at"))
        sent = edges_of_apart(self.warehouse, self.name, placed, shape=self.cells)
        absent = landing.sink.absent(rows, sent=sent).localCheckpoint()
        counts = {row[WINDOW]: row["count"] for row in absent.groupBy(WINDOW).count().collect()}
        if counts:
            if landing.republish_to is not None:
                self._note_puts(counts)
            landing.land(absent, records, plan_id=self.plan_id, sent=sent)
        return counts

    def _note_puts(self, counts: Mapping[str, int]) -> None:
        """Stores how many records are about to be put: should this die, the next run tells it."""
        windows = self.ledger.of(WindowState.RUNNING)
        noted = [
            replace(w, merged_rows=counts[w.window_id]) for w in windows if w.window_id in counts
        ]
        self.ledger.store(noted, now=self.now())

    def _ended(
        self, window: StoredWindow, outcome: ReadOutcome, landed: Mapping[str, int]
    ) -> StoredWindow:
        """The window after its round. `window`: as it was before, and `merged_rows` of that run."""
        rows = landed.get(window.window_id, 0)
        read = window_as_read(window, outcome, rows)
        is_again = self.landing is not None and self.landing.republish_to is not None
        if not (is_again and rows and window.merged_rows):
            return read
        log.warning("%s of %s: %s", messages(rows), window.shard_id, PUT_AGAIN)
        return replace(read, error="; ".join(filter(None, (PUT_AGAIN, read.error))))


def window_as_read(window: StoredWindow, outcome: ReadOutcome, merged_rows: int) -> StoredWindow:
    """The window after it was read, and so many rows of it landed."""
    return replace(
        window,
        state=WindowState.MERGED if outcome.is_complete else WindowState.INCOMPLETE,
        read_records=outcome.records,
        merged_rows=merged_rows,
        expired_from=outcome.expired_from,
        expired_to=outcome.expired_to,
        begins_at=outcome.begins_at,
        error=outcome.error,
    )


@contextmanager
def fan_out(replay: Replay, *, warehouse: str, reads: bool) -> Iterator[Replay]:
    """The replay, reading through a consumer that is removed when the block ends.

    A consumer that a run of any of the stream's plans left behind is removed first, also when
    nothing is to be read any more: nobody else runs one, the lock on its backfills is ours.
    """
    ours = {consumer_name(warehouse, one) for one in plan_ids(replay.warehouse, replay.name)}
    address, name = replay.reading.address, consumer_name(warehouse, replay.plan_id)
    if not reads:
        remove_consumers(address, ours)
        yield replay
        return
    with registered_consumer(address, name, left_over=ours) as arn:
        yield replace(replay, reading=replace(replay.reading, consumer_arn=arn))
