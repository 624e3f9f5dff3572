"""Tables of our own rules, each on a small lake with everything wrong in it that there is."""

from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import chain

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.audit.rules.apart import crossing_ids, displaced_rows, other_places, within_window
from shardaudit.audit.rules.canary.canary_answers import answers
from shardaudit.audit.rules.carried import sampled_cells, with_bucket_digest, with_neighbours
from shardaudit.audit.rules.cell_verdicts import CellFacts, judged_cells
from shardaudit.audit.rules.cells import compared_cells, grid, with_unsent
from shardaudit.audit.rules.classify import (
    Damage,
    cell_counts,
    classified_ids,
    kinds,
)
from shardaudit.audit.rules.drill_down import (
    WANTED,
    cell_ids,
    ids,
    rows_of,
    seen,
    suspects,
    traces_of,
    unclean,
    unsent,
    with_hash,
)
from shardaudit.audit.rules.findings import (
    AuditFacts,
    folded_findings,
    pending_ids,
    transitions,
    with_completeness,
)
from shardaudit.audit.rules.gaps import gap_measures
from shardaudit.audit.rules.hours import hour_sums
from shardaudit.audit.rules.ledger_hours import LedgerSums, kept_hours, shard_hours, time_measures
from shardaudit.audit.rules.patience import hour_bins, patiences
from shardaudit.audit.rules.shard_facts import shard_facts, with_behind_parent
from shardaudit.audit.rules.totals import disagreeing_cells, shard_totals
from shardaudit.audit.rules.vanished import (
    Deadlines,
    Past,
    last_arrival,
    overdue_cells,
    vanished_cells,
    vanished_ids,
    with_vanished,
)
from shardaudit.backfill.rules.missing import missing_ids, stretches
from shardaudit.columns.ledger_sums import CELL, SUMS, cell_sums, sums_digest
from shardaudit.ingest.rules.batch_summary import batch_summaries
from shardaudit.ingest.rules.deliveries import (
    DELIVERY_DDL,
    JUDGED_DDL,
    judged_sink_rows,
    refused_rows,
)
from shardaudit.ingest.rules.fingerprint import (
    fingerprint_sums,
    less_the_ledger,
    placed_ledger,
    sink_fingerprints,
    trace_fingerprints,
    trace_sums,
)
from shardaudit.ingest.rules.placed_rows import placed_rows
from shardaudit.ingest.rules.refused_traces import TraceRules, judged_traces, sampled
from shardaudit.ingest.rules.repeats import known_places, repeated_ids, single_traces, told_traces
from shardaudit.ingest.rules.sighted import counted_sightings, new_sightings, seen_at
from shardaudit.model.config.eras import CellShape, Eras, always
from shardaudit.model.input_columns import CANARY
from shardaudit.model.retention import Longer, Retention, Shorter
from shardaudit.model.tables.audit_tables import FINDINGS, FINGERPRINTS, TRACES, TRANSITIONS
from shardaudit.model.tables.route_tables import SIGHTINGS
from shardaudit.model.window import Window
from shardaudit.watch.rules.differing_cells import kept_cells
from shardaudit.watch.rules.frontiers import LedgerView, shard_progress, shard_times
from tests.engines.odd import INSTANTS_US, LONGS, NUMBERS, TEXTS
from tests.engines.table import cases, table

T0 = datetime(2026, 11, 1, 5, 29, tzinfo=UTC)  # New York's clocks are about to go back
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
MINUTES = Eras(CellShape(60, 1.0))
WINDOW = Window(T0, T0 + 4 * MINUTE)
AS_OF = T0 + timedelta(minutes=30)
SHARDS = ("s0", "é", "e\u0301")
IDS = [text for text in TEXTS if text is not None and len(text) < 1000]
Line = dict[str, object]


def lines_of_traces() -> list[Line]:
    """Most ids once; some twice, of which one counts; some without number, place, attributes."""
    found: list[Line] = []
    for i, name in enumerate(IDS * 3):
        sent_at = T0 + (i % 4) * MINUTE + timedelta(seconds=i % 59, microseconds=i)
        first: Line = {
            "message_id": f"{name}{i // len(IDS)}",
            "shard_id": SHARDS[i % 3],
            "sequence_number": None if i % 9 == 0 else str(10 ** (i % 40) + i),
            "sent_at": sent_at,
            "bucket_start": sent_at.replace(second=0, microsecond=0),
            "location": "producer" if i % 4 else None,
            "attempt": None if i % 3 else 1,
            "acked_at": None if i % 5 else sent_at + MINUTE,
            "attributes": None if i % 2 else {"row": str(i), "none": None},
            "counted": True,
            "sent_day": sent_at.date(),
            "stream": "events",
            "batch_id": "b",
        }
        found.append(first)
        if i % 6 == 0:
            number = None if first["sequence_number"] else "1"
            again = {"counted": False, "sequence_number": number, "attributes": {"row": "again"}}
            found.append(first | again | {"shard_id": SHARDS[(i + i % 4) % 3]})
    return found


def lines_of_rows() -> list[Line]:
    """What landed of them: not all, some twice, some on another shard, some nobody sent."""
    found: list[Line] = []
    for i, trace in enumerate(line for line in lines_of_traces() if line["counted"]):
        sent_at = trace["sent_at"]
        assert isinstance(sent_at, datetime)
        landed_at = None if i % 17 == 0 else sent_at + timedelta(seconds=(i % 13) ** 2)
        line = {**trace, "landed_at": landed_at, "arrived_at": None}
        if i % 8 == 7:
            line["message_id"] = f"nobody sent {i}"
        if i % 10 == 9:
            line |= {"shard_id": SHARDS[(i + 1) % 3], "sequence_number": str(i)}
        copies = 0 if i % 7 == 0 else 2 if i % 11 == 0 else 1
        found += [line | {"sequence_number": None} if i % 12 == 5 else line] * copies
    return found


def filled(spark: SparkSession, lines: list[Line], ddl: str) -> DataFrame:
    """Rows with these columns; what a line does not have is NULL."""
    names = [part.split()[0].strip("`") for part in ddl.split(", ")]
    return spark.createDataFrame([tuple(line.get(n) for n in names) for line in lines], ddl)


@cache
def traces(spark: SparkSession) -> DataFrame:
    return filled(spark, lines_of_traces(), TRACES.ddl)


@cache
def sink_rows(spark: SparkSession) -> DataFrame:
    return filled(spark, lines_of_rows(), DELIVERY_DDL)


def judged_rows(spark: SparkSession) -> DataFrame:
    """With reasons, so that some of them cannot be used."""
    lines = [
        line | ({"reason": "bad", "bucket_start": None} if i % 19 == 0 else {"reason": None})
        for i, line in enumerate(lines_of_rows())
    ]
    return filled(spark, lines, JUDGED_DDL)


@cache
def ledger(spark: SparkSession) -> DataFrame:
    """The fingerprints of both sides, as the ingest appends them."""
    sent = trace_fingerprints(trace_sums(traces(spark)))
    rows = sink_rows(spark).withColumn("reason", F.lit(None).cast("string"))
    landed = sink_fingerprints(rows, None, now=AS_OF).drop("added", "bare_n")
    whose = {"batch_id": F.lit("b"), "stream": F.lit("events")}
    return (
        sent.withColumn("side", F.lit("traces"))
        .unionByName(landed.withColumn("side", F.lit("sink")))
        .withColumns(whose)
        .select(FINGERPRINTS.names)
        .localCheckpoint()
    )


@cache
def compared(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    """(sums of the ledger, cells of the grid)."""
    measures = (last_arrival(MINUTE), *gap_measures(MINUTE), *time_measures())
    sums = cell_sums(ledger(spark), *measures).localCheckpoint()
    shards = sums.select("shard_id").union(spark.createDataFrame([("idle",)], "shard_id string"))
    cells = compared_cells(grid(shards.distinct(), window=WINDOW, bucket=MINUTE), sums)
    some = cells.where(F.pmod("sent_n", F.lit(3)) == 0)
    known = some.select(
        *CELL,
        F.when(F.col("sent_n") > 0, F.lit(1)).cast("bigint").alias("by_ledger"),
        F.when(F.col("sent_n") == 0, F.lit(2)).cast("bigint").alias("by_audit"),
        F.when(F.col("sent_n") == 3, F.lit(2)).otherwise(1).cast("bigint").alias("sent_by"),
        F.when(F.col("sent_n") == 6, F.lit(AS_OF)).alias("seen_at"),
    )
    whole = with_vanished(cells, known, cells.where(F.lit(False)))
    return sums, with_bucket_digest(whole, sums).localCheckpoint()


@cache
def kept(spark: SparkSession) -> DataFrame:
    """What is kept of the days of one of its shards."""
    sums, _ = compared(spark)
    mine = sums.where(F.col("shard_id") == "s0")
    hours = shard_hours(
        mine, as_of=AS_OF, settle_grace=timedelta(seconds=1), bucket=MINUTE
    ).localCheckpoint()
    days = hours.select(F.to_date("hour").alias("sent_day"), F.lit("d").alias("day_digest"))
    own = LedgerSums(mine, mine, hours, hours, frozenset())
    bins = hour_bins(ledger(spark), MINUTE)
    return kept_hours(own, bins, days.distinct(), bucket=MINUTE).localCheckpoint()


@cache
def evidence(spark: SparkSession) -> DataFrame:
    _, cells = compared(spark)
    both = seen(traces(spark), sink_rows(spark), cells.where(F.col("differs")))
    wanted = suspects(both)
    found = cell_ids(traces_of(traces(spark), wanted), rows_of(sink_rows(spark), wanted))
    return found.localCheckpoint()


@cache
def facts_of_shards(spark: SparkSession) -> DataFrame:
    grace = timedelta(seconds=30)
    week = hour_bins(ledger(spark), MINUTE)
    patience = patiences(week, settle_grace=grace, retention=7 * DAY)
    sums, _ = compared(spark)
    hours = shard_hours(sums, as_of=AS_OF, settle_grace=grace, bucket=MINUTE)
    facts = with_behind_parent(shard_facts(hours, patience, as_of=AS_OF, settle_grace=grace), None)
    return facts.localCheckpoint()


@cache
def classified(spark: SparkSession) -> DataFrame:
    damage = Damage(sink=((T0 + MINUTE, T0 + 2 * MINUTE),))
    return classified_ids(
        ids(evidence(spark)),
        facts_of_shards(spark),
        ids(evidence(spark)).where(F.length("message_id") % 5 == 0).select("message_id"),
        as_of=AS_OF,
        damage=damage,
    ).localCheckpoint()


def by(rows: DataFrame, *key: str) -> DataFrame:
    """The rows, told apart by some of their columns."""
    times = {name for name, kind in rows.dtypes if kind == "timestamp"}
    texts = [F.unix_micros(k) if k in times else F.col(k) for k in key]
    parts = [F.coalesce(text.cast("string"), F.lit("NULL")) for text in texts]
    return rows.withColumn("case", F.concat_ws("|", *parts))


@table()
def fingerprints_of_traces(spark: SparkSession) -> DataFrame:
    return by(trace_fingerprints(trace_sums(traces(spark))), "location", "shard_id", "bucket_start")


@table()
def fingerprints_of_a_sink(spark: SparkSession) -> DataFrame:
    rows = judged_rows(spark)
    cells = sink_fingerprints(rows, rows.where(F.length("message_id") % 3 == 0), now=AS_OF)
    return by(cells, "shard_id", "bucket_start")


@table()
def ledgers_that_are_read_anew(spark: SparkSession) -> DataFrame:
    fresh = sink_fingerprints(judged_rows(spark), None, now=AS_OF)
    known = ledger(spark).where(F.col("side") == "sink")
    return by(less_the_ledger(fresh, known), "shard_id", "bucket_start")


@table()
def fingerprints_of_odd_ids(spark: SparkSession) -> DataFrame:
    rows = cases(spark, TEXTS * 2, "message_id string")
    sums = rows.groupBy((F.col("case") % 5).alias("case"))
    return sums.agg(*fingerprint_sums(F.xxhash64("message_id"), F.lit(1)))


@table()
def cells_with_digests(spark: SparkSession) -> DataFrame:
    return by(compared(spark)[1], "shard_id", "bucket_start")


@table()
def cells_whose_rows_are_gone(spark: SparkSession) -> DataFrame:
    """All of each cell left; all but one shard had landed just what was sent."""
    came = ledger(spark).where(F.col("side") == "sink")
    sums = ("n", "sum_lo", "sum_hi")
    went = came.withColumns({"batch_id": F.lit("c")} | {name: -F.col(name) for name in sums})
    batches = [("b", 1, T0), ("c", 2, T0 + 31 * MINUTE), ("d", 3, AS_OF)]
    seen_at = spark.createDataFrame(batches, "batch_id string, number bigint, planned_at timestamp")
    is_equal = F.col("shard_id") != SHARDS[1]
    sent = {f"sent_{s}": F.when(is_equal, F.col(f"landed_{s}")).otherwise(7) for s in sums}
    cells = compared(spark)[1].drop("was_known", "by_ledger", "by_audit", "sent_by", "seen_at")
    cells = cells.drop("has_gap")
    cells = cells.withColumns(sent | {"differs": F.lit(True)})
    seen_so = cells.select(
        *CELL,
        sums_digest().alias("sums_digest"),
        F.pmod("landed_n", F.lit(2)).alias("pending"),
        F.pmod("landed_n", F.lit(3)).alias("vanished"),
        F.lit(AS_OF).alias("as_of"),
    )
    told = came.where(is_equal).withColumn("side", F.lit("traces"))
    past = Past(
        came.unionByName(went).unionByName(told), seen_at, seen_so, cells.select("shard_id")
    )
    by_now = Deadlines(MINUTE, KEPT, T0 + 31 * MINUTE, Damage(sink=((T0, T0 + MINUTE),)))
    gone = vanished_cells(overdue_cells(cells, past, by_now), past, by_now)
    return by(with_vanished(cells, gone, cells.where(F.lit(False))), "shard_id", "bucket_start")


@table()
def ids_whose_rows_are_gone(spark: SparkSession) -> DataFrame:
    some = ids(evidence(spark))
    missing = some.where(F.length("message_id") % 2 == 0).select("message_id")
    is_seen, one = F.col("shard_id") == SHARDS[0], F.lit(1).cast("bigint")
    known = {
        "was_known": F.lit(True),
        "by_audit": F.when(is_seen, one),
        "by_ledger": F.when(~is_seen, one),
    }
    number = F.pmod(F.length("message_id"), F.lit(3)).cast("bigint").alias("number")
    brought = some.select("message_id", *CELL, number).where(F.col("number") > 0)
    cells = compared(spark)[1].withColumns(known)
    return by(vanished_ids(some, cells, missing, brought, KEPT), "message_id")


@table()
def unclean_ids(spark: SparkSession) -> DataFrame:
    cells = compared(spark)[1].select("shard_id", "bucket_start")
    return by(unclean(seen(traces(spark), sink_rows(spark), cells)), "id_hash")


@table()
def ids_that_nobody_sent(spark: SparkSession) -> DataFrame:
    cells = compared(spark)[1].select("shard_id", "bucket_start")
    sent = traces(spark).where(F.length("message_id") % 2 == 0)
    return by(unsent(sent, sink_rows(spark), cells), "id_hash")


@table()
def cells_with_ids_that_nobody_sent(spark: SparkSession) -> DataFrame:
    _, cells = compared(spark)
    none = traces(spark).where(F.lit(False))
    found = unsent(none, sink_rows(spark), cells)
    sums = (f"unsent_{name}" for name in SUMS)
    return by(with_unsent(cells, found).select(*CELL, *sums), *CELL)


@table()
def evidence_of_ids(spark: SparkSession) -> DataFrame:
    return by(evidence(spark), "message_id", "shard_id", "bucket_start")


@table()
def ids_with_their_evidence(spark: SparkSession) -> DataFrame:
    return by(ids(evidence(spark)), "message_id")


@table()
def facts_of_each_shard(spark: SparkSession) -> DataFrame:
    return by(facts_of_shards(spark), "shard_id")


@table()
def ids_with_their_causes(spark: SparkSession) -> DataFrame:
    return by(classified(spark), "message_id")


@cache
def told(spark: SparkSession) -> tuple[DataFrame, DataFrame, DataFrame]:
    """(crossing ids, ids that are told, displaced rows) where the window ends a minute earlier."""
    is_inside = F.col("bucket_start") < F.lit(T0 + 3 * MINUTE)
    crossing = crossing_ids(evidence(spark), is_inside).localCheckpoint()
    some = within_window(classified(spark), crossing, is_inside).localCheckpoint()
    rows = displaced_rows(evidence(spark), some, crossing, is_inside)
    return crossing, some, rows.localCheckpoint()


@table()
def ids_on_both_sides_of_an_edge(spark: SparkSession) -> DataFrame:
    return by(told(spark)[0], "message_id")


@table()
def ids_that_a_window_tells_of(spark: SparkSession) -> DataFrame:
    return by(told(spark)[1], "message_id")


@table()
def rows_that_count_elsewhere(spark: SparkSession) -> DataFrame:
    return by(told(spark)[2], "shard_id", "bucket_start")


@table()
def other_places_of_ids(spark: SparkSession) -> DataFrame:
    names = [(name, T0, T0 + i % 3 * MINUTE) for i, name in enumerate(IDS * 2)]
    schema = "message_id string, bucket_start timestamp, counted_in timestamp"
    apart = spark.createDataFrame(names, schema)
    some = apart.where(F.length("message_id") % 3 > 0)
    return by(other_places(with_hash(some), apart), *WANTED)


@table()
def verdicts(spark: SparkSession) -> DataFrame:
    return by(judged(spark), "shard_id", "bucket_start")


def judged(spark: SparkSession) -> DataFrame:
    _, cells = compared(spark)
    judgement = CellFacts(
        as_of=AS_OF,
        bucket=MINUTE,
        settle_grace=timedelta(seconds=30),
        trace_coverage_floor=0.9,
        damage=Damage(traces=((T0 + MINUTE, T0 + 2 * MINUTE),)),
    )
    drilled = cells.where(F.col("differs")).select("shard_id", "bucket_start")
    _, some, displaced = told(spark)
    counts = cell_counts(some, displaced)
    return judged_cells(cells, counts, drilled, facts_of_shards(spark), judgement)


@table()
def totals_of_shards(spark: SparkSession) -> DataFrame:
    return by(shard_totals(judged(spark)), "shard_id")


@table()
def cells_that_disagree(spark: SparkSession) -> DataFrame:
    _, cells = compared(spark)
    drilled = cells.select("shard_id", "bucket_start")
    some = seen(traces(spark), sink_rows(spark), drilled).where(F.col("id_hash") < 0)
    return by(disagreeing_cells(some, cells, drilled), "shard_id", "bucket_start")


KEPT = Retention(
    timedelta(minutes=29),
    Shorter(timedelta(minutes=1), T0 + 2 * MINUTE),
    (Longer(timedelta(hours=1), T0 + 3 * MINUTE), Longer(timedelta(days=1), T0 + MINUTE)),
)


@table()
def folded(spark: SparkSession) -> DataFrame:
    """Findings that are new, that came back, that are over; before 1970 and without a time, too."""
    facts = AuditFacts("a2", "events", WINDOW, AS_OF, AS_OF, MINUTE, KEPT, Damage())
    some = classified(spark)
    found = kinds(some)
    states = ("open", "planned", "replayed", "expired", "accepted", "recovered", "false_alarm")
    lines: list[Line] = [
        {
            "stream": "events",
            "shard_id": "s0",
            "message_id": name,
            "kind": "missing" if i % 3 else "duplicated",
            "cause": "lost",
            "state": states[i % 7],
            "sent_at": T0 - (i % 4 - 1) * MINUTE if i % 5 else datetime(1969, 12, 31, tzinfo=UTC),
            "sent_count": i % 3,
            "landed_count": 0,
            "sequence_numbers": [str(i)] if i % 4 else [],
            "recoverable_until": AS_OF + (i % 3 - 1) * MINUTE if i % 6 else None,
            "first_audit_id": "a1",
            "opened_at": T0,
            "judged_as_of": AS_OF + (i % 5) * MINUTE if i % 2 else AS_OF - MINUTE,
            "is_complete": (True, False, None)[i % 3],
        }
        for i, name in enumerate(f"{name}{n}" for n in range(3) for name in IDS)
        if i % 4 != 1
    ]
    previous = filled(spark, lines, f"{FINDINGS.ddl}, judged_as_of timestamp, is_complete boolean")
    return by(folded_findings(found, previous, pending_ids(some), facts), "message_id", "kind")


@table()
def findings_whose_cells_are_complete(spark: SparkSession) -> DataFrame:
    lines: list[Line] = [
        {"message_id": f"{shard_id}{minute}", "shard_id": shard_id, "kind": "missing"}
        | {"sent_at": T0 + minute * MINUTE + timedelta(seconds=7) if minute != 2 else None}
        for shard_id in (*SHARDS, "elsewhere")
        for minute in range(-1, 5)
    ]
    found = with_completeness(
        filled(spark, lines, FINDINGS.ddl), cell_sums(ledger(spark)), shape=MINUTES
    )
    return by(found, "message_id")


@table()
def hours_of_a_ledger(spark: SparkSession) -> DataFrame:
    sums = cases(spark, INSTANTS_US, "us bigint").select(
        F.lit("s").alias("shard_id"),
        F.timestamp_micros("us").alias("bucket_start"),
        F.lit(2).cast("bigint").alias("sent_n"),
        F.lit(1).cast("bigint").alias("landed_n"),
        F.lit(1).cast("bigint").alias("without_landed_at"),
    )
    before = sums.select("shard_id", "bucket_start", F.col("sent_n").alias("sent"))
    kept = sums.withColumnRenamed("bucket_start", "hour")
    windows = [Window(AS_OF - DAY, AS_OF), Window(datetime(1969, 12, 1, tzinfo=UTC), AS_OF)]
    hours = [
        hour_sums(sums, kept, before, window=window, width=timedelta(hours=n)).withColumn(
            "case", F.concat_ws("|", F.lit(n), F.unix_micros("start"))
        )
        for n, window in ((1, windows[0]), (3, windows[1]))
    ]
    return hours[0].unionByName(hours[1])


@table()
def samples_and_neighbours(spark: SparkSession) -> DataFrame:
    _, cells = compared(spark)
    sample = sampled_cells(cells.withColumn("differs", ~F.col("differs")), seed="2026", size=4)
    return by(with_neighbours(sample, bucket=MINUTE), "shard_id", "bucket_start")


@table()
def answers_to_a_canary(spark: SparkSession) -> DataFrame:
    """What is said of it, where its shards and ids are odd ones, too."""
    names = {name: F.concat(F.lit(CANARY), name) for name in ("shard_id", "message_id")}
    own = {"shard_id": names["shard_id"]}
    facts = AuditFacts("a2", "events", WINDOW, AS_OF, AS_OF, MINUTE, Retention(DAY), Damage())
    some = classified(spark).withColumns(names)
    previous = filled(spark, [], f"{FINDINGS.ddl}, judged_as_of timestamp, is_complete boolean")
    findings = folded_findings(kinds(some), previous, pending_ids(some), facts)
    said = answers(
        judged(spark).withColumns(own), some, findings, transitions(findings, TRANSITIONS, facts)
    )
    return by(said, "what", "name", "at", "answer")


@table()
def progress_of_shards(spark: SparkSession) -> DataFrame:
    horizons = [
        ("s0", T0, T0 + MINUTE, None, None, False, None, None),
        ("é", T0 + MINUTE, None, "99", "1" + "0" * 20, False, T0, T0),
        ("e\u0301", T0, T0, "9" * 50, "5", True, T0 + DAY, None),
    ]
    ddl = (
        "shard_id string, since timestamp, landed_until timestamp, known_frontier string, "
        "position string, is_at_end boolean, seen_at timestamp, rested_at timestamp"
    )
    known = spark.createDataFrame(horizons, ddl)
    of_days = ledger(spark).where(F.col("shard_id") != "s0")
    some = of_days.where(F.pmod("n", F.lit(2)) == 0).select(*CELL).distinct()
    one = F.lit(1).cast("bigint")
    left_out = some.withColumns({"left_out": one, "had": one})
    view = LedgerView(of_days, kept(spark), left_out)
    found = shard_progress(view, known, shape=always(MINUTE), rested_since=T0)
    return by(found, "shard_id")


@table()
def differing_cells_of_days_that_are_kept(spark: SparkSession) -> DataFrame:
    return by(kept_cells(kept(spark), shape=always(MINUTE)), *CELL)


@table()
def times_and_patience_of_shards(spark: SparkSession) -> DataFrame:
    grace = timedelta(seconds=1)
    week = hour_bins(ledger(spark), MINUTE)
    patience = patiences(week, settle_grace=grace, retention=DAY)
    sums, _ = compared(spark)
    hours = shard_hours(sums, as_of=AS_OF, settle_grace=grace, bucket=MINUTE)
    is_kept = F.col("shard_id") == "s0"
    times = shard_times(ledger(spark).where(~is_kept), hours.where(is_kept))
    both = times.join(patience, ["shard_id"], how="left")
    return by(both, "shard_id")


@table()
def rows_of_a_sink_without_shards(spark: SparkSession) -> DataFrame:
    none = {"shard_id": F.lit(None).cast("string"), "sent_at": F.lit(None).cast("timestamp")}
    placed = placed_rows(sink_rows(spark).withColumns(none), traces(spark), shape=MINUTES)
    return by(placed_ledger(placed, now=AS_OF, came_by=AS_OF), "shard_id", "bucket_start")


@table()
def summaries_of_batches(spark: SparkSession) -> DataFrame:
    """Of reasons that are as frequent, always the same one."""
    reasons = ("sent_at is before 2000", "a", "b", "the trace is of another stream than events")
    lines = [(f"b{i % 6}", reasons[i * i % (1 + i % 4)]) for i in range(60)]
    refused = spark.createDataFrame(lines, "batch_id string, reason string")
    ours = ledger(spark).withColumn("batch_id", F.concat(F.lit("b"), F.size("latency_counts")))
    return by(batch_summaries(ours, refused, shape=MINUTES), "batch_id")


@table()
def rows_that_are_refused(spark: SparkSession) -> DataFrame:
    """Their texts in the quarantine: odd ids, and times that no calendar has."""
    times = chain(INSTANTS_US, LONGS)
    some = zip(TEXTS * 2, reversed(TEXTS * 2), times, strict=False)
    rows = cases(spark, some, "message_id string, shard_id string, us bigint")
    sink = rows.select(
        "message_id",
        "shard_id",
        F.lit("not a number").alias("sequence_number"),
        *(F.timestamp_micros("us").alias(name) for name in ("sent_at", "landed_at", "arrived_at")),
        F.col("case").cast("string").alias("file"),
        F.col("case").cast("bigint").alias("line"),
    )
    judged = judged_sink_rows(sink, shape=MINUTES)
    return refused_rows(judged.drop("bucket_start")).withColumnRenamed("file", "case")


TIME_TEXTS = (
    None, "", "2026-11-20T12:00:00Z", "2026-11-20t12:00:00,123456789z", "2026-11-20 12:00+0100",
    "2026-11-20T12:00:00-18:00", "2026-11-20T12:00:00+19:00", "2026-02-30T00:00:00Z", "now",
    "2026-11-20T24:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "1999-12-31",
    "٢٠٢٦-11-20T12:00:00Z", "2026-11-20T12:00:00Z\n", "1763640000", "1999-12-31T23:59:59.9Z",
)  # fmt: skip
NUMBER_TEXTS = (
    None, "", "1", "-1", " 7 ", "1.5", "1e3", "0x10", "2147483648", "9223372036854775808", "NaN",
    "inf", "-Infinity", "1_000", "٣", "1d", "1.", ".5", "+5", "\x00", "true", "1\n", "1e400",
)  # fmt: skip
LOOSE_DDL = (
    "file string, line bigint, raw string, fault string, message_id string, stream string, "
    "shard_id string, sequence_number string, location string, event string, producer_id string, "
    "session string, attempt string, session_seq string, sample_rate string, "
    "sent_at_text string, acked_at_text string, sent_at_us bigint, acked_at_us bigint, "
    "attributes map<string,string>, attributes_fault string"
)


@cache
def judged_lines(spark: SparkSession) -> DataFrame:
    lines: list[Line] = [
        {
            "file": f"f{i % 3}",
            "line": i,
            "raw": None if i % 4 else f"{text} {i}",
            "fault": "no line" if i % 31 == 30 else None,
            "message_id": text if i % 3 else f"good {i % 40}",
            "stream": "other" if i % 29 == 28 else None,
            "shard_id": text if i % 7 == 6 else SHARDS[i % 3],
            "sequence_number": (text, NUMBERS[i % 10], "5")[i % 3],
            "location": ("producer", "router", text)[i % 4 % 3],
            "event": (None, "received", "sent", text)[i % 5 % 4],
            "attempt": NUMBER_TEXTS[i % 23] if i % 3 == 0 else None,
            "session_seq": NUMBER_TEXTS[i % 23] if i % 5 == 0 else None,
            "sample_rate": NUMBER_TEXTS[i % 23] if i % 7 == 0 else None,
            "sent_at_text": TIME_TEXTS[i % 17] if i % 2 else None,
            "sent_at_us": None if i % 2 else INSTANTS_US[i % 31] if i % 4 else 10**15 + i,
            "acked_at_text": TIME_TEXTS[i % 17] if i % 11 == 0 else None,
            "attributes": {"a": text} if i % 5 == 0 else None,
            "attributes_fault": "attributes are odd" if i % 37 == 36 else None,
        }
        for i, text in enumerate(TEXTS * 5)
    ]
    loose = filled(spark, lines, LOOSE_DDL)
    return judged_traces(
        loose, TraceRules(["events"], MINUTES, AS_OF, ("router",))
    ).localCheckpoint()


@table()
def lines_that_are_judged(spark: SparkSession) -> DataFrame:
    judged = judged_lines(spark)
    kept = (
        sampled(judged, Eras(CellShape(60, 0.5)))
        .withColumn("is_kept", F.lit(True))
        .select("line", "is_kept")
    )
    return by(judged.join(kept, ["line"], how="left"), "line")


@table()
def traces_that_are_new(spark: SparkSession) -> DataFrame:
    """Against themselves, and against some that are there already."""
    judged = judged_lines(spark)
    known = judged.where((F.col("line") % 3 == 0) & F.col("reason").isNull()).where(
        F.col("line") < 300
    )
    known = known.withColumn("counted_in", F.lit(None).cast("timestamp"))
    repeated = repeated_ids(judged, known_places(judged, known))
    good = judged.where(F.col("reason").isNull())
    fresh = good.join(F.broadcast(repeated), ["id_hash"], how="left_semi")
    told = single_traces(judged, repeated).unionByName(told_traces(fresh, known))
    return by(told, "message_id", "shard_id", "sequence_number", "bucket_start")


def sightings(spark: SparkSession) -> DataFrame:
    lines: list[Line] = [
        trace
        | {"location": ("router", "enricher")[i % 2], "event": ("received", "sent")[i % 3 % 2]}
        | {"session": None if i % 7 else "s", "session_seq": None if i % 4 else i}
        for i, trace in enumerate(lines_of_traces() * 2)
    ]
    return filled(spark, lines, SIGHTINGS.ddl)


@table()
def what_places_saw(spark: SparkSession) -> DataFrame:
    given = sightings(spark)
    return by(seen_at(new_sightings(given, given.where(F.col("session") == "s"))), "message_id")


@table()
def what_places_saw_of_cells(spark: SparkSession) -> DataFrame:
    given = sightings(spark)
    new, known = given.where("session IS NULL"), given.where("session IS NOT NULL")
    return by(counted_sightings(new, known), "location", "shard_id", "bucket_start")


@table()
def missing_messages(spark: SparkSession) -> DataFrame:
    finding: Line = {"stream": "events", "kind": "missing", "state": "open", "cause": "lost"}
    lines = [
        finding
        | {"message_id": name, "sent_at": T0}
        | {"recoverable_until": T0 + i * MINUTE if i % 3 else None}
        for i, name in enumerate(f"{name}{n}" for n in range(3) for name in IDS)
    ]
    doubled = traces(spark).unionByName(traces(spark).withColumn("shard_id", F.lit("other")))
    return by(missing_ids(filled(spark, lines, FINDINGS.ddl), doubled), "message_id")


@table()
def stretches_of_missing_messages(spark: SparkSession) -> DataFrame:
    rows = [
        (str(i), "lost" if i % 2 else "stuck", SHARDS[i % 3], us, number)
        for i, (us, number) in enumerate(
            (us, number) for us in INSTANTS_US for number in NUMBERS[2:6] if us is not None
        )
    ]
    missing = spark.createDataFrame(
        rows, "message_id string, cause string, shard_id string, us bigint, number string"
    )
    at = F.timestamp_micros("us")
    place = F.struct(F.length("number").alias("digits"), F.col("number").alias("text"))
    named = {"bucket_start": at, "sent_at": at, "recoverable_until": F.when(at > F.lit(T0), at)}
    arrival = {"arrives_from": at, "arrives_until": at, "acked_at": F.when(at < F.lit(T0), at)}
    placed = missing.withColumns(
        {**named, **arrival, "place": F.when(F.col("number") != "9", place)}
    )
    return by(stretches(placed), "shard_id", "bucket_start", "cause")


@table(".collect")
def instants_on_the_driver(spark: SparkSession) -> DataFrame:
    """PySpark's own would confuse the two hours that the machine's clock repeats."""
    rows = cases(spark, INSTANTS_US, "us bigint").withColumn("t", F.timestamp_micros("us"))
    told = [(row.case, repr(row["t"]), row["us"]) for row in collected(rows.orderBy("case"))]
    return spark.createDataFrame(told, "case int, text string, us bigint")
