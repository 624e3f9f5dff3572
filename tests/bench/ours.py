"""Fingerprints, comparison and drill-down: from raw files, and from a ledger that is built."""

import json
import shutil
import sys
import time
from datetime import timedelta
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from shardaudit.adapters.clock import now
from shardaudit.adapters.engine.apache_spark import spark_session
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.canary_frames import canary
from shardaudit.audit.comparison import compared
from shardaudit.audit.evidence import ingested
from shardaudit.audit.gates import open_gates
from shardaudit.audit.job import audit
from shardaudit.audit.rules.cells import cell_sums, differs
from shardaudit.audit.rules.drill_down import CELL, seen, unclean
from shardaudit.ingest.job import ingest
from shardaudit.ingest.rules.fingerprint import fingerprint_sums
from shardaudit.model.retention import Retention
from shardaudit.model.window import Window, parse_instant
from shardaudit.store.warehouse import Warehouse
from tests.bench.sides import bench_settings, raw_sides
from tests.bench.timing import median_seconds


def main(folder: str) -> None:
    """Prints its seconds and its memory."""
    settings = bench_settings(folder)
    spark = spark_session(settings, app="ours")
    measured = {"raw": median_seconds(partial(kinds_from_raw, spark, folder))}
    shutil.rmtree(settings.warehouse, ignore_errors=True)
    warehouse = Warehouse(spark, settings.warehouse)
    simulation = json.loads((Path(folder) / "simulation.json").read_text())
    name = simulation["stream"]
    start = time.perf_counter()
    ingest(warehouse, name, settings.stream(name), now=now())
    measured["ingest_once"] = time.perf_counter() - start
    request = AuditRequest(
        name=name,
        stream=settings.stream(name),
        window=Window(
            *(parse_instant(simulation[f"window_{x}"], where=x) for x in ("start", "end"))
        ),
        as_of=parse_instant(simulation["as_of"], where="as_of"),
        retention=Retention(settings.stream(name).retention or timedelta(days=7)),
    )
    gates = open_gates(None)
    start = time.perf_counter()
    audit(warehouse, request, gates, now=now())
    measured["first_audit"] = time.perf_counter() - start
    state = ingested(warehouse, name)
    planted = canary(spark, request, state.damage)

    def again() -> int:
        return compared(warehouse, request, state, planted).classified.count()

    measured["again"] = median_seconds(again)
    published = partial(audit, warehouse, request, gates, now=now())
    measured["again_with_publication"] = median_seconds(published)
    measured["peak_gib"] = _peak_gib(spark)
    print(json.dumps({name: round(value, 3) for name, value in measured.items()}))  # noqa: T201 - the result


def kinds_from_raw(spark: SparkSession, folder: str) -> list[object]:
    """How many ids of each kind the raw files hold."""
    traces, rows = raw_sides(spark, folder)
    sums = cell_sums(_ledger(traces, "traces").unionByName(_ledger(rows, "sink")))
    cells = sums.where(differs()).select(*CELL).localCheckpoint()
    marks = seen(traces, rows, cells)
    kind = F.when(F.col("landed") == 0, "missing").when(F.col("counted") == 0, "untraced")
    kinds = unclean(marks).groupBy(kind.otherwise("duplicated").alias("kind"))
    return list(kinds.count().collect())


def _ledger(rows: DataFrame, side: str) -> DataFrame:
    nothing = {
        "max_sequence_number": "string",
        "last_at": "timestamp",
        "unnumbered_at": "timestamp",
    }
    nothing |= {"own_n": "bigint", "without_landed_at": "bigint"}
    return (
        rows.groupBy(*CELL)
        .agg(*fingerprint_sums(F.xxhash64("message_id")))
        .withColumns({name: F.lit(None).cast(kind) for name, kind in nothing.items()})
        .withColumn("side", F.lit(side))
    )


def _peak_gib(spark: SparkSession) -> float:
    """The peak resident memory of the driver's JVM and of this process."""
    jvm = spark.sparkContext._jvm  # noqa: SLF001 - the only way to the driver's pid
    assert jvm is not None
    pids = (str(jvm.java.lang.ProcessHandle.current().pid()), "self")
    peaks = [
        line.split()[1]
        for pid in pids
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith("VmHWM")
    ]
    return sum(map(int, peaks)) / 2**20


if __name__ == "__main__":
    main(sys.argv[1])
