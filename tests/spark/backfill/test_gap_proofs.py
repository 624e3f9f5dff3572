"""A planned gap is proven by its cell: it comes back as a whole, in part, or not at all.

Nothing is read here: what a replay would have landed lands by hand.
"""

from dataclasses import replace
from datetime import timedelta

from shardaudit.adapters.aws.kinesis_pages import StreamAddress
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.evidence import gap_messages
from shardaudit.audit.job import audit
from shardaudit.backfill.kinesis_source import ReadSettings
from shardaudit.backfill.ledger import Ledger, stored_windows
from shardaudit.backfill.plan_job import PlanRequest, plan_backfill, stuck_ids
from shardaudit.backfill.replay_run import Replay
from shardaudit.backfill.rules.planned import StoredWindow, WindowState
from shardaudit.backfill.verify import verify
from shardaudit.model.config.eras import Eras
from shardaudit.model.retention import Retention
from shardaudit.model.tables.backfill_tables import BACKFILL_GAPS
from shardaudit.model.tables.gap_tables import GAPS
from shardaudit.model.verdict import State
from shardaudit.model.window import Window
from shardaudit.store.transitions import NewState, Said, accept_gaps, change_state
from tests.builders import NOW, T0, Line, sequence
from tests.spark.audit.nights import settings_of
from tests.spark.lake import Lake
from tests.spark.ungated import ungated

MINUTE, SIZE = timedelta(minutes=1), 1_010
KEPT = Retention(timedelta(hours=24))


def message(minute: int, number: int) -> Line:
    return {
        "message_id": f"{minute}-{number}",
        "shard_id": "shardId-000000000000",
        "sequence_number": sequence(minute * 10_000 + number),
        "sent_at": T0 + minute * MINUTE + number * timedelta(milliseconds=50),
    }


def land(lake: Lake, minute: int, count: int, *, late: bool = True) -> None:
    rows = [message(minute, n) for n in range(count)]
    at = NOW - MINUTE
    lake.land([r | {"landed_at": at if late else r["sent_at"]} for r in rows])  # type: ignore[operator] # a mapping


def audit_outage(lake: Lake) -> None:
    """Lands the minutes before and after it, and audits."""
    for minute in (1, 5):
        land(lake, minute, 10, late=False)
    lake.ingest(now=NOW)
    window = Window(T0, T0 + 10 * MINUTE)
    request = AuditRequest(lake.name, lake.stream, window, NOW, KEPT)
    audit(lake.warehouse, request, ungated(), now=NOW)


def replayed(lake: Lake, stored: StoredWindow) -> Replay:
    """A run that says to have read the window."""
    read = replace(stored, state=WindowState.MERGED, read_records=1, merged_rows=0)
    ledger = Ledger(lake.warehouse, [read], "test")
    reading = ReadSettings(StreamAddress("kinesis-events"), 0.5)
    of, cells = lake.stream, Eras(lake.stream.cell_shape)
    replay = Replay(lake.warehouse, ledger, None, reading, KEPT, cells, lambda: NOW, route=of.route)
    for state in (State.PLANNED, State.REPLAYED):
        gaps = replay.gaps(State.OPEN, State.PLANNED).localCheckpoint()
        change_state(lake.warehouse, GAPS, gaps, NewState(state, "a test", NOW))
    return replay


def test_a_planned_gap_is_proven_by_its_cell(lake: Lake) -> None:
    lake.settings = {"retention": KEPT.length}
    counts = {1: 10, 2: SIZE, 3: SIZE, 4: SIZE, 5: 10}
    lines = [message(m, n) for m, count in counts.items() for n in range(count)]
    lake.log("a.jsonl", [r | {"sent_at": r["sent_at"].isoformat()} for r in lines])  # type: ignore[operator,attr-defined] # a mapping of a time
    audit_outage(lake)

    wanted = PlanRequest(lake.name, lake.stream, NOW, KEPT)
    plan = plan_backfill(lake.warehouse, wanted, now=NOW)
    assert plan_backfill(lake.warehouse, wanted, now=NOW).plan_id == plan.plan_id
    [stored] = stored_windows(lake.warehouse, plan.plan_id)
    assert (stored.expected_ids, stored.because) == (3 * SIZE, "lost")
    assert (stored.start_sequence_number, stored.end_sequence_number) == (
        *(sequence(20_000), sequence(40_000 + SIZE - 1)),
    )
    assert len(lake.rows(BACKFILL_GAPS)) == 3
    assert stuck_ids(lake.warehouse, lake.name, shard_ids=[]) == 0

    replay = replayed(lake, stored)
    land(lake, 2, SIZE)
    land(lake, 3, 1_000)
    found = verify(replay, settings_of(lake), ungated(), clock_now=NOW)
    assert (found.recovered, found.expired, found.left) == (SIZE + 1_000, 0, 10 + SIZE)
    assert replay.ledger.windows[0].error == "1,020 messages not found in the stream as it is now"
    states = sorted((row.state, row["count"]) for row in lake.rows(GAPS))
    assert states == [("open", SIZE), ("recovered", 1_000), ("recovered", SIZE)]


def test_what_a_filter_left_out_is_not_looked_for_again(lake: Lake) -> None:
    route = {"valid": {"after": ["producer"], "share": "traced"}}
    lake.settings = {"retention": KEPT.length, "locations": route}
    counts = {1: 10, 2: 160 + SIZE, 5: 10}
    sent = [message(m, n) for m, count in counts.items() for n in range(count)]
    lines = [r | {"sent_at": r["sent_at"].isoformat()} for r in sent]  # type: ignore[operator,attr-defined] # a mapping of a time
    lake.log("a.jsonl", lines)
    of_valid = [line | {"location": "valid"} for line in lines]
    lake.log("b.jsonl", [line | {"event": "received"} for line in of_valid])
    later = {"event": "left_out", "sent_at": (T0 + 3 * MINUTE).isoformat()}  # its own clock's
    lake.log("c.jsonl", [line | {"event": "left_out"} for line in of_valid[10:150]])
    lake.log("e.jsonl", [line | later for line in of_valid[150:160]])
    lake.log("d.jsonl", [line | {"event": "sent"} for line in of_valid[10:20]])  # started anew
    again = {"sent_at": (T0 + 8 * MINUTE).isoformat()}  # of a retry that its producer stamped anew
    lake.log("f.jsonl", [line | again for line in lines[160:170]])
    lake.log("g.jsonl", [line | again | {"event": "left_out"} for line in of_valid[160:170]])
    audit_outage(lake)
    plan = plan_backfill(lake.warehouse, PlanRequest(lake.name, lake.stream, NOW, KEPT), now=NOW)
    [stored] = stored_windows(lake.warehouse, plan.plan_id)
    replay = replayed(lake, stored)
    found = {row.message_id for row in replay.gap_ids([stored]).collect()}
    wanted = [*range(10), *range(160, 160 + SIZE)]
    gaps = [row["count"] for row in lake.rows(GAPS)]
    assert (stored.expected_ids, gaps) == (len(wanted), [len(wanted)])
    assert found == {f"2-{n}" for n in wanted}
    cell = ("shardId-000000000000", T0 + 2 * MINUTE)
    listed, _ = gap_messages(lake.warehouse, lake.name, lake.stream, cell=cell, limit=10_000)
    assert {row["message_id"] for row in listed} == found
    said = Said(lake.name, Window(T0, T0 + 10 * MINUTE), (), "known")
    assert accept_gaps(lake.warehouse, said, now=NOW).accepted == 1
    assert replay.wanted_ids([stored]).isEmpty()
