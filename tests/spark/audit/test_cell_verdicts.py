"""The verdict of a cell by its counts, and why it cannot be called complete."""

from datetime import UTC, datetime, timedelta

from pyspark.sql import SparkSession

from shardaudit.audit.rules.cell_verdicts import CellFacts, judged_cells
from shardaudit.audit.rules.classify import COUNTS, INTERNAL_COUNTS, Damage
from shardaudit.ingest.rules.lineage import BEHIND_PARENT
from shardaudit.model.watermark import LEFT_THE_SINK, WHY, Held
from tests.builders import NOW, T0
from tests.spark.audit.frames import frame

S = timedelta(seconds=1)
MINUTE = 60 * S
CELLS_DDL = (
    "shard_id string, bucket_start timestamp, sent_n bigint, sent_sum_lo bigint, "
    "sent_sum_hi bigint, landed_n bigint, landed_sum_lo bigint, landed_sum_hi bigint, "
    "sent_key string, differs boolean, by_ledger bigint, by_audit bigint, sent_by bigint, "
    "has_gap boolean, unsent_n bigint, filtered_n bigint, sums_digest bigint"
)
COUNTS_DDL = "shard_id string, bucket_start timestamp, " + ", ".join(
    f"{name} bigint" for name in COUNTS + INTERNAL_COUNTS
)
FACTS_DDL = (
    "shard_id string, patience double, settled_frontier string, consumer_state string, "
    "behind_parent string"
)
SILENCES_DDL = "shard_id string, silence string, since bigint, until bigint"
DRILLED_DDL = "shard_id string, bucket_start timestamp"
OLD, FRESH = T0, NOW - MINUTE

Said = tuple[str, str | None, str | None, str]
# Counts of the cell; then its verdict, why it is held, the reason that is told, what compared it.
CASES: dict[str, tuple[dict[str, object], Said]] = {
    "sound": ({}, ("ok", None, None, "fingerprint")),
    "lost": ({"missing": 1, "lost": 1}, ("loss", None, None, "ids")),
    "stuck": ({"missing": 2, "lost": 1, "stuck": 1}, ("stalled", None, None, "ids")),
    "doubled": ({"duplicated": 1, "extra_rows": 1}, ("duplication", None, None, "ids")),
    "lost and doubled": (
        {"missing": 1, "lost": 1, "duplicated": 1, "extra_rows": 1},
        ("mixed", None, None, "ids"),
    ),
    "pending": ({"pending": 1}, ("pending", "pending", None, "ids")),
    "lost and pending": (
        {"missing": 1, "lost": 1, "pending": 1},
        ("loss", "pending", None, "ids"),
    ),
    "one in ten untraced": ({"untraced": 1}, ("untraced", None, None, "ids")),
    "two untraced": ({"untraced": 2}, ("inconclusive", "thin", WHY[Held.THIN], "ids")),
    "two untraced, one lost": (
        {"untraced": 2, "missing": 1, "lost": 1},
        ("loss", "thin", None, "ids"),
    ),
    "moved": ({"moved": 1}, ("untraced", None, None, "ids")),
    "fresh": ({"at": FRESH}, ("pending", "pending", None, "fingerprint")),
    "fresh, all passed": (
        {"at": FRESH, "sent_key": "k30"},
        ("ok", None, None, "fingerprint"),
    ),
    "fresh, not all passed": (
        {"at": FRESH, "sent_key": "k31"},
        ("pending", "pending", None, "fingerprint"),
    ),
    "fresh and empty": (
        {"at": FRESH, "sent_n": 0, "landed_n": 0, "sent_key": "k1"},
        ("pending", "pending", None, "fingerprint"),
    ),
    "just settled": ({"at": NOW - 11 * MINUTE}, ("ok", None, None, "fingerprint")),
    "not quite settled": (
        {"at": NOW - 11 * MINUTE + timedelta(microseconds=1)},
        ("pending", "pending", None, "fingerprint"),
    ),
    "damaged": (
        {"at": T0 + 50 * MINUTE, "pending": 1},
        ("inconclusive", "damaged", WHY[Held.DAMAGED], "ids"),
    ),
    "silent": (
        {"missing": 1, "stuck": 1, "consumer_state": "not_started"},
        ("silent", None, None, "ids"),
    ),
    "silent, none lacks": ({"consumer_state": "not_started"}, ("ok", None, None, "fingerprint")),
    "behind its parent": (
        {"pending": 1, "behind_parent": "p"},
        ("pending", "pending", f"{BEHIND_PARENT}p", "ids"),
    ),
    "behind its parent, none lacks": (
        {"behind_parent": "p"},
        ("ok", None, None, "fingerprint"),
    ),
    "deleted when old": (
        {"was_known": True, "landed_n": 0},
        ("ok", None, LEFT_THE_SINK, "fingerprint"),
    ),
    "deleted in part": ({"vanished": 1, "was_known": True}, ("ok", None, LEFT_THE_SINK, "ids")),
    "deleted, one doubled": (
        {"vanished": 1, "was_known": True, "duplicated": 1, "extra_rows": 1},
        ("duplication", None, LEFT_THE_SINK, "ids"),
    ),
    "unknown shard": ({"consumer_state": None}, ("ok", None, None, "fingerprint")),
}  # fmt: skip
EMPTY: dict[str, tuple[dict[str, object], Said]] = {
    "quiet from the start": (
        {"silence": ("quiet", 0, 1)},
        ("inconclusive", "quiet", WHY[Held.QUIET], "fingerprint"),
    ),
    "quiet until then": ({"silence": ("quiet", -9, 0)}, ("ok", None, None, "fingerprint")),
    "quiet later": ({"silence": ("quiet", 1, 9)}, ("ok", None, None, "fingerprint")),
    "in doubt": (
        {"silence": ("doubt", -1, 1)},
        ("pending", "doubt", WHY[Held.DOUBT], "fingerprint"),
    ),
    "in doubt and fresh": (
        {"silence": ("doubt", -1, 999_999_999_999), "at": FRESH},
        ("pending", "pending", WHY[Held.DOUBT], "fingerprint"),
    ),
    "traces alone": (
        {"silence": ("quiet", -1, 1), "sent_n": 1, "missing": 1, "lost": 1},
        ("loss", None, None, "ids"),
    ),
    "rows alone": (
        {"silence": ("quiet", -1, 1), "landed_n": 1, "untraced": 1},
        ("inconclusive", "thin", WHY[Held.THIN], "ids"),
    ),
}


def micros(at: object) -> int:
    assert isinstance(at, datetime)
    return int(at.timestamp()) * 1_000_000 + at.microsecond


def found(
    spark: SparkSession, cases: dict[str, tuple[dict[str, object], Said]]
) -> dict[str, dict[str, object]]:
    """Each case as a shard of its own with one cell of ten messages, judged."""
    cells, counts, facts, silences = [], [], [], []
    for name, (fields, _) in cases.items():
        own = {"at": OLD, "sent_n": 10, "landed_n": 10, "consumer_state": "advancing"} | fields
        cell = {"shard_id": name, "bucket_start": own["at"]}
        sums = {
            "sent_n": own["sent_n"],
            "landed_n": own["landed_n"],
            "sent_key": own.get("sent_key"),
        }
        numbers = {n: own[n] for n in (*COUNTS, *INTERNAL_COUNTS) if n in own}
        zeros = dict.fromkeys(("sent_sum_lo", "sent_sum_hi", "landed_sum_lo", "landed_sum_hi"), 0)
        was = bool(own.get("was_known"))
        known = {"differs": bool(numbers) or was, "by_ledger": 1 if was else None, "sent_by": 1}
        known |= {"has_gap": False, "unsent_n": 0, "filtered_n": 0}
        known |= {"sums_digest": 1 if known["differs"] else None}
        cells.append(cell | sums | zeros | known)
        if numbers:
            counts.append(dict.fromkeys((*COUNTS, *INTERNAL_COUNTS), 0) | cell | numbers)
        if own["consumer_state"]:
            facts.append(
                {"shard_id": name, "patience": 600.0, "settled_frontier": "k30"}
                | {name: own.get(name) for name in ("consumer_state", "behind_parent")}
            )
        silence = own.get("silence")
        if isinstance(silence, tuple):
            why, since, until = silence
            at = micros(own["at"])
            silences.append(
                {"shard_id": name, "silence": why, "since": at + since, "until": at + until}
            )
    told = judged_cells(
        frame(spark, CELLS_DDL, cells),
        frame(spark, COUNTS_DDL, counts),
        frame(
            spark, DRILLED_DDL, ({n: c[n] for n in ("shard_id", "bucket_start")} for c in counts)
        ),
        frame(spark, FACTS_DDL, facts),
        CellFacts(
            as_of=NOW,
            bucket=MINUTE,
            settle_grace=10 * MINUTE,
            trace_coverage_floor=0.9,
            damage=Damage(sink=((T0 + 50 * MINUTE, T0 + 51 * MINUTE),)),
            silences=frame(spark, SILENCES_DDL, silences) if silences else None,
        ),
    )
    return {row.shard_id: row.asDict() for row in told.collect()}


def assert_said(
    told: dict[str, dict[str, object]], cases: dict[str, tuple[dict[str, object], Said]]
) -> None:
    names = ("verdict", "held_by", "reason", "compared")
    said = {shard: tuple(row[n] for n in names) for shard, row in told.items()}
    assert said == {name: expected for name, (_, expected) in cases.items()}


def test_a_cell_has_the_first_verdict_that_holds(spark: SparkSession) -> None:
    told = found(spark, CASES)
    assert_said(told, CASES)
    assert {name for name, row in told.items() if row["is_damaged"]} == {"damaged"}
    assert not any(row["is_doubtful"] for row in told.values())
    assert {name for name, row in told.items() if row["sums_digest"] is None} == {
        name
        for name, row in told.items()
        if row["compared"] == "fingerprint" and not row["vanished"]
    }
    end = told["sound"]["bucket_end"]
    assert isinstance(end, datetime)
    assert end.astimezone(UTC) == OLD + MINUTE


def test_an_empty_cell_in_a_silence_is_not_ok(spark: SparkSession) -> None:
    cases = {
        name: ({"sent_n": 0, "landed_n": 0} | fields, said)
        for name, (fields, said) in EMPTY.items()
    }
    told = found(spark, cases)
    assert_said(told, cases)
    assert {name for name, row in told.items() if row["is_doubtful"]} == {"quiet from the start"}


def test_counts_of_a_cell_leave_out_what_another_one_tells(spark: SparkSession) -> None:
    cases: dict[str, tuple[dict[str, object], Said]] = {
        "apart": (
            {"over_counted": 2, "displaced": -1, "missing": 3, "lost": 3, "pending": 1},
            ("loss", "pending", None, "ids"),
        )
    }
    row = found(spark, cases)["apart"]
    assert [row[n] for n in ("sent", "landed", "matched")] == [8, 9, 4]
    assert [row[n] for n in (*COUNTS, "lost")] == [3, 1, 0, 0, 0, 0, 0, 0, 3]


def test_of_an_emptied_cell_all_is_gone_but_what_stands_elsewhere(spark: SparkSession) -> None:
    said: Said = ("ok", None, LEFT_THE_SINK, "ids")
    of_ten: dict[str, object] = {"was_known": True, "landed_n": 0, "there": 2, "vanished": 1}
    row = found(spark, {"emptied": (of_ten, said)})["emptied"]
    assert [row[n] for n in ("sent", "landed", "matched", "vanished")] == [10, 0, 10, 8]
