"""What the page reads, against the same rows folded in plain Python."""

import random
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from shardaudit.adapters.lake.delta_rs import DeltaRs
from shardaudit.ingest.rules.lineage import BEHIND_PARENT
from shardaudit.model.config.parts import Aws
from shardaudit.model.config.settings import Settings
from shardaudit.model.tables.audit_tables import AUDITS, BATCHES, CELLS, FINDINGS, FINGERPRINTS
from shardaudit.model.tables.table import LATENCY_BINS
from shardaudit.model.tables.watch_tables import SHARDS
from shardaudit.model.verdict import Verdict
from shardaudit.model.watermark import WHY, Held
from shardaudit.model.window import Window
from shardaudit.store.audits import audits_of, newest_watch
from shardaudit.store.cell_grid import ALL_SHARDS, COUNTED, Bins, Segment, ShardGroup, ShardRange
from shardaudit.store.cells import bad_cells, read_grid, read_latency, read_skew
from shardaudit.store.health_times import read_health
from shardaudit.store.read_findings import WantedFindings, each_finding, open_counts, read_findings
from tests.page_warehouse import HOSTILE, write_rows, write_warehouse

START = datetime(2026, 11, 1, tzinfo=UTC)
MINUTE, H = timedelta(minutes=1), timedelta(hours=1)
BINS = Bins(START, 10 * MINUTE, 6)
ALL = ALL_SHARDS


def settings(folder: Path) -> Settings:
    stream = {"stream_name": "events", "traces": {"path": "t"}, "sink": {"path": "s"}}
    return Settings.model_validate({"warehouse": str(folder), "streams": {"events": stream}})


def cells(audit_id: str, *, shards: int, seed: int) -> list[dict[str, object]]:
    chance = random.Random(seed)  # noqa: S311 - the same rows each time
    return [
        {
            "audit_id": audit_id,
            "stream": "events",
            "shard_id": f"shard-{shard:02d}",
            "bucket_start": START + minute * MINUTE,
            "verdict": chance.choice(list(Verdict)).value,
            **{name: chance.randrange(5) for name in COUNTED},
        }
        for shard in range(shards)
        for minute in range(60)
        if shard != 1 or minute >= 30  # born later
    ]


@pytest.mark.parametrize("rows", [1, 3, 100])
def test_a_map_is_the_worst_verdict_and_the_sums_of_its_cells(tmp_path: Path, rows: int) -> None:
    old, new = cells("old", shards=7, seed=1), cells("new", shards=7, seed=2)
    for part in (old[:150], new, old[150:]):
        write_rows(tmp_path, CELLS, part)
    segments = [
        Segment("old", START, START + 20 * MINUTE),
        Segment("new", START + 20 * MINUTE, START + H),
    ]
    grid = read_grid(settings(tmp_path), segments, BINS, shards=ALL, rows=rows)
    cut = START + 20 * MINUTE
    kept = [c for c in old if c["bucket_start"] < cut] + [  # type: ignore[operator]  # a datetime
        c
        for c in new
        if c["bucket_start"] >= cut  # type: ignore[operator]  # a datetime
    ]
    size = -(-7 // rows)
    sums: Counter[tuple[str, int, int]] = Counter()
    worst: dict[tuple[int, int], int] = {}
    for cell in kept:
        start = cell["bucket_start"]
        assert isinstance(start, datetime)
        place = (int(str(cell["shard_id"])[-2:]) // size, (start - START) // BINS.width)
        rank = list(Verdict).index(Verdict(str(cell["verdict"])))
        worst[place] = min(worst.get(place, 99), rank)
        for name in COUNTED:
            sums[(name, *place)] += int(str(cell[name]))
    assert [group.shards for group in grid.groups] == [
        min(size, 7 - at) for at in range(0, 7, size)
    ]
    for row in range(len(grid.groups)):
        for column in range(BINS.count):
            rank = worst.get((row, column), -1)
            assert grid.worst[row][column] == (list(Verdict)[rank] if rank >= 0 else None)
            for name in COUNTED:
                assert grid.counts[name][row][column] == sums[(name, row, column)]


def test_a_place_has_the_first_reason_of_its_cells(tmp_path: Path) -> None:
    quiet, thin = WHY[Held.QUIET], WHY[Held.THIN]
    behind, other = f"{BEHIND_PARENT}p", "of another version"
    reasons = {1: thin, 2: quiet, 3: thin, 10: behind, 11: other, 20: behind, 21: thin, 30: other}
    rows = [c | {"reason": reasons.get(i)} for i, c in enumerate(cells("a", shards=1, seed=1))]
    write_rows(tmp_path, CELLS, rows)
    grid = read_grid(settings(tmp_path), [Segment("a", START, START + H)], BINS, shards=ALL, rows=9)
    assert grid.reasons == [[quiet, behind, thin, other, None, None]]


def test_a_map_is_of_the_shards_that_were_asked_for(tmp_path: Path) -> None:
    write_rows(tmp_path, CELLS, cells("a", shards=5, seed=1))
    wanted = ShardRange("shard-01", "shard-03")
    grid = read_grid(
        settings(tmp_path), [Segment("a", START, START + H)], BINS, shards=wanted, rows=9
    )
    assert [group.first for group in grid.groups] == ["shard-01", "shard-02", "shard-03"]
    assert grid.worst[0][0] is None  # not born yet


def test_a_warehouse_without_tables_has_an_empty_map(tmp_path: Path) -> None:
    grid = read_grid(settings(tmp_path), [Segment("a", START, START + H)], BINS, shards=ALL, rows=9)
    assert grid.groups == ()
    assert read_latency(settings(tmp_path), "events", BINS, [ShardGroup(("a", "b"))]) == [
        [None] * BINS.count
    ]
    assert read_findings(settings(tmp_path), WantedFindings({}), limit=5).total == 0
    assert open_counts(settings(tmp_path)) == []
    assert newest_watch(settings(tmp_path), "events", now=START) == []


def test_bad_cells_are_the_first_by_time_and_counted(tmp_path: Path) -> None:
    write_rows(tmp_path, CELLS, cells("a", shards=3, seed=1))
    found, total = bad_cells(
        settings(tmp_path), [Segment("a", START, START + H)], shards=ALL, limit=5
    )
    assert total == sum(c["verdict"] != "ok" for c in cells("a", shards=3, seed=1))
    assert len(found) == 5
    assert found[0]["bucket_start"] == START
    assert all(cell["verdict"] != "ok" for cell in found)


def landed(shard: str, minute: int, seconds_bin: int, rows: int, **more: object) -> object:
    counts = [rows if i == seconds_bin else 0 for i in range(LATENCY_BINS)]
    row = {
        "stream": "events",
        "side": "sink",
        "shard_id": shard,
        "bucket_start": START + minute * MINUTE,
        "latency_counts": counts,
        "sent_day": date(2026, 11, 1),
    }
    return row | more


def test_latency_adds_up_over_shards_batches_and_removed_rows(tmp_path: Path) -> None:
    rows = [
        landed("a", 0, 1, 5),
        landed("b", 5, 3, 2),
        landed("b", 5, 3, -1),
        landed("c", 0, 4, 9),
        landed("a", 0, 0, 7, stream="orders"),
        landed("a", 0, 0, 7, side="traces", latency_counts=None),
    ]
    write_rows(tmp_path, FINGERPRINTS, rows)  # type: ignore[arg-type]  # rows of our own
    groups = [ShardGroup(("a", "b")), ShardGroup(("c",))]
    found = read_latency(settings(tmp_path), "events", BINS, groups)
    assert found[0][0] == [0, 5, 0, 1, *[0] * 18]
    assert found[1][0] == [0, 0, 0, 0, 9, *[0] * 17]
    assert found[0][1] is None


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("warehouse")
    now = START + timedelta(days=8)
    write_warehouse(folder, now=now, shards=6, days=1, bucket=H)
    return folder


def test_findings_come_soonest_first_whole_and_counted(written: Path) -> None:
    found = read_findings(settings(written), WantedFindings({"kind": "missing"}), limit=4)
    deadlines = [row["recoverable_until"] for row in found.rows]
    assert deadlines == sorted(deadlines)
    assert found.total == len(HOSTILE) + 180 + 120
    assert {row["message_id"] for row in found.rows} >= set(HOSTILE[:3])


def test_findings_are_filtered_by_shard_time_and_part_of_the_id(written: Path) -> None:
    everything = list(each_finding(settings(written), WantedFindings({})))
    sent = Window(START + timedelta(days=7), START + timedelta(days=9))
    wanted = WantedFindings({"state": "open"}, ShardRange("shardId-000000000005"), sent, "age-00")
    found = read_findings(settings(written), wanted, limit=500)
    assert {row["message_id"] for row in found.rows} == {
        row["message_id"]
        for row in everything
        if row["state"] == "open"
        and row["shard_id"] >= "shardId-000000000005"
        and sent.covers(row["sent_at"])
        and "age-00" in row["message_id"]
    }
    assert found.total == len(found.rows) > 0


def test_a_hostile_part_is_only_looked_for(written: Path) -> None:
    for message_id in HOSTILE:
        found = read_findings(settings(written), WantedFindings({}, part=message_id), limit=9)
        assert [row["message_id"] for row in found.rows] == [message_id]


def test_open_counts_have_the_nearest_deadline_of_a_kind(written: Path) -> None:
    counts = {(c.stream, c.kind): c for c in open_counts(settings(written))}
    everything = list(each_finding(settings(written), WantedFindings({"state": "open"})))
    missing = [row for row in everything if row["kind"] == "missing"]
    assert counts["events", "missing"].ids == len(missing)
    nearest = counts["events", "missing"].deadline
    assert nearest == min(row["recoverable_until"] for row in missing)
    assert counts["events", "duplicated"].deadline is None


def test_skew_is_the_worst_that_a_watch_saw_against_all_shards_at_work(tmp_path: Path) -> None:
    def watch(minute: int, **behind: int | str) -> list[dict[str, object]]:
        """Shards by how many minutes their newest message is old, or by a state."""
        return [
            {
                "stream": "events",
                "shard_id": name,
                "observed_at": START + minute * MINUTE,
                "produced_until": START + (minute - (n if isinstance(n, int) else 0)) * MINUTE,
                "state": "stalled" if isinstance(n, int) else n,
            }
            for name, n in behind.items()
        ]

    # Written by Spark and by delta-rs, whose texts are of another type.
    write_rows(tmp_path, SHARDS, watch(1, a=5, b=2, c=9, z=2))
    seen = [*watch(8, a=3, b=2, c="idle", z=1), *watch(25, a=7, b="closed", z=4), *watch(60, a=9)]
    other = [row | {"stream": "orders", "produced_until": START + H} for row in watch(8, a=1)]
    unknown = [row | {"produced_until": None} for row in watch(45, a=1)]
    never = [row | {"state": None} for row in watch(45, b=1)]
    DeltaRs(str(tmp_path), Aws()).upsert([*seen, *other, *unknown, *never], SHARDS)
    groups = [ShardGroup(("a",)), ShardGroup(("b", "c"))]  # z is not shown, and at work
    found = read_skew(settings(tmp_path), "events", BINS, groups)
    minutes = [[None if value is None else value / 60 for value in row] for row in found]
    nothing = [None] * 3
    assert minutes == [[3.0, None, 3.0, *nothing], [7.0, None, None, *nothing]]


def test_there_is_no_skew_without_a_watch(tmp_path: Path) -> None:
    groups = [ShardGroup(("a",))]
    assert read_skew(settings(tmp_path), "events", BINS, groups) == [[None] * 6]
    write_rows(tmp_path, SHARDS, [])
    assert read_skew(settings(tmp_path), "events", BINS, groups) == [[None] * 6]
    assert read_skew(settings(tmp_path), "events", BINS, []) == []


def test_the_newest_watch_is_one_observation(tmp_path: Path) -> None:
    for days in (30, 9, 9):
        at = START - timedelta(days=days)
        rows = [
            {"stream": "events", "shard_id": f"{days}-{n}", "observed_at": at, "state": state}
            for n, state in enumerate(["ok", None])
        ]
        write_rows(tmp_path, SHARDS, rows)
    found = newest_watch(settings(tmp_path), "events", now=START)
    assert {row["shard_id"] for row in found} == {"9-0"}


def test_what_the_watch_and_the_audit_upserted_is_read(tmp_path: Path) -> None:
    """Delta-rs itself writes `shards` and `audits`: other parquet types than Spark's."""
    tables = DeltaRs(str(tmp_path), Aws())
    for table in (SHARDS, AUDITS):
        write_rows(tmp_path, table, [])
    watched = [
        {"stream": stream, "shard_id": f"s{n}", "observed_at": START, "state": "ok"}
        for n, stream in enumerate(["events", "orders", "events"])
    ]
    tables.upsert(watched, SHARDS)
    ids = ("events", "orders")
    tables.upsert([{"audit_id": a, "stream": a, "as_of": START} for a in ids], AUDITS)
    found = newest_watch(settings(tmp_path), "events", now=START + MINUTE)
    assert {row["shard_id"] for row in found} == {"s0", "s2"}
    audits = audits_of(settings(tmp_path), "events", now=START)
    assert [row["audit_id"] for row in audits] == ["events"]


def test_what_a_wrong_clock_stored_is_named_and_not_the_newest(tmp_path: Path) -> None:
    for at in (START, START + timedelta(days=365)):
        span = {"window_start": at - H, "window_end": at, "as_of": at, "started_at": at}
        audit = span | {"audit_id": f"{at:%Y}"}
        batch = {"batch_id": f"of {at:%Y}", "state": "done", "done_at": at}
        mine: dict[str, object] = {"stream": "events"}
        write_rows(tmp_path, AUDITS, [mine | audit | {"status": "published"}])
        write_rows(tmp_path, BATCHES, [mine | batch | {"side": s} for s in ("traces", "sink")])
        watched = {"shard_id": f"{at:%Y}", "observed_at": at, "state": "ok"}
        write_rows(tmp_path, SHARDS, [mine | watched])
    now = START + MINUTE
    # Asked for by hand: it is not the newest, and no clock was wrong.
    asked = {"stream": "events", "audit_id": "asked", "status": "published", "started_at": START}
    write_rows(tmp_path, AUDITS, [asked | {"as_of": START + timedelta(days=9)}])
    [watch] = newest_watch(settings(tmp_path), "events", now=now)
    [audit_then] = audits_of(settings(tmp_path), "events", now=now)
    assert watch["shard_id"] == audit_then["audit_id"] == "2026"
    health = read_health(settings(tmp_path), "events", now=now)
    assert set(health.times.values()) == {START}
    assert [said.partition(" is of 2027-")[0] for said in health.troubles(now)] == [
        *("the batch of 2027", "the audit 2027", "a watch of events"),
    ]


def test_a_column_of_the_findings_table_is_only_ever_a_value(written: Path) -> None:
    assert set(FINDINGS.key) == {"stream", "message_id", "kind"}
    assert (
        read_findings(settings(written), WantedFindings({"kind": "' OR 1=1 --"}), limit=1).total
        == 0
    )
