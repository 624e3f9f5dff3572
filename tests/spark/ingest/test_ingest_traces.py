"""The traces' side of the ingest, from files to tables."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.builders import NOW, T0, cut_off, noise, sequence, shard, trace_line, write_parquet
from tests.spark.lake import Lake


def test_bad_lines_are_set_aside_and_good_ones_kept_when_mixed(lake: Lake) -> None:
    path = lake.log("a.jsonl", [trace_line(0), "not json", "", trace_line(1), "{}"])
    summary = lake.ingest()
    assert sorted(row.message_id for row in lake.kept()) == ["m0", "m1"]
    assert [(row.line, row.raw, row.reason) for row in lake.refused()] == [
        (2, "not json", "the line is not JSON"),
        (5, "{}", "message_id is missing"),
    ]
    for row in lake.refused():
        assert (row.file, row.source, row.batch_id) == (str(path), "traces", "events/traces/1")
    assert (summary.trace_files, summary.trace_rows, summary.quarantined) == (1, 2, 2)


def test_traces_are_not_of_a_time_to_come_where_the_clock_is_behind(lake: Lake) -> None:
    """By an ingest before it; but not by one that was a month ahead."""
    ingests = [(30, 0), (-2, 1), (0, 0), (-2, 0)]  # days ahead, lines that are set aside
    for number, (days, refused) in enumerate(ingests):
        lake.log(f"{number}.jsonl", [trace_line(number)])
        assert lake.ingest(now=NOW + timedelta(days)).quarantined == refused
    assert {row.message_id for row in lake.kept()} == {"m0", "m2", "m3"}
    assert min(row.ingested_at for row in lake.kept()) == NOW.replace(tzinfo=None)


def test_nothing_is_written_when_there_are_no_files(lake: Lake) -> None:
    summary = lake.ingest()
    assert (summary.trace_files, summary.trace_rows) == (0, 0)
    assert [row.side for row in lake.batches()] == ["sink"]


def test_batch_is_empty_when_files_are_empty(lake: Lake) -> None:
    lake.log("a.jsonl", [])
    lake.log("b.jsonl", ["", "  "])
    summary = lake.ingest()
    assert (summary.trace_files, summary.trace_rows, summary.quarantined) == (2, 0, 0)
    assert lake.ingest().batches == ()


def test_traces_are_counted_once_when_lines_or_files_come_twice(lake: Lake) -> None:
    lines = [trace_line(number) for number in range(10)]
    lake.log("a.jsonl", [*lines, *lines])
    lake.log("copy/a.jsonl.gz", lines)
    lake.ingest()
    lake.log("later.jsonl.zst", [*lines, trace_line(10)])
    lake.ingest()
    assert len(lake.kept()) == 11
    assert sum(row.counted for row in lake.kept()) == 11
    assert sum(totals[0] for totals in lake.ledger("traces").values()) == 11


def test_id_counts_in_one_cell_when_acked_on_several_shards(lake: Lake) -> None:
    lake.log(
        "a.jsonl",
        [
            trace_line(0, shard_id=shard(2), sequence_number="5"),
            trace_line(0, shard_id=shard(1), sequence_number="10"),
            trace_line(0, shard_id=shard(1), sequence_number="9"),
        ],
    )
    lake.ingest()
    lake.log("b.jsonl", [trace_line(0, shard_id=shard(0), sequence_number="1")])
    lake.ingest()
    counted = {(r.shard_id, r.sequence_number): r.counted for r in lake.kept()}
    assert counted == {
        (shard(2), "5"): False,
        (shard(1), "10"): False,
        (shard(1), "9"): True,
        (shard(0), "1"): False,
    }
    assert {cell[0]: totals[0] for cell, totals in lake.ledger("traces").items()} == {shard(1): 1}


def test_id_counts_in_one_minute_when_its_retry_has_a_fresh_time(lake: Lake) -> None:
    lake.log(
        "a.jsonl",
        [
            trace_line(0),
            trace_line(61, message_id="m0", shard_id=shard(3)),
            trace_line(1),
            # Over a day apart: no audit of the one would look for the other.
            trace_line(2),
            trace_line(90_000, message_id="m2"),
            trace_line(90_060, message_id="m2"),
        ],
    )
    lake.ingest()
    lake.log(
        "b.jsonl",
        [
            trace_line(200, message_id="m0"),
            trace_line(86_000, message_id="m1"),
        ],
    )
    lake.ingest()
    told = {
        (row.message_id, row.sequence_number): (row.counted, row.counted_in) for row in lake.kept()
    }
    at = {key: home and home.astimezone(UTC) for key, (_, home) in told.items()}
    assert at == {
        ("m0", sequence(0)): None,
        ("m0", sequence(61)): T0,
        ("m0", sequence(200)): T0,
        ("m1", sequence(1)): None,
        ("m1", sequence(86_000)): T0,
        ("m2", sequence(2)): None,
        ("m2", sequence(90_000)): None,
        ("m2", sequence(90_060)): T0 + timedelta(seconds=90_000),
    }
    assert all(counted == (at[key] is None) for key, (counted, _) in told.items())


def test_traces_without_sequence_number_are_one_when_all_else_is_equal(lake: Lake) -> None:
    line = trace_line(0, sequence_number=None)
    lake.log("a.jsonl", [line, line])
    lake.ingest()
    lake.log("b.jsonl", [line, trace_line(0)])
    lake.ingest()
    assert sorted((r.sequence_number or "", r.counted) for r in lake.kept()) == [
        ("", True),
        (sequence(0), False),
    ]


def test_rows_before_the_damage_are_kept_when_a_file_breaks_off(lake: Lake) -> None:
    lines = [trace_line(number, attributes={"n": noise(number)}) for number in range(3000)]
    path = cut_off(lake.log("a.jsonl.gz", lines))
    sound = lake.log("b.jsonl", [trace_line(number) for number in range(4000, 4010)])
    written = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    lake.ingest(now=written)
    kept = lake.kept()
    assert 1000 < len(kept) < 3000
    [refused] = lake.refused()
    assert (refused.file, refused.line, refused.reason) == (
        *(str(path), None, "the gzip file breaks off"),
    )
    [batch] = [row for row in lake.batches() if row.side == "traces"]
    assert _utc(batch.damaged_from) == T0
    assert written < _utc(batch.damaged_to) <= written + timedelta(seconds=61)
    assert (batch.rows, batch.quarantined) == (len(kept), 1)

    lake.log("a.jsonl.gz", lines)
    lake.log("c.jsonl", [trace_line(5000)])
    assert (len(lake.ingest(now=written).batches), len(lake.kept())) == (1, 3011)
    assert [row.damaged_from for row in lake.batches()] == [None, None, None]
    assert sound.exists()


def test_span_begins_an_audit_window_earlier_when_nothing_was_kept(lake: Lake) -> None:
    path = lake.log("a.jsonl", [trace_line(0)])
    path.write_text(path.read_text(), encoding="utf-16")
    written = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    lake.ingest(now=written)
    [batch] = [row for row in lake.batches() if row.side == "traces"]
    begin = _utc(batch.damaged_from)
    assert timedelta(0) <= written - timedelta(days=2) - begin < timedelta(seconds=60)
    assert lake.kept() == []


def test_traces_arrive_when_written_as_parquet(lake: Lake) -> None:
    lake.traces_format = "parquet"
    lake.trace_columns = {"message_id": "id"}
    rows = [
        {
            "id": f"m{number}",
            "shard_id": shard(1),
            "sequence_number": "x" if number == 1 else str(number),
            "sent_at": T0,
            "attributes": {"row": str(number)},
        }
        for number in range(3)
    ]
    path = write_parquet(lake.traces / "part" / "a.parquet", rows, rows_per_group=1)
    lake.ingest()
    assert sorted((r.message_id, r.attributes["row"]) for r in lake.kept()) == [
        ("m0", "0"),
        ("m2", "2"),
    ]
    [refused] = lake.refused()
    assert (refused.file, refused.line) == (str(path), 2)
    assert '"message_id":"m1"' in refused.raw
    assert '"sequence_number":"x"' in refused.raw


def test_good_files_arrive_beside_one_that_no_reader_expects(lake: Lake) -> None:
    """Ids as bytes that are no text: each ingest ended with them, and took nothing."""
    lake.traces_format = "parquet"
    good = {"message_id": "m1", "shard_id": shard(1), "sequence_number": "1", "sent_at": T0}
    write_parquet(lake.traces / "a.parquet", [good])
    odd = write_parquet(lake.traces / "b.parquet", [good | {"message_id": b"\xff\xfe"}])
    lake.ingest()
    assert [row.message_id for row in lake.kept()] == ["m1"]
    [refused] = lake.refused()
    assert refused.file == str(odd)
    assert "it cannot be read: ArrowInvalid" in refused.reason


@pytest.mark.both_engines
@pytest.mark.parametrize("is_dictionary", [True, False])
def test_text_that_is_no_utf8_is_quarantined(lake: Lake, is_dictionary: bool) -> None:
    """The file says that it is a text: the bytes are, but for one."""
    lake.traces_format = "parquet"
    good = {"message_id": "m1", "shard_id": shard(1), "sequence_number": "1", "sent_at": T0}
    path = write_parquet(lake.traces / "a.parquet", [good])
    table = pq.read_table(path)
    torn = pa.array([b"m\xff"], pa.binary()).view(pa.string())
    for number, name in enumerate(("message_id", "shard_id")):
        column = table.schema.get_field_index(name)
        pq.write_table(
            table.set_column(column, name, torn),
            lake.traces / f"{number}.parquet",
            use_dictionary=is_dictionary,
        )
    lake.ingest()
    assert [row.message_id for row in lake.kept()] == ["m1"]
    assert len(lake.refused()) == 2


def _utc(local: datetime) -> datetime:
    """Of a timestamp as pyspark collects it."""
    return local.astimezone(UTC)
