"""The canary: an audit whose own parts are broken rejects itself, and leaves no trace of what it
planted.

Product functions are patched here, and here alone: the tests are about what becomes of an audit
when one of them is wrong.
"""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.adapters.engine.door import Engine
from shardaudit.audit import comparison, judged, kept_days, looked_into, window_ledger
from shardaudit.audit.rules import (
    carried,
    cell_verdicts,
    cells,
    classify,
    drill_down,
    findings,
    gaps,
    patience,
    shard_facts,
    vanished,
)
from shardaudit.audit.rules.carried import Carried
from shardaudit.columns.ledger_sums import cell_sums
from shardaudit.model.errors import SelfCheckError
from shardaudit.model.input_columns import CANARY
from shardaudit.model.tables.audit_tables import AUDITS, CELLS, FINDINGS
from shardaudit.model.verdict import Verdict
from shardaudit.store.warehouse import Warehouse
from tests.builders import NOW, T0, sequence
from tests.history import Question, SinkRow, Trace
from tests.spark.trial import Trial

MINUTE = timedelta(minutes=1)
LOST = "m7"
Broken = Callable[..., object]


def trial(warehouse: Warehouse, folder: Path) -> Trial:
    """A stream of 20 messages over four minutes, of which one was lost; ingested."""
    stream = Trial(warehouse, folder, Question(T0, T0 + 4 * MINUTE, NOW))
    sent = [
        Trace(f"m{i}", f"shard-{i % 2}", sequence(i), T0 + i * timedelta(seconds=10))
        for i in range(20)
    ]
    stream.log(sent)
    stream.land(
        [
            SinkRow(t.message_id, t.shard_id, t.sequence_number, t.sent_at, t.sent_at + MINUTE)
            for t in sent
            if t.message_id != LOST
        ]
    )
    stream.ingest()
    return stream


@pytest.fixture(scope="module")
def lossy(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """The stream for all that only look at it."""
    folder = tmp_path_factory.mktemp("canary")
    return trial(Warehouse(engine.session, str(folder / "warehouse")), folder)


def always_pending(*_: object) -> Column:
    is_missing = (F.col("sent_count") > 0) & (F.col("landed_count") == 0)
    return F.when(is_missing, Verdict.PENDING.value)


def without(verdict: Callable[..., Column], dropped: Verdict) -> Broken:
    """The verdicts without the branch of one of them."""

    def broken(*given: object) -> Column:
        found = verdict(*given)
        return F.when(found == dropped.value, Verdict.OK.value).otherwise(found)

    return broken


def landed_for_sent(sums: Callable[..., DataFrame]) -> Broken:
    def broken(*given: object) -> DataFrame:
        found = sums(*given)
        sides = {f"sent_{n}": F.col(f"landed_{n}") for n in ("n", "sum_lo", "sum_hi")}
        return found.withColumns(sides)

    return broken


def joined_by_time_alone(grid: DataFrame, sums: DataFrame) -> DataFrame:
    crossed = grid.join(sums.drop("shard_id"), ["bucket_start"], how="inner")
    return cells.compared_cells(grid, crossed)


def without_frontier(facts: Callable[..., DataFrame]) -> Broken:
    def broken(*given: object, **named: object) -> DataFrame:
        nowhere = F.lit(None).cast("string")
        return facts(*given, **named).withColumn("settled_frontier", nowhere)

    return broken


def nothing_carried(known: DataFrame) -> Carried:
    found = carried.carried(known)
    return Carried(found.evidence.limit(0), found.covered.limit(0), found.stale)


def everything_carried(evidence: Callable[..., DataFrame]) -> Broken:
    return lambda *given: evidence(*given).withColumn("holds", F.lit(True))


def never_opened(fold: Callable[..., DataFrame]) -> Broken:
    return lambda *given: fold(*given).where(F.col("from_state").isNotNull())


def never_closed(fold: Callable[..., DataFrame]) -> Broken:
    return lambda *given: fold(*given).where(F.col("last_audit_id") != "earlier")


def nowhere_else(ids: DataFrame, apart: DataFrame) -> DataFrame:
    hashed = drill_down.with_hash(apart)
    return hashed.join(ids, ["id_hash"], how="left_semi").select("id_hash", "bucket_start")


def seen_by_none(known: Callable[..., DataFrame]) -> Broken:
    return lambda *given: known(*given).withColumn("by_audit", F.lit(None).cast("bigint"))


def nothing_missed(gone: Callable[..., DataFrame]) -> Broken:
    def broken(ids: DataFrame, found: DataFrame, missing: DataFrame, *others: object) -> DataFrame:
        return gone(ids, found, missing.limit(0), *others)

    return broken


def nothing_unlanded(rest: Callable[..., DataFrame]) -> Broken:
    return lambda *given, **named: rest(*given, **named).limit(0)


BREAKS: dict[str, tuple[object, str, object]] = {
    "an outage raises the patience": (patience, "_HOURS", 1),
    "always pending": (classify, "_not_landed", always_pending),
    "landed for sent": (kept_days, "cell_sums", landed_for_sent(cell_sums)),
    "nothing differs": (cells, "differs", lambda: F.lit(False)),
    "no verdict loss": (
        cell_verdicts,
        "verdict",
        without(cell_verdicts.verdict, Verdict.LOSS),
    ),
    "no verdict stalled": (
        cell_verdicts,
        "verdict",
        without(cell_verdicts.verdict, Verdict.STALLED),
    ),
    "a join key removed": (window_ledger, "compared_cells", joined_by_time_alone),
    "frontier ignored": (window_ledger, "shard_facts", without_frontier(shard_facts.shard_facts)),
    "carried evidence ignored": (comparison, "carried", nothing_carried),
    "changes of the ledger ignored": (
        comparison,
        "judged_evidence",
        everything_carried(carried.judged_evidence),
    ),
    "retries not followed to where they count": (looked_into, "other_places", nowhere_else),
    "clocks that are ahead believed": (
        drill_down,
        "trace_arrival",
        lambda: F.greatest("sent_at", "acked_at"),
    ),
    "what an audit saw ignored": (
        window_ledger,
        "vanished_cells",
        seen_by_none(vanished.vanished_cells),
    ),
    "what an audit missed forgotten": (
        comparison,
        "vanished_ids",
        nothing_missed(vanished.vanished_ids),
    ),
    "gaps for whole": (comparison, "unlanded_rest", nothing_unlanded(gaps.unlanded_rest)),
    "no gap closed": (judged, "folded_gaps", never_closed(gaps.folded_gaps)),
    "nothing opened": (judged, "folded_findings", never_opened(findings.folded_findings)),
    "nothing closed": (judged, "folded_findings", never_closed(findings.folded_findings)),
}


# Of every second the daily tests see it, of each the drill does.
SOME = [
    pytest.param(name, marks=[pytest.mark.drill] if number % 2 else [])
    for number, name in enumerate(BREAKS)
]


@pytest.mark.parametrize("name", SOME)
def test_audit_rejects_itself_when_a_part_of_it_is_broken(
    lossy: Trial, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    place, function, broken = BREAKS[name]
    monkeypatch.setattr(place, function, broken)
    with pytest.raises(SelfCheckError, match="did not find exactly what it planted") as caught:
        lossy.audit()
    assert caught.value.wrong
    [row] = lossy.warehouse.rows(AUDITS, where=pc.scalar(True))
    assert (row["status"], row["self_check"]) == ("rejected", "failed")
    assert lossy.warehouse.rows(CELLS, where=pc.scalar(True)) == []


def test_error_names_what_was_planted_and_what_was_found(
    lossy: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(classify, "_not_landed", always_pending)
    with pytest.raises(SelfCheckError) as caught:
        lossy.audit()
    told = "id 'lost' in holed: planted “running lost - - -”, found “running pending - - -”"
    assert told in caught.value.wrong
    assert "cell 'running' in ancient: planted “loss ids 3 0 0 3 0 0 0 0 0 0 0 -”" in str(
        caught.value
    )


def canaries(folder: Path) -> dict[str, int]:
    """How many rows of the canary each table holds that any text of it begins."""
    found: dict[str, int] = {}
    for log in sorted(folder.glob("*/_delta_log")):
        rows = DeltaTable(log.parent).to_pyarrow_table().to_pylist()
        found[log.parent.name] = sum(CANARY in str(row) for row in rows)
    return found


def test_no_table_holds_the_canary_after_audits(warehouse: Warehouse, tmp_path: Path) -> None:
    stream = trial(warehouse, tmp_path)
    first = stream.audit()
    stream.land([SinkRow(LOST, "shard-1", sequence(7), T0 + 70 * MINUTE / 60, NOW)])
    stream.ingest()
    second = stream.audit(Question(T0, T0 + 4 * MINUTE, NOW + MINUTE))
    assert [a.audit.self_check for a in (first, second)] == ["passed", "passed"]
    assert {key[0] for key in first.findings} == {LOST}
    assert second.audit.cells_total == 2 * 4
    found = canaries(tmp_path / "warehouse")
    assert {CELLS.name, FINDINGS.name, AUDITS.name, "evidence", "transitions"} <= found.keys()
    assert found == dict.fromkeys(found, 0)


def test_audit_of_nothing_but_its_canary_is_checked(warehouse: Warehouse, tmp_path: Path) -> None:
    stream = Trial(warehouse, tmp_path, Question(T0, T0 + MINUTE, NOW))
    stream.log([])
    stream.land([])
    stream.ingest()
    published = stream.audit()
    assert published.audit.self_check == "passed"
    assert published.cells == {}
