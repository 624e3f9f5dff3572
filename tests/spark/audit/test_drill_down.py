"""The evidence of ids: which are looked at, and what of all their cells is told as one."""

from datetime import UTC, datetime, timedelta

from pyspark.sql import SparkSession

from shardaudit.audit.rules.drill_down import (
    cell_ids,
    ids,
    rows_of,
    seen,
    suspects,
    traces_of,
    unclean,
    unsent,
    with_hash,
)
from tests.builders import T0
from tests.spark.audit.frames import frame

S = timedelta(seconds=1)
MINUTE = 60 * S
TRACES_DDL = (
    "message_id string, shard_id string, bucket_start timestamp, counted boolean, "
    "sequence_number string, sent_at timestamp, acked_at timestamp, location string, "
    "attributes map<string,string>, ingested_at timestamp"
)
ROWS_DDL = (
    "message_id string, shard_id string, bucket_start timestamp, is_own boolean, "
    "sequence_number string, sent_at timestamp, arrived_at timestamp, landed_at timestamp"
)
CELLS_DDL = "shard_id string, bucket_start timestamp"
SUSPECTS_DDL = "message_id string, bucket_start timestamp"

Row = dict[str, object]
# By id its traces (shard, minute, whether it counts), then its rows (shard, minute).
Places = tuple[list[tuple[str, int, bool]], list[tuple[str, int]]]
PLACES: dict[str, Places] = {
    "sound": ([("s0", 0, True)], [("s0", 0)]),
    "lost": ([("s0", 0, True)], []),
    "untraced": ([], [("s0", 0)]),
    "doubled": ([("s0", 0, True)], [("s0", 0), ("s0", 0)]),
    "doubled elsewhere": ([("s0", 0, True)], [("s0", 0), ("s1", 1)]),
    "retried": ([("s0", 0, True), ("s0", 0, False)], [("s0", 0)]),
    "moved": ([("s0", 0, True)], [("s1", 0)]),
    "later": ([("s0", 0, True)], [("s0", 1)]),
    "told twice": ([("s0", 0, True), ("s1", 1, True)], [("s0", 0)]),
    "retry alone": ([("s0", 0, False)], [("s0", 0)]),
    "not looked at": ([("s2", 0, True)], []),
    "half looked at": ([("s2", 0, True)], [("s0", 0)]),
}
LOOKED_AT = [("s0", 0), ("s0", 1), ("s1", 0), ("s1", 1)]


def sides(places: dict[str, Places]) -> tuple[list[Row], list[Row]]:
    traces, rows = [], []
    for name, (sent, landed) in places.items():
        for shard, minute, counted in sent:
            at = {"bucket_start": T0 + minute * MINUTE, "counted": counted}
            traces.append({"message_id": name, "shard_id": shard, "sequence_number": "1"} | at)
        for shard, minute in landed:
            place = {"bucket_start": T0 + minute * MINUTE, "is_own": False}
            rows.append({"message_id": name, "shard_id": shard, "sequence_number": "1"} | place)
    return traces, rows


def test_ids_that_did_not_count_and_land_once_in_one_cell_are_looked_into(
    spark: SparkSession,
) -> None:
    traces, rows = sides(PLACES)
    cells = [{"shard_id": s, "bucket_start": T0 + m * MINUTE} for s, m in LOOKED_AT]
    looked = seen(
        frame(spark, TRACES_DDL, traces),
        frame(spark, ROWS_DDL, rows),
        frame(spark, CELLS_DDL, cells),
    )
    names = names_of(spark)
    counts = {names[row.id_hash]: (row.counted, row.landed) for row in unclean(looked).collect()}
    assert counts == {
        "lost": (1, 0),
        "untraced": (0, 1),
        "doubled": (1, 2),
        "doubled elsewhere": (1, 2),
        "moved": (1, 1),
        "later": (1, 1),
        "told twice": (2, 1),
        "retry alone": (0, 1),
        "half looked at": (0, 1),
    }
    found = suspects(looked).collect()
    assert len(set(found)) == len(found)
    minutes: dict[str, set[int]] = {}
    for row in found:
        place = minutes.setdefault(names[row.id_hash], set())
        place.add((row.bucket_start.astimezone(UTC) - T0) // MINUTE)
    assert minutes == {name: {0} for name in counts} | {
        name: {0, 1} for name in ("doubled elsewhere", "later", "told twice")
    }


def names_of(spark: SparkSession) -> dict[int, str]:
    """The ids by their hash."""
    ids = frame(spark, "message_id string", ({"message_id": name} for name in PLACES))
    return {row.id_hash: row.message_id for row in with_hash(ids).collect()}


def test_ids_that_landed_once_and_have_no_trace_are_told_apart(spark: SparkSession) -> None:
    places = PLACES | {"untraced": ([], [("s0", 0)]), "twice": ([], [("s0", 0), ("s1", 0)])}
    traces, rows = sides(places)
    cells = [{"shard_id": s, "bucket_start": T0 + m * MINUTE} for s, m in LOOKED_AT]
    cells_in_doubt = frame(spark, CELLS_DDL, cells)
    found = unsent(frame(spark, TRACES_DDL, traces), frame(spark, ROWS_DDL, rows), cells_in_doubt)
    assert [names_of(spark)[row.id_hash] for row in found.collect()] == ["untraced"]


def evidence(spark: SparkSession, traces: list[Row], rows: list[Row]) -> dict[str, Row]:
    """Of all that stands of the ids, in every bucket."""
    everywhere = {(str(r["message_id"]), r["bucket_start"]) for r in [*traces, *rows]}
    places = ({"message_id": m, "bucket_start": at} for m, at in everywhere)
    looked_for = with_hash(frame(spark, SUSPECTS_DDL, places))
    found = ids(
        cell_ids(
            traces_of(frame(spark, TRACES_DDL, traces), looked_for),
            rows_of(frame(spark, ROWS_DDL, rows), looked_for),
        )
    )
    told = [row.asDict(recursive=True) for row in found.collect()]
    assert len({row["message_id"] for row in told}) == len(told)
    return {row["message_id"]: row for row in told}


def trace(number: str | None, *, at: int = 0, shard: str = "s0", **fields: object) -> Row:
    usual: Row = {"message_id": "m", "shard_id": shard, "bucket_start": T0 + at * MINUTE}
    usual |= {"sequence_number": number, "sent_at": T0 + at * MINUTE + S, "counted": False}
    return usual | {"location": "producer"} | fields


def landed(number: str | None, *, at: int = 0, shard: str = "s0", **fields: object) -> Row:
    usual: Row = {"message_id": "m", "shard_id": shard, "bucket_start": T0 + at * MINUTE}
    return usual | {"sequence_number": number, "is_own": False} | fields


def of_m(spark: SparkSession, *parts: Row) -> Row:
    traces = [part for part in parts if "counted" in part]
    rows = [part for part in parts if "is_own" in part]
    return evidence(spark, traces, rows)["m"]


def utc(value: object) -> datetime:
    assert isinstance(value, datetime)
    return value.astimezone(UTC)


def test_an_id_counts_where_its_trace_counts_with_all_that_its_cells_have(
    spark: SparkSession,
) -> None:
    # The trace that counts lies neither in the first cell nor in the last.
    found = of_m(
        spark,
        trace("9", at=0, acked_at=T0 + 9 * MINUTE),
        trace("100", at=1, counted=True, attributes={"a": "1"}),
        trace("11", at=2),
        trace("8", at=1, shard="s1", location="again"),
        landed("11", at=2, landed_at=T0 + 5 * MINUTE, is_own=True),
        landed("9", at=0, landed_at=T0 + 3 * MINUTE),
        landed("9", at=0, landed_at=T0 + 4 * MINUTE),
    )
    assert (found["shard_id"], utc(found["bucket_start"])) == ("s0", T0 + MINUTE)
    names = ("sent_count", "counted", "landed_count", "own_rows", "landed_pairs", "is_moved")
    assert [found[name] for name in names] == [4, 1, 3, 1, 2, False]
    assert found["sequence_numbers"] == ["8", "9", "11", "100"]
    # Of the attempts on its own shard; by length first.
    assert str(found["counted_key"]).endswith("100")
    assert found["last_sent_key"] == found["counted_key"]
    times = {
        "sent_at": T0 + MINUTE + S,
        "arrived_at": T0 + 9 * MINUTE,
        "first_landed_at": T0 + 3 * MINUTE,
        "last_landed_at": T0 + 5 * MINUTE,
    }
    assert {name: utc(found[name]) for name in times} == times
    assert (found["location"], found["attributes"]) == ("again", {"a": "1"})


def test_the_last_attempt_on_its_shard_is_known(spark: SparkSession) -> None:
    found = of_m(spark, trace("9", counted=True), trace("10", at=1), trace("999", at=1, shard="s1"))
    assert str(found["last_sent_key"]).endswith("10")
    assert str(found["counted_key"]).endswith("9")
    assert len(str(found["last_sent_key"])) == 4 + 2
    unknown = of_m(spark, trace(None, counted=True))
    assert (unknown["counted_key"], unknown["last_sent_key"]) == (None, None)


def test_an_id_without_a_trace_counts_where_it_landed_first(spark: SparkSession) -> None:
    found = of_m(spark, landed("2", at=1), landed("1", at=2, shard="s0"), landed("3", shard="s1"))
    assert (found["shard_id"], utc(found["bucket_start"])) == ("s0", T0 + MINUTE)
    assert [found[n] for n in ("sent_count", "landed_count", "is_moved")] == [0, 3, False]
    assert found["landed_pairs"] == 3
    assert found["counted_cells"] == []


def test_without_a_trace_it_was_sent_when_its_first_row_says(spark: SparkSession) -> None:
    times = [T0 + 5 * S, T0 + S, T0 + 9 * S]
    found = of_m(spark, *(landed(str(n), sent_at=at) for n, at in enumerate(times)))
    assert utc(found["sent_at"]) == T0 + S
    counted = trace("9", counted=True, sent_at=T0 + 7 * S)
    found = of_m(spark, trace("8", sent_at=T0), counted, landed("9", sent_at=T0 + S))
    assert utc(found["sent_at"]) == T0 + 7 * S


def test_an_attempt_that_does_not_count_is_home_before_a_row_is(spark: SparkSession) -> None:
    found = of_m(spark, landed("2", at=0), trace("2", at=1))
    assert utc(found["bucket_start"]) == T0 + MINUTE


def test_moved_is_what_landed_on_none_of_the_shards_it_was_sent_to(spark: SparkSession) -> None:
    cases = {
        "moved": [trace("1", counted=True), landed("7", shard="s1")],
        "by its retry": [
            trace("1", counted=True),
            trace("7", shard="s1"),
            landed("7", shard="s1"),
        ],
        "lost": [trace("1", counted=True)],
        "untraced": [landed("7", shard="s1")],
        "both": [trace("1", counted=True), landed("1"), landed("7", shard="s1")],
    }
    assert {name for name, parts in cases.items() if of_m(spark, *parts)["is_moved"]} == {"moved"}


def test_pairs_are_of_shard_and_number_and_none_without_numbers(spark: SparkSession) -> None:
    again = of_m(spark, trace("1", counted=True), landed("1"), landed("1"))
    assert again["landed_pairs"] == 1
    apart = of_m(spark, trace("1", counted=True), landed("1"), landed("1", shard="s1"))
    assert apart["landed_pairs"] == 2
    unknown = of_m(spark, trace(None, counted=True), landed(None), landed(None))
    assert unknown["landed_pairs"] == 0
    assert unknown["sequence_numbers"] == []


def test_cells_in_which_an_id_counts_are_told_in_order(spark: SparkSession) -> None:
    found = of_m(spark, trace("2", at=3, counted=True), trace("1", at=1, counted=True))
    cells = found["counted_cells"]
    assert isinstance(cells, list)
    assert [utc(cell["bucket_start"]) for cell in cells] == [T0 + MINUTE, T0 + 3 * MINUTE]


def test_it_arrived_when_the_last_of_its_times_says_so(spark: SparkSession) -> None:
    sent = T0 + MINUTE
    cases = {
        "sent": ([trace("1", counted=True, sent_at=sent)], sent),
        "acknowledged": ([trace("1", counted=True, sent_at=T0, acked_at=sent)], sent),
        "clock ahead": ([trace("1", sent_at=sent, acked_at=sent + S, ingested_at=T0)], T0),
        "read later": ([trace("1", sent_at=T0, acked_at=sent, ingested_at=sent + S)], sent),
        "told before": ([trace("1", counted=True, sent_at=sent, acked_at=T0)], sent),
        "by its row": ([landed("1", sent_at=T0, arrived_at=sent, landed_at=T0 + 9 * S)], sent),
        "landed at the latest": ([landed("1", landed_at=sent)], sent),
        "not by its landing": ([landed("1", sent_at=T0, landed_at=sent)], T0),
    }
    for name, (parts, at) in cases.items():
        assert utc(of_m(spark, *parts)["arrived_at"]) == at, name
