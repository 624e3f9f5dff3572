"""Which cells are gaps, what is said of the rest of their ids, and the life of a gap."""

from datetime import timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from shardaudit.adapters.engine.held import own_rows
from shardaudit.audit.rules.cells import gaps_no_more, most_unsent
from shardaudit.audit.rules.classify import Damage
from shardaudit.audit.rules.findings import AuditFacts
from shardaudit.audit.rules.gaps import (
    MOST_NAMED,
    folded_gaps,
    small_lacking,
    unlanded_rest,
    with_bare,
    with_gaps,
    with_rest,
)
from shardaudit.audit.rules.shard_facts import with_behind_parent
from shardaudit.columns.ledger_sums import sequence_key
from shardaudit.model.input_columns import CANARY
from shardaudit.model.retention import Retention
from shardaudit.model.window import Window
from tests.builders import T0

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
CELL_DDL = "shard_id string, bucket_start timestamp"
CELLS_DDL = (
    f"{CELL_DDL}, sent_n bigint, landed_n bigint, differs boolean, by_ledger bigint, "
    "by_audit bigint, has_gap boolean, sent_by bigint, bucket_digest bigint, unsent_n bigint"
)
AS_OF = T0 + HOUR
SMALL_GAP = "few lack of a gap"
DARK = Damage(sink=((T0 + 50 * MINUTE, T0 + 51 * MINUTE),))


def test_a_cell_is_a_gap_when_much_lacks_and_nearly_nothing_is_there(spark: SparkSession) -> None:
    # name, sent, landed, differs, by_ledger, by_audit, has_gap, findings: whether it is a gap.
    table = [
        ("least", 1000, 0, True, None, None, False, 0, True),
        ("too few", 999, 0, True, None, None, False, 0, False),
        ("too few lack", 1005, 6, True, None, None, False, 0, False),
        ("one in a hundred", 2000, 20, True, None, None, False, 0, True),
        ("more", 2000, 21, True, None, None, False, 0, False),
        ("below zero", 2000, -1, True, None, None, False, 0, False),
        ("equal", 2000, 0, False, None, None, False, 0, False),
        ("named", 2000, 0, True, None, None, False, 1000, False),
        ("few named", 2000, 0, True, None, None, False, 999, True),
        ("was complete", 2000, 0, True, 7, None, True, 0, False),
        ("emptied as seen", 2000, 0, True, None, 7, False, 0, False),
        ("a gap as seen", 2000, 0, True, None, 7, True, 0, True),
        ("whole before more was sent", 2000, 0, True, 6, None, False, 0, False),
        ("seen before more was sent", 2000, 0, True, None, 6, False, 0, False),
        ("a gap before more was sent", 2000, 0, True, None, 6, True, 0, True),
        (SMALL_GAP, 900, 9, True, None, None, False, 0, True),
        ("others landed", 2000, 2000, True, None, None, False, 0, True),
        ("others, and too many", 2000, 2001, True, None, None, False, 0, False),
        ("others after it was whole", 2000, 2000, True, 3, None, False, 0, False),
    ]
    unsent = {name: 1980 for name, *_ in table if name.startswith("others")}
    cells = own_rows(
        spark,
        [(name, T0, *rest[:6], 7, 1, unsent.get(name, 0)) for name, *rest in table],
        CELLS_DDL,
    )
    ids = [(f"{name}-{n}", name, T0) for name, *rest in table for n in range(rest[6])]  # type: ignore[arg-type] # a number
    named = own_rows(spark, ids, f"message_id string, {CELL_DDL}")
    found = with_gaps(with_bare(cells, named, _standing(spark)), lacking=MOST_NAMED).collect()
    assert {row.shard_id: row.is_gap for row in found} == {row[0]: row[-1] for row in table}
    # What was read in another way holds no more.
    emptied = {"was complete", "emptied as seen"}
    kinds = {
        (row.bucket_digest, row.is_gap, row.shard_id in emptied, row.bucket_digest == 1)
        for row in found
        if row.is_gap or not row.unsent_n
    }
    assert {kind[1:] for kind in kinds} == {
        *((True, False, False), (False, True, False), (False, False, True))
    }
    assert len(kinds) == len({kind[0] for kind in kinds})


def _standing(spark: SparkSession) -> DataFrame:
    gaps = [(SMALL_GAP, T0, 900), ("too few", T0, 1000)]
    return own_rows(spark, gaps, f"{CELL_DDL}, count bigint")


def test_cells_of_which_little_lacks_are_gaps_where_too_much_lacks_in_all_of_them(
    spark: SparkSession,
) -> None:
    # sent, landed, differs: whether a gap among many.
    table = [
        ("small", 900, 9, True, True),
        ("of one", 1, 0, True, True),
        ("half", 900, 450, True, False),
        ("equal", 900, 0, False, False),
        (f"{CANARY}-1", 900, 0, True, False),
    ]
    cells = own_rows(
        spark,
        [(name, T0, *rest[:3], None, None, False, 7, 1, 0) for name, *rest in table],
        CELLS_DDL,
    )
    nobody = own_rows(spark, [], f"message_id string, {CELL_DDL}")
    bare = with_bare(cells, nobody, _standing(spark)).localCheckpoint()
    [row] = bare.select(small_lacking().alias("lacking")).collect()
    assert row.lacking == 891 + 1
    many, few = (with_gaps(bare, lacking=n).collect() for n in (MOST_NAMED + 1, MOST_NAMED))
    assert {row.shard_id for row in many if row.is_gap} == {row[0] for row in table if row[-1]}
    assert not any(row.is_gap for row in few)


def test_untraced_rows_may_be_those_of_cells_that_are_read_and_single_ones(
    spark: SparkSession,
) -> None:
    # sent, landed, differs, is bare, has a gap; the sums of the landed ids less those of the sent.
    table = [
        ("read in full", 9, 7, True, False, False, -1, 0),
        ("one more", 9, 10, True, False, False, 5, 5),
        ("one less", 9, 8, True, False, False, -5, -5),
        ("alike", 9, 9, False, False, False, 0, 0),
        ("bare", 9, 0, True, True, True, -5, -5),
        ("was a gap", 9, 3, True, False, True, -7, -5),
        ("was a gap, empty", 9, 0, True, False, True, -7, -5),
    ]
    cells = own_rows(
        spark,
        [(name, T0, *rest[:5], 0, 0, *rest[5:]) for name, *rest in table],
        f"{CELL_DDL}, sent_n bigint, landed_n bigint, differs boolean, is_bare boolean, "
        "has_gap boolean, sent_sum_lo bigint, sent_sum_hi bigint, landed_sum_lo bigint, "
        "landed_sum_hi bigint",
    )
    [found] = cells.select(most_unsent().alias("most"), gaps_no_more().alias("gaps")).collect()
    assert (found.most, found.gaps) == (7 + 1 + 3, 1)


def test_what_is_true_of_the_last_message_is_said_of_all(spark: SparkSession) -> None:
    # consumer state, frontier, untimed, has position, all numbered, minutes since: said.
    table = [
        ("not_started", None, None, False, True, 11, "stuck"),
        ("not_started", None, None, False, True, 9, "pending"),
        ("advancing", 20, None, True, True, 1, "lost"),
        ("advancing", 19, None, True, True, 99, "pending"),
        ("resting", 19, None, True, True, 11, "stuck"),
        ("resting", 19, None, True, True, 9, "pending"),
        ("advancing", 20, None, True, False, 9, "pending"),
        ("advancing", 20, None, True, False, 11, "lost"),
        ("advancing", None, 20, True, True, 11, "lost"),
        ("advancing", None, 20, True, True, 9, "pending"),
        ("advancing", None, None, False, True, 11, "lost"),
        ("advancing", None, None, False, True, 9, "pending"),
    ]
    ddl = f"{CELL_DDL}, first_key string, sent_key string, last_arrival timestamp"
    cells = own_rows(
        spark,
        [
            (str(n), T0, "100210" if row[4] else "", "20", AS_OF - row[5] * MINUTE)
            for n, row in enumerate(table)
        ],
        ddl,
    ).withColumns(
        {
            "is_gap": F.lit(True),
            "first_arrival": F.lit(T0),
            "sent_key": sequence_key(F.col("sent_key")),
        }
    )
    facts = own_rows(
        spark,
        [
            (str(n), state, at and str(at), once and str(once), known, 600.0, True)
            for n, (state, at, once, known, *_) in enumerate(table)
        ],
        "shard_id string, consumer_state string, settled_frontier string, untimed_frontier string, "
        "has_position boolean, patience double, has_more boolean",
    ).withColumns({n: sequence_key(F.col(n)) for n in ("settled_frontier", "untimed_frontier")})
    facts = with_behind_parent(facts, None)
    rest = unlanded_rest(cells, facts, as_of=AS_OF, damage=Damage()).collect()
    said = {int(row.shard_id): row.rest_is for row in rest}
    assert said == {n: row[-1] for n, row in enumerate(table)}
    dark = Damage(sink=((T0, T0 + MINUTE),))
    rest = unlanded_rest(cells, facts, as_of=AS_OF, damage=dark).collect()
    assert {row.rest_is for row in rest} == {"pending"}


def test_a_gap_lives_as_a_finding_does(spark: SparkSession) -> None:
    """The window is the first 40 minutes, the retention an hour: minute 0 has just not gone."""
    # minute, found, missing, pending | before, count, whole by the ledger: state, count, reason.
    table = [
        (1, 5, 5, 0, None, 0, None, "open", 5, "found by the audit"),
        (2, None, 0, 0, "open", 5, None, "false_alarm", 5, "it arrived later"),
        (3, None, 0, 0, "replayed", 5, None, "recovered", 5, "landed after the replay"),
        (4, None, 2, 0, "replayed", 5, None, "recovered", 3,
         "landed after the replay, but for 2 that findings name"),
        (5, None, 2, 1, "planned", 5, None, None, 0, ""),  # nobody can say yet
        (6, 5, 5, 0, "planned", 5, None, "planned", 5, "before"),
        (7, 4, 4, 0, "open", 5, None, "open", 4, "before"),
        (8, 5, 5, 0, "accepted", 5, None, "accepted", 5, "before"),
        (9, 6, 6, 0, "accepted", 5, None, "open", 6, "new evidence since it was accepted"),
        (14, 5, 5, 0, "accepted", 5, "was stuck", "open", 5, "new evidence since it was accepted"),
        (10, None, 0, 0, "accepted", 5, None, "false_alarm", 5, "it arrived later"),
        (11, 5, 5, 0, "false_alarm", 5, None, "open", 5, "found again after it was closed"),
        (12, None, 0, 0, "recovered", 5, None, None, 0, ""),
        (13, 5, 5, 0, "expired", 5, None, "open", 5,
         "the stream keeps it for longer than was known"),
        (-2, None, None, None, "open", 5, None, "expired", 5,
         "the stream's retention has run out"),
        (-3, None, None, None, "planned", 5, True, "false_alarm", 5, "it arrived later"),
        (50, None, None, None, "open", 5, True, None, 0, ""),  # an unreadable file
        (51, None, None, None, "open", 5, None, None, 0, ""),  # nobody looked
    ]  # fmt: skip
    start = {row[0]: T0 + row[0] * MINUTE for row in table}
    judged = own_rows(
        spark,
        [
            ("s", start[m], start[m] + MINUTE, found, found and "lost", missing, pending)
            for m, found, missing, pending, *_ in table
            if missing is not None
        ],
        f"{CELL_DDL}, bucket_end timestamp, gap_count bigint, gap_cause string, missing bigint, "
        "pending bigint",
    )
    rest = own_rows(
        spark,
        [
            ("s", start[m], "lost", None, None, start[m], start[m])
            for m, found, *_ in table
            if found
        ],
        f"{CELL_DDL}, rest_is string, first_key string, sent_key string, "
        "first_arrival timestamp, last_arrival timestamp",
    )
    previous = own_rows(
        spark,
        [
            (
                *("s", start[m], "lost" if whole != "was stuck" else "stuck", count, state),
                *(whole is True or None, start[m] + HOUR, start[m], start[m], AS_OF),
            )
            for m, _, _, _, state, count, whole, *_ in table
            if state
        ],
        f"{CELL_DDL}, cause string, count bigint, state string, is_complete boolean, "
        "recoverable_until "
        "timestamp, arrived_from timestamp, arrived_until timestamp, judged_as_of timestamp",
    ).withColumns(
        {
            "bucket_end": F.col("bucket_start") + F.lit(MINUTE),
            "state_reason": F.lit("before"),
            "first_audit_id": F.lit("first"),
            "last_audit_id": F.lit("last"),
            "opened_at": F.lit(T0),
            **{
                n: F.lit(None).cast("string")
                for n in ("start_sequence_number", "end_sequence_number")
            },
        }
    )
    window, kept = Window(T0, T0 + 40 * MINUTE), Retention(HOUR)
    to_come = AS_OF + 9 * HOUR  # by which all of them would have run out
    facts = AuditFacts("audit", "events", window, to_come, AS_OF, MINUTE, kept, DARK)
    found = folded_gaps(judged, rest, previous, facts).collect()
    told = {
        round((row.bucket_start.timestamp() - T0.timestamp()) / 60): (
            row.state,
            row["count"],
            row.state_reason,
        )
        for row in found
    }
    assert told == {row[0]: row[-3:] for row in table if row[-3]}
    assert {row.last_audit_id for row in found if row.is_found} == {"audit"}


def test_the_rest_of_a_gap_counts_as_what_is_said_of_it(spark: SparkSession) -> None:
    counts = "there", "missing", "pending", "vanished", "lost", "stuck", "over_counted", "filtered"
    cells = own_rows(
        spark,
        [
            (name, T0, 2000, 10, 3, 1, 6, 3, 0, 1, 5)
            for name in ("lost", "stuck", "pending", "none")
        ],
        f"{CELL_DDL}, sent_n bigint, " + ", ".join(f"{n} bigint" for n in counts),
    )
    rest = own_rows(
        spark, [(n, T0, n) for n in ("lost", "stuck", "pending")], f"{CELL_DDL}, rest_is string"
    )
    shown = ("missing", "pending", "lost", "stuck", "gap_count", "gap_cause")
    found = {row.shard_id: tuple(row[n] for n in shown) for row in with_rest(cells, rest).collect()}
    left = 2000 - 1 - 5 - 20
    assert found == {
        "lost": (3 + left, 1, 3 + left, 0, left, "lost"),
        "stuck": (3 + left, 1, 3, left, left, "stuck"),
        "pending": (3, 1 + left, 3, 0, None, None),
        "none": (3, 1, 3, 0, None, None),
    }
