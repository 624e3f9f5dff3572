"""Golden cases: folders of small inputs with the answers that a person has reviewed.

`case.json` says what is asked; `traces.jsonl` and `sink.jsonl` hold what is there at the first
audit, `later.traces.jsonl` and `later.sink.jsonl` what came before the second, and
`later.removed.jsonl` the rows that were deleted from the sink by then. With `cut_at` the
trace file is a gzip that broke off after its lines, at that time. A row's `shard_id` or `sent_at`
may be null; `sink_lacks` names the columns that the sink does not have at each audit. `retentions`
and `shorter` say of an audit (by its number from 0) what the stream kept then, and what it was once
seen to keep.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any  # JSON has no closer type

from shardaudit.model.config.fields import parse_duration
from shardaudit.model.retention import Shorter
from shardaudit.model.verdict import Kind, State
from shardaudit.model.window import parse_instant
from tests.history import (
    EPOCH,
    Cell,
    CellResult,
    Damage,
    Departure,
    Finding,
    FindingKey,
    History,
    Outcome,
    Question,
    SinkRow,
    Trace,
)
from tests.lifecycle import fold
from tests.oracle import reconcile
from tests.oracle_vanished import Memory
from tests.oracle_watermark import Record

FOLDER = Path(__file__).parent / "golden"

Json = dict[str, Any]  # Any: as it was read


@dataclass(frozen=True, slots=True)
class Step:
    """One audit of a case: what is new since the last one, what is known, what is asked.

    `states` is what people and backfills made of findings in between; `sink_lacks`: columns that
    the sink does not have yet.
    """

    traces: tuple[Trace, ...]
    rows: tuple[SinkRow, ...]
    removed: tuple[SinkRow, ...]
    history: History
    question: Question
    states: Mapping[FindingKey, State]
    sink_lacks: frozenset[str] = frozenset()

    def touched(self, findings: Mapping[FindingKey, Finding]) -> dict[FindingKey, Finding]:
        """The findings of the audit before, in the states that people gave them."""
        return {k: replace(f, state=self.states.get(k, f.state)) for k, f in findings.items()}


@dataclass(frozen=True, slots=True)
class GoldenCase:
    """A folder of `tests/golden`; its shards and ids carry its name, so that cases can be mixed."""

    name: str
    asked: Json

    @property
    def group(self) -> str:
        """Cases of one group may share a stream: nothing that a stream has only once differs."""
        has_more = self.asked.keys() & {"alone", "retentions", "shorter"}
        alone = self.name if has_more else ""
        return alone + json.dumps(
            [self.asked.get(k) for k in ("settings", "window", "windows", "as_of")]
        )

    @property
    def cut_at(self) -> datetime | None:
        """When the trace file broke off; None when it is whole."""
        return _instant(self.asked["cut_at"]) if "cut_at" in self.asked else None

    @property
    def expected(self) -> Json:
        """The reviewed answer."""
        text = (FOLDER / self.name / "expected.json").read_text(encoding="utf-8")
        return dict(json.loads(text))

    def steps(self) -> list[Step]:
        """Its audits, one or two."""
        steps: list[Step] = []
        for number in range(len(self.asked["as_of"])):
            before = steps[-1].history if steps else self._empty()
            steps.append(self._step(number, before))
        return steps

    def _empty(self) -> History:
        damaged = [
            Damage(span["side"], _instant(span["from"]), _instant(span["to"]))
            for span in self.asked.get("damaged", [])
        ]
        known = frozenset(f"{self.name}/{s}" for s in self.asked.get("known_shards", []))
        return History(damaged=tuple(damaged), known_shards=known)

    def _step(self, number: int, before: History) -> Step:
        later = "later." if number else ""
        seen_at = _instant(self.asked["as_of"][number])
        traces = tuple(
            replace(self._trace(line), batch=number + 1, ingested_at=seen_at)
            for line in self._lines(f"{later}traces")
        )
        rows = tuple(
            replace(self._row(line), seen_at=seen_at, batch=number + 1)
            for line in self._lines(f"{later}sink")
        )
        removed = tuple(self._row(line) for line in self._lines("later.removed")) if number else ()
        states = self.asked.get("states", []) if number else []
        return Step(
            traces=traces,
            rows=rows,
            removed=removed,
            history=replace(
                before,
                traces=before.traces + traces,
                rows=tuple(
                    row
                    for row in before.rows + rows
                    if replace(row, seen_at=None, batch=1) not in removed
                ),
                left=before.left
                + tuple(
                    Departure(row, number + 1, seen_at)
                    for row in before.rows
                    if replace(row, seen_at=None, batch=1) in removed
                ),
            ),
            question=self._question(number),
            sink_lacks=frozenset(self.asked["sink_lacks"][number])
            if "sink_lacks" in self.asked
            else frozenset(),
            states={
                (f"{self.name}/{s['message_id']}", Kind(s["kind"])): State(s["state"])
                for s in states
            },
        )

    def _question(self, number: int) -> Question:
        settings = self.asked["settings"]
        return Question(
            start=_instant(self._window(number)[0]),
            end=_instant(self._window(number)[1]),
            as_of=_instant(self.asked["as_of"][number]),
            bucket=parse_duration(settings["bucket"], where="bucket"),
            settle_grace=parse_duration(settings["settle_grace"], where="settle_grace"),
            retention=_length(
                self.asked.get("retentions", {}).get(str(number), settings["retention"])
            ),
            shorter=self._shorter(number),
            tolerance=settings["tolerance"],
            trace_coverage_floor=settings["trace_coverage_floor"],
        )

    def _window(self, number: int) -> list[str]:
        """That of the case, or the step's own of its `windows`."""
        asked: list[str] = self.asked.get("windows", [self.asked["window"]] * (number + 1))[number]
        return asked

    def _shorter(self, number: int) -> Shorter | None:
        seen = self.asked.get("shorter", {}).get(str(number))
        return Shorter(_length(seen["retention"]), _instant(seen["seen_at"])) if seen else None

    def _lines(self, name: str) -> list[Json]:
        path = FOLDER / self.name / f"{name}.jsonl"
        if not path.exists():
            return []
        return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]

    def _trace(self, line: Json) -> Trace:
        return Trace(
            message_id=f"{self.name}/{line['message_id']}",
            shard_id=f"{self.name}/{line['shard_id']}",
            sequence_number=line["sequence_number"],
            sent_at=_instant(line["sent_at"]),
            acked_at=_instant(line["acked_at"]) if "acked_at" in line else None,
        )

    def _row(self, line: Json) -> SinkRow:
        return SinkRow(
            message_id=f"{self.name}/{line['message_id']}",
            shard_id=f"{self.name}/{line.get('shard_id')}",
            sequence_number=line["sequence_number"],
            sent_at=_instant(line["sent_at"]) if line.get("sent_at") else EPOCH,
            landed_at=_instant(line["landed_at"]) if line["landed_at"] else None,
            own=line.get("own", False),
            lacks=frozenset(name for name in ("shard_id", "sent_at") if line.get(name) is None),
        )


def golden_cases() -> list[GoldenCase]:
    """All of them, by name."""
    return [
        GoldenCase(path.parent.name, json.loads(path.read_text(encoding="utf-8")))
        for path in sorted(FOLDER.glob("*/case.json"))
    ]


def answers(case: GoldenCase) -> Json:
    """What the oracle says to a case, in the form of `expected.json`."""
    findings: Mapping[FindingKey, Finding] = {}
    steps = case.steps()
    record = Record(steps[0].question.bucket)
    memory = Memory()
    audits = []
    for step in steps:
        outcome = reconcile(step.history, step.question, memory)
        findings = fold(step.touched(findings), outcome, step.question)
        memory.note(step.history, step.question, outcome, findings)
        record.count(outcome, step.question, step.history, findings)
        summary = _summary(outcome, record.watermark(findings, step.question))
        audits.append(summary | as_json(case, outcome.cells, findings))
    return {"audits": audits}


def _summary(outcome: Outcome, watermark: datetime | None) -> Json:
    return {
        "verdict": outcome.verdict,
        "watermark": _text(watermark),
        "trace_coverage": outcome.trace_coverage,
    }


def as_json(
    case: GoldenCase,
    cells: Mapping[Cell, CellResult],
    findings: Mapping[FindingKey, Finding],
) -> Json:
    """The cells and findings of a case among those of a stream, without the case's name."""

    def own(name: str) -> str:
        return name.removeprefix(f"{case.name}/")

    return {
        "cells": [
            {"shard_id": own(shard_id), "bucket_start": _text(start), **_told(cell)}
            for (shard_id, start), cell in sorted(cells.items(), key=lambda item: item[0])
            if shard_id.startswith(f"{case.name}/")
        ],
        "findings": [
            {
                "message_id": own(message_id),
                "kind": kind,
                **_plain(finding),
                "shard_id": own(finding.shard_id),
            }
            for (message_id, kind), finding in sorted(findings.items(), key=lambda item: item[0])
            if message_id.startswith(f"{case.name}/")
        ],
    }


def _told(cell: CellResult) -> Json:
    counts = asdict(cell)
    verdict = counts.pop("verdict")
    return {"verdict": verdict} | {name: count for name, count in counts.items() if count}


def _plain(finding: Finding) -> Json:
    values = asdict(finding)
    del values["arrived_at"]
    values = {k: _text(v) if isinstance(v, datetime) else v for k, v in values.items()}
    return values | {"sequence_numbers": list(finding.sequence_numbers)}


def _length(text: str) -> timedelta:
    return parse_duration(text, where="golden case")


def _instant(text: str) -> datetime:
    return parse_instant(text, where="golden case")


def _text(instant: datetime | None) -> str | None:
    return instant.isoformat().replace("+00:00", "Z") if instant else None
