"""Of what lacks in a cell the watch tells what no filter of the route left out."""

from datetime import timedelta

from pyspark.sql import SparkSession

from shardaudit.adapters.engine.held import own_rows
from shardaudit.model.route.filters import filters
from shardaudit.model.route.route import Route, RoutePlace
from shardaudit.watch.rules.filtered_holes import broken_filter_hours, less_the_filtered
from tests.builders import T0

CELL_DDL = "shard_id string, bucket_start timestamp"


def test_hole_is_less_what_a_filter_left_out_of_its_cell(spark: SparkSession) -> None:
    holes = [("a", 30, True), ("b", 31, True), ("c", 30, True), ("doubt", 0, False)]
    cells = own_rows(
        spark,
        [(shard_id, T0, missing, is_sure) for shard_id, missing, is_sure in holes],
        f"{CELL_DDL}, missing bigint, is_sure boolean",
    )
    counts = own_rows(
        spark,
        [("a", T0, 60, 50), ("a", T0, 40, 20), ("b", T0, 100, 70), ("doubt", T0, 9, 0)],
        f"{CELL_DDL}, received bigint, sent bigint",
    )
    found = less_the_filtered(cells, counts).collect()
    assert {row.shard_id: row.missing for row in found} == {"b": 1, "c": 30, "doubt": 0}


def test_hour_in_which_a_filter_passes_on_less_than_its_share_explains_no_hole() -> None:
    of = filters(Route.of({"valid": RoutePlace(("producer",), 0.7)}))
    hours = [T0 + n * timedelta(hours=1) for n in range(3)]
    counts = [
        ("valid", hours[0], 1000, 700),
        ("valid", hours[1], 1000, 200),
        ("other", hours[2], 1000, 0),
    ]
    assert broken_filter_hours(counts, of) == {hours[1]}
