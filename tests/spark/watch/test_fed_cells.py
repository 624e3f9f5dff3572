"""Minutes that are never settled, as messages come to them all the time, and what is told of them.

Each case is a shard's cell of T0, of devices that all stamp that minute: from when to when its
batches of traces came, in minutes before NOW, and the numbers of their messages.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from shardaudit.audit.rules.classify import Damage
from shardaudit.model.config.eras import always
from shardaudit.model.tables.audit_tables import AUDITS, FINDINGS
from shardaudit.model.tables.watch_tables import SHARDS
from shardaudit.store.warehouse import Warehouse
from shardaudit.watch.job import WatchRequest, watch
from shardaudit.watch.rules.differing_cells import differing_cells, unequal_hours
from shardaudit.watch.rules.fed_cells import fed_cells, named_or_doubted
from shardaudit.watch.rules.holes import HoleTerms, standing_cells
from shardaudit.watch.watch_report import WatchReport
from tests.builders import NOW, T0, sequence
from tests.spark.audit.frames import frame
from tests.spark.watch.ledger import FACTS_DDL, LEDGER_DDL, START, cell, fill, settings

MINUTE = timedelta(minutes=1)
Row = dict[str, object]
DDL = f"{LEDGER_DDL}, batch_id string, min_sequence_number string"
Batch = tuple[int, int, list[int]]  # came from, came until, numbers

ALL_DAY: list[Batch] = [(n + 15, n, [1000 - n]) for n in range(900, -1, -15)]
# The batches of a shard, what is special of its facts, whether all landed; then since when it is
# fed, in minutes before NOW; None: it is no such cell.
CASES: dict[str, tuple[list[Batch], Row, bool, int | None]] = {
    "all day": (ALL_DAY, {}, False, 915),
    "all day, and all is there": (ALL_DAY, {}, True, None),
    "nothing came since": ([(900, 100, [5]), (100, 60, [6])], {}, False, None),
    "since a pause": ([(900, 800, [5]), (200, 100, [6]), (90, 5, [990])], {}, False, 200),
    "a pause until now": ([(900, 800, [5]), (10, 5, [990])], {}, False, None),
    "a short pause": ([(900, 800, [5]), (760, 400, [6]), (360, 5, [990])], {}, False, 900),
    "not come to by its consumer": (ALL_DAY, {"settled_until": "99"}, False, None),
    "in part": (ALL_DAY, {"settled_until": "100"}, False, 915),
    "by its minutes": (ALL_DAY, {"has_position": False}, False, 915),
    "before all that landed": (
        ALL_DAY,
        {"has_position": False, "landed_until": T0 - MINUTE},
        False,
        None,
    ),
    "in the dark": (ALL_DAY, {}, False, None),
    # At the edges of patience (10 minutes) and of a pause (41).
    "just overdue": ([(11, 0, [5, 990])], {}, False, 11),
    "not overdue yet": ([(10, 0, [5, 990])], {}, False, None),
    "a pause just long enough": ([(900, 800, [5]), (759, 5, [6, 990])], {}, False, 759),
    "a pause just too short": ([(900, 800, [5]), (760, 5, [6, 990])], {}, False, 900),
    "not come to since a pause": ([(900, 800, [5]), (200, 5, [990])], {}, False, None),
    "a batch of nothing in a pause": (
        [(900, 800, [5]), (790, 770, []), (740, 5, [6, 990])],
        {},
        False,
        740,
    ),
    "nothing landed": (
        [(900, 5, [990])],
        {"has_position": False, "settled_until": None},
        False,
        900,
    ),
}


def batches(name: str, came: list[Batch], *, is_whole: bool) -> list[Row]:
    usual: Row = {"shard_id": name, "bucket_start": T0, "sum_hi": 0}
    if name == "in the dark":
        usual["bucket_start"] = T0 + 60 * MINUTE
    rows = [
        usual
        | {"side": "traces", "batch_id": f"{nth:03}", "n": len(numbers), "sum_lo": sum(numbers)}
        | {"max_sequence_number": str(max(numbers, default=0))}
        | {"min_sequence_number": str(min(numbers, default=0))}
        | {"arrived_from": NOW - since * MINUTE, "arrived_until": NOW - until * MINUTE}
        for nth, (since, until, numbers) in enumerate(came)
    ]
    landed = [n for *_, numbers in came for n in numbers][0 if is_whole else 1 :]
    if not landed:
        return rows
    sums: Row = {"n": len(landed), "sum_lo": sum(landed), "max_sequence_number": str(max(landed))}
    return [*rows, usual | {"side": "sink", "batch_id": "1", "last_at": NOW} | sums]


def test_a_minute_that_is_never_settled_is_found_once_what_came_first_is_overdue(
    spark: SparkSession,
) -> None:
    ledger = frame(
        spark,
        DDL,
        (r for n, (came, _, whole, _) in CASES.items() for r in batches(n, came, is_whole=whole)),
    )
    usual: Row = {"has_position": True, "settled_until": "950", "landed_until": T0}
    facts = [
        usual | {"shard_id": name, "patience": 600.0} | special
        for name, (_, special, *_) in CASES.items()
    ]
    terms = HoleTerms(NOW, always(MINUTE), Damage(sink=((T0 + 60 * MINUTE, T0 + 61 * MINUTE),)))
    differing = differing_cells(
        ledger, unequal_hours(ledger, shape=always(MINUTE)), shape=always(MINUTE)
    )
    standing = standing_cells(differing, frame(spark, FACTS_DDL, facts), terms)
    found = fed_cells(ledger, standing, terms).collect()
    told = {row.shard_id: (NOW - row.fed_from.astimezone(UTC)) // MINUTE for row in found}
    assert len(told) == len(found)
    assert told == {name: since for name, (*_, since) in CASES.items() if since}


FED_DDL = (
    "shard_id string, bucket_start timestamp, sent_n bigint, landed_n bigint, "
    "arrived_until timestamp, sums_digest bigint, fed_from timestamp, patience double, "
    "looked_at timestamp, live bigint, given_up bigint"
)
# When it began to be fed, when an audit looked, in minutes before NOW, and the findings that live;
# then since when its holes and its doubts may have come into the stream, likewise.
NAMED: dict[str, tuple[int, int | None, int, int | None, int]] = {
    "nobody looked": (90, None, 0, None, 90),
    "all before was looked at": (90, 20, 0, None, 30),
    "it was looked at before it began": (90, 200, 0, None, 90),
    "named": (90, 20, 2, 90, 30),
    "what came first has left the stream": (900, None, 2, 600, 600),
}


def test_what_was_looked_at_is_named_and_what_came_since_is_a_doubt(spark: SparkSession) -> None:
    rows: list[Row] = [
        {"shard_id": name, "bucket_start": T0, "patience": 600.0, "live": live, "given_up": 0}
        | {"fed_from": NOW - begun * MINUTE}
        | {"looked_at": None if looked is None else NOW - looked * MINUTE}
        for name, (begun, looked, live, *_) in NAMED.items()
    ]
    fed = frame(spark, FED_DDL, rows)
    found = {
        (row.shard_id, row.is_named): ((NOW - row.arrived_from.astimezone(UTC)) // MINUTE, row)
        for row in named_or_doubted(fed, gone_before=NOW - 600 * MINUTE).collect()
    }
    doubts = {(name, False): since for name, (*_, since) in NAMED.items()}
    holes = {(name, True): since for name, (*_, since, _) in NAMED.items() if since}
    assert {which: since for which, (since, _) in found.items()} == doubts | holes
    for (name, is_named), (_, row) in found.items():
        assert (row.missing, row.is_sure) == (NAMED[name][2] if is_named else 0, is_named)


@pytest.mark.usefixtures("_any_credentials")
def test_a_hole_in_it_is_a_doubt_until_an_audit_named_it(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    minutes = range(20 * 60)
    fill(
        warehouse,
        [
            cell("s", 0, n=1)
            | {"batch_id": f"events/traces/{m}", "min_sequence_number": sequence(m)}
            | {"max_sequence_number": sequence(m), "sum_lo": m}
            | dict.fromkeys(("arrived_from", "arrived_until"), START + m * MINUTE)
            for m in minutes
        ]
        + [  # what came in minute 3, and what is on its way, did not land
            cell("s", 0, "sink", n=1)
            | {"batch_id": f"events/sink/{m}", "max_sequence_number": sequence(m), "sum_lo": m}
            | {"last_at": START + (m + 1) * MINUTE}
            for m in minutes[:-5]
            if m != 3
        ],
    )

    def look(as_of: datetime) -> WatchReport:
        return watch(warehouse, WatchRequest(settings(tmp_path), "events", as_of)).report

    look(NOW - 15 * MINUTE)
    assert look(NOW).shards == ()
    audit = {"audit_id": "a", "stream": "events", "status": "published", "as_of": NOW}
    window = {"window_start": START, "window_end": NOW, "pending": 5}
    warehouse.upsert([audit | window], AUDITS)
    finding = {"stream": "events", "shard_id": "s", "message_id": "m", "kind": "missing"}
    warehouse.upsert([finding | {"state": "open", "sent_at": START}], FINDINGS)
    for at in (NOW + MINUTE, NOW + 2 * MINUTE):  # not yet told, and told
        report = look(at)
        assert [(line.holes, line.hole_messages) for line in report.shards] == [(1, 1)]
    assert any("in 1 cell of 1 shard" in note for note in report.notes)
    # Of what came before, the shard's rows say by when an audit is wanted.
    rows = warehouse.read(SHARDS).orderBy("observed_at").collect()
    assert [row.audit_level for row in rows] == ["urgent", "urgent", "notice", "notice"]
