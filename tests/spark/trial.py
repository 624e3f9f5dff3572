"""One stream put through the real path: files and Delta commits, `ingest`, `audit`, the tables."""

import gzip
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import Row
from pyspark.sql import functions as F

from shardaudit.adapters.lake.delta_rs import Row as StoredRow
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.gates import Gates
from shardaudit.audit.job import audit
from shardaudit.ingest.job import ingest
from shardaudit.model.config.choices import SinkFormat, TraceFormat
from shardaudit.model.config.parts import Sink, Traces
from shardaudit.model.config.settings import Stream
from shardaudit.model.retention import Retention
from shardaudit.model.source import backfill_tag
from shardaudit.model.tables.audit_tables import AUDITS, BATCHES, CELLS, FINDINGS
from shardaudit.model.tables.watch_tables import SHARDS
from shardaudit.model.verdict import Cause, Kind, State, Verdict
from shardaudit.model.window import Window
from shardaudit.store.warehouse import Warehouse
from tests.history import (
    Cell,
    CellResult,
    Damage,
    Finding,
    FindingKey,
    Question,
    SinkRow,
    Trace,
)
from tests.spark.ungated import ungated

TRACE_SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("message_id", "stream", "shard_id", "sequence_number")]
    + [(name, pa.timestamp("us", "UTC")) for name in ("sent_at", "acked_at")]
)
COUNTS = [f.name for f in fields(CellResult) if f.name != "verdict"]
ROWS_SCHEMA = (
    "message_id string, shard_id string, sequence_number string, sent_at timestamp, "
    "landed_at timestamp"
)


@dataclass(frozen=True, slots=True)
class Published:
    """What an audit left in the tables."""

    cells: dict[Cell, CellResult]
    findings: dict[FindingKey, Finding]
    audit: Row

    @property
    def watermark(self) -> datetime | None:
        """How far all is well."""
        watermark: datetime | None = self.audit.watermark
        return watermark


@dataclass
class Trial:
    """A stream of its own in a warehouse; inputs lie in a folder beside it.

    `reached`: the folder's address for the commands, where it is a bucket for them. `in_parquet`:
    the form of its traces.
    """

    warehouse: Warehouse
    folder: Path
    question: Question
    name: str = "events"
    reached: str | None = None
    in_parquet: bool = False
    sink_lacks: frozenset[str] = frozenset()
    sink_format: SinkFormat = SinkFormat.DELTA
    gates: Gates = field(default_factory=ungated)
    files: int = field(default=0, init=False)

    @property
    def stream(self) -> Stream:
        """The stream's configuration."""
        ask, inputs = self.question, f"{self.reached or self.folder}/{self.name}"
        return Stream(
            stream_name=self.name,
            retention=ask.retention,
            bucket=ask.bucket,
            settle_grace=ask.settle_grace,
            tolerance=ask.tolerance,
            trace_coverage_floor=ask.trace_coverage_floor,
            traces=Traces(
                path=f"{inputs}/traces",
                format=TraceFormat.PARQUET if self.in_parquet else TraceFormat.JSON,
            ),
            sink=Sink(path=f"{inputs}/sink", format=self.sink_format),
        )

    @property
    def _traces(self) -> Path:
        return self.folder / self.name / "traces"

    @property
    def _sink(self) -> Path:
        return self.folder / self.name / "sink"

    def log(self, traces: Iterable[Trace], *, cut_at: datetime | None = None) -> None:
        """Writes one more trace file; a cut one is a gzip that broke off after its lines, then."""
        if self.in_parquet:
            self._log_parquet(traces)
            return
        lines = [json.dumps(_line(t, self.name), ensure_ascii=self.files % 2 == 0) for t in traces]
        text = "".join(f"{line}\n" for line in lines).encode()
        self._traces.mkdir(parents=True, exist_ok=True)
        path = self._traces / f"part-{self.files:05d}.jsonl"
        self.files += 1
        if cut_at is None:
            path.write_bytes(text)
        else:
            cut = path.with_suffix(".jsonl.gz")
            cut.write_bytes(gzip.compress(text) + gzip.compress(text)[:20])
            os.utime(cut, (cut_at.timestamp(), cut_at.timestamp()))

    def _log_parquet(self, traces: Iterable[Trace]) -> None:
        rows = [
            (t.message_id, self.name, t.shard_id, t.sequence_number, t.sent_at, t.acked_at)
            for t in traces
        ]
        columns = list(zip(*rows, strict=True)) or [()] * len(TRACE_SCHEMA)
        named = dict(zip(TRACE_SCHEMA.names, columns, strict=True))
        self._traces.mkdir(parents=True, exist_ok=True)
        path = self._traces / f"part-{self.files:05d}.parquet"
        self.files += 1
        pq.write_table(pa.table(named, schema=TRACE_SCHEMA), path)

    def land(self, rows: Sequence[SinkRow]) -> None:
        """Commits rows to the sink; also without any row, so that the sink exists."""
        own = [row for row in rows if row.own]
        self._commit([row for row in rows if not row.own])
        if own:
            self._commit(own, userMetadata=backfill_tag("plan"))

    def _commit(self, rows: Iterable[SinkRow], **options: str) -> None:
        values = [
            (
                r.message_id,
                None if "shard_id" in r.lacks else r.shard_id,
                r.sequence_number,
                None if "sent_at" in r.lacks else r.sent_at,
                r.landed_at,
            )
            for r in rows
        ]
        frame = self.warehouse.spark.createDataFrame(values, ROWS_SCHEMA)
        writer = frame.drop(*self.sink_lacks).coalesce(1).write.mode("append").options(**options)
        if self.sink_format is SinkFormat.DELTA:
            writer = writer.option("mergeSchema", "true")
        writer.format(self.sink_format.value).save(str(self._sink))

    def remove(self, rows: Iterable[SinkRow]) -> None:
        """Deletes rows from the sink."""
        spark = self.warehouse.spark
        gone = [(row.message_id, row.landed_at) for row in rows]
        if gone:
            frame = spark.createDataFrame(gone, "message_id string, landed_at timestamp")
            frame.distinct().createOrReplaceTempView("gone")
            spark.sql(
                f"MERGE INTO delta.`{self._sink}` AS t USING gone AS s "
                "ON t.message_id = s.message_id AND t.landed_at = s.landed_at "
                "WHEN MATCHED THEN DELETE"
            ).collect()

    def list_shards(
        self, shards: Iterable[str], *, at: datetime, parents: Mapping[str, list[str]] | None = None
    ) -> None:
        """Notes shards that Kinesis listed, some with the parents of which they took the place."""
        closed = {name for names in (parents or {}).values() for name in names}
        rows = [
            (self.name, s, at, (parents or {}).get(s), s not in closed if parents else None)
            for s in sorted(shards)
        ]
        if rows:
            known = self.warehouse.spark.createDataFrame(
                rows,
                "stream string, shard_id string, observed_at timestamp, "
                "parent_shard_ids array<string>, opened boolean",
            )
            for name, kind, _ in SHARDS.columns:
                if name not in known.columns:
                    known = known.withColumn(name, F.lit(None).cast(kind))
            self.warehouse.merge(known, SHARDS)

    def ingest(self, *, now: datetime | None = None) -> None:
        """Takes in all that is new, when the question is asked if no other time is given."""
        ingest(self.warehouse, self.name, self.stream, now=now or self.question.as_of)

    def audit(self, question: Question | None = None, *, now: datetime | None = None) -> Published:
        """Audits as the question says (the stream's own when none is given); gives the tables."""
        ask = question or self.question
        request = AuditRequest(
            name=self.name,
            stream=self.stream,
            window=Window(ask.start, ask.end),
            as_of=ask.as_of,
            retention=Retention(ask.retention, ask.shorter, ask.longer),
        )
        audit(self.warehouse, request, self.gates, now=now or ask.as_of)
        return self.published(request.audit_id)

    def published(self, audit_id: str) -> Published:
        """What the tables say of an audit; findings are those of the stream as they are now."""
        # As every reader of it does: by delta-rs.
        of_audit = pc.field("audit_id") == audit_id
        [row] = self.warehouse.rows(AUDITS, where=of_audit)
        return Published(
            cells=_cells(self.warehouse.rows(CELLS, where=of_audit)),
            findings=self.findings(),
            audit=Row(**row),
        )

    def findings(self) -> dict[FindingKey, Finding]:
        """The stream's findings as they are now, as values."""
        return _findings(self._stored_findings())

    def _stored_findings(self) -> list[StoredRow]:
        return self.warehouse.rows(FINDINGS, where=pc.field("stream") == self.name)

    def set_states(self, states: Mapping[FindingKey, State]) -> None:
        """Gives findings the states that people or backfills left them in."""
        changed = [
            {**row, "state": states[key].value}
            for row in self._stored_findings()
            if (key := (row["message_id"], Kind(row["kind"]))) in states
        ]
        if changed:
            self.warehouse.upsert(changed, FINDINGS)

    def say_damaged(self, side: str, damage: Damage | None) -> None:
        """Notes of the last batch of a side what it could not read; None: all can be read again."""
        of_side = (pc.field("stream") == self.name) & (pc.field("side") == side)
        last = max(self.warehouse.rows(BATCHES, where=of_side), key=lambda row: int(row["number"]))
        span = {"damaged_from": damage and damage.start, "damaged_to": damage and damage.end}
        self.warehouse.upsert([last | span], BATCHES)

    def damage(self) -> tuple[Damage, ...]:
        """The spans that the ingest says it could not read."""
        return tuple(
            Damage(row["side"], row["damaged_from"], row["damaged_to"])
            for row in self.warehouse.rows(BATCHES, where=pc.field("stream") == self.name)
            if row["damaged_from"] is not None
        )


def _line(trace: Trace, stream: str) -> dict[str, str | None]:
    return {
        "message_id": trace.message_id,
        "stream": stream,
        "shard_id": trace.shard_id,
        "sequence_number": trace.sequence_number,
        "sent_at": trace.sent_at.isoformat(),
        "acked_at": trace.acked_at.isoformat() if trace.acked_at else None,
    }


def _cells(rows: Iterable[StoredRow]) -> dict[Cell, CellResult]:
    found: dict[Cell, CellResult] = {}
    for row in rows:
        cell = (row["shard_id"], row["bucket_start"])
        assert cell not in found, f"two verdicts for {cell}"
        counts = {name: row[name] for name in COUNTS}
        found[cell] = CellResult(**counts, verdict=Verdict(row["verdict"]))
    return found


def _findings(rows: Iterable[StoredRow]) -> dict[FindingKey, Finding]:
    found: dict[FindingKey, Finding] = {}
    for row in rows:
        key = (row["message_id"], Kind(row["kind"]))
        assert key not in found, f"two findings of {key}"
        found[key] = Finding(
            cause=Cause(row["cause"]),
            state=State(row["state"]),
            shard_id=row["shard_id"],
            sent_at=row["sent_at"],
            sent_count=row["sent_count"],
            landed_count=row["landed_count"],
            sequence_numbers=tuple(row["sequence_numbers"]),
            recoverable_until=row["recoverable_until"],
            first_landed_at=row["first_landed_at"],
            last_landed_at=row["last_landed_at"],
            arrived_at=row["arrived_at"],
        )
    return found
