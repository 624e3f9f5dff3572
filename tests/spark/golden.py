"""The golden cases by groups, and how an audit of them is checked."""

import json
from collections import defaultdict
from dataclasses import replace
from datetime import datetime

from tests.golden_cases import GoldenCase, Json, Step, as_json, golden_cases
from tests.history import Finding, FindingKey, History, Outcome
from tests.lifecycle import fold
from tests.oracle import reconcile
from tests.oracle_vanished import Memory
from tests.oracle_watermark import Record
from tests.spark.trial import Published, Trial


def groups() -> list[list[GoldenCase]]:
    by_group: dict[str, list[GoldenCase]] = defaultdict(list)
    for case in golden_cases():
        by_group[case.group].append(case)
    return list(by_group.values())


def together(steps: list[Step]) -> Step:
    """The same step of several cases as one."""
    return replace(
        steps[0],
        traces=tuple(t for s in steps for t in s.traces),
        rows=tuple(r for s in steps for r in s.rows),
        removed=tuple(r for s in steps for r in s.removed),
        history=History(
            traces=tuple(t for s in steps for t in s.history.traces),
            rows=tuple(r for s in steps for r in s.history.rows),
            left=tuple(gone for s in steps for gone in s.history.left),
            damaged=tuple(d for s in steps for d in s.history.damaged),
            known_shards=frozenset(k for s in steps for k in s.history.known_shards),
        ),
        states={key: state for s in steps for key, state in s.states.items()},
    )


def check(trial: Trial, group: list[GoldenCase]) -> None:
    """Takes the cases through the trial's stream; each step must give the reviewed answers."""
    steps = [together(list(parts)) for parts in zip(*(c.steps() for c in group), strict=True)]
    trial.list_shards(steps[0].history.known_shards, at=steps[0].question.as_of)
    findings: dict[FindingKey, Finding] = {}
    record, memory = Record(steps[0].question.bucket), Memory()
    for number, step in enumerate(steps):
        feed(trial, step, cut_at=group[0].cut_at)
        trial.set_states(step.states)
        published = trial.audit(step.question)
        for case in group:
            expected = case.expected["audits"][number]
            got = as_json(case, published.cells, published.findings)
            found = differences(expected, got)
            assert not found, "\n".join([case.name, *found])
        outcome = reconcile(step.history, step.question, memory)
        findings = fold(step.touched(findings), outcome, step.question)
        memory.note(step.history, step.question, outcome, findings)
        assert published.findings == findings
        record.count(outcome, step.question, step.history, findings)
        assert published.watermark == record.watermark(findings, step.question)
        assert_summary(published, outcome)


def differences(expected: Json, got: Json) -> list[str]:
    """The cells and findings that one side alone has."""
    wanted, given = (
        {json.dumps(line, sort_keys=True) for part in ("cells", "findings") for line in side[part]}
        for side in (expected, got)
    )
    found = [f"expected {line}" for line in wanted - given]
    return sorted(found + [f"found    {line}" for line in given - wanted])


def feed(trial: Trial, step: Step, *, cut_at: datetime | None) -> None:
    """Brings what is new to the stream."""
    trial.log(step.traces, cut_at=cut_at)
    trial.sink_lacks = step.sink_lacks
    trial.land(step.rows)
    trial.remove(step.removed)
    trial.ingest(now=step.question.as_of)
    assert trial.damage() == step.history.damaged


def assert_summary(published: Published, outcome: Outcome) -> None:
    row = published.audit
    assert row.status == "published"
    assert row.self_check == "passed"
    assert row.verdict == outcome.verdict
    assert row.trace_coverage == outcome.trace_coverage
