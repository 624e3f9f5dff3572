"""Cells added up by shard, and held against what was read of them."""

from collections.abc import Mapping
from datetime import UTC, timedelta

from pyspark.sql import SparkSession

from shardaudit.audit.rules.totals import TOTALS, disagreeing_cells, shard_totals
from shardaudit.columns.ledger_sums import cell_hash
from tests.builders import T0
from tests.spark.audit.frames import frame

COUNTED = "counted"
MINUTE = timedelta(minutes=1)
JUDGED_DDL = (
    "shard_id string, verdict string, compared string, is_damaged boolean, is_doubtful boolean, "
    "lost bigint, bucket_end timestamp, gap_count bigint, unsent_n bigint, "
    + ", ".join(f"{name} bigint" for name in TOTALS)
)
SOUND: dict[str, object] = {"verdict": "ok", "compared": "fingerprint"}
SOUND |= {"is_damaged": False, "is_doubtful": False, "bucket_end": T0} | dict.fromkeys(
    (*TOTALS, "lost", "unsent_n"), 0
)


def test_the_cells_of_a_shard_are_added_up(spark: SparkSession) -> None:
    numbers = {name: i for i, name in enumerate((*TOTALS, "lost", "unsent_n"), start=2)}
    judged: list[dict[str, object]] = [
        SOUND | numbers | {"shard_id": "s0", "verdict": "loss", "compared": "ids"},
        SOUND
        | numbers
        | {"shard_id": "s0", "is_damaged": True, "is_doubtful": True, "bucket_end": T0 + MINUTE},
        SOUND | {"shard_id": "s1", "verdict": None, "bucket_end": T0 + 2 * MINUTE},
        SOUND | {"shard_id": "s2"},
    ]
    found = {
        row.shard_id: row.asDict()
        for row in shard_totals(frame(spark, JUDGED_DDL, judged)).collect()
    }
    zeros = dict.fromkeys((*TOTALS, "lost", "unsent_n"), 0)
    counts = {"by_id": 0, "without_verdict": 0, "impossible": 0}
    none = {"is_damaged": False, "is_doubtful": False, "vanished_until": None} | zeros | counts
    until = found["s0"].pop("vanished_until")
    assert until.astimezone(UTC) == T0 + MINUTE
    assert found == {
        "s0": {"shard_id": "s0", "verdicts": ["loss", "ok"], "cells": 2, "by_id": 1}
        | {"is_damaged": True, "is_doubtful": True, "without_verdict": 0, "impossible": 0}
        | {name: 2 * number for name, number in numbers.items()},
        "s1": none | {"shard_id": "s1", "verdicts": [], "cells": 1, "without_verdict": 1},
        "s2": none | {"shard_id": "s2", "verdicts": ["ok"], "cells": 1},
    }


def test_a_count_below_zero_is_impossible(spark: SparkSession) -> None:
    names = ("matched", "pending", "sent", "landed", "vanished", "gap_count")
    judged = [SOUND | {"shard_id": name, name: -1} for name in names]
    judged.append(SOUND | {"shard_id": "other", "moved": 1})
    told = shard_totals(frame(spark, JUDGED_DDL, judged)).collect()
    assert {row.shard_id: row.impossible for row in told} == dict.fromkeys(names, 1) | {"other": 0}


def test_cells_in_which_other_rows_stand_than_the_ledger_counted_are_told(
    spark: SparkSession,
) -> None:
    # Counted by the ledger, then read: sent, landed.
    cases: Mapping[str, tuple[int, int, int, int]] = {
        "sound": (2, 1, 2, 1),
        "empty": (0, 0, 0, 0),
        "a trace more": (1, 1, 2, 1),
        "a trace less": (2, 1, 1, 1),
        "a row more": (1, 1, 1, 2),
        "a row less": (1, 2, 1, 1),
        "nothing stands": (1, 0, 0, 0),
        "not read": (1, 0, 0, 0),
        COUNTED: (1, 6, 1, 1),
        "others counted": (1, 7, 1, 1),
    }
    at = {"bucket_start": T0}
    seen, cells = [], []
    for name, (sent, landed, counted, rows) in cases.items():
        unsent = 5 * name.endswith(COUNTED)
        cells.append(
            {"shard_id": name, "sent_n": sent, "landed_n": landed, "unsent_n": unsent} | at
        )
        seen += [{"shard_id": name, "counted": 1, "landed": 0} | at] * counted
        seen += [{"shard_id": name, "counted": 0, "landed": 1} | at] * rows
    drilled = [{"shard_id": name} | at for name in cases if name != "not read"]
    place = "shard_id string, bucket_start timestamp"
    told = disagreeing_cells(
        frame(spark, f"{place}, counted int, landed int", seen).withColumn("cell", cell_hash()),
        frame(spark, f"{place}, sent_n bigint, landed_n bigint, unsent_n bigint", cells),
        frame(spark, place, drilled),
    ).collect()
    assert {row.shard_id: (row.sent_n, row.landed_n, row.counted, row.rows) for row in told} == {
        **{
            name: n
            for name, n in cases.items()
            if name not in ("sound", "empty", "not read", COUNTED)
        },
        "others counted": (1, 7, 1, 6),
    }
