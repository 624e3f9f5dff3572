"""Which cells differ: read from the ledger, and from what is kept of a day."""

from datetime import UTC, datetime, timedelta

from pyspark.sql import SparkSession

from shardaudit.adapters.engine.collected import collected
from shardaudit.columns.ledger_sums import SUMS
from shardaudit.model.config.eras import always
from shardaudit.model.tables.audit_tables import FINGERPRINTS
from shardaudit.model.tables.ledger_tables import CELL_FACTS, LEDGER_HOURS
from shardaudit.watch.rules.differing_cells import differing_cells, kept_cells, unequal_hours

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
T0 = datetime(2026, 11, 1, tzinfo=UTC)
LATE = T0 + 90.5 * MINUTE  # when the trace of what lacks came
Sides = tuple[tuple[int, int, int], tuple[int, int, int]]
# By shard and minute the sums of what was sent, and of what landed.
SAME, GONE, OTHER = (2, 5, 7), (0, 0, 0), (2, 5, 8)
CELLS: dict[tuple[str, int], Sides] = {
    ("same", 0): (SAME, SAME),
    ("lacks", 3): (SAME, GONE),
    ("lacks", 59): (SAME, SAME),
    ("other ids", 60): (SAME, OTHER),
    ("moved", 8): (SAME, GONE),
    ("moved", 9): (GONE, SAME),
    ("moved an hour", 59): (SAME, GONE),
    ("moved an hour", 60): (GONE, SAME),
}
# What an hour evens out is no difference.
DIFFER = {key for key, (sent, landed) in CELLS.items() if sent != landed and key[0] != "moved"}


def test_cells_of_the_ledger_and_kept_cells_differ_alike(spark: SparkSession) -> None:
    rows = []
    for (shard, minute), sides in CELLS.items():
        at = T0 + minute * MINUTE
        for side, sums in zip(("traces", "sink"), sides, strict=True):
            row = {"shard_id": shard, "bucket_start": at, "side": side, "own_n": 0}
            row |= dict(zip(SUMS, sums, strict=True))
            row |= {"arrived_from": LATE, "arrived_until": LATE} if side == "traces" else {}
            rows.append(tuple(row.get(name) for name in FINGERPRINTS.names))
    ledger = spark.createDataFrame(rows, FINGERPRINTS.ddl)
    found = differing_cells(
        ledger, unequal_hours(ledger, shape=always(MINUTE)), shape=always(MINUTE)
    )
    names = ["shard_id", "bucket_start", "arrived_from", "arrived_until"]
    names += [f"lacking_{name}" for name in SUMS]
    kept = kept_cells(spark.createDataFrame(hours(), LEDGER_HOURS.ddl), shape=always(MINUTE))
    arrived = LATE.replace(second=0)
    expected = {
        (shard, (T0 + minute * MINUTE), *[arrived] * 2, *lacks(CELLS[shard, minute]))
        for shard, minute in DIFFER
    }
    assert {*map(tuple, collected(kept.select(*names)))} == expected
    assert {*map(tuple, collected(found.select(*names)))} == expected


def lacks(sides: Sides) -> tuple[int, ...]:
    return tuple(sent - landed for sent, landed in zip(*sides, strict=True))


def hours() -> list[tuple[object, ...]]:
    """As an audit keeps them: of each hour the cells of which both sides are not the same."""
    found: dict[tuple[str, datetime], list[tuple[object, ...]]] = {}
    for (shard, minute), sides in CELLS.items():
        mine = found.setdefault((shard, T0 + minute // 60 * HOUR), [])
        if sides[0] != sides[1]:
            cell: dict[str, object] = {"bucket_start": T0 + minute * MINUTE, "first_arrival": LATE}
            cell |= {"arrived_until": LATE.replace(second=0)}
            for side, sums in zip(("sent", "landed"), sides, strict=True):
                cell |= {f"{side}_{n}": of for n, of in zip(SUMS, sums, strict=True)}
            mine.append(tuple(cell.get(name) for name, _ in CELL_FACTS))
    rows: list[dict[str, object]] = [
        {"shard_id": shard, "hour": hour, "unequal": cells or None}
        for (shard, hour), cells in found.items()
    ]
    return [tuple(row.get(name) for name in LEDGER_HOURS.names) for row in rows]
