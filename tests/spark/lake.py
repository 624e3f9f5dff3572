"""One stream's inputs in a folder, and the warehouse that they are ingested into."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from deltalake import DeltaTable
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from shardaudit.ingest.job import ingest
from shardaudit.ingest.sink_reading import Scan, SinkRows
from shardaudit.model.config.parts import Sink, Traces
from shardaudit.model.config.settings import Stream
from shardaudit.model.tables.audit_tables import BATCHES, FINGERPRINTS, QUARANTINE, TRACES
from shardaudit.model.tables.table import Table
from shardaudit.report.summary import IngestReport
from shardaudit.store.warehouse import Warehouse
from tests.builders import NOW, SINK_DDL, Line, jsonl, write_lines

CELL_TOTALS = ("n", "sum_lo", "sum_hi")
Totals = dict[tuple[str, int], tuple[int, ...]]


@dataclass
class Lake:
    """A stream with its trace files and its sink."""

    spark: SparkSession
    warehouse: Warehouse
    folder: Path
    name: str = "events"
    settings: dict[str, object] = field(default_factory=dict)
    traces_format: str = "json"
    trace_columns: dict[str, str] = field(default_factory=dict)
    sink_format: str = "delta"
    sink_columns: dict[str, str] = field(default_factory=dict)

    @property
    def traces(self) -> Path:
        """The folder of the trace files."""
        return self.folder / "traces"

    @property
    def sink(self) -> Path:
        """The folder of the sink."""
        return self.folder / "sink"

    @property
    def stream(self) -> Stream:
        """The configuration."""
        return Stream.model_validate(
            {
                "stream_name": "kinesis-events",
                "audit_window": timedelta(days=2),
                "traces": Traces.model_validate(
                    {
                        "path": str(self.traces),
                        "format": self.traces_format,
                        "columns": self.trace_columns,
                    }
                ),
                "sink": Sink.model_validate(
                    {
                        "path": str(self.sink),
                        "format": self.sink_format,
                        "columns": self.sink_columns,
                    }
                ),
            }
            | self.settings
        )

    def ingest(self, *, now: datetime = NOW) -> IngestReport:
        """Takes in all that is new."""
        return ingest(self.warehouse, self.name, self.stream, now=now)

    def log(self, name: str, lines: Iterable[Line | str]) -> Path:
        """One more trace file."""
        return write_lines(self.traces / name, lines)

    def frame(self, rows: Iterable[Line], ddl: str = SINK_DDL) -> DataFrame:
        """Rows of the sink."""
        names = [part.split()[0] for part in ddl.split(", ")]
        return self.spark.createDataFrame([tuple(row.get(n) for n in names) for row in rows], ddl)

    def land(self, rows: Iterable[Line] = (), ddl: str = SINK_DDL, **options: str) -> None:
        """One more commit of the Delta sink; also without rows, so that it exists."""
        writer = self.frame(rows, ddl).coalesce(1).write.format("delta").mode("append")
        writer.options(**options).save(str(self.sink))

    def date_newest(self, written: datetime) -> None:
        """The log's newest commit tells that its files were written then, not now."""
        path = self.sink / "_delta_log" / f"{self.version:020}.json"
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        for action in actions:
            if "add" in action:
                action["add"]["modificationTime"] = int(written.timestamp() * 1000)
        path.write_bytes(jsonl(actions))
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)  # of Hadoop, of what it was

    def sql(self, text: str) -> None:
        """Runs a statement in which SINK stands for the Delta sink."""
        self.spark.sql(text.replace("SINK", f"delta.`{self.sink}`")).collect()

    @property
    def is_embedded(self) -> bool:
        """Whether the embedded engine runs this: it deletes, updates and merges, no more."""
        return "connect" in type(self.spark).__module__

    @property
    def version(self) -> int:
        """The newest version of the Delta sink."""
        return DeltaTable(self.sink).version()

    def optimize(self) -> None:
        """Puts the rows of small files together."""
        if self.is_embedded:
            DeltaTable(self.sink).optimize.compact()
        else:
            self.sql("OPTIMIZE SINK")

    def restore(self, version: int) -> None:
        """Makes the rows what they were."""
        if self.is_embedded:
            DeltaTable(self.sink).restore(version)
        else:
            self.sql(f"RESTORE TABLE SINK TO VERSION AS OF {version}")

    def vacuum(self) -> None:
        """Deletes every file that the newest version does not have."""
        if self.is_embedded:
            table = DeltaTable(self.sink)
            table.vacuum(0, dry_run=False, enforce_retention_duration=False)
        else:
            self.sql("VACUUM SINK RETAIN 0 HOURS")

    def take_out(self, file: Path) -> None:
        """Removes a data file from the sink that is gone, as Delta's `FSCK REPAIR TABLE` does."""
        file.unlink()
        removed = {"path": file.name, "deletionTimestamp": 1, "dataChange": True}
        commit = self.sink / "_delta_log" / f"{self.version + 1:020}.json"
        commit.write_bytes(jsonl([{"remove": removed}]))

    def landed_now(self) -> SinkRows:
        """The rows of the sink as its newest batch left it."""
        newest = [row for row in self.batches() if row.side == "sink"][-1]
        return SinkRows(self.spark, self.warehouse.access, newest.inputs)

    def unplaced_now(self, *, since: int = 1) -> Scan:
        """Those of them that lack their shard or time, as they came and went since a batch."""
        always = (datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
        before = [r.inputs for r in self.batches() if r.side == "sink" and r.number <= since]
        return self.landed_now().unplaced(landed=always, before=before)

    def rows(self, table: Table) -> list[Row]:
        """All rows of one of our tables."""
        return self.warehouse.read(table).where(F.col("stream") == self.name).collect()

    def kept(self) -> list[Row]:
        """The traces."""
        return self.rows(TRACES)

    def refused(self) -> list[Row]:
        """The quarantine, by file and line."""
        return sorted(self.rows(QUARANTINE), key=lambda row: (row.file, row.line or 0, row.reason))

    def batches(self) -> list[Row]:
        """The batches, by side and number."""
        return sorted(self.rows(BATCHES), key=lambda row: (row.side, row.number))

    def ledger(self, side: str) -> Totals:
        """The cells of one side that do not add up to nothing: (shard, bucket in s) -> totals."""
        sums = (
            self.warehouse.read(FINGERPRINTS)
            .where((F.col("side") == side) & (F.col("stream") == self.name))
            .groupBy("shard_id", F.unix_seconds("bucket_start").alias("start"))
            .agg(*(F.sum(name).alias(name) for name in CELL_TOTALS), _summed_bins())
            .collect()
        )
        return {
            (row.shard_id, row.start): totals
            for row in sums
            if any(totals := (*(row[name] for name in CELL_TOTALS), *row.bins))
        }


def _summed_bins() -> Column:
    bins = [F.coalesce(F.sum(F.get("latency_counts", i)), F.lit(0)) for i in range(22)]
    return F.array(*bins).alias("bins")
