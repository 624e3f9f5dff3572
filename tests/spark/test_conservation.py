"""Whatever happens over time, each acknowledged message is in exactly one place.

Random days of some sixty shards at once: producers that hold messages back, consumers that skip,
stop, resume and deliver again, audits of all and of a part, backfills (read by the product's own
reader, and killed half way at times), dedupes, people who accept, a stream that keeps its records
for longer or shorter. At the end time passes until nothing can be on its way any more.
`SHARDAUDIT_PROPERTY_SEED` chooses other days.
"""

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from pyspark.sql import functions as F

from shardaudit.adapters.aws.kinesis_pages import StreamAddress
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.gates import open_gates
from shardaudit.audit.job import audit
from shardaudit.backfill.dedupe_plan import plan_dedupe
from shardaudit.backfill.kinesis_source import ReadSettings
from shardaudit.backfill.ledger import Ledger, sent_range, stored_windows
from shardaudit.backfill.plan_job import PlanRequest, plan_backfill
from shardaudit.backfill.replay import WindowReader
from shardaudit.backfill.rounds import Replay, _changes
from shardaudit.backfill.rules.pace import Pace
from shardaudit.backfill.rules.planned import Plan
from shardaudit.backfill.rules.reading import ReadOutcome, ReadWindow
from shardaudit.backfill.run import Running
from shardaudit.backfill.verify import verify
from shardaudit.model.config.settings import Settings
from shardaudit.model.retention import Retention, observed_retention
from shardaudit.model.stream_page import Start
from shardaudit.model.tables.audit_tables import CELLS, FINDINGS
from shardaudit.model.tables.backfill_tables import DEDUPE_IDS
from shardaudit.model.verdict import State
from shardaudit.model.window import Window
from shardaudit.store.transitions import change_state
from tests.builders import SHARD, T0
from tests.spark.lake import Lake
from tests.spark.world import HOUR, MIN, Message, World
from tests.unit.backfill.shards import FakeShard, Time

SEED = int(os.environ.get("SHARDAUDIT_PROPERTY_SEED", "20261122"))
SHARDS, ROUNDS = 60, 7
GRACE, BUCKET = 10 * MIN, 10 * MIN
FROM = T0 - 30 * HOUR  # messages are held back for up to 25 hours
LIVE = {State.OPEN, State.PLANNED, State.REPLAYED}
MISSED = LIVE | {State.EXPIRED, State.ACCEPTED}
OVER = {State.RECOVERED, State.FALSE_ALARM, State.ACCEPTED}


class KeptShard(FakeShard):
    """A shard in memory under any name."""

    def iterator(self, shard_id: str, start: Start) -> str:
        del shard_id
        return super().iterator(SHARD, start)


@dataclass
class Days:
    """A world, and the product at work on it."""

    lake: Lake
    world: World
    seen: dict[timedelta, datetime] = field(default_factory=dict)
    files: int = 0

    def __post_init__(self) -> None:
        self.gates = open_gates(None)
        self.lake.settings = {
            "retention": self.world.retention,
            "audit_window": timedelta(days=9),
            "bucket": BUCKET,
            "settle_grace": GRACE,
        }

    @property
    def settings(self) -> Settings:
        streams = {self.lake.name: self.lake.stream.model_dump()}
        return Settings.model_validate(
            {"warehouse": str(self.lake.folder / "warehouse"), "streams": streams}
        )

    @property
    def kept(self) -> Retention:
        """The stream's retention, as it was observed at each look."""
        self.seen[self.world.retention] = self.world.now
        kept = observed_retention(self.seen)
        assert kept is not None
        return kept

    def ingest(self) -> None:
        """Ships the traces, commits the rows, and takes in both."""
        if self.world.to_log:
            self.lake.log(f"{self.files:05}.jsonl", [m.trace for m in self.world.to_log])
        if self.world.to_land:
            self.lake.land(self.world.to_land)
        self.files += 1
        self.world.to_log, self.world.to_land = [], []
        self.lake.ingest(now=self.world.now)

    def audit(self, window: Window | None = None) -> str:
        """Audits, all when no window is given: the audit's id."""
        request = AuditRequest(
            self.lake.name,
            self.lake.stream,
            window or Window(FROM, self.world.now),
            self.world.now,
            self.kept,
        )
        audit(self.lake.warehouse, request, self.gates, now=self.world.now)
        return request.audit_id

    def backfill(self, *, by_hand: bool, stuck: bool, killed_after: str | None) -> None:
        """A plan from its approval to its proof, or to where the run is killed."""
        window = Window(self.world.now - 8 * HOUR, self.world.now - HOUR) if by_hand else None
        request = PlanRequest(
            self.lake.name,
            self.lake.stream,
            self.world.now,
            self.kept,
            include_stuck=stuck,
            window=window,
        )
        plan = plan_backfill(self.lake.warehouse, request, now=self.world.now)
        if not plan.windows or killed_after == "plan":
            return
        replay = self._replay(plan)
        Running(replay, self.settings, self.gates, "ann").approve()
        if killed_after == "approve":
            return
        self._round(replay, killed_after)
        if killed_after is None:
            verify(replay, self.settings, self.gates, clock_now=self.world.now)

    def _replay(self, plan: Plan) -> Replay:
        rows = stored_windows(self.lake.warehouse, plan.plan_id)
        return Replay(
            self.lake.warehouse,
            Ledger(self.lake.warehouse, rows, "test"),
            None,
            ReadSettings(StreamAddress("kinesis-events"), 0.5),
            self.kept,
            self.lake.stream.bucket,
            lambda: self.world.now,
        )

    def _round(self, replay: Replay, killed_after: str | None) -> None:
        """As `Replay.round`: reads by the product's reader, lands what the sink does not have."""
        wanted = {row.message_id for row in replay.planned_ids().select("message_id").collect()}
        if replay.ledger.rows[0]["takes_all"]:
            sent = sent_range(replay.ledger.rows)
            wanted = {m.message_id for m in self.world.messages.values() if sent.covers(m.sent_at)}
        read = {str(row["window_id"]): self._read(row) for row in replay.ledger.rows}
        found = {one for ids, _ in read.values() for one in ids} & wanted
        self._mark(replay, found)
        if killed_after == "mark":
            return
        absent = [self.world.messages[one] for one in sorted(found) if not self.world.sink[one]]
        if absent:
            self._land_ours(replay, absent)
        landed = {message.message_id for message in absent}
        changes = {}
        for one, (ids, outcome) in read.items():
            changes[one] = _changes(outcome, len(landed & set(ids)))
            landed -= set(ids)
        replay.ledger.save_each(changes, now=self.world.now)

    def _read(self, row: dict[str, object]) -> tuple[list[str], ReadOutcome]:
        wanted = ReadWindow(
            window_id=str(row["window_id"]),
            shard_id=str(row["shard_id"]),
            start=_instant(row["window_start"]),
            end=_instant(row["window_end"]),
            horizon=self.world.now - self.kept.length,
            start_sequence=_text(row["start_sequence_number"]),
            end_sequence=_text(row["end_sequence_number"]),
            is_expected=int(str(row["expected_ids"])) > 0,
        )
        time = Time()
        client = KeptShard(self.world.kept(wanted.shard_id), time=time)
        reader = WindowReader(client, wanted, Pace(1.0, clock=time.now, sleep=time.sleep))
        ids = [record.content.decode() for batch in reader.batches() for record in batch]
        return ids, reader.outcome

    def _mark(self, replay: Replay, found: set[str]) -> None:
        chosen = replay.findings(State.OPEN, State.PLANNED)
        chosen = chosen.where(F.col("message_id").isin(sorted(found))).localCheckpoint()
        if not chosen.isEmpty():
            change_state(
                self.lake.warehouse,
                chosen,
                to=State.REPLAYED,
                reason=f"read again by backfill {replay.plan_id}",
                now=self.world.now,
            )

    def _land_ours(self, replay: Replay, absent: list[Message]) -> None:
        tag = f'{{"by": "shardaudit backfill", "plan_id": "{replay.plan_id}"}}'
        self.lake.land([self.world.land(m) for m in absent], userMetadata=tag)

    def dedupe(self) -> None:
        """Leaves one row of each message that the product says stands more than once."""
        plan = plan_dedupe(
            self.lake.warehouse, self.lake.name, bucket=self.lake.stream.bucket, now=self.world.now
        )
        if plan.plan_id is None:
            return
        ids = self.lake.warehouse.read(DEDUPE_IDS).where(F.col("plan_id") == plan.plan_id)
        gone = [
            (row.message_id, landed_at)
            for row in ids.select("message_id").collect()
            for landed_at in self.world.remove_copies(row.message_id)
        ]
        frame = self.lake.spark.createDataFrame(gone, "message_id string, landed_at timestamp")
        frame.createOrReplaceTempView("gone")
        self.lake.sql(
            "MERGE INTO SINK AS t USING gone AS s ON t.message_id = s.message_id "
            "AND t.landed_at = s.landed_at WHEN MATCHED THEN DELETE"
        )

    def accept(self) -> None:
        """A person accepts some of what is missing."""
        some = F.xxhash64("message_id") % 7 == 0
        live = F.col("state").isin([State.OPEN.value, State.EXPIRED.value])
        chosen = self.lake.warehouse.read(FINDINGS).where(live & some).localCheckpoint()
        if not chosen.isEmpty():
            now = self.world.now
            change_state(self.lake.warehouse, chosen, to=State.ACCEPTED, reason="known", now=now)

    def states(self, kind: str) -> dict[str, State]:
        """The findings' states by message."""
        rows = self.lake.warehouse.read(FINDINGS).where(F.col("kind") == kind)
        return {row.message_id: State(row.state) for row in rows.collect()}

    def pending(self, audit_id: str) -> int:
        """How many messages an audit cannot judge yet."""
        cells = self.lake.warehouse.read(CELLS).where(F.col("audit_id") == audit_id)
        return int(cells.agg(F.sum("pending").alias("n")).collect()[0].n)

    def acts(self) -> list[Callable[[], object]]:
        """What people and schedules do."""
        chance = self.world.random
        recent = Window(self.world.now - 3 * HOUR, self.world.now)
        return [
            lambda: self.audit(recent),
            lambda: self.backfill(
                by_hand=False,
                stuck=chance.random() < 0.5,
                killed_after=chance.choice([None, None, "plan", "approve", "mark", "land"]),
            ),
            lambda: self.backfill(by_hand=True, stuck=False, killed_after=None),
            self.dedupe,
            self.accept,
            lambda: self.world.keep(chance.choice([12, 24, 48]) * HOUR),
        ]


def assert_conserved(days: Days, audit_id: str) -> None:
    """Each message has landed, or is missing, or on its way: exactly one of them."""
    sink, missing = days.world.sink, days.states("missing")
    wrong = {
        one: (len(sink[one]), missing.get(one))
        for one in days.world.messages
        if sink[one] and missing.get(one) in LIVE | {State.EXPIRED}
    }
    assert not wrong, f"landed, and missing: {wrong}"
    unlanded = [one for one in days.world.messages if not sink[one]]
    on_the_way = [one for one in unlanded if missing.get(one) not in MISSED]
    # A finding is not closed while it cannot be judged anew: such a message counts as both.
    assert len(on_the_way) <= days.pending(audit_id) <= len(unlanded), on_the_way
    doubled = days.states("duplicated")
    unseen = {one for one, rows in sink.items() if len(rows) > 1} - {
        one for one, state in doubled.items() if state in MISSED
    }
    assert not unseen, f"stand more than once: {unseen}"


def assert_at_rest(days: Days) -> None:
    """Once time has passed, nothing waits for anything."""
    sink, missing, doubled = days.world.sink, days.states("missing"), days.states("duplicated")
    wrong = {
        one: (len(rows), missing.get(one))
        for one in days.world.messages
        for rows in [sink[one]]
        if missing.get(one) not in ({None} | OVER if rows else {State.EXPIRED, State.ACCEPTED})
    }
    assert not wrong
    assert not Counter(missing.values()).keys() & LIVE
    assert {doubled[one] for one in doubled if len(sink[one]) == 1} <= OVER


@pytest.mark.parametrize("number", range(1))
def test_every_message_is_in_one_place_whatever_happens(lake: Lake, number: int) -> None:
    world = World.of(SEED + number, shards=SHARDS)
    days = Days(lake, world)
    for _ in range(ROUNDS):
        world.go_on(world.random.choice([10 * MIN, 30 * MIN, 2 * HOUR, 7 * HOUR]))
        days.ingest()
        assert_conserved(days, days.audit())
        for act in world.random.sample(days.acts(), k=2):
            act()
    world.all_consumers(resume=True)
    world.go_on(MIN)
    for one in world.shards:
        one.is_producing = False
    world.go_on(6 * HOUR)
    days.ingest()
    world.now += 60 * HOUR
    days.ingest()
    final = days.audit()
    assert_conserved(days, final)
    assert days.pending(final) == 0
    assert_at_rest(days)


def _instant(value: object) -> datetime:
    assert isinstance(value, datetime)
    return value


def _text(value: object) -> str | None:
    return None if value is None else str(value)
