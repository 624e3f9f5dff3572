"""Old rows that go: whoever reads what is left finds what was there before, at once and later."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.compute as pc
import pytest

from shardaudit.audit.silences import _closed
from shardaudit.ingest.ask_kinesis import retention_of
from shardaudit.model.config.keep import Keep
from shardaudit.model.config.settings import Settings
from shardaudit.model.errors import LockLostError
from shardaudit.model.tables.all_tables import OF_LEDGER, OF_WATCH
from shardaudit.model.tables.audit_tables import BATCHES, CELLS, FINDINGS, GATES, QUARANTINE
from shardaudit.model.tables.table import Table
from shardaudit.model.tables.watch_tables import NOTIFICATIONS, POSITIONS, SHARDS
from shardaudit.model.verdict import Level
from shardaudit.model.window import Window
from shardaudit.page.page_reading import read_map
from shardaudit.page.page_state import PageState
from shardaudit.store import maintain as module
from shardaudit.store.audits import audits_of
from shardaudit.store.maintain import delete_audit_history, delete_watch_history
from shardaudit.store.warehouse import Warehouse
from shardaudit.watch.rules.notifications import ShardNews, due_notifications
from shardaudit.watch.watch_history import history, told
from tests.builders import T0, trace_line
from tests.spark.audit.nights import DAY, DAY_S, HOUR, audited, of_day, settings_of
from tests.spark.lake import Lake

EVERYTHING = pc.field("stream") == "events"
Row = dict[str, Any]  # Any: a column's type is what model/tables says
NIGHTS = 4
KEPT, NOTHING = timedelta(days=2), timedelta(microseconds=1)


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Histories of days, which no configuration may have."""
    monkeypatch.setattr(module, "BESIDE", timedelta(0))


def keeping(settings: Settings, length: timedelta) -> Settings:
    return settings.model_copy(update={"keep": Keep.model_construct(history=length)})


def some_settings(folder: Path) -> Settings:
    place = {"path": str(folder)}
    streams = {"events": {"stream_name": "e", "traces": place, "sink": place}}
    settings = Settings.model_validate({"warehouse": str(folder), "streams": streams})
    return keeping(settings, KEPT)


def contents(warehouse: Warehouse, *tables: Table) -> dict[str, list[str]]:
    """The rows of some tables as texts, sorted."""
    return {t.name: sorted(map(str, warehouse.rows(t, where=EVERYTHING))) for t in tables}


def test_audits_find_and_say_the_same_when_old_cells_and_gates_are_gone(lake: Lake) -> None:
    """Nights that overlap, a message that is lost for good, a line that cannot be read."""
    for day in range(NIGHTS):
        of_day(lake, day, *range(0, DAY_S, 7200))
        if day == 0:
            lake.log("bad.jsonl", ["{", trace_line(11)])
        audited(lake, day, since=max(0, day - 2))
    judged = {"stream": "events", "judged_at": T0, "suite": "ledger"}
    lake.warehouse.upsert([judged | {"audit_id": "a"}], GATES)
    lake.warehouse.upsert([judged | {"audit_id": "b", "plan_id": "p"}], GATES)
    # By the clock, all audits were over in a minute.
    settings, later = keeping(settings_of(lake), NOTHING), T0 + 365 * DAY
    said, seen = done_again(lake), what_is_shown(lake, settings)
    gone = delete_audit_history(lake.warehouse, settings, now=later)
    assert gone[CELLS.name] > 0
    assert gone[GATES.name] > 1
    assert gone[QUARANTINE.name] == 1
    assert [row["plan_id"] for row in lake.warehouse.rows(GATES, where=EVERYTHING)] == ["p"]
    assert what_is_shown(lake, settings) == seen
    assert delete_audit_history(lake.warehouse, settings, now=later).total() == 0
    assert done_again(lake) == said


def what_is_shown(lake: Lake, settings: Settings) -> list[object]:
    """The map of all days, and what other tables hold."""
    end = T0 + NIGHTS * DAY
    state = PageState(stream=lake.name, window=Window(T0, end))
    shown = read_map(settings, state, audits_of(settings, lake.name, now=end), now=end)
    others = [table for table in OF_LEDGER if table not in {CELLS, GATES, QUARANTINE}]
    return [shown, contents(lake.warehouse, *others)]


def done_again(lake: Lake) -> list[str]:
    """What an audit of all days says now; it finds nothing new to read."""
    name = audited(lake, NIGHTS - 1, since=0).audit_id
    cells = lake.warehouse.rows(CELLS, where=pc.field("audit_id") == name)
    batches = len(lake.warehouse.rows(BATCHES, where=EVERYTHING))
    return [*sorted(map(str, cells)), *contents(lake.warehouse, FINDINGS)["findings"], str(batches)]


def observed(shard: str, at: datetime, **said: object) -> Row:
    return {"stream": "events", "shard_id": shard, "observed_at": at, "level": "none", **said}


def watched(chance: Random, hours: int) -> Iterator[Row]:
    """Hours of looks at shards that close, of a stream whose retention changes."""
    ends = {f"s{n}": chance.randrange(hours // 2, 2 * hours) for n in range(3)}
    kept = 24
    for hour in range(hours):
        kept = chance.choice([24, 36, 48]) if chance.random() < 0.1 else kept
        answers = chance.random() < 0.9
        for shard, end in ends.items():
            is_open = hour < end
            if not is_open and hour > end + 24 and chance.random() < 0.5:
                continue
            listed = {"opened": is_open, "retention_hours": kept, "parent_shard_ids": ["p" + shard]}
            state = "closed" if not is_open else chance.choice(["ok", "idle"])
            more = {} if chance.random() < 0.2 else {"state": state, "settled_frontier": str(hour)}
            known = listed if answers or not more else {}
            yield observed(shard, T0 + hour * HOUR, **more, **known)


def once() -> Callable[[], None]:
    """A lock that is lost after one write."""
    left = [None]

    def check() -> None:
        if not left:
            raise LockLostError("the warehouse", "another run")
        left.pop()

    return check


@pytest.mark.parametrize("seed", range(3))
def test_what_is_known_of_shards_stays(warehouse: Warehouse, tmp_path: Path, seed: int) -> None:
    chance, hours = Random(seed), 24 * 6  # noqa: S311 - to be repeated
    rows = list(watched(chance, hours))
    warehouse.upsert(rows, SHARDS)
    positions = [r | {"source": "kcl", "consumer": "c"} for r in rows]
    warehouse.upsert(positions, POSITIONS)
    settings = some_settings(tmp_path / "warehouse")
    stream, end = settings.stream("events"), T0 + hours * HOUR

    def seen() -> list[object]:
        parents = warehouse.rows(SHARDS, where=pc.field("opened").is_valid())
        return [
            retention_of(warehouse, "events", stream, as_of=end),
            _closed(warehouse, "events"),
            sorted(warehouse.counts(SHARDS, by=["shard_id"], having={"stream": "events"})),
            {(row["shard_id"], *row["parent_shard_ids"]) for row in parents},
            history(warehouse, "events", as_of=end),
        ]

    before = seen()
    later, rows_before = end + 400 * DAY, len(rows)
    with pytest.raises(LockLostError):  # killed between two tables
        delete_watch_history(warehouse.locked_by(once()), settings, now=later)
    assert len(contents(warehouse, SHARDS)[SHARDS.name]) < rows_before
    assert seen() == before
    gone = delete_watch_history(warehouse, settings, now=later)
    assert (gone[SHARDS.name], gone[POSITIONS.name] > 0) == (0, True)
    assert seen() == before
    left = contents(warehouse, *OF_WATCH)
    assert delete_watch_history(warehouse, settings, now=later).total() == 0
    assert contents(warehouse, *OF_WATCH) == left


def notified(number: int, shard: str | None, kind: str, *, state: str = "sent") -> Row:
    return {
        "notification_id": f"n{number}",
        "stream": "events",
        "shard_id": shard,
        "kind": kind,
        "previous_level": "none",
        "level": "none" if kind == "clear" else "warn",
        "text": "t",
        "observed_at": T0 + number * HOUR,
        "state": state,
    }


def test_of_notifications_those_of_a_shard_that_is_well_go(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    rows = [
        notified(0, "well", "standstill"),
        notified(1, "well", "clear"),
        notified(2, "ill", "clear"),
        notified(3, "ill", "standstill"),
        notified(4, None, "audit"),
        notified(5, None, "audit", state="pending"),
        notified(100, None, "audit"),
    ]
    warehouse.upsert(rows, NOTIFICATIONS)
    as_of = T0 + 101 * HOUR
    shards = [
        ShardNews("events", shard, Level.WARN, stands_still=True, text="t", goes_on=False)
        for shard in ("well", "ill")
    ]
    before = due_notifications(shards, told(warehouse, "events", as_of=as_of), as_of=as_of)
    settings = some_settings(tmp_path / "warehouse")
    assert delete_watch_history(warehouse, settings, now=as_of) == {NOTIFICATIONS.name: 2}
    assert due_notifications(shards, told(warehouse, "events", as_of=as_of), as_of=as_of) == before
    left = {row["notification_id"] for row in warehouse.rows(NOTIFICATIONS, where=EVERYTHING)}
    assert left == {"n1", "n2", "n3", "n5", "n100"}
