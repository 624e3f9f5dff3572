"""Whatever happens over time, each acknowledged message is in exactly one place.

Random days of some dozens of shards at once: producers that hold messages back and retry, stamped
anew or not, on the same shard or the next, consumers that skip, stop, resume, deliver again, and
leave out where a row belongs, files that cannot be read until they are written again, audits of all
and of a part, backfills (read by the product's own reader, and killed half way at times), dedupes,
people who accept, or delete rows by mistake, a lake that drops what is old, a stream that keeps its
records for longer or shorter. At the end time passes until nothing can be on its way any more.
`SHARDAUDIT_PROPERTY_SEED` chooses other days.
"""

import gzip
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

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
from shardaudit.backfill.replay_run import Replay, window_as_read
from shardaudit.backfill.rules.pace import Pace
from shardaudit.backfill.rules.planned import Plan, StoredWindow
from shardaudit.backfill.rules.reading import ReadOutcome, ReadWindow
from shardaudit.backfill.run import Running
from shardaudit.backfill.verify import verify
from shardaudit.backfill.window_reader import WindowReader
from shardaudit.model.config.eras import Eras
from shardaudit.model.config.settings import Settings
from shardaudit.model.get_records import Start
from shardaudit.model.retention import Retention, observed_retention
from shardaudit.model.tables.audit_tables import CELLS, FINDINGS
from shardaudit.model.tables.backfill_tables import DEDUPE_IDS
from shardaudit.model.verdict import State
from shardaudit.model.window import Window
from shardaudit.store.transitions import NewState, change_state
from tests.builders import SHARD, T0, Line, jsonl, write_parquet
from tests.spark.lake import Lake
from tests.spark.ungated import ungated
from tests.spark.world import HOUR, MIN, ROWS_DDL, Delivery, Message, World
from tests.unit.backfill.shards import FakeShard, Time

SEED = int(os.environ.get("SHARDAUDIT_PROPERTY_SEED", "20261122"))
SHARDS, ROUNDS = 60, 4
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
    seen: dict[datetime, timedelta] = field(default_factory=dict)
    files: int = 0
    before: dict[str, State] = field(default_factory=dict)  # what was missing before they broke
    traced: set[str] = field(default_factory=set)  # the attempts whose traces were read
    hidden: set[str] = field(default_factory=set)  # with a row in a file that cannot be read
    thinned: set[str] = field(default_factory=set)  # of which the lake dropped a row
    log: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.gates = ungated()
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
        self.seen[self.world.now] = self.world.retention
        kept = observed_retention(self.seen)
        assert kept is not None
        return kept

    def ingest(self) -> None:
        """Ships the traces, commits the rows, and takes in both."""
        if self.world.to_log:
            self._ship(self.world.to_log)
        if self.world.to_land:
            self.lake.land(self.world.to_land, ROWS_DDL)
        self.world.to_log, self.world.to_land = [], []
        self.lake.ingest(now=self.world.now)

    def _ship(self, messages: list[Message], *, upto: int | None = None) -> Path:
        """One more trace file, at times with a bad line; when it breaks off, behind so many."""
        bad: Line = {**messages[0].trace, "message_id": None}
        lines = [m.trace for m in messages] + [bad] * (len(messages) % 3 == 0)
        folder, self.files = self.lake.traces, self.files + 1
        if self.lake.traces_format == "parquet":
            path = write_parquet(folder / f"{self.files:05}.parquet", lines)
            if upto is not None:
                upto = 0
                path.write_bytes(path.read_bytes()[:-50])
        else:
            path = folder / f"{self.files:05}.jsonl.gz"
            folder.mkdir(exist_ok=True)
            rest = b"" if upto is None else gzip.compress(jsonl(lines[upto:]))[:20]
            path.write_bytes(gzip.compress(jsonl(lines[:upto])) + rest)
        written = self.world.now.timestamp()
        os.utime(path, (written, written))
        self.traced |= {message.key for message in messages[:upto]}
        return path

    def sound(self) -> AbstractContextManager[None]:
        """All can be read."""
        return nullcontext()

    @contextmanager
    def broken_traces(self) -> Iterator[None]:
        """An ingest of a file that breaks off, and is whole again in the end."""
        self.before = self.states("missing")
        messages, self.world.to_log = self.world.to_log, []
        path = self._ship(messages, upto=self.world.random.randrange(len(messages)))
        yield
        self.files -= 1
        assert self._ship(messages) == path
        self.before = {}

    @contextmanager
    def broken_rows(self) -> Iterator[None]:
        """An ingest of the newest rows in a file that cannot be read until the end."""
        self.before, files = self.states("missing"), set(self.lake.sink.glob("*.parquet"))
        self.hidden = {str(row["message_id"]) for row in self.world.to_land}
        self.lake.land(self.world.to_land, ROWS_DDL)
        self.lake.date_newest(self.world.now)
        self.world.to_land = []
        [path] = set(self.lake.sink.glob("*.parquet")) - files
        content = path.read_bytes()
        path.write_bytes(bytes(len(content)))
        yield
        path.write_bytes(content)
        self.hidden, self.before = set(), {}

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
        windows = stored_windows(self.lake.warehouse, plan.plan_id)
        return Replay(
            self.lake.warehouse,
            Ledger(self.lake.warehouse, windows, "test"),
            None,
            ReadSettings(StreamAddress("kinesis-events"), 0.5),
            self.kept,
            Eras(self.lake.stream.cell_shape),
            lambda: self.world.now,
            self.lake.stream.route,
        )

    def _round(self, replay: Replay, killed_after: str | None) -> None:
        """As `Replay.round`: reads by the product's reader, lands what the sink does not have."""
        wanted = {row.message_id for row in replay.planned_ids().select("message_id").collect()}
        windows = replay.ledger.windows
        read = [(window, *self._read(window)) for window in windows]
        takes_all, sent = windows[0].takes_all, sent_range(windows)
        found = {
            message.message_id: message
            for _, messages, _ in read
            for message in messages
            if (sent.covers(message.sent_at) if takes_all else message.message_id in wanted)
        }
        self._mark(replay, set(found))
        if killed_after == "mark":
            return
        absent = [found[one] for one in sorted(found) if not self.world.sink[one]]
        if absent:
            self._land_ours(replay, absent)
        landed = {message.message_id for message in absent}
        ended = []
        for window, messages, outcome in read:
            ids = {message.message_id for message in messages}
            ended.append(window_as_read(window, outcome, len(landed & ids)))
            landed -= ids
        replay.ledger.store(ended, now=self.world.now)

    def _read(self, window: StoredWindow) -> tuple[list[Message], ReadOutcome]:
        wanted = ReadWindow(
            window_id=window.window_id,
            shard_id=window.shard_id,
            start=window.window_start,
            end=window.window_end,
            horizon=self.world.now - self.kept.length,
            start_sequence=window.start_sequence_number,
            end_sequence=window.end_sequence_number,
            is_expected=window.expected_ids > 0,
        )
        time = Time()
        client = KeptShard(self.world.kept(wanted.shard_id), time=time)
        reader = WindowReader(client, wanted, Pace(1.0, clock=time.now, sleep=time.sleep))
        keys = [record.content.decode() for batch in reader.batches() for record in batch]
        return [self.world.attempt(key) for key in keys], reader.outcome

    def _mark(self, replay: Replay, found: set[str]) -> None:
        chosen = replay.findings(State.OPEN, State.PLANNED)
        chosen = chosen.where(F.col("message_id").isin(sorted(found))).localCheckpoint()
        if not chosen.isEmpty():
            change_state(
                self.lake.warehouse,
                FINDINGS,
                chosen,
                NewState(
                    State.REPLAYED, f"read again by backfill {replay.plan_id}", self.world.now
                ),
            )

    def _land_ours(self, replay: Replay, absent: list[Message]) -> None:
        tag = f'{{"by": "shardaudit backfill", "plan_id": "{replay.plan_id}"}}'
        self.lake.land([self.world.land(m) for m in absent], ROWS_DDL, userMetadata=tag)

    def dedupe(self) -> None:
        """Leaves one row of each message that the product says stands more than once."""
        plan = plan_dedupe(
            self.lake.warehouse,
            self.lake.name,
            shape=Eras(self.lake.stream.cell_shape),
            configured=None,
            now=self.world.now,
        )
        if plan.plan_id is None:
            return
        ids = self.lake.warehouse.read(DEDUPE_IDS).where(F.col("plan_id") == plan.plan_id)
        copies = self.world.copies(row.message_id for row in ids.select("message_id").collect())
        self._delete(copies)

    def _delete(self, rows: Iterable[Delivery]) -> None:
        gone = list(rows)
        self.world.remove(gone)
        numbers = [(row.number,) for row in gone]
        frame = self.lake.spark.createDataFrame(numbers, "row_number bigint")
        frame.createOrReplaceTempView("gone")
        self.lake.sql(
            "MERGE INTO SINK AS t USING gone AS s ON t.row_number = s.row_number "
            "WHEN MATCHED THEN DELETE"
        )

    def drop_old(self) -> None:
        """The lake drops what is old, and has left the stream, some of it or all.

        After an audit of all: so of each cell all is known, but of those with a message on its way.
        """
        world, missing = self.world, self.states("missing")
        oldest = world.now - world.random.choice([1, 24, 30]) * HOUR
        share = world.random.choice([0.3, 1.0])
        cells = self._cells()
        fit = {
            cell
            for cell, messages in cells.items()
            if cell[1] + BUCKET <= oldest
            and self._gone_by(messages) < world.now
            and all(
                world.has_landed(m.message_id) or missing.get(m.message_id) in MISSED
                for m in messages
            )
        }
        rows = [row for one in world.sink.values() for row in one]
        # No batch counts the others: of those that leave the ledger does not know.
        placed = [row for row in rows if row.lacks not in {"shard_id", "sent_at"}]
        gone = [r for r in placed if _cell(r.message) in fit and world.random.random() < share]
        self._delete(gone)
        ids = {row.message.message_id for row in gone}
        self.thinned |= ids
        world.vanished |= {one for one in ids if not world.sink[one]}

    def delete_by_mistake(self) -> None:
        """Somebody deletes rows of which the stream has the messages, and it is noticed at once."""
        world, cells = self.world, self._cells()
        kept = {cell for cell, ms in cells.items() if self._gone_by(ms) > world.now}
        self._delete(
            row
            for one, rows in world.sink.items()
            for row in rows
            if one not in self.thinned
            and _cell(row.message) in kept
            and world.random.random() < 0.03
        )
        self.ingest()

    def _cells(self) -> dict[tuple[str, datetime], list[Message]]:
        cells: dict[tuple[str, datetime], list[Message]] = defaultdict(list)
        for attempts in self.world.attempts.values():
            for message in attempts:
                cells[_cell(message)].append(message)
        return cells

    def _gone_by(self, messages: Iterable[Message]) -> datetime:
        """When the stream surely has none of them any more."""
        last = _bucket(max(m.acked_at for m in messages)) + BUCKET
        return max(self.kept.until(last), *(was.until(last) for was in self.kept.longer), last)

    def accept(self) -> None:
        """A person accepts some of what is missing."""
        some = F.xxhash64("message_id") % 7 == 0
        live = F.col("state").isin([State.OPEN.value, State.EXPIRED.value])
        chosen = self.lake.warehouse.read(FINDINGS).where(live & some).localCheckpoint()
        if not chosen.isEmpty():
            now = self.world.now
            warehouse = self.lake.warehouse
            change_state(warehouse, FINDINGS, chosen, NewState(State.ACCEPTED, "known", now))

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
            self.delete_by_mistake,
            lambda: self.world.keep(chance.choice([12, 24, 48]) * HOUR),
        ]


def assert_conserved(days: Days, audit_id: str) -> None:
    """Each message has landed, or is missing, or on its way: exactly one of them."""
    world, missing = days.world, days.states("missing")
    wrong = {
        one: (len(world.sink[one]), missing.get(one))
        for one in world.attempts
        if world.has_landed(one) and missing.get(one) in LIVE | {State.EXPIRED}
        if not _may_stay(days.before.get(one), missing[one], is_hidden=one in days.hidden)
    }
    assert not wrong, f"landed, and missing: {wrong}"
    untraced = {
        one
        for one, attempts in world.attempts.items()
        if any(message.key not in days.traced for message in attempts)
    }
    unlanded = [
        one
        for one, attempts in world.attempts.items()
        if not world.has_landed(one) and any(m.key in days.traced for m in attempts)
    ]
    on_the_way = [one for one in unlanded if missing.get(one) not in MISSED]
    # A finding is not closed while it cannot be judged anew: such a message counts as both.
    pending = days.pending(audit_id)
    assert len(on_the_way) <= pending <= len({*unlanded, *days.hidden}), on_the_way
    doubled = days.states("duplicated")
    unseen = {one for one, rows in world.sink.items() if len(rows) > 1} - {
        one for one, state in doubled.items() if state in MISSED
    }
    # A row whose trace is lost tells of no other row.
    assert not (unseen := unseen - untraced - days.hidden), f"stand more than once: {unseen}"


def _may_stay(before: State | None, now: State, *, is_hidden: bool) -> bool:
    """Whether nobody can judge it: then it stays as it was, until its time runs out."""
    return now is before or (is_hidden and now is State.EXPIRED and before in LIVE)


def assert_at_rest(days: Days) -> None:
    """Once time has passed, nothing waits for anything."""
    world, missing, doubled = days.world, days.states("missing"), days.states("duplicated")
    wrong = {
        one: (len(world.sink[one]), missing.get(one))
        for one in world.attempts
        if missing.get(one)
        not in ({None} | OVER if world.has_landed(one) else {State.EXPIRED, State.ACCEPTED})
    }
    assert not wrong
    assert not Counter(missing.values()).keys() & LIVE
    assert {doubled[one] for one in doubled if len(world.sink[one]) < 2} <= OVER


@pytest.mark.parametrize(
    "traces_format", ["json", pytest.param("parquet", marks=pytest.mark.drill)]
)
def test_every_message_is_in_one_place_whatever_happens(
    spark_lake: Lake, traces_format: str
) -> None:
    spark_lake.land(ddl=ROWS_DDL)
    spark_lake.traces_format = traces_format
    world = World.of(SEED, shards=SHARDS)
    days = Days(spark_lake, world)
    for number in range(ROUNDS):
        world.go_on(world.random.choice([10 * MIN, 30 * MIN, 2 * HOUR, 7 * HOUR]))
        with [days.sound, days.broken_traces, days.broken_rows][number % 3]():
            days.ingest()
            assert_conserved(days, days.audit())
        if number % 3 == 0:
            days.drop_old()
        for act in world.random.sample(days.acts(), k=3):
            act()
    world.all_consumers(resume=True)
    world.go_on(MIN)
    for one in world.shards.values():
        one.is_producing = False
    world.go_on(6 * HOUR)
    days.ingest()
    days.gates = open_gates(None)  # what happened before, they judge as a part of all
    for hours in (60, 1):
        world.now += hours * HOUR
        days.ingest()
        final = days.audit()
        assert_conserved(days, final)
        assert days.pending(final) == 0
        assert_at_rest(days)
        days.drop_old()


def _cell(message: Message) -> tuple[str, datetime]:
    return message.shard_id, _bucket(message.sent_at)


def _bucket(instant: datetime) -> datetime:
    return T0 + (instant - T0) // BUCKET * BUCKET
