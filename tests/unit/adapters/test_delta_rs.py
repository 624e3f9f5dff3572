"""The tables as one process writes and reads them, without Spark."""

import json
from dataclasses import replace
from datetime import UTC, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, Schema

from shardaudit.adapters.lake import delta_rs
from shardaudit.adapters.lake.broken_tables import WarehouseUnreadableError
from shardaudit.adapters.lake.delta_rs import DeltaRs
from shardaudit.adapters.lake.delta_schema import has_values, one_look
from shardaudit.model.config.parts import Aws
from shardaudit.model.errors import WarehouseVersionError
from tests.noted import EVERYTHING, NOTED, T0, row

KINDS = {
    "string": "string",
    "timestamp": "timestamp",
    "array<string>": {"type": "array", "elementType": "string", "containsNull": True},
}
SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": name, "type": KINDS[kind], "nullable": True, "metadata": {"comment": meaning}}
            for name, kind, meaning in NOTED.columns
        ],
    }
)


@pytest.fixture
def tables(tmp_path: Path) -> DeltaRs:
    made = DeltaRs(str(tmp_path), Aws())
    made.create(NOTED)
    return made


def test_row_is_updated_when_its_key_is_there_and_inserted_otherwise(tables: DeltaRs) -> None:
    tables.upsert([row("a"), row("b")], NOTED)
    tables.upsert([row("b", parents=["a'b", "🔥"]), row("c")], NOTED)
    found = sorted(tables.rows(NOTED, where=EVERYTHING), key=lambda r: str(r["shard_id"]))
    assert found == [row("a"), row("b", parents=["a'b", "🔥"]), row("c")]


def test_no_row_is_lost_when_another_commit_came_first(tables: DeltaRs) -> None:
    """As of the audit's news, while the watch marks its own as sent: each has a lock of its own."""
    tables.upsert([row("a")], NOTED)
    others = iter([row("b"), row("c")])

    def other_commits() -> None:
        for other in others:
            DeltaRs(tables.path, Aws()).upsert([other], NOTED)
            return

    replace(tables, check=other_commits).upsert([row("a", parents=["p"])], NOTED)
    found = sorted(tables.rows(NOTED, where=EVERYTHING), key=lambda r: str(r["shard_id"]))
    assert found == [row("a", parents=["p"]), row("b"), row("c")]


def test_table_stays_as_it_was_when_it_was_opened_within_one_look(tables: DeltaRs) -> None:
    tables.upsert([row("a")], NOTED)
    with one_look():
        before = tables.rows(NOTED, where=EVERYTHING)
        tables.upsert([row("b")], NOTED)
        for opened in (tables, DeltaRs(tables.path, Aws())):
            assert opened.rows(NOTED, where=EVERYTHING) == before == [row("a")]
    assert len(tables.rows(NOTED, where=EVERYTHING)) == 2


def test_null_is_a_key_like_others_when_updated(tables: DeltaRs) -> None:
    tables.upsert([row(None)], NOTED)
    tables.upsert([row(None, parents=["p"])], NOTED)
    assert tables.rows(NOTED, where=EVERYTHING) == [row(None, parents=["p"])]


def test_keys_in_time_are_found_again_to_the_microsecond(tables: DeltaRs) -> None:
    east = timezone(timedelta(hours=2))
    times = [T0 + timedelta(microseconds=1), T0.astimezone(east) + timedelta(days=1), T0]
    tables.upsert([row("a", seen_at=at) for at in times], NOTED)
    tables.upsert([row("a", seen_at=at, parents=["p"]) for at in times[:2]], NOTED)
    tables.upsert([row("a", seen_at=None), row("a", seen_at=times[1], parents=["q"])], NOTED)
    tables.upsert([row("a", seen_at=None, parents=["r"])], NOTED)
    found = tables.rows(NOTED, where=EVERYTHING)
    by_time = {found_row["seen_at"]: found_row["parents"] for found_row in found}
    assert len(found) == 4
    assert by_time == {times[0]: ["p"], times[1]: ["q"], T0: None, None: ["r"]}


def test_files_of_earlier_times_are_not_read_when_rows_are_written(tables: DeltaRs) -> None:
    for day in range(3):
        tables.upsert([row("a", seen_at=T0 + timedelta(days=day))], NOTED)
    tables.upsert([row("a", seen_at=T0 + timedelta(days=2), parents=["p"])], NOTED)
    table = DeltaTable(f"{tables.path}/noted")
    merged = json.loads(str(table.history(1)[0]["operationMetrics"]).replace("'", '"'))
    assert merged["num_target_files_skipped_during_scan"] == 2


def test_column_is_null_when_a_row_lacks_it(tables: DeltaRs) -> None:
    tables.upsert([{"stream": "s", "shard_id": "a", "seen_at": T0}], NOTED)
    [found] = tables.rows(NOTED, where=pc.field("stream") == "s")
    assert found == row("a")
    assert found["seen_at"].tzinfo is UTC
    assert tables.rows(NOTED, where=pc.field("stream") == "other") == []


def test_nothing_is_read_when_the_table_was_never_written(tmp_path: Path) -> None:
    assert DeltaRs(str(tmp_path), Aws()).rows(NOTED, where=EVERYTHING) == []


def test_rows_stay_when_created_again(tables: DeltaRs) -> None:
    tables.upsert([row("a")], NOTED)
    tables.create(NOTED)
    assert tables.rows(NOTED, where=EVERYTHING) == [row("a")]


def test_table_that_stays_open_is_as_others_left_it(tables: DeltaRs, tmp_path: Path) -> None:
    opened = tables.columns(NOTED, names=["shard_id"], where=EVERYTHING)
    assert opened is not None and not opened.num_rows
    others = DeltaRs(str(tmp_path), Aws())
    others.upsert([row("a"), row("b")], NOTED)
    tables.upsert([row("b", parents=["p"])], NOTED)  # what another one inserted is updated
    assert others.rows(NOTED, where=pc.field("shard_id") == "b") == [row("b", parents=["p"])]
    DeltaTable(tmp_path / "noted").create_checkpoint()
    for commit in sorted((tmp_path / "noted" / "_delta_log").glob("*.json"))[:-1]:
        commit.unlink()
    others.delete(NOTED, where=has_values({"shard_id": ["a"]}))
    assert tables.rows(NOTED, where=EVERYTHING) == [row("b", parents=["p"])]


def test_log_is_read_once_when_a_table_stays_open(
    tables: DeltaRs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(*_: object, **__: object) -> DeltaTable:
        raise AssertionError("opened anew")

    assert tables.rows(NOTED, where=EVERYTHING) == []
    monkeypatch.setattr(delta_rs, "DeltaTable", opened)
    tables.upsert([row("a")], NOTED)
    assert tables.rows(NOTED, where=EVERYTHING) == [row("a")]


def test_warehouse_of_another_version_is_refused_when_opened(tmp_path: Path) -> None:
    DeltaTable.create(
        tmp_path / "noted",
        Schema.from_json(SCHEMA),
        configuration={"shardaudit.warehouseVersion": "0"},
        raise_if_key_not_exists=False,
    )
    with pytest.raises(WarehouseVersionError, match="found 'version 0', wanted"):
        DeltaRs(str(tmp_path), Aws()).create(NOTED)


def test_place_is_named_when_it_does_not_answer(tmp_path: Path) -> None:
    (tmp_path / "noted" / "_delta_log").mkdir(parents=True)
    (tmp_path / "noted" / "_delta_log" / f"{0:020d}.json").write_text("no json")
    with pytest.raises(WarehouseUnreadableError, match="noted"):
        DeltaRs(str(tmp_path), Aws()).rows(NOTED, where=EVERYTHING)


def test_rows_are_found_by_a_text_in_a_file_that_also_holds_others(tables: DeltaRs) -> None:
    tables.upsert([row("a"), row("b")], NOTED)
    assert tables.rows(NOTED, where=pc.field("shard_id") == "b") == [row("b")]
    tables.upsert([row("b", parents=["a"])], NOTED)
    assert tables.rows(NOTED, where=pc.field("shard_id") == "b") == [row("b", parents=["a"])]
    assert tables.rows(NOTED, where=pc.field("shard_id") == "0") == []


def test_rows_are_counted_by_their_values_when_several_files_hold_them(tables: DeltaRs) -> None:
    tables.upsert([row("a"), row("b"), row(None)], NOTED)
    later = T0 + timedelta(microseconds=1)
    tables.upsert([row("a", seen_at=later), row("b", stream="other"), row("c'é")], NOTED)
    by_shard = tables.counts(NOTED, by=["shard_id"], having={"stream": "s"})
    assert by_shard == {("a",): 2, ("b",): 1, (None,): 1, ("c'é",): 1}
    by_time = tables.counts(NOTED, by=["seen_at", "stream"], having={"shard_id": "a"})
    assert by_time == {(T0, "s"): 1, (later, "s"): 1}
    assert not tables.counts(NOTED, by=["stream"], having={"shard_id": "nobody"})


def test_partitions_are_columns_when_rows_are_counted(tmp_path: Path) -> None:
    tables, parted = DeltaRs(str(tmp_path), Aws()), replace(NOTED, partitions=("stream",))
    assert not tables.counts(parted, by=["shard_id"], having={"stream": "s"})
    tables.create(parted)
    assert not tables.counts(parted, by=["shard_id"], having={"stream": "s"})
    tables.upsert([row("a"), row("b", stream="other")], parted)
    assert tables.counts(parted, by=["stream"], having={"stream": "s"}) == {("s",): 1}
    assert tables.counts(parted, by=["stream"], having={"shard_id": "b"}) == {("other",): 1}


def told(*rows: dict[str, object]) -> pa.Table:
    """Rows as columns, as an engine gives them."""
    times = pa.timestamp("us", "UTC")
    fields = [("stream", pa.string()), ("shard_id", pa.string()), ("seen_at", times)]
    schema = pa.schema([*fields, ("parents", pa.list_(pa.string()))])
    return pa.Table.from_pylist(list(rows), schema)


def test_size_is_that_of_the_files_that_are_in_the_table(tables: DeltaRs) -> None:
    assert tables.size_bytes(NOTED) == 0
    tables.upsert([row("a")], NOTED)
    tables.upsert([row("a", parents=["p"]), row("b")], NOTED)  # the first file is in it no more
    files = DeltaTable(f"{tables.path}/noted").file_uris()
    assert tables.size_bytes(NOTED) == sum(Path(file).stat().st_size for file in files) > 0


def test_no_size_of_a_table_that_was_never_written(tmp_path: Path) -> None:
    assert DeltaRs(str(tmp_path), Aws()).size_bytes(NOTED) == 0


def test_few_rows_are_given_and_none_of_a_table_that_has_more(tables: DeltaRs) -> None:
    empty = tables.few(NOTED, most=0)
    assert empty is not None
    assert empty.num_rows == 0
    tables.append(told(row("a"), row("b")), NOTED)
    found = tables.few(NOTED, most=2)
    assert found is not None
    assert sorted(found["shard_id"].to_pylist()) == ["a", "b"]
    assert tables.few(NOTED, most=1) is None
    assert tables.is_within(NOTED, rows=2)
    assert not tables.is_within(NOTED, rows=1)


def test_few_rows_are_read_once_until_another_commit(tables: DeltaRs, tmp_path: Path) -> None:
    tables.append(told(row("a")), NOTED)
    found = tables.few(NOTED, most=2)
    assert tables.few(NOTED, most=2) is found
    assert tables.few(NOTED, most=0) is None
    DeltaRs(str(tmp_path), Aws()).append(told(row("b")), NOTED)
    more = tables.few(NOTED, most=2)
    assert more is not None
    assert sorted(more["shard_id"].to_pylist()) == ["a", "b"]


@pytest.mark.slow
def test_rows_in_many_files_are_not_few(tables: DeltaRs) -> None:
    for number in range(100):
        tables.append(told(row(str(number))), NOTED)
    assert tables.few(NOTED, most=200) is not None
    tables.append(told(row("more")), NOTED)
    assert tables.few(NOTED, most=200) is None


def test_no_rows_of_a_table_that_was_never_written(tmp_path: Path) -> None:
    assert DeltaRs(str(tmp_path), Aws()).few(NOTED, most=9) is None


def test_no_rows_are_no_commit(tables: DeltaRs) -> None:
    tables.append(told(), NOTED)
    assert DeltaTable(f"{tables.path}/noted").version() == 0


def test_columns_as_they_are_merged_are_updated_or_inserted(tables: DeltaRs) -> None:
    tables.append(told(row("a"), row(None)), NOTED)
    tables.merge(told(row("b", parents=[]), row(None, parents=["p"])), NOTED)
    found = sorted(tables.rows(NOTED, where=EVERYTHING), key=lambda r: str(r["shard_id"]))
    assert found == [row(None, parents=["p"]), row("a"), row("b", parents=[])]


def test_rows_that_are_replaced_are_those_of_the_value_alone(tables: DeltaRs) -> None:
    odd = "o'dd"
    tables.append(told(row("a"), row("a", stream=odd), row("b", stream=odd)), NOTED)
    tables.replace(told(row("c", stream=odd)), NOTED, where=has_values({"stream": [odd]}))
    found = sorted(tables.rows(NOTED, where=EVERYTHING), key=lambda r: str(r["shard_id"]))
    assert found == [row("a"), row("c", stream=odd)]
    tables.replace(told(), NOTED, where=has_values({"stream": [odd]}))
    assert tables.rows(NOTED, where=EVERYTHING) == [row("a")]


def test_rows_are_found_by_a_text_when_they_were_merged(tables: DeltaRs) -> None:
    tables.merge(told(row("a"), row("b")), NOTED)
    tables.merge(told(row("b", parents=["p"])), NOTED)
    assert list(tables.found(NOTED, where=pc.field("shard_id") == "b")) == [row("b", parents=["p"])]
    assert list(tables.found(NOTED, where=pc.field("shard_id") == "0")) == []


def test_columns_of_an_older_table_may_lie_in_another_order(tmp_path: Path) -> None:
    """What it lacked was added at its end."""
    tables = DeltaRs(str(tmp_path), Aws())
    lacking = replace(NOTED, columns=tuple(c for c in NOTED.columns if c[0] != "shard_id"))
    tables.create(lacking)
    tables.create(NOTED)
    tables.append(told(row("a")), NOTED)
    tables.merge(told(row("b")), NOTED)
    assert {found["shard_id"] for found in tables.rows(NOTED, where=EVERYTHING)} == {"a", "b"}
    tables.replace(told(row("c"), row("d")), NOTED, where=has_values({"stream": ["s"]}))
    found = sorted(tables.rows(NOTED, where=EVERYTHING), key=lambda r: str(r["shard_id"]))
    assert found == [row("c"), row("d")]
