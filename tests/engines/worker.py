"""Evaluates every table on one engine: `python -m tests.engines.worker <engine> <folder>`.

A process of its own, because PySpark's two kinds of session do not mix in one.
"""

import sys
import traceback
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from shardaudit.adapters.engine.door import started
from shardaudit.model.config.settings import Settings
from tests.engines import forms, frames, groups, instants, nested, numbers, texts
from tests.engines.table import TABLES, Table

TUNING = {
    "spark.master": "local[1]",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC -XX:TieredStopAtLevel=1",
}


def every_table() -> list[Table]:
    """The tables of all modules: to import one adds its own."""
    assert all((texts, numbers, instants, nested, groups, frames, forms))
    return TABLES


def evaluate(engine: str, folder: Path) -> None:
    """Writes each table's rows, and its types as Spark names them; or the error that came."""
    settings = Settings.model_validate(
        {
            "warehouse": "unused",
            "engine": engine,
            "embedded": {"shared_machine": True},
            "spark": TUNING,
            "streams": {},
        }
    )
    with started(settings, app="tables") as running:
        for table in every_table():
            try:
                answers = answered(table, running.session)
            except Exception:  # noqa: BLE001 - the parent tells it of its table
                (folder / f"{table.name}.error").write_text(traceback.format_exc()[-1500:])
                continue
            with pa.ipc.new_file(folder / f"{table.name}.arrow", answers.schema) as file:
                file.write_table(answers)


def answered(table: Table, spark: SparkSession) -> pa.Table:
    rows = table.rows(spark)
    kinds = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in rows.schema)
    return rows.toArrow().replace_schema_metadata({"kinds": kinds})


if __name__ == "__main__":
    evaluate(sys.argv[1], Path(sys.argv[2]))
