"""The Spark audit against the oracle, on random histories through the real path.

Many cases share one stream and one audit (Delta commits are what costs time): each has shards and
ids of its own. When some disagree the smallest is printed as the call that builds it: paste it
into `KNOWN`. `SHARDAUDIT_PROPERTY_SEED` chooses other cases; the nightly run sets it at random.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import pytest

from shardaudit.model.config.choices import SinkFormat
from shardaudit.model.retention import Shorter
from shardaudit.model.tables.audit_tables import CELLS, FINDINGS, TRANSITIONS
from shardaudit.model.verdict import State
from shardaudit.store.warehouse import Warehouse
from tests.cases import MS, START, Case, Terms, case_number
from tests.history import Departure, Finding, FindingKey, History, Outcome, Question, Trace
from tests.lifecycle import fold
from tests.oracle import reconcile
from tests.oracle_vanished import Memory
from tests.oracle_watermark import Record
from tests.random_cases import DROPPED, FAULTS, PALETTES, cases_of_palette, random_cases
from tests.spark.lines import SEED, lines, some_terms
from tests.spark.trial import Published, Trial

T = TypeVar("T")

# Cases that once failed, with their terms.
KNOWN: list[tuple[Terms, Case]] = []


def some_cases(of: Terms, number: int, *, count: int) -> list[Case]:
    return random_cases(of, seed=SEED + number, count=count)


def joined(of: Terms, chosen: Iterable[Case], *, up_to_batch: int = 2) -> tuple[History, list[int]]:
    """All cases as one stream's history, as far as it was ingested; and each row's batch."""
    seen_at = of.question.as_of
    parts = [case.history(number) for number, case in enumerate(chosen)]
    batches = [row[5] for case in chosen for row in case.rows]
    found = [row for part in parts for row in part.rows]
    rows = [
        replace(row, seen_at=seen_at, batch=n, lacks=row.lacks | (of.gains if n == 1 else set()))
        for row, n in zip(found, batches, strict=True)
    ]
    history = History(
        traces=tuple(
            replace(t, ingested_at=seen_at)
            for part in parts
            for t in part.traces
            if t.batch <= up_to_batch
        ),
        rows=tuple(r for r, batch in zip(rows, batches, strict=True) if batch <= up_to_batch),
        known_shards=frozenset(s for part in parts for s in part.known_shards),
    )
    return history, [batch for batch in batches if batch <= up_to_batch]


def ingested(trial: Trial, history: History, batches: list[int], *, batch: int) -> None:
    """Feeds and ingests one batch of a history."""
    trial.log([t for t in history.traces if t.batch == batch])
    trial.land([r for r, b in zip(history.rows, batches, strict=True) if b == batch])
    trial.ingest()


def disagreements(
    outcome: Outcome, findings: Mapping[FindingKey, Finding], published: Published
) -> dict[int, list[str]]:
    """What oracle and audit say differently, by case."""
    found: dict[int, list[str]] = defaultdict(list)
    for cell in sorted(outcome.cells.keys() | published.cells.keys()):
        want, got = outcome.cells.get(cell), published.cells.get(cell)
        if want != got:
            found[case_number(cell[0])].append(f"cell {cell}\n  oracle {want}\n  audit  {got}")
    for key in sorted(findings.keys() | published.findings.keys()):
        wanted, given = findings.get(key), published.findings.get(key)
        if wanted != given:
            either = wanted or given
            assert either is not None
            text = f"finding {key}\n  oracle {wanted}\n  audit  {given}"
            found[case_number(either.shard_id)].append(text)
    return dict(found)


def explanation(of: Terms, chosen: list[Case], found: dict[int, list[str]]) -> str:
    """The smallest of the cases that failed, to be pasted into KNOWN."""
    least = min(found, key=lambda number: chosen[number].size)
    lines = [f"{len(found)} of {len(chosen)} cases disagree; the smallest:"]
    lines += [f"({of!r},", f" {chosen[least]!r}),", *found[least]]
    return "\n".join(lines)


def assert_agreement(
    of: Terms,
    chosen: list[Case],
    outcome: Outcome,
    published: Published,
    *,
    findings: Mapping[FindingKey, Finding] | None = None,
    record: Record | None = None,
    history: History | None = None,
) -> None:
    """`history`: of a first audit, where it is not that of the cases as they are."""
    found = disagreements(
        outcome, fold({}, outcome, of.question) if findings is None else findings, published
    )
    assert not found, explanation(of, chosen, found)
    row = published.audit
    assert row.status == "published"
    assert row.self_check == "passed"
    assert row.verdict == outcome.verdict
    assert row.trace_coverage == outcome.trace_coverage
    if record is None:
        record = Record(of.question.bucket)
        record.count(outcome, of.question, history or joined(of, chosen)[0])
    wanted = fold({}, outcome, of.question) if findings is None else findings
    assert published.watermark == record.watermark(wanted, of.question)
    assert_sums(published)


def assert_sums(published: Published) -> None:
    """The invariants of docs/contract.md, over what was published."""
    row, cells = published.audit, list(published.cells.values())
    assert row.sent == row.matched + row.missing + row.pending
    assert row.landed == row.matched - row.vanished + row.extra_rows + row.untraced
    assert row.cells_total == len(cells)
    for name in ("sent", "landed", "matched", "missing", "pending", "extra_rows", "vanished"):
        assert row[name] == sum(getattr(cell, name) for cell in cells), name


def run(trial: Trial, of: Terms, chosen: list[Case]) -> tuple[Outcome, Published]:
    """Feeds the cases, in as many ingests as the terms say, and audits them."""
    history, batches = joined(of, chosen)
    trial.list_shards(history.known_shards, at=of.question.as_of)
    for batch in range(1, of.batches + 1):
        trial.sink_lacks = of.gains if batch == 1 else frozenset()
        ingested(trial, history, batches, batch=batch)
    for damage in of.damaged:
        trial.say_damaged(damage.side, damage)
    history = replace(history, damaged=of.damaged)
    return reconcile(history, of.question), trial.audit()


@pytest.mark.parametrize("number", range(len(PALETTES)))
def test_audit_agrees_with_the_oracle(warehouse: Warehouse, tmp_path: Path, number: int) -> None:
    of, chosen = cases_of_palette(number, seed=SEED)
    trial = Trial(warehouse, tmp_path, of.question, in_parquet=number % 2 == 1)
    outcome, published = run(trial, of, chosen)
    assert_agreement(of, chosen, outcome, published)


# When the rows are deleted, and when the audit after that is: since the last deadline, in buckets.
DROPS = {"late": (1, 2), "on the edge": (-3, 1), "of some cells": (1, -3), "early": (-999, 1)}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("late", marks=pytest.mark.drill),
        pytest.param("on the edge", marks=pytest.mark.drill),
        pytest.param("of some cells", marks=pytest.mark.drill),
        "early",
    ],
)
def test_audit_agrees_with_the_oracle_when_the_lake_drops_rows(
    warehouse: Warehouse, tmp_path: Path, name: str
) -> None:
    number = list(DROPS).index(name)
    of = some_terms(1000 + number, faults=DROPPED | (FAULTS if number % 2 else frozenset()))
    of = replace(of, buckets=8, batches=2, as_of_ms=of.retention_ms // 2)
    chosen = some_cases(of, 1000 + number, count=60)
    trial = Trial(warehouse, tmp_path, of.question)
    whole, before = run(trial, of, chosen)
    assert_agreement(of, chosen, whole, before)
    record = Record(of.question.bucket)
    record.count(whole, of.question, joined(of, chosen)[0], before.findings)

    over_ms = [of.retention_ms + buckets * of.bucket_ms for buckets in DROPS[name]]
    dropped_at, as_of = (of.question.end + max(ms, of.as_of_ms) * MS for ms in over_ms)
    history = after_a_drop(joined(of, chosen)[0], chosen, at=dropped_at)
    trial.remove(gone.row for gone in history.left)
    trial.ingest(now=dropped_at)
    question = replace(of.question, as_of=as_of)
    memory = Memory()
    memory.note(joined(of, chosen)[0], of.question, whole, before.findings)
    outcome = reconcile(history, question, memory)
    after = fold(before.findings, outcome, question)
    published = trial.audit(question)
    record.count(outcome, question, history, after)
    # Of the early one the watermarks do not agree: a row without time that left while the stream
    # had its message, sent before the first audit's window, is not looked for.
    known = None if name == "early" else record
    assert_agreement(of, chosen, outcome, published, findings=after, record=known)
    assert published.audit.vanished > 0 or name != "late"

    memory.note(history, question, outcome, after)
    question = replace(question, as_of=as_of + MS)
    outcome = reconcile(history, question, memory)
    after = fold(after, outcome, question)
    record.count(outcome, question, history, after)
    assert_agreement(of, chosen, outcome, trial.audit(question), findings=after, record=known)


def after_a_drop(history: History, chosen: Iterable[Case], *, at: datetime) -> History:
    """The history without what the cases say that a lake dropped."""
    is_dropped = [place in case.dropped for case in chosen for place in range(len(case.rows))]
    rows = list(zip(history.rows, is_dropped, strict=True))
    return replace(
        history,
        rows=tuple(row for row, gone in rows if not gone),
        left=tuple(Departure(row, 3, at) for row, gone in rows if gone),
    )


@pytest.mark.parametrize("lacks", [("shard_id",), ("sent_at",), ("shard_id", "sent_at")])
def test_audit_agrees_with_the_oracle_when_the_sink_lacks(
    warehouse: Warehouse, tmp_path: Path, lacks: tuple[str, ...]
) -> None:
    of = some_terms(600 + len(lacks), faults=FAULTS - {"moved", "untimed", "pauses"})
    chosen = some_cases(of, 600 + len(lacks), count=60)
    history, batches = joined(of, chosen)
    trial = Trial(warehouse, tmp_path, of.question, sink_lacks=frozenset(lacks))
    trial.list_shards(history.known_shards, at=of.question.as_of)
    for batch in range(1, of.batches + 1):
        ingested(trial, history, batches, batch=batch)
    rows = tuple(replace(row, lacks=frozenset(lacks)) for row in history.rows)
    history = replace(history, rows=rows)
    outcome = reconcile(history, of.question)
    assert_agreement(of, chosen, outcome, trial.audit(), history=history)


@pytest.mark.parametrize("number", range(3))
def test_audit_agrees_with_the_oracle_when_rows_lack_their_places(
    warehouse: Warehouse, tmp_path: Path, number: int
) -> None:
    of = replace(some_terms(800 + number, faults=FAULTS - {"untimed", "pauses"}), batches=2)
    chosen = some_cases(of, 800 + number, count=60)
    history, batches = joined(of, chosen)
    lacking = ("", "", "shard_id", "sent_at", "shard_id sent_at")
    rows = (
        replace(r, lacks=frozenset(lacking[at_random(repr(r)) % 5].split())) for r in history.rows
    )
    history = replace(history, rows=tuple(rows))
    trial = Trial(warehouse, tmp_path, of.question)
    trial.list_shards(history.known_shards, at=of.question.as_of)
    for batch in (1, 2):
        ingested(trial, history, batches, batch=batch)
    outcome = reconcile(history, of.question)
    assert_agreement(of, chosen, outcome, trial.audit(), history=history)


GAINS = [
    pytest.param(("shard_id",), SinkFormat.DELTA, marks=pytest.mark.drill),
    pytest.param(("shard_id",), SinkFormat.PARQUET, marks=pytest.mark.drill),
    pytest.param(("sent_at",), SinkFormat.DELTA, marks=pytest.mark.drill),
    (("sent_at",), SinkFormat.PARQUET),
    (("shard_id", "sent_at"), SinkFormat.DELTA),
    pytest.param(("shard_id", "sent_at"), SinkFormat.PARQUET, marks=pytest.mark.drill),
]


@pytest.mark.parametrize(("gained", "sink_format"), GAINS)
def test_audit_agrees_with_the_oracle_when_the_sink_gains(
    warehouse: Warehouse, tmp_path: Path, gained: tuple[str, ...], sink_format: SinkFormat
) -> None:
    of = replace(some_terms(900 + len(gained), faults=FAULTS - {"untimed", "pauses"}), batches=2)
    chosen = some_cases(of, 900 + len(gained), count=40)
    history, batches = joined(of, chosen)
    rows = tuple(
        # A trial marks what a backfill landed in Delta alone.
        replace(
            row,
            lacks=frozenset(gained if batch == 1 else ()),
            own=row.own and sink_format is SinkFormat.DELTA,
        )
        for row, batch in zip(history.rows, batches, strict=True)
    )
    trial = Trial(
        *(warehouse, tmp_path, of.question),
        sink_lacks=frozenset(gained),
        sink_format=sink_format,
    )
    trial.list_shards(history.known_shards, at=of.question.as_of)
    early = replace(history, rows=tuple(r for r in rows if r.lacks))
    trial.log([t for t in history.traces if t.batch == 1])
    middle = len(early.rows) // 2
    for part in (early.rows[:middle], early.rows[middle:]):
        trial.land(part)
        trial.ingest()
    seen = replace(early, traces=tuple(t for t in history.traces if t.batch == 1))
    outcome = reconcile(seen, of.question)
    findings = fold({}, outcome, of.question)
    assert_agreement(of, chosen, outcome, trial.audit(), findings=findings, history=seen)
    record = Record(of.question.bucket)
    record.count(outcome, of.question, seen, findings)

    trial.sink_lacks = frozenset()
    # A row's batch is the ingest that brings it.
    late = [replace(r, batch=2 + n % 2) for n, r in enumerate(r for r in rows if not r.lacks)]
    whole = replace(history, rows=(*early.rows, *late))
    trial.log([t for t in history.traces if t.batch == 2])
    trial.land(late[::2])
    trial.ingest()
    trial.land(late[1::2])
    trial.ingest()
    outcome = reconcile(whole, of.question)
    after = fold(findings, outcome, of.question)
    record.count(outcome, of.question, whole, after)
    assert_agreement(of, chosen, outcome, trial.audit(), findings=after, record=record)


@pytest.mark.parametrize("number", range(len(KNOWN)))
def test_audit_agrees_with_the_oracle_when_it_once_did_not(
    warehouse: Warehouse, tmp_path: Path, number: int
) -> None:
    of, case = KNOWN[number]
    outcome, published = run(Trial(warehouse, tmp_path, of.question), of, [case])
    assert_agreement(of, [case], outcome, published)


@pytest.mark.both_engines
def test_nothing_changes_when_rows_are_shuffled_and_files_are_split(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    of = some_terms(100)
    chosen = some_cases(of, 100, count=60)
    whole, _ = joined(of, chosen)
    history = replace(whole, traces=tuple(replace(t, batch=1) for t in whole.traces))
    trial = Trial(warehouse, tmp_path, of.question)
    trial.list_shards(history.known_shards, at=of.question.as_of)
    traces = shuffled(history.traces)
    # Only when a cell was first seen complete hangs on the ingests.
    rows = [replace(row, batch=n % 3 + 1) for n, row in enumerate(shuffled(history.rows))]
    history = replace(history, rows=tuple(rows))
    for part in range(3):
        # All attempts of an id come together: which came first decides where the id counts.
        for third in range(2):
            trial.log([t for t in traces[third::2] if len(t.message_id) % 3 == part])
        trial.land(rows[part::6])
        trial.land(rows[part + 3 :: 6])
        trial.ingest()
    outcome = reconcile(history, of.question)
    assert_agreement(of, chosen, outcome, trial.audit(), history=history)


def shuffled(values: Iterable[T]) -> list[T]:
    """The values in an order that has nothing to do with them, the same for the same seed."""
    return sorted(values, key=lambda value: at_random(repr(value)))


def at_random(text: str) -> int:
    return int(hashlib.sha256(f"{SEED} {text}".encode("utf-8", "surrogatepass")).hexdigest(), 16)


def test_nothing_but_updated_at_changes_when_audited_twice(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    of = some_terms(200)
    chosen = some_cases(of, 200, count=40)
    trial = Trial(warehouse, tmp_path, of.question)
    run(trial, of, chosen)
    tables = (CELLS, FINDINGS, TRANSITIONS)
    before = [lines(warehouse, table) for table in tables]
    trial.ingest()
    trial.audit()
    assert [lines(warehouse, table) for table in tables] == before


@pytest.mark.parametrize("number", [300, pytest.param(301, marks=pytest.mark.drill)])
def test_two_adjacent_windows_find_what_the_wide_one_finds(
    warehouse: Warehouse, tmp_path: Path, number: int
) -> None:
    # Where attempts of an id lie on both sides of the edge each window tells of it.
    faults = FAULTS if number == 300 else FAULTS - {"fresh"}
    of = replace(some_terms(number, faults=faults), buckets=8)
    chosen = some_cases(of, number, count=60)
    trial = Trial(warehouse, tmp_path, of.question)
    history, batches = joined(of, chosen)
    for batch in (1, 2):
        ingested(trial, history, batches, batch=batch)
    middle = START + 3 * of.bucket_ms * MS
    first = trial.audit(replace(of.question, end=middle))
    second = trial.audit(replace(of.question, start=middle))
    wide = trial.audit()
    again = trial.audit(replace(of.question, end=middle))
    assert second.findings == wide.findings == again.findings
    for name in ("sent", "matched", "missing", "pending"):
        assert first.audit[name] + second.audit[name] == wide.audit[name], name
    if "fresh" not in faults:
        assert {**first.cells, **second.cells} == wide.cells
    for published in (first, second, wide, again):
        assert_sums(published)


@pytest.mark.parametrize(
    ("number", "share"),
    [
        (400, 1.0),
        pytest.param(401, 2.0, marks=pytest.mark.drill),
        pytest.param(402, 0.5, marks=pytest.mark.drill),
    ],
)
def test_findings_live_on_as_the_oracle_says(
    warehouse: Warehouse, tmp_path: Path, number: int, share: float
) -> None:
    of = replace(some_terms(number), batches=2)
    chosen = some_cases(of, number, count=100)
    trial = Trial(warehouse, tmp_path, of.question)
    (early, early_batches), (late, late_batches) = (
        joined(of, chosen, up_to_batch=1),
        joined(of, chosen),
    )
    trial.list_shards(early.known_shards, at=of.question.as_of)
    ingested(trial, early, early_batches, batch=1)
    first = trial.audit()
    record = Record(of.question.bucket)
    record.count(reconcile(early, of.question), of.question, early, first.findings)
    existing = touched(trial)

    ingested(trial, late, late_batches, batch=2)
    later = replace(of, as_of_ms=of.as_of_ms + of.retention_ms // 2)
    question = changed(later.question, share=share, seen_at=of.question.as_of)
    outcome = reconcile(late, question)
    after = fold(existing, outcome, question)
    record.count(outcome, question, late, after)
    published = trial.audit(question)
    assert_agreement(of, chosen, outcome, published, findings=after, record=record)


def changed(question: Question, *, share: float, seen_at: datetime) -> Question:
    """The question after the retention was changed; what it was before was seen last at a time."""
    shorter = Shorter(question.retention, seen_at) if share > 1 else None
    return replace(question, retention=question.retention * share, shorter=shorter)


def test_watermark_is_that_of_all_audits_whatever_window_each_looks_at(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    of = replace(some_terms(800), buckets=8, batches=2, tolerance=0.0)
    chosen = some_cases(of, 800, count=3)
    trial = Trial(warehouse, tmp_path, of.question)
    record = Record(of.question.bucket)
    findings: dict[FindingKey, Finding] = {}
    # Start, end (buckets) and as_of (minutes after): out of order, with a gap, looked at again.
    audits = [(2, 4, 0), (6, 7, 30), (3, 6, 60), (0, 2, 10), (2, 8, 90), (4, 5, 20)]
    for number, (start, end, later) in enumerate(audits):
        history, batches = joined(of, chosen, up_to_batch=1 if number < 3 else 2)
        if number in {0, 3}:
            ingested(trial, history, batches, batch=1 + number // 3)
        question = replace(
            of.question,
            start=START + start * of.bucket_ms * MS,
            end=START + end * of.bucket_ms * MS,
            as_of=of.question.as_of + later * 60_000 * MS,
        )
        outcome = reconcile(history, question)
        findings = fold(findings, outcome, question)
        record.count(outcome, question, history, findings)
        assert trial.audit(question).watermark == record.watermark(findings, question), number
        findings = touched(trial)


def touched(trial: Trial) -> dict[FindingKey, Finding]:
    """The findings after people and backfills gave them all kinds of states."""
    states = list(State)
    trial.set_states({key: states[at_random(key[0]) % len(states)] for key in trial.findings()})
    return trial.findings()


def test_every_cell_of_the_grid_has_one_verdict_when_nothing_was_ever_ingested(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    of = some_terms(500)
    trial = Trial(warehouse, tmp_path, of.question)
    trial.list_shards({"case-0000-shard-0", "case-0000-shard-1"}, at=of.question.as_of)
    trial.log([])
    trial.land([])
    trial.ingest()
    history = History(known_shards=frozenset({"case-0000-shard-0", "case-0000-shard-1"}))
    published = trial.audit()
    assert_agreement(of, [], reconcile(history, of.question), published)
    assert len(published.cells) == 2 * of.buckets


def test_evidence_is_read_again_when_another_shard_logs_a_known_id(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    of = replace(some_terms(700), buckets=1, retention_ms=86_400_000, as_of_ms=7_200_000)
    trial = Trial(warehouse, tmp_path, of.question)
    first = Trace("x", "shard-0", "100", START + MS, batch=1)
    trial.log([first])
    trial.land([])
    trial.ingest()
    trial.audit()
    trial.log([replace(first, shard_id="shard-1", sequence_number="7", batch=2)])
    trial.ingest()
    trial.audit()
    [found] = trial.findings().values()
    assert (found.sent_count, found.sequence_numbers) == (2, ("7", "100"))
