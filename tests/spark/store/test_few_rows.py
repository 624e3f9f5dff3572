"""Few rows go through the driver, many through the engine: a table is the same by either way."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from random import Random

import pytest
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.adapters.lake.delta_rs import DeltaRs
from shardaudit.model.tables.table import Table
from shardaudit.store.warehouse import Warehouse

pytestmark = pytest.mark.both_engines

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
COLUMNS = (
    ("stream", "string", ""),
    ("message_id", "string", ""),
    ("seen_at", "timestamp", "when"),
    ("day", "date", ""),
    ("n", "bigint", ""),
    ("small", "int", ""),
    ("share", "double", ""),
    ("is_odd", "boolean", ""),
    ("parents", "array<string>", ""),
    ("bins", "array<bigint>", "counts"),
    ("attributes", "map<string,string>", ""),
    ("place", "struct<digits:int,text:string>", "where"),
)
PLAIN = Table("plain", COLUMNS, ("stream", "message_id", "seen_at"))
PARTED = Table("parted", COLUMNS, PLAIN.key, ("stream",))
OF_DAYS = Table(
    "of_days",
    (
        ("stream", "string", ""),
        ("day", "date", ""),
        ("n", "bigint", ""),
        ("cells", "array<struct<at:timestamp,key:string,is_odd:boolean>>", "some, or NULL"),
    ),
    ("stream", "day", "n"),
    ("stream",),
)
DDL = PLAIN.ddl
STREAMS = ("a.b-c", "orders_2", "events")
IDS = (None, "", 'o\'dd "id"; --', "\n", "日🔥", "NULL", "x" * 40)
Values = tuple[object, ...]


def values(random: Random, stream: str) -> Values:
    """A row of odd values."""
    at = random.choice([None, NOON, NOON + timedelta(microseconds=1)])
    text = random.choice(IDS)
    return (
        stream,
        random.choice(IDS),
        at,
        random.choice([None, date(1970, 1, 1), date(2026, 11, 1)]),
        random.choice([None, 0, -(2**63), 2**63 - 1]),
        random.choice([None, 0, -(2**31)]),
        random.choice([None, 0.0, -0.5, 1e300]),
        random.choice([None, True, False]),
        random.choice([None, [], [text], ["a", None, "b"]]),
        random.choice([None, [], [0] * 22, [None]]),
        random.choice([None, {}, {"k": text}, {"": ""}]),
        random.choice([None, (None, None), (5, text)]),
    )


def keyed(rows: Sequence[Values]) -> dict[Values, Values]:
    """One row of each key: the last."""
    return {row[:3]: row for row in rows}


def stored(warehouse: Warehouse, table: Table) -> list[str]:
    """All rows, in one order; a struct is its values."""
    rows = collected(warehouse.read(table))
    return sorted(repr(tuple(v if not isinstance(v, tuple) else (*v,) for v in r)) for r in rows)


@pytest.fixture(params=["engine", "driver"])
def read_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are read by the engine; or, as they have few rows, by the driver."""
    if request.param == "engine":
        monkeypatch.setattr(DeltaRs, "few", lambda *_, **__: None)


@pytest.mark.usefixtures("read_by")
@pytest.mark.parametrize("table", [PLAIN, PARTED], ids=lambda table: table.name)
def test_table_is_the_same_whoever_wrote_it(warehouse: Warehouse, table: Table) -> None:
    """Appends, merges and replaces in turn, each by a way that chance chose."""
    random = Random(7)  # noqa: S311 - no secret
    wanted: list[Values] = []
    for _ in range(8):
        stream, most = random.choice(STREAMS), random.choice([None, 5])
        fresh = keyed([values(random, stream) for _ in range(random.choice([0, 1, 5]))])
        frame = warehouse.spark.createDataFrame(list(fresh.values()), DDL)
        match random.choice(["merge", "replace", "append"]):
            case "merge":
                wanted = [row for row in wanted if row[:3] not in fresh]
                warehouse.merge(frame, table, most=most)
            case "replace":
                wanted = [row for row in wanted if row[0] != stream]
                warehouse.replace(frame, table, having={"stream": [stream]}, most=most)
            case _:
                wanted = [row for row in wanted if row[0] != stream]
                warehouse.replace(frame.limit(0), table, having={"stream": [stream]})
                warehouse.append(frame, table, most=most)
        wanted += fresh.values()
        assert stored(warehouse, table) == sorted(map(repr, wanted))


@pytest.mark.usefixtures("read_by")
@pytest.mark.parametrize("most", [None, 5], ids=["engine", "driver"])
def test_rows_of_some_days_are_replaced_and_no_others(
    warehouse: Warehouse, most: int | None
) -> None:
    first, second, third = (date(2026, 11, n) for n in (1, 2, 3))
    cells = [(NOON, "0019x", True), (NOON + timedelta(microseconds=1), None, False)]
    odd = "it's"
    before = [
        *((odd, first, 1, cells), (odd, second, 2, None), (odd, third, 3, cells[:1])),
        ("other", first, 4, []),
    ]
    after = [(odd, first, 5, None), (odd, second, 6, cells)]
    for rows, having in (
        (before[:3], {"stream": [odd]}),
        (before[3:], {"stream": ["other"]}),
        (after, {"stream": [odd], "day": [first.isoformat(), second.isoformat()]}),
    ):
        frame = warehouse.spark.createDataFrame(rows, OF_DAYS.ddl)
        warehouse.replace(frame, OF_DAYS, having=having, most=most)
    each = warehouse.read(OF_DAYS).select("n", F.explode("cells").alias("cell"))
    told = [(row.n, row.at, row.key, row.is_odd) for row in collected(each.select("n", "cell.*"))]
    assert sorted(told, key=repr) == sorted(
        [(n, *cell) for _, _, n, of_n in [*before[2:], *after] for cell in of_n or ()], key=repr
    )
    counts = warehouse.counts(OF_DAYS, by=["day"], having={"stream": odd})
    assert counts == {(first,): 1, (second,): 1, (third,): 1}
