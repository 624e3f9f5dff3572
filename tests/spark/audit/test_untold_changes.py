"""Rows of the sink that went and came by a commit which says that it changes none."""

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable

from shardaudit.model.tables.audit_tables import FINDINGS
from shardaudit.model.verdict import Verdict
from tests.builders import jsonl, sink_row, trace_line
from tests.spark.audit.nights import DAY, audited
from tests.spark.lake import Lake

NUMBERS = range(0, 600, 20)


def rewrite(lake: Lake, *, without: str, twice: str) -> None:
    """As a compaction of somebody's own, which has as many rows as before."""
    [old] = DeltaTable(lake.sink).file_uris()
    rows = pq.read_table(old)
    of = rows["message_id"]
    kept = [rows.filter(pc.not_equal(of, without)), rows.filter(pc.equal(of, twice))]
    path = lake.sink / "compacted.parquet"
    pq.write_table(pa.concat_tables(kept), path)
    usual = {"partitionValues": {}, "dataChange": False, "size": path.stat().st_size}
    stats = f'{{"numRecords": {rows.num_rows}}}'
    gone = usual | {"path": old.rpartition("/")[2], "deletionTimestamp": 1}
    come = usual | {"path": path.name, "modificationTime": 1, "stats": stats}
    commit = lake.sink / "_delta_log" / f"{lake.version + 1:020}.json"
    commit.write_bytes(jsonl([{"remove": gone}, {"add": come}]))


def test_a_compaction_that_drops_a_row_and_doubles_another_is_told(lake: Lake) -> None:
    lake.log("traces.jsonl", map(trace_line, NUMBERS))
    lake.land(map(sink_row, NUMBERS))
    lake.ingest()
    rewrite(lake, without="m80", twice="m400")
    assert audited(lake, 0, kept=7 * DAY).verdict is Verdict.LOSS
    found = lake.warehouse.rows(FINDINGS, where=pc.field("stream") == lake.name)
    assert {(row["message_id"], row["kind"], row["state"]) for row in found} == {
        ("m80", "missing", "open"),
        ("m400", "duplicated", "open"),
    }
