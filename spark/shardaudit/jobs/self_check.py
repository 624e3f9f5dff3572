"""Runs the planted discrepancies through the same functions as the audit."""

import logging
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.compare.cells import differs
from shardaudit.compare.classify import Damage, classified_ids
from shardaudit.compare.drill_down import cell_ids, ids, rows_of, suspects, traces_of
from shardaudit.compare.self_check import planted, planted_cells, wrongly_judged
from shardaudit.ingest.fingerprint import fingerprint_sums

log = logging.getLogger(__name__)


def self_check(seen: DataFrame, sample: DataFrame, facts: DataFrame, *, as_of: datetime) -> str:
    """Whether the comparison finds one lost, one doubled and one extra id per sampled cell.

    Returns:
        passed | failed | skipped (no clean cell had two messages to plant in).
    """
    copy = planted(seen, sample).localCheckpoint()
    counted = (
        planted_cells(copy, _fingerprint)
        .agg(F.count("*").alias("cells"), F.count_if(~differs()).alias("unnoticed"))
        .first()
    )
    if counted is None or counted.cells == 0:
        return "skipped"
    evidence = cell_ids(*_sides(copy, suspects(copy)))
    classified = classified_ids(
        ids(evidence), facts, as_of=as_of, sink_has_sequences=True, damage=Damage()
    )
    wrong = wrongly_judged(classified, copy).limit(20).collect()
    for row in wrong:
        log.error("self-check: planted %s, found %s", row.planted, row.found)
    if counted.unnoticed:
        log.error("self-check: %s planted cells were not noticed", counted.unnoticed)
    return "failed" if wrong or counted.unnoticed else "passed"


def _sides(copy: DataFrame, found: DataFrame) -> tuple[DataFrame, DataFrame]:
    """The copy's rows in the shape in which traces and sink come: what it has not is NULL."""
    whole = (
        copy.withColumn("sequence_number", F.lit(None).cast("string"))
        .withColumn("sent_at", F.col("bucket_start"))
        .withColumn("landed_at", F.lit(None).cast("timestamp"))
        .withColumn("location", F.lit(None).cast("string"))
        .withColumn("attributes", F.lit(None).cast("map<string,string>"))
        .withColumn("is_own", F.lit(None).cast("boolean"))
    )
    traces = traces_of(whole.where(F.col("counted") == 1), found)
    return traces, rows_of(whole.where(F.col("landed") == 1), found)


def _fingerprint(message_id: Column) -> list[Column]:
    return fingerprint_sums(F.xxhash64(message_id))
