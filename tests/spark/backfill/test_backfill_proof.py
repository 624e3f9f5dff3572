"""When a repaired range counts as proven, and how far around it the stream is read.

Nothing is read or merged here: the windows are said to have been read to their end.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest
from pyspark.sql import functions as F

from shardaudit.adapters.aws.kinesis_pages import StreamAddress
from shardaudit.backfill.kinesis_source import ReadSettings
from shardaudit.backfill.ledger import Ledger, stored_windows
from shardaudit.backfill.plan_job import PlanRequest, plan_backfill
from shardaudit.backfill.replay_run import Replay
from shardaudit.backfill.rules.planned import RUN, Plan, StoredWindow, WindowState
from shardaudit.backfill.rules.republished import PUT_IN_PART
from shardaudit.backfill.run import Running, run_backfill
from shardaudit.backfill.verify import Verified, verify
from shardaudit.cli.backfill_command import exit_code
from shardaudit.model.config.eras import Eras
from shardaudit.model.config.settings import Settings
from shardaudit.model.exit_code import ExitCode
from shardaudit.model.retention import Retention
from shardaudit.model.tables.audit_tables import AUDITS, FINDINGS
from shardaudit.model.tables.backfill_tables import BACKFILL_IDS
from shardaudit.model.verdict import State
from shardaudit.model.window import Window
from shardaudit.store.transitions import NewState, accept_findings
from tests.builders import NOW, SINK_DDL, T0, Line, sequence, shard, sink_row, trace_line
from tests.spark.lake import Lake
from tests.spark.ungated import ungated

S, MIN, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=1)
RANGE = Window(T0, T0 + 20 * MIN)
RETENTION = 7 * DAY


def merged(window: StoredWindow, *, begins_at: datetime | None, state: WindowState) -> StoredWindow:
    rows = int(state is WindowState.RUNNING)  # it ended on its way
    return replace(window, state=state, read_records=1, merged_rows=rows, begins_at=begins_at)


@dataclass
class Repair:
    """A plan of a lake's stream, as a run sees it that has read and merged."""

    lake: Lake
    as_of: datetime = NOW
    replay: Replay = field(init=False)

    def __post_init__(self) -> None:
        self.lake.settings = {"retention": RETENTION, "audit_window": DAY}

    @property
    def settings(self) -> Settings:
        streams = {self.lake.name: self.lake.stream.model_dump()}
        values = {"warehouse": str(self.lake.folder / "warehouse")}
        return Settings.model_validate(values | {"streams": streams})

    def planned(self, window: Window | None = None) -> Plan:
        request = PlanRequest(
            self.lake.name, self.lake.stream, self.as_of, Retention(RETENTION), window=window
        )
        return plan_backfill(self.lake.warehouse, request, now=self.as_of)

    def verified(
        self,
        plan: Plan,
        *,
        begins_at: datetime | None = None,
        state: WindowState = WindowState.MERGED,
    ) -> tuple[Verified, list[tuple[str, object]]]:
        """What the verification says, and the state and error of each window."""
        windows = stored_windows(self.lake.warehouse, plan.plan_id)
        ledger = Ledger(self.lake.warehouse, windows, "test")
        read = [merged(w, begins_at=begins_at, state=state) for w in windows]
        ledger.store(read, now=self.as_of)
        reading = ReadSettings(StreamAddress("kinesis-events"), 0.5)
        kept = Retention(RETENTION)
        cells = Eras(self.lake.stream.cell_shape)
        self.replay = Replay(
            *(self.lake.warehouse, ledger, None, reading, kept, cells),
            now=lambda: self.as_of,
            route=self.lake.stream.route,
        )
        planned = NewState(State.PLANNED, "a test", self.as_of)
        self.replay.change((State.OPEN,), planned)
        found = verify(self.replay, self.settings, ungated(), clock_now=self.as_of)
        return found, [(window.state, window.error) for window in ledger.windows]

    def exit_codes(self, found: Verified) -> set[ExitCode]:
        """Of the run that found this, and of another try."""
        first = Running(self.replay, self.settings, None, None, verified=found)
        again = Running(self.replay, self.settings, None, None)
        assert run_backfill(again) is None
        return {exit_code(first, RUN), exit_code(again, RUN)}


@pytest.fixture
def repair(lake: Lake) -> Repair:
    """Of a stream with 60 messages of two shards in the first minute, and one an hour later."""
    repair = Repair(lake)
    numbers = [*range(60), 3600]
    lake.log("a.jsonl", [trace_line(n, shard_id=shard(n % 2)) for n in numbers])
    return repair


def land(repair: Repair, numbers: Iterable[int]) -> None:
    repair.lake.land([row(n) for n in numbers])


def row(number: int) -> Line:
    return sink_row(number, shard_id=shard(number % 2))


def test_range_by_hand_is_not_proven_when_its_audit_finds_messages_missing(
    repair: Repair,
) -> None:
    land(repair, [n for n in [*range(60), 3600] if n not in range(10, 22, 2)])
    repair.lake.ingest()  # and no audit: no finding is planned
    # It was on its way when an audit of long ago looked: this run does not bring it back.
    known = {"stream": repair.lake.name, "shard_id": shard(0), "message_id": "m30"}
    ended = {"kind": "missing", "state": "false_alarm", "updated_at": NOW - MIN}
    repair.lake.warehouse.upsert([known | ended | {"sent_at": T0 + 30 * S}], FINDINGS)
    plan = repair.planned(RANGE)
    assert [w.expected_ids for w in plan.windows] == [0] * 4
    found, windows = repair.verified(plan)
    assert (found.recovered, found.left, found.cut_short) == (0, 6, 0)
    assert [state for state, _ in windows] == ["incomplete", "verified", "verified", "verified"]
    assert windows[0][1] == "6 messages not found in the stream as it is now"

    given_up = ["m10", "m12"]  # by a person, while the backfill runs
    accept_findings(repair.lake.warehouse, repair.lake.name, given_up, reason="known", now=NOW)
    land(repair, range(14, 22, 2))
    found, windows = repair.verified(plan)
    assert (found.recovered, found.left, {state for state, _ in windows}) == (4, 0, {"verified"})
    assert windows[0][1] == "2 messages accepted as missing"


def test_range_by_hand_is_expired_when_the_stream_begins_behind_what_is_missing(
    repair: Repair,
) -> None:
    land(repair, [n for n in [*range(60), 3600] if n != 10])
    repair.lake.ingest()
    plan = repair.planned(RANGE)
    found, windows = repair.verified(plan, begins_at=T0 + 30 * S)
    assert found.left == 1
    assert windows[0] == ("expired", "1 message no longer in the stream, and not in the sink")
    assert repair.exit_codes(found) == {ExitCode.FAILED}
    found, windows = repair.verified(repair.planned(RANGE), begins_at=T0 + 5 * S)
    assert Counter(state for state, _ in windows) == {"verified": 3, "incomplete": 1}

    plan = repair.planned()  # of what that found; and its run comes too late
    repair.as_of = T0 + RETENTION + DAY
    found, windows = repair.verified(plan, begins_at=T0 + DAY)
    assert (found.expired, found.left) == (1, 0)
    assert windows == [("expired", "1 message no longer in the stream, and not in the sink")]
    assert repair.exit_codes(found) == {ExitCode.FAILED}


@pytest.mark.parametrize(
    ("mode", "state", "is_open"),
    [
        ({"mode": "republish", "republish_to": "again"}, "running", True),
        ({"mode": "republish", "republish_to": "again"}, "merged", False),
        ({"mode": "request", "request_to": "asked"}, "approved", True),
        ({"mode": "request", "request_to": "asked"}, "running", False),
    ],
)
def test_what_was_not_handed_over_is_open_for_the_next_plan(
    repair: Repair, mode: dict[str, str], state: str, *, is_open: bool
) -> None:
    repair.lake.settings["backfill"] = mode
    land(repair, [n for n in [*range(60), 3600] if n != 10])
    repair.lake.ingest()
    repair.verified(repair.planned(RANGE))  # its audit finds it
    found, windows = repair.verified(repair.planned(), state=WindowState(state))
    assert (found.left, found.cut_short) == (1, int(is_open))
    ((ended, error),) = windows
    assert ended == ("incomplete" if is_open else state)
    assert (error == PUT_IN_PART) is (state == "running" and is_open)
    states = {row.state for row in repair.lake.rows(FINDINGS)}
    assert states == {"open" if is_open else "planned"}


def test_range_by_hand_is_not_proven_before_it_is_settled(repair: Repair) -> None:
    land(repair, range(60))
    repair.as_of = T0 + 5 * MIN
    repair.lake.ingest(now=repair.as_of)
    found, windows = repair.verified(repair.planned(Window(T0, T0 + MIN)))
    assert (found.left, found.cut_short) == (0, 2)
    assert windows[0] == ("incomplete", "1 cell not settled yet: run the plan again later")


def test_range_by_hand_is_not_proven_where_no_audit_can_judge(repair: Repair) -> None:
    land(repair, [*range(60), 3600])
    repair.lake.land([sink_row(n, shard_id=shard(1)) for n in range(1000, 1020)])  # no traces
    repair.lake.ingest()
    found, windows = repair.verified(repair.planned(RANGE))
    assert (found.left, found.cut_short, found.unjudged) == (0, 0, 1)
    reason = "too few of its landed messages have a trace"
    unproven = ("incomplete", f"of 1 cell no audit can say that all is there: {reason}")
    assert Counter(windows) == {("verified", None): 3, unproven: 1}


def test_what_lacks_days_apart_is_proven_without_the_days_between(repair: Repair) -> None:
    lake, later = repair.lake, T0 + 3 * DAY
    day_3 = range(3 * 24 * 3600, 3 * 24 * 3600 + 60)
    lake.log("b.jsonl", [trace_line(n, shard_id=shard(n % 2)) for n in day_3])
    lost = [10, day_3[10]]
    land(repair, [n for n in [*range(60), 3600, *day_3] if n not in lost])
    repair.as_of = later + 2 * 60 * MIN
    lake.ingest(now=repair.as_of)
    for start in (T0, later):
        repair.verified(repair.planned(Window(start, start + 20 * MIN)))
    before = {row.audit_id for row in lake.rows(AUDITS)}
    plan = repair.planned()
    land(repair, lost)
    found, windows = repair.verified(plan)
    assert (found.recovered, found.left) == (2, 0)
    assert [state for state, _ in windows] == ["verified"] * 2
    looked_at = [row for row in lake.rows(AUDITS) if row.audit_id not in before]
    assert len(looked_at) == 2
    assert max(row.window_end - row.window_start for row in looked_at) < DAY


def test_message_that_was_held_back_is_read_where_it_was_acknowledged(repair: Repair) -> None:
    late = NOW - 20 * MIN
    held = {"acked_at": late.isoformat(), "sequence_number": None, "shard_id": shard(0)}
    repair.lake.log("b.jsonl", [trace_line(n, **held) for n in (100, 101)])
    land(repair, [*range(60), 3600])
    repair.lake.ingest()
    repair.verified(repair.planned(RANGE))  # its audit finds them
    (window,) = repair.planned().windows
    assert (window.expected_ids, window.sent) == (2, Window(T0 + 100 * S, T0 + 101 * S + S / 10**6))
    assert window.window == Window(late - 7 * MIN, late + 5 * MIN)
    # A range by hand reads there, too.
    plan = repair.planned(RANGE)
    assert [w.window for w in plan.windows if w.expected_ids] == [window.window]
    found, windows = repair.verified(plan)
    assert found.left == 2
    ends = {w.window_id: state for w, (state, _) in zip(plan.windows, windows, strict=True)}
    late_ones = {w.window_id for w in plan.windows if w.window == window.window}
    assert {one for one, state in ends.items() if state == "incomplete"} == late_ones


def test_of_messages_that_were_held_back_the_plan_prices_what_lies_between(
    repair: Repair,
) -> None:
    """No trace says when they were put: those do that others sent meanwhile to their shard."""
    beside = {"shard_id": shard(0)}
    puts = {100: 601, 101: 3001, 102: 3002}  # sent at, and behind what was sent at
    held = [trace_line(n, **beside, sequence_number=sequence(at)) for n, at in puts.items()]
    others = [n for n in range(120, 3600, 60)]
    repair.lake.log("b.jsonl", [*held, *(trace_line(n, **beside) for n in others)])
    repair.lake.land([*map(row, [*range(60), 3600]), *(sink_row(n, **beside) for n in others)])
    repair.lake.ingest()
    repair.verified(repair.planned(RANGE))
    plans = [repair.planned(), repair.planned(Window(T0, T0 + 5 * MIN))]
    for plan in plans:
        (window,) = [w for w in plan.windows if w.expected_ids]
        ends = (window.start_sequence, window.end_sequence)
        assert ends == (sequence(601), sequence(3002))
        read = timedelta(seconds=puts[102] - puts[100])
        assert read - MIN <= window.window.end - window.window.start - 7 * MIN <= read + 2 * MIN
        assert window.price.records >= 1000 * (read - MIN) / S


@pytest.mark.parametrize("side", ["traces", "sink"])
def test_message_of_unknown_arrival_is_looked_for_as_long_as_its_shards_slowest_took(
    repair: Repair, side: str
) -> None:
    gone = {"sequence_number": None, "shard_id": shard(0)}
    repair.lake.log("b.jsonl", [trace_line(100, **gone)])
    if side == "traces":
        slow = {"acked_at": (T0 + 30 * MIN).isoformat(), "shard_id": shard(0)}
        repair.lake.log("c.jsonl", [trace_line(102, **slow)])
        repair.lake.land([row(n) for n in [*range(60), 102, 3600]])
    else:
        rows = [dict(row(n)) | {"arrived_at": T0 + n * S} for n in [*range(60), 3600]]
        rows[0]["arrived_at"] = T0 + 29 * MIN
        ddl = f"{SINK_DDL}, arrived_at timestamp"
        repair.lake.land(rows, ddl, mergeSchema="true")
    repair.lake.ingest()
    repair.verified(repair.planned(RANGE))
    # As an older version called it, and open again by a longer retention.
    old = repair.lake.warehouse.read(FINDINGS).withColumn("cause", F.lit("expired"))
    repair.lake.warehouse.merge(old.localCheckpoint(), FINDINGS)
    plan = repair.planned()
    (window,) = plan.windows
    assert [r.message_id for r in repair.lake.rows(BACKFILL_IDS) if r.plan_id == plan.plan_id]
    slowest = 30 * MIN - 102 * S if side == "traces" else 29 * MIN
    assert window.window == Window(T0 + 100 * S - 2 * MIN, T0 + 100 * S + slowest)
    whole = repair.planned(RANGE).windows
    ends = {one.shard_id: one.window.end for one in whole}
    for one in whole:
        ends[one.shard_id] = max(ends[one.shard_id], one.window.end)
    assert ends == {shard(0): RANGE.end + slowest, shard(1): RANGE.end + 5 * MIN}


def test_what_lacks_on_both_sides_of_another_buckets_first_day_is_planned_and_proven(
    repair: Repair,
) -> None:
    lake, edge = repair.lake, 36 * 3600  # midnight: seconds after T0
    land(repair, [*range(60), 3600])
    lake.ingest()
    lake.settings["bucket"] = "5m"
    lake.log("b.jsonl", [trace_line(n, shard_id=shard(n % 2)) for n in (7200, 7201)])
    land(repair, (7200, 7201))
    lake.ingest()
    sent = range(edge - 1200, edge + 1200, 7)
    lake.log("c.jsonl", [trace_line(n, shard_id=shard(n % 2)) for n in sent])
    lost = [n for n in sent if -200 <= n - edge < -150 or 400 <= n - edge < 420]
    land(repair, [n for n in sent if n not in lost])
    repair.as_of = T0 + edge * S + timedelta(hours=2)
    around = Window(T0 + (edge - 333) * S, T0 + (edge + 444) * S)
    found, windows = repair.verified(repair.planned(around))
    assert (found.left, found.unjudged) == (len(lost), 0)
    assert "incomplete" in {state for state, _ in windows}

    plan = repair.planned()  # of what that found
    assert sum(window.expected_ids for window in plan.windows) == len(lost)
    land(repair, lost)
    found, windows = repair.verified(plan)
    assert (found.recovered, found.left, {state for state, _ in windows}) == (
        *(len(lost), 0),
        {"verified"},
    )
