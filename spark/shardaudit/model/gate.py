"""Gates: what the suites in `expectations/` may speak of, and what came of judging them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

SummaryRow = Mapping[str, object]


class Severity(StrEnum):
    """What a broken expectation does: `error` stops the publication, `warn` adds a note to it."""

    ERROR = "error"
    WARN = "warn"


class GateState(StrEnum):
    """What came of one check. `broken`: the check itself failed, nobody knows about the data."""

    PASSED = "passed"
    FAILED = "failed"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Contract:
    """What one suite judges: small rows, which a run has summed up from the big tables.

    `row`: what one of them is; `columns`: name -> meaning, the row's name first.
    """

    name: str
    row: str
    columns: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Expectation:
    """One check of a suite file. `kind` and `settings` are Great Expectations' own words.

    `where`: a condition as pandas' `query` takes it; the check looks at the rows that meet it.
    """

    line: int
    kind: str
    settings: Mapping[str, object]
    severity: Severity
    says: str
    advice: str | None = None
    where: str | None = None


@dataclass(frozen=True, slots=True)
class Suite:
    """The checks of one contract, from one file."""

    contract: Contract
    file: str
    expectations: tuple[Expectation, ...]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What came of one check: the sentence is for people, the details are for a page."""

    kind: str
    severity: Severity
    state: GateState
    sentence: str
    details: SummaryRow = field(default_factory=dict)

    @property
    def stops(self) -> bool:
        """Whether nothing may be published."""
        return self.state is not GateState.PASSED and self.severity is Severity.ERROR

    @property
    def warns(self) -> bool:
        """Whether what is published needs a note."""
        return self.state is not GateState.PASSED and self.severity is Severity.WARN


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """What came of one suite over its rows."""

    suite: str
    rows: int
    checks: tuple[CheckResult, ...]

    @property
    def state(self) -> GateState:
        """The worst of the checks that stop, else passed: a warning fails no suite."""
        states = {check.state for check in self.checks if check.stops}
        order = (GateState.FAILED, GateState.BROKEN)
        return next((state for state in order if state in states), GateState.PASSED)


def sentences(results: Sequence[SuiteResult], *, severity: Severity) -> list[str]:
    """What is wrong, one sentence per check of that severity that did not pass."""
    return [
        check.sentence
        for result in results
        for check in result.checks
        if check.severity is severity and check.state is not GateState.PASSED
    ]


_BATCH = {
    "batch_id": "the ingest batch",
    "lines": "lines or rows that were read; with sampling, an estimate",
    "refused": "those of them that cannot be used, without those of another stream or location",
    "refused_share": "refused / lines",
    "impossible_times": "refused for a time before 2000 or in the future, or sent before Kinesis "
    "was there (December 2013)",
    "main_reason": "why most of the refused were refused",
    "shards": "shards on which something was taken in",
    "sent_from": "start of the oldest bucket",
    "sent_to": "start of the newest bucket",
}

TRACES_GATE = Contract(
    "traces",
    "a batch of traces that no published audit stood on yet",
    _BATCH
    | {
        "foreign": "lines of another stream or location",
        "elsewhere": "those of them that are of this stream and of a location that is not known",
        "gaps": "lines by which a producer says that it dropped traces",
    },
)
SINK_GATE = Contract("sink", "a batch of the sink that no published audit stood on yet", _BATCH)
LEDGER_GATE = Contract(
    "ledger",
    "an hour of the window (or a bucket, when that is longer), over all shards",
    {
        "hour": "its start",
        "sent": "distinct ids that the ledger has of it",
        "landed": "rows of the sink that the ledger has of it",
        "sent_before": "ids that the last published audit counted in it; NULL: not in its window",
        "hours_without_traces": "length of the hole around it: rows landed, no trace was logged, "
        "but before and after it; 0 outside of one",
        "rows_without_traces": "rows that landed in that hole",
        "hours_since_traces": "the same for a hole that reaches to the end of the ledger",
        "quiet_hours": "hours before it with neither traces nor rows on any shard",
        "usual_quiet_hours": "the longest such silence in the rest of the ledger",
        "active_hours": "hours of the ledger in which there was something",
        "rows_without_landing_time": "rows of the sink without a sound landed_at",
    },
)
RESULT_GATE = Contract(
    "audit_result",
    "a shard over the window",
    {
        "shard_id": "its name in Kinesis",
        "sent": "distinct ids acknowledged",
        "landed": "rows in the sink",
        "matched": "ids sent and landed",
        "missing": "ids",
        "pending": "ids",
        "filtered": "ids that a filter of the route left out",
        "duplicated": "ids landed more than once",
        "extra_rows": "rows beyond the first of an id",
        "untraced": "ids",
        "moved": "ids",
        "vanished": "ids in matched whose row left the sink when the stream had them no more",
        "shifted_minutes": "by so much sent_at of its rows is later than that of their traces, the "
        "same in ten cells or more and in all that can be told; else 0",
    },
)
BACKFILL_GATE = Contract(
    "backfill_result",
    "a window of the plan that was run",
    {
        "window_id": "its number in the plan",
        "shard_id": "",
        "state": "merged or incomplete",
        "takes_all": "every record of the window was wanted, not the missing ones alone",
        "expected_ids": "missing messages that it must bring",
        "read_records": "records that were read",
        "refused_share": "of the whole plan: records that cannot be decoded / records read",
        "merged_rows": "rows that the sink did not have before",
        "rows_too_many": "of the whole plan: merged beyond what was expected (a message may be "
        "read in another window than its own); 0 when all records were wanted",
        "expired": "a part of it had left the stream",
    },
)
CONTRACTS = (TRACES_GATE, SINK_GATE, LEDGER_GATE, RESULT_GATE, BACKFILL_GATE)
