"""The clean cells that are read by id all the same, and what need not be read again."""

from datetime import date

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from shardaudit.audit.rules.carried import (
    carried,
    changed_days,
    judged_evidence,
    sampled_cells,
    with_bucket_digest,
    with_neighbours,
)
from shardaudit.columns.ledger_sums import SUMS
from shardaudit.model.tables.audit_tables import EVIDENCE
from tests.builders import T0
from tests.spark.audit.frames import frame
from tests.spark.audit.ledger_rows import CELL_DDL, MINUTE, Row, minute

CELLS_DDL = "shard_id string, bucket_start timestamp, sent_n bigint, differs boolean"


def test_clean_cells_with_messages_are_sampled_of_few_buckets_others_every_day(
    spark: SparkSession,
) -> None:
    cells: list[Row] = [
        {"shard_id": f"s{s}", "bucket_start": T0 + m * MINUTE, "sent_n": 0 if m % 3 == 0 else 1}
        | {"differs": m % 3 == 1}
        for s in range(4)
        for m in range(60)
    ]
    grid = frame(spark, CELLS_DDL, cells)
    chosen = []
    for day in range(4):
        rows = sampled_cells(grid, seed=f"day {day}", size=4).collect()
        assert len(rows) == 4
        minutes = {minute(row.bucket_start) for row in rows}
        assert len(minutes) == 1
        assert {m % 3 for m in minutes} == {2}
        chosen.append(minutes.pop())
        again = sampled_cells(grid, seed=f"day {day}", size=4).collect()
        assert sorted(again) == sorted(rows)
    assert len(set(chosen)) > 1


def test_neighbours_of_a_cell_are_those_before_and_after_it(spark: SparkSession) -> None:
    cells: list[Row] = [
        {"shard_id": s, "bucket_start": T0 + m * MINUTE}
        for s, m in (("s0", 1), ("s0", 2), ("s1", 9))
    ]
    near = frame(spark, "shard_id string, bucket_start timestamp", cells)
    found = [
        (row.shard_id, minute(row.bucket_start))
        for row in with_neighbours(near, bucket=MINUTE).collect()
    ]
    assert sorted(found) == [
        *(("s0", m) for m in (0, 1, 2, 3)),
        *(("s1", m) for m in (8, 9, 10)),
    ]


COUNTS = [f"{side}_{name}" for side in ("sent", "landed") for name in SUMS]
A, B = (1, 10, 20, 1, 10, 20, 2), (2, 30, 40, 2, 30, 40, 3)  # the sums, and the ledger's rows
# By minute what is in its cells, and with which other minute it shares its digest.
BUCKETS: dict[int, tuple[dict[str, tuple[int, ...]], int]] = {
    0: ({"s0": A, "s1": B}, 0),
    1: ({"s1": B, "s0": A}, 0),
    2: ({"s0": B, "s1": A}, 2),
    3: ({"s0": A}, 3),
    4: ({"s0": A, "s1": B, "s2": A}, 4),
    5: ({"s0": A, "s1": A}, 5),  # equal ones do not take each other away
    6: ({"s0": A, "s1": (*B[:-1], 4)}, 6),  # a batch that changed nothing
    7: ({"s0": A, "s1": (*B[:3], 1, 30, 40, 3)}, 7),
    8: ({}, 8),
    9: ({}, 8),
}


def test_the_digest_of_a_bucket_is_of_all_its_cells_and_of_nothing_else(
    spark: SparkSession,
) -> None:
    sums = frame(
        spark,
        f"{CELL_DDL}, {', '.join(f'{name} bigint' for name in [*COUNTS, 'ledger_rows'])}",
        (
            {"shard_id": shard, "bucket_start": T0 + at * MINUTE}
            | dict(zip([*COUNTS, "ledger_rows"], values, strict=True))
            for at, (cells, _) in BUCKETS.items()
            for shard, values in cells.items()
        ),
    )
    grid: list[Row] = [{"shard_id": "s", "bucket_start": T0 + at * MINUTE} for at in BUCKETS]
    found = with_bucket_digest(frame(spark, CELL_DDL, grid), sums).collect()
    digests = {minute(row.bucket_start): row.bucket_digest for row in found}
    assert len(found) == len(digests) == len(BUCKETS)
    assert digests[8] == 0
    assert {at: digests[like] for at, (_, like) in BUCKETS.items()} == digests
    assert len(set(digests.values())) == len({like for _, like in BUCKETS.values()})


# Of ids what is kept: (id, shard, minute, the digest then, whether its arrival is known).
KEPT = [
    ("same", "s0", 0, 100, True),
    ("other", "s0", 1, 7, True),
    ("half", "s0", 0, 100, True),
    ("half", "s0", 1, 7, True),
    ("of an earlier version", "s0", 2, 102, False),
    ("of an earlier version", "s1", 2, 102, True),
    ("clean by now", "s0", 3, 103, True),
    ("outside", "s0", 9, 109, True),
]


def test_what_is_kept_of_an_id_holds_while_its_bucket_is_the_same(spark: SparkSession) -> None:
    stored = frame(
        spark,
        f"{CELL_DDL}, message_id string, bucket_digest bigint, arrived_at timestamp",
        (
            {"message_id": name, "shard_id": shard, "bucket_start": T0 + at * MINUTE}
            | {"bucket_digest": digest, "arrived_at": T0 if is_whole else None}
            for name, shard, at, digest, is_whole in KEPT
        ),
    )
    grid: list[Row] = [
        {"shard_id": shard, "bucket_start": T0 + at * MINUTE, "differs": at != 3}
        | {"bucket_digest": 100 + at}
        for shard in ("s0", "s1")
        for at in range(4)
    ]
    cells = frame(spark, f"{CELL_DDL}, differs boolean, bucket_digest bigint", grid)
    found = carried(judged_evidence(stored, cells))
    assert {*found.evidence.columns} == {*stored.columns}
    kept = {(r.message_id, r.shard_id, minute(r.bucket_start)) for r in found.evidence.collect()}
    assert kept == {("same", "s0", 0), ("half", "s0", 0), ("clean by now", "s0", 3)}
    covered = sorted((r.shard_id, minute(r.bucket_start)) for r in found.covered.collect())
    assert covered == [("s0", 0), ("s1", 2)]
    names = stored.select("message_id", F.xxhash64("message_id").alias("id_hash")).distinct()
    stale = found.stale.join(names, ["id_hash"], how="inner").collect()
    assert sorted((r.message_id, minute(r.bucket_start)) for r in stale) == [
        *(("half", 1), ("of an earlier version", 2), ("other", 1)),
    ]


WHOLE: Row = {
    **{name: "x" for name in ("stream", "message_id", "shard_id", "location")},
    **{name: 1 for name in ("bucket_digest", "sent_count", "counted", "landed_count", "own_rows")},
    **{name: T0 for name in ("bucket_start", "sent_at", "arrived_at")},
    **{name: T0 for name in ("first_landed_at", "last_landed_at")},
    "counted_key": (1, "7"),
    "sent_sequences": ["7", "8"],
    "landed_sequences": [],
    "attributes": {"a": "1", "b": "2"},
}
# Of an id what is found in the place of what was kept.
FOUND: dict[str, Row] = {
    **{name: {name: "y"} for name in ("message_id", "shard_id", "location")},
    **{name: {name: 2} for name in ("bucket_digest", "sent_count", "counted", "landed_count")},
    **{name: {name: T0 + MINUTE} for name in ("bucket_start", "sent_at", "arrived_at")},
    **{name: {name: None} for name in ("first_landed_at", "last_landed_at", "own_rows")},
    "counted_key": {"counted_key": (1, "8")},
    "sent_sequences": {"sent_sequences": ["8", "7"]},
    "landed_sequences": {"landed_sequences": [""]},
    "attributes": {"attributes": {"a": "1", "b": "3"}},
}


def test_a_day_is_written_again_when_any_value_of_any_of_its_rows_is_another(
    spark: SparkSession,
) -> None:
    # By day the rows before, and after.
    days: list[tuple[list[Row], list[Row]]] = [([{}], [other]) for other in FOUND.values()]
    days += [([], [{}]), ([{}], []), ([{}], [{}, {}]), ([{}, {}], [{}])]
    days += [([{}], [{"attributes": {"b": "2", "a": "1"}}])]
    days += [([{}, FOUND["message_id"]], [FOUND["message_id"], {}])]
    before, after = (
        frame(
            spark,
            EVIDENCE.ddl,
            (
                WHOLE | row | {"sent_day": date(2026, 11, 1 + number)}
                for number, sides in enumerate(days)
                for row in sides[side]
            ),
        )
        for side in (0, 1)
    )
    found = {row.sent_day.day - 1: row.rows for row in changed_days(before, after).collect()}
    assert found == {n: len(sides[1]) for n, sides in enumerate(days[:-2])}
    assert {*FOUND, "stream", "sent_day"} == {*EVIDENCE.names}
