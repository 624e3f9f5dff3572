"""What the ledger's cells prove of a shard, and the cells themselves by both sides' batches."""

from datetime import UTC, datetime, timedelta

from pyspark.sql import SparkSession

from shardaudit.audit.rules.cells import compared_cells
from shardaudit.audit.rules.gaps import gap_measures
from shardaudit.audit.rules.ledger_hours import shard_hours, time_measures
from shardaudit.audit.rules.shard_facts import shard_facts
from shardaudit.columns.ledger_sums import cell_sums, sums_digest
from tests.builders import NOW, T0
from tests.spark.audit.frames import frame

S = timedelta(seconds=1)
MINUTE = 60 * S
LEDGER_DDL = (
    "shard_id string, bucket_start timestamp, side string, n bigint, sum_lo bigint, "
    "sum_hi bigint, max_sequence_number string, last_at timestamp, unnumbered_at timestamp, "
    "own_n bigint, without_landed_at bigint, arrived_from timestamp, arrived_until timestamp, "
    "min_sequence_number string"
)
PATIENCE_DDL = "shard_id string, patience double"
Row = dict[str, object]


def sent(shard: str, number: str | None, *, at: int = 0, **fields: object) -> Row:
    usual: Row = {"shard_id": shard, "bucket_start": T0 + at * MINUTE, "side": "traces", "n": 1}
    usual |= {"sum_lo": 5, "sum_hi": 7, "max_sequence_number": number, "last_at": T0}
    return usual | fields


def landed(
    shard: str, number: str | None, ago: int | None, *, at: int = 0, **fields: object
) -> Row:
    """A batch of the sink; `ago`: seconds before now; None when nobody knows."""
    usual: Row = {"shard_id": shard, "bucket_start": T0 + at * MINUTE, "side": "sink", "n": 1}
    usual |= {"sum_lo": 5, "sum_hi": 7, "max_sequence_number": number}
    usual |= {"last_at": None if ago is None else NOW - ago * S}
    usual |= {"without_landed_at": 1 if ago is None else 0}
    return usual | fields


def facts(spark: SparkSession, ledger: list[Row], **patience: float) -> dict[str, Row]:
    sums = cell_sums(frame(spark, LEDGER_DDL, ledger), *gap_measures(MINUTE), *time_measures())
    found = shard_facts(
        shard_hours(sums, as_of=NOW, settle_grace=600 * S, bucket=MINUTE),
        frame(spark, PATIENCE_DDL, [{"shard_id": s, "patience": p} for s, p in patience.items()]),
        as_of=NOW,
        settle_grace=600 * S,
    )
    return {row.shard_id: row.asDict() for row in found.collect()}


def number(key: object) -> str | None:
    return None if key is None else str(key)[4:]


def ago(at: object) -> float | None:
    if at is None:
        return None
    assert isinstance(at, datetime)
    return (NOW - at.astimezone(UTC)) / S


LEDGER = [
    # Numbers by their length first; a cell whose greatest number landed of late is not settled.
    *(sent("runs", "1200"), landed("runs", "99", 900), landed("runs", "1000", 600, at=1)),
    landed("runs", "1100", 599, at=2),
    # It landed again of late: since when the consumer rests, its first landing says.
    *(sent("rests", "50"), landed("rests", "50", 601), landed("rests", "50", 5)),
    *(sent("just in time", "50"), landed("just in time", "50", 600)),
    *(sent("slow", "50"), landed("slow", "50", 900)),
    sent("never", "5"),
    landed("no traces", "5", 5),
    # Nothing but what we landed ourselves.
    *(sent("ours alone", "5"), landed("ours alone", None, None, own_n=1, without_landed_at=0)),
    # Rows without a number: the last landed after the frontier, or before it.
    *(landed("unnumbered since", "5", 700), landed("unnumbered since", None, 100, at=1)),
    *(landed("unnumbered before", "5", 100), landed("unnumbered before", None, 700, at=1)),
    *(landed("unnumbered then", "5", 100), landed("unnumbered then", None, 100, at=1)),
    landed("untimed", "7", None),
    *(landed("untimed in part", "7", 700), landed("untimed in part", "6", None, n=3)),
    *(landed("untimed before", "7", 700), landed("untimed before", "6", None, at=1)),
]  # fmt: skip
for _row in LEDGER:
    if _row["max_sequence_number"] is None and not _row.get("own_n"):
        _row["unnumbered_at"] = _row["last_at"]


def test_the_ledger_says_where_a_consumer_is_and_what_it_does(spark: SparkSession) -> None:
    found = facts(spark, LEDGER, slow=900.0)
    names = ("frontier", "settled_frontier", "untimed_frontier")
    frontiers = {s: tuple(number(row[name]) for name in names) for s, row in found.items()}
    assert frontiers == {
        "runs": ("1100", "1000", None),
        "rests": ("50", "50", None),
        "just in time": ("50", "50", None),
        "slow": ("50", "50", None),
        "never": (None, None, None),
        "no traces": ("5", None, None),
        "ours alone": (None, None, None),
        "unnumbered since": ("5", "5", None),
        "unnumbered before": ("5", None, None),
        "unnumbered then": ("5", None, None),
        "untimed": ("7", None, "7"),
        "untimed in part": ("7", "7", None),
        "untimed before": ("7", "7", "6"),
    }
    assert {s for s, row in found.items() if row["has_position"]} == frontiers.keys() - {
        *("never", "ours alone", "unnumbered since", "untimed")
    }
    states = {
        s: row["consumer_state"] for s, row in found.items() if row["consumer_state"] != "advancing"
    }
    assert states == {
        "rests": "resting",
        "never": "not_started",
        "ours alone": "not_started",
        "unnumbered since": "resting",
        "untimed in part": "resting",
        "untimed before": "resting",
    }
    assert {s: row["patience"] for s, row in found.items() if row["patience"] != 600} == {
        "slow": 900
    }
    assert (ago(found["rests"]["frontier_at"]), ago(found["rests"]["rests_since"])) == (5, 601)
    assert ago(found["runs"]["frontier_at"]) == ago(found["runs"]["rests_since"]) == 599
    assert (found["runs"]["sent_total"], found["runs"]["landed_total"]) == (1, 3)


def test_of_a_frontier_that_two_cells_have_the_last_landing_counts(spark: SparkSession) -> None:
    ledger = [landed("twice", "5", 700, at=at) for at in (0, 2)] + [landed("twice", "5", 30, at=1)]
    found = facts(spark, ledger)["twice"]
    assert (ago(found["frontier_at"]), ago(found["rests_since"])) == (30, 700)


def test_batches_of_a_cell_add_up(spark: SparkSession) -> None:
    ledger = [
        sent("s0", "9", n=2),
        sent("s0", "10", n=3, sum_lo=-1),
        landed("s0", "11", 50, n=4, own_n=1),
        landed("s0", None, 40, n=-1, unnumbered_at=NOW - 40 * S, without_landed_at=1),
        landed("s1", None, None, own_n=1, without_landed_at=0),
    ]
    found = {row.shard_id: row for row in cell_sums(frame(spark, LEDGER_DDL, ledger)).collect()}
    row = found["s0"].asDict()
    assert {name: row[name] for name in row if name.endswith(("_n", "_lo", "_hi"))} == {
        **{"sent_n": 5, "sent_sum_lo": 4, "sent_sum_hi": 14},
        **{"landed_n": 3, "landed_sum_lo": 10, "landed_sum_hi": 14, "consumed_n": 2},
    }
    assert (number(row["sent_key"]), number(row["landed_key"])) == ("10", "11")
    assert (row["without_landed_at"], row["ledger_rows"], row["ever_landed"]) == (1, 4, True)
    assert (ago(row["last_landed_at"]), ago(row["unnumbered_at"])) == (40, 40)
    own = found["s1"].asDict()
    assert (own["landed_n"], own["consumed_n"], own["ever_landed"]) == (1, 0, False)


def test_a_cell_differs_when_any_sum_does(spark: SparkSession) -> None:
    same: Row = {"n": 1, "sum_lo": 5, "sum_hi": 7}
    changes: dict[str, Row] = {"same": {}}
    changes |= {name: {name: 9} for name in same}
    ledger = [sent(name, "5") | same for name in changes]
    ledger += [landed(name, "5", 60) | same | other for name, other in changes.items()]
    cells = [{"shard_id": name, "bucket_start": T0} for name in (*changes, "nothing")]
    cells.append({"shard_id": "same", "bucket_start": T0 + MINUTE})
    found = compared_cells(
        frame(spark, "shard_id string, bucket_start timestamp", cells),
        cell_sums(frame(spark, LEDGER_DDL, ledger)),
    )
    told = found.withColumn("digest", sums_digest()).collect()
    assert len(told) == len(cells)
    assert {row.shard_id for row in told if row.differs} == {"n", "sum_lo", "sum_hi"}
    assert {row.sent_n for row in told if row.shard_id == "nothing"} == {0}
    assert {row.ledger_rows for row in told if row.shard_id in changes} == {0, 2}
    assert len({row.digest for row in told}) == 5
