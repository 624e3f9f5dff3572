"""Ids over the window's edge, and evidence that holds while its bucket is the same."""

from datetime import UTC, datetime, timedelta

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from shardaudit.audit.rules.apart import crossing_ids, displaced_rows, other_places, within_window
from shardaudit.audit.rules.carried import carried, judged_evidence, with_bucket_digest
from shardaudit.audit.rules.drill_down import with_hash
from shardaudit.audit.rules.findings import pending_ids
from shardaudit.columns.ledger_sums import SUMS
from tests.builders import T0
from tests.spark.audit.frames import frame

MINUTE = timedelta(minutes=1)
Row = dict[str, object]
PLACES_DDL = "message_id string, bucket_start timestamp, counted_in timestamp"
EVIDENCE_DDL = "message_id string, shard_id string, bucket_start timestamp, landed_count bigint"
CLASSIFIED_DDL = EVIDENCE_DDL + ", duplicated string"


def at(minute: int) -> datetime:
    return T0 + minute * MINUTE


def minute(value: object) -> int:
    assert isinstance(value, datetime)
    return (value.astimezone(UTC) - T0) // MINUTE


def inside() -> Column:
    """The window: from minute 0 on."""
    return F.col("bucket_start") >= F.lit(T0)


def test_an_attempt_leads_from_each_of_its_buckets_to_the_other(spark: SparkSession) -> None:
    apart = [("a", 1, 0), ("a", 2, 0), ("b", 5, 4)]
    places = frame(
        spark,
        PLACES_DDL,
        ({"message_id": m, "bucket_start": at(b), "counted_in": at(c)} for m, b, c in apart),
    )
    ids = with_hash(frame(spark, "message_id string", [{"message_id": "a"}, {"message_id": "a"}]))
    [the_hash] = {row.id_hash for row in ids.collect()}
    found = [(row.id_hash, minute(row.bucket_start)) for row in other_places(ids, places).collect()]
    assert sorted(found) == [(the_hash, 0), (the_hash, 1), (the_hash, 2)]


# Of an id where it landed (shard, minute, rows), and the minute in which it counts.
IDS: dict[str, tuple[list[tuple[str, int, int]], int]] = {
    "inside": ([("s0", 1, 1), ("s0", 2, 1)], 1),
    "outside": ([("s0", -1, 2), ("s0", -2, 1)], -1),
    "counts outside": ([("s0", -1, 1), ("s1", 3, 1), ("s0", 3, 1), ("s0", 4, 1)], -1),
    "counts inside": ([("s0", 2, 1), ("s0", -1, 2)], 2),
    "was sent outside": ([("s0", 2, 1), ("s0", -1, 0)], 2),
    "was sent inside": ([("s0", -1, 2), ("s0", 2, 0)], -1),
}


def told(spark: SparkSession) -> tuple[DataFrame, DataFrame, DataFrame]:
    evidence: list[Row] = []
    classified: list[Row] = []
    for name, (cells, home) in IDS.items():
        for shard, when, n in cells:
            evidence.append(
                {"message_id": name, "shard_id": shard, "bucket_start": at(when), "landed_count": n}
            )
        rows = sum(n for *_, n in cells)
        classified.append(
            {"message_id": name, "shard_id": "s0", "bucket_start": at(home), "landed_count": rows}
            | {"duplicated": "unknown" if rows > 1 else None}
        )
    seen = frame(spark, EVIDENCE_DDL, evidence)
    crossing = crossing_ids(seen, inside())
    return (
        seen,
        crossing,
        within_window(frame(spark, CLASSIFIED_DDL, classified), crossing, inside()),
    )


def test_an_id_that_counts_before_the_window_is_told_where_it_landed_again(
    spark: SparkSession,
) -> None:
    _, crossing, within = told(spark)
    cells = {
        row.message_id: row.told_in and (row.told_in.shard_id, minute(row.told_in.bucket_start))
        for row in crossing.collect()
    }
    assert cells == {
        "outside": None,
        "counts outside": ("s0", 3),
        "counts inside": ("s0", 2),
        "was sent outside": ("s0", 2),
        "was sent inside": None,
    }
    found = {
        row.message_id: (
            row.told_in.shard_id,
            minute(row.told_in.bucket_start),
            row.counts_outside,
        )
        for row in within.collect()
    }
    assert found == {
        "inside": ("s0", 1, False),
        "counts outside": ("s0", 3, True),
        "counts inside": ("s0", 2, False),
        "was sent outside": ("s0", 2, False),
    }


def test_rows_of_an_id_are_counted_in_the_cell_that_tells_of_it(spark: SparkSession) -> None:
    seen, crossing, within = told(spark)
    rows = displaced_rows(seen, within, crossing, inside()).collect()
    found = {(row.shard_id, minute(row.bucket_start)): row.displaced for row in rows}
    assert len(found) == len(rows)
    assert {cell: n for cell, n in found.items() if n} == {
        # "counts outside" has four rows: one is matched out there, three are told in one cell.
        ("s0", 3): -1 + 3,
        ("s1", 3): -1,
        ("s0", 4): -1,
        # "counts inside" has two more out there.
        ("s0", 2): 2,
    }


def test_only_what_is_pending_can_not_be_judged(spark: SparkSession) -> None:
    causes = {"a": "pending", "b": "lost", "c": None, "d": "stuck"}
    rows = [{"message_id": m, "not_landed": cause} for m, cause in causes.items()]
    classified = frame(spark, "message_id string, not_landed string", rows)
    assert [row.message_id for row in pending_ids(classified).collect()] == ["a"]


SIDES = [f"{side}_{name}" for side in ("sent", "landed") for name in SUMS]
SUMS_DDL = "shard_id string, bucket_start timestamp, ledger_rows bigint, " + ", ".join(
    f"{name} bigint" for name in SIDES
)


def digests(spark: SparkSession, sums: list[Row]) -> dict[int, int]:
    places = [{"shard_id": s, "bucket_start": at(m)} for s in ("s0", "s1") for m in (0, 1, 2)]
    cells = frame(spark, "shard_id string, bucket_start timestamp", places)
    rows = with_bucket_digest(cells, frame(spark, SUMS_DDL, sums)).collect()
    assert len(rows) == len(places)
    found: dict[int, set[int]] = {}
    for row in rows:
        found.setdefault(minute(row.bucket_start), set()).add(row.bucket_digest)
    assert all(len(values) == 1 for values in found.values())
    return {when: values.pop() for when, values in found.items()}


def test_the_digest_of_a_bucket_changes_with_any_cell_of_it(spark: SparkSession) -> None:
    zeros: Row = dict.fromkeys((*SIDES, "ledger_rows"), 1)
    places = (("s0", 0), ("s1", 0), ("s0", 1))
    sums: list[Row] = [zeros | {"shard_id": s, "bucket_start": at(m)} for s, m in places]
    first = digests(spark, sums)
    assert first[2] == 0
    assert len(set(first.values())) == 3
    for name in (*SIDES, "ledger_rows"):
        changed = digests(spark, [sums[0], sums[1] | {name: 2}, sums[2]])
        assert changed[0] != first[0], name
        assert changed[1] == first[1]
    assert digests(spark, [sums[1], sums[2]])[0] != first[0]


def test_evidence_holds_while_all_buckets_of_an_id_are_the_same(spark: SparkSession) -> None:
    # By minute, the digest then, and whether the cell differs now; all have the digest 1 now.
    stored = {
        "same": [(0, 1)],
        "changed": [(0, 2)],
        "changed in part": [(0, 1), (1, 2)],
        "of an earlier version": [(0, 1)],
        "outside": [(9, 1)],
        "clean now": [(2, 1)],
    }
    rows: list[Row] = [
        {"message_id": m, "shard_id": "s0", "bucket_start": at(when), "bucket_digest": digest}
        | {"arrived_at": None if m == "of an earlier version" else T0}
        for m, cells in stored.items()
        for when, digest in cells
    ]
    ddl = "message_id string, shard_id string, bucket_start timestamp"
    cells: list[Row] = [
        {"shard_id": "s0", "bucket_start": at(m), "differs": m != 2, "bucket_digest": 1}
        for m in range(4)
    ]
    known = carried(
        judged_evidence(
            frame(spark, f"{ddl}, arrived_at timestamp, bucket_digest bigint", rows),
            frame(
                spark,
                "shard_id string, bucket_start timestamp, differs boolean, bucket_digest bigint",
                cells,
            ),
        )
    )
    ids = with_hash(frame(spark, "message_id string", ({"message_id": m} for m in stored)))
    of_hash = {row.id_hash: row.message_id for row in ids.collect()}
    stale = [(of_hash[r.id_hash], minute(r.bucket_start)) for r in known.stale.collect()]
    assert sorted(stale) == [("changed", 0), ("changed in part", 1), ("of an earlier version", 0)]
    kept = [(r.message_id, minute(r.bucket_start)) for r in known.evidence.collect()]
    assert sorted(kept) == [("changed in part", 0), ("clean now", 2), ("same", 0)]
    assert {"holds", "differs", "id_hash"}.isdisjoint(known.evidence.columns)
    assert [minute(row.bucket_start) for row in known.covered.collect()] == [0]
