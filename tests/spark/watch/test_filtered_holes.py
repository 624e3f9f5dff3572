"""Of what lacks in a cell the watch tells what no filter of the route left out."""

from datetime import timedelta
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from shardaudit.adapters.engine.held import own_rows
from shardaudit.model.route.filters import beside_filters, filters
from shardaudit.model.route.route import Route, RoutePlace
from shardaudit.model.tables.route_tables import SIGHTING_COUNTS
from shardaudit.store.warehouse import Warehouse
from shardaudit.watch.job import WatchRequest, watch
from shardaudit.watch.rules.filtered_holes import (
    FilterCounts,
    broken_filter_hours,
    less_the_filtered,
)
from tests.builders import NOW, T0
from tests.spark.watch.holed import QUARTER, Shard, at, filled, holes
from tests.spark.watch.ledger import settings

CELL_DDL = "shard_id string, bucket_start timestamp"


HOLES = f"{CELL_DDL}, sent_n bigint, missing bigint, is_sure boolean"
COUNTS = f"location string, {CELL_DDL}, received bigint, sent bigint, left_out bigint"


def test_hole_is_less_what_a_filter_left_out_of_its_cell(spark: SparkSession) -> None:
    lacking = [("a", 30, True), ("b", 31, True), ("c", 30, True), ("doubt", 0, False)]
    cells = own_rows(
        spark,
        [(shard_id, T0, 100, missing, is_sure) for shard_id, missing, is_sure in lacking],
        HOLES,
    )
    told = [("a", 60, 50, None), ("a", 40, 20, 3), ("b", 100, 70, 0), ("doubt", 9, 0, 9)]
    found = less_the_filtered(cells, counted(spark, told), F.lit(True)).collect()
    assert {row.shard_id: row.missing for row in found} == {"b": 1, "c": 30, "doubt": 0}


def counted(spark: SparkSession, told: list[tuple[str, int, int, int | None]]) -> FilterCounts:
    """Of a filter: shard, received, sent, left out."""
    rows = [("valid", shard_id, T0, *counts) for shard_id, *counts in told]
    return FilterCounts(own_rows(spark, rows, COUNTS), ["valid"])


def test_hole_is_less_what_a_filter_traced_as_left_out(spark: SparkSession) -> None:
    cells = own_rows(
        spark,
        [(shard_id, T0, 100, 30, True) for shard_id in ("all", "some", "share", "more")],
        HOLES,
    )
    told = [
        ("all", 90, 60, 30),
        ("some", 90, 60, 29),
        ("share", 90, 60, None),
        ("more", 90, 80, 30),
    ]
    for is_by_share, rest in ((False, {"some": 1, "share": 30}), (True, {})):
        found = less_the_filtered(cells, counted(spark, told), F.lit(is_by_share)).collect()
        assert {row.shard_id: row.missing for row in found} == rest


def test_what_one_ingest_brings_as_received_and_the_next_as_sent_is_not_left_out(
    spark: SparkSession,
) -> None:
    cells = own_rows(spark, [("a", T0, 100, 55, True)], HOLES)
    told: list[tuple[str, int, int, int | None]] = [("a", 100, 0, None), ("a", 0, 95, None)]
    [hole] = less_the_filtered(cells, counted(spark, told), F.lit(True)).collect()
    assert hole.missing == 50


# By shard what is missing of 100, at each place what it had and left out, and what stays missing.
# `first` leads to `eu` and `us`, `us` to `one` and `two`; all trace what they leave out.
NESTED = {
    "left to each other": (100, {"first": (100, 50), "eu": (50, 20), "us": (50, 30)}, 50),
    "by both": (100, {"first": (100, 50), "eu": (50, 50), "us": (50, 50)}, 0),
    "to one of them": (60, {"first": (100, 50), "eu": (30, 10), "us": (20, 0)}, 0),
    "twice": (100, {"first": (100, 0), "us": (100, 40), "one": (60, 30), "two": (60, 30)}, 60),
    "behind a place without a trace": (100, {"eu": (50, 50), "us": (50, 50)}, 0),
}


def test_what_places_behind_a_filter_leave_to_each_other_is_missing(spark: SparkSession) -> None:
    after = {"first": "producer", "eu": "first", "us": "first", "one": "us", "two": "us"}
    route = Route.of({name: RoutePlace((one,), tells=True) for name, one in after.items()})
    rows = [
        (place, shard_id, T0, had, had - out, out)
        for shard_id, (_, places, _) in NESTED.items()
        for place, (had, out) in places.items()
    ]
    counts = FilterCounts(own_rows(spark, rows, COUNTS), [*after], beside_filters(route))
    lacking = [(shard_id, T0, 100, n, True) for shard_id, (n, _, _) in NESTED.items()]
    cells = own_rows(spark, lacking, HOLES)
    found = less_the_filtered(cells, counts, F.lit(False)).collect()
    wanted = {shard_id: rest for shard_id, (_, _, rest) in NESTED.items() if rest}
    assert {row.shard_id: row.missing for row in found} == wanted


def test_hour_in_which_a_filter_passes_on_less_than_its_share_explains_no_hole() -> None:
    of = filters(Route.of({"valid": RoutePlace(("producer",), 0.7)}))
    hours = [T0 + n * timedelta(hours=1) for n in range(3)]
    counts = [
        ("valid", hours[0], 1000, 700),
        ("valid", hours[1], 1000, 200),
        ("other", hours[2], 1000, 0),
    ]
    assert broken_filter_hours(counts, of) == {hours[1]}
    telling = filters(Route.of({"valid": RoutePlace(("producer",), tells=True)}))
    assert broken_filter_hours(counts, telling) == set()


def test_watch_takes_the_word_of_a_filter_for_what_it_left_out(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    filled(warehouse, Shard("s", lost=[3 * 125, 3 * 125 + 1, 3 * 200, 3 * 200 + 1]))
    cell = {"batch_id": "b", "stream": "events", "location": "valid", "shard_id": "s"}
    told = {125: 2, 200: 1}  # of the later minute it received one more, and did not send it on
    rows = [
        cell
        | {"bucket_start": at(minute), "sent_day": at(minute).date()}
        | {"received": 3, "sent": 1, "left_out": left_out}
        for minute, left_out in told.items()
    ]
    warehouse.upsert(rows, SIGHTING_COUNTS)
    found = {}
    for share in ("traced", 0.3):
        routed = settings(tmp_path, locations={"valid": {"after": ["producer"], "share": share}})
        for as_of in (NOW - QUARTER, NOW):
            report = watch(warehouse, WatchRequest(routed, "events", as_of)).report
        found[share] = holes(report)
    assert found == {"traced": {"s": (1, 1)}, 0.3: {}}
