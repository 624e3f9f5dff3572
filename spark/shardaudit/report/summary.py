"""What a run has to say, as frozen values: the same numbers feed text, JSON and page."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import datetime, timedelta
from pathlib import Path

from shardaudit.model.rates import Rate
from shardaudit.model.route.filters import FilterTime
from shardaudit.model.route.lost_hops import HopLine
from shardaudit.model.verdict import AuditStatus, Cause, Kind, State, Verdict


@dataclass(frozen=True, slots=True)
class ShardLine:
    """One shard over the window of an audit; counts are ids, `landed` is rows."""

    shard_id: str
    verdict: Verdict
    sent: int
    landed: int
    missing: int
    pending: int
    duplicated: int
    untraced: int
    moved: int


SHARD_COUNTS = ("sent", "landed", "missing", "pending", "duplicated", "untraced", "moved")


@dataclass(frozen=True, slots=True)
class DeadlineLine:
    """Messages of one shard that can be read again until the same, nearest time.

    `gaps`: so many gaps they make; 0: findings name them.
    """

    shard_id: str
    kind: Kind
    cause: Cause
    ids: int
    recoverable_until: datetime
    gaps: int = 0


@dataclass(frozen=True, slots=True)
class LateAudit:
    """An audit of a span before the window that was not proven complete.

    `status`: as in AUDITS; one that is not published has no verdict but `inconclusive`.
    """

    audit_id: str
    window_start: datetime
    window_end: datetime
    status: str
    verdict: Verdict
    missing: int

    @property
    def is_red(self) -> bool:
        """Whether it needs somebody."""
        return self.status != AuditStatus.PUBLISHED or self.verdict.is_red


@dataclass(frozen=True, slots=True)
class AuditedPlace:
    """One place between producer and sink over the window of an audit; counts are messages.

    `share`: of what arrives, passed on, None: all but what it traces as left out; `trace_loss`: of
    what passed it, how much it did not trace, None: nobody knows; `lost`: messages that never
    reached it; `doubtful`: those of which that is inconclusive; `ways`: those that lead to it, and
    the one from it to the sink; none in audits from before they were kept; `unsent`: messages that
    it traced, and that no producer did, nor did they land, at least; `filtered`: messages that it
    left out by design, with the places beside it that do so; `unexplained`: when what it left out
    is no design; `told_left_out`: messages that it traced as left out, believed where it
    `is_filter`; `end_loss`: of how much it had it did not trace that it was sent on, or left
    out, None: nobody knows, or it need not; `traces_since`: of a new place the minute in which
    its traces begin; `on_hops`: of the whole route the missing messages that are on any of its
    ways, each once, None in audits from before it was kept.
    """

    location: str
    after: tuple[str, ...]
    share: float | None
    received: int
    sent: int
    trace_loss: float | None = None
    lost: int = 0
    doubtful: int = 0
    ways: tuple[HopLine, ...] = ()
    unsent: int = 0
    filtered: int = 0
    unexplained: tuple[FilterTime, ...] = ()
    told_left_out: int = 0
    is_filter: bool = False
    end_loss: float | None = None
    traces_since: datetime | None = None
    on_hops: int | None = None

    @property
    def is_silent(self) -> bool:
        """Whether nothing is known of it."""
        return self.received + self.sent + self.told_left_out == 0


@dataclass(frozen=True, slots=True)
class HoleLine:
    """Numbers of a session's traces, `first` to `last`, that were given in a time and never came.

    None: nobody knows when.
    """

    session: str
    first: int
    last: int
    since: datetime | None
    until: datetime | None


@dataclass(frozen=True, slots=True)
class BrokenSession:
    """A session that was last heard of `at`, with `known` numbers, and that nobody closed."""

    session: str
    known: int
    at: datetime


@dataclass(frozen=True, slots=True)
class ProducerLine:
    """Who numbers its traces, over the window of an audit; counts are traces, about.

    `numbered` = `came` + `dropped` (its gaps say so) + `lost` (in no line); `unnumbered`: sessions
    whose numbers are not consecutive; `holes`: the largest of what is lost; `broken_off`: sessions
    that ended in the window without being closed, the last of them in `broken`. An empty
    `producer_id`: its lines have none.
    """

    location: str
    producer_id: str
    numbered: int
    came: int
    dropped: int
    lost: int
    unnumbered: int = 0
    holes: tuple[HoleLine, ...] = ()
    broken_off: int = 0
    broken: tuple[BrokenSession, ...] = ()


@dataclass(frozen=True, slots=True)
class WaitingTime:
    """Time before the window that holds the watermark, and that no audit had room for.

    `first`: the start of the oldest; `since`: as of when an audit first left some of it;
    `is_overdue`: some that the stream still has waits for half of the time that it keeps records.
    """

    length: timedelta
    first: datetime
    since: datetime
    is_overdue: bool


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A span before the window that no audit looked at to its end, nor will by itself.

    `failed_at`: as of when the last of them failed, or one found that there had been none;
    `is_red`: that is no longer ago than the stream keeps its records.
    """

    window_start: datetime
    window_end: datetime
    failed_at: datetime
    is_red: bool


@dataclass(frozen=True, slots=True)
class AuditReport:
    """One audit. `counts` has the sums of the cells, by the names of the audits table.

    The verdict and the counts are of the window; `late`: audits of what lies before it, as of the
    same time; `waiting`: what these had no room for, or looked at in vain; `given_up`: what failed
    too often, or is of too long ago, to be looked at. `watermark`: until when the whole stream is
    complete since its first audit, whatever the window; `watermark_reason` says why not further.
    `engine`: the name and version of what ran it; NULL for an audit from before it was kept.
    `hops`: the places of the stream's route, in their order. `rates`: of `audit_rates`;
    `place_rates`: of `hop_rates`.
    `producers`: who numbered traces in the window, those that lost most first. `ran_at`: when it
    began, by the clock.
    """

    audit_id: str
    stream: str
    window_start: datetime
    window_end: datetime
    as_of: datetime
    status: str
    engine: str | None
    verdict: Verdict
    counts: dict[str, int]
    trace_coverage: float | None
    self_check: str
    watermark: datetime | None
    watermark_reason: str | None
    cells_total: int
    cells_compared_by_id: int
    worst_shards: tuple[ShardLine, ...]
    deadlines: tuple[DeadlineLine, ...]
    quarantined: int
    notes: tuple[str, ...]
    late: tuple[LateAudit, ...] = ()
    hops: tuple[AuditedPlace, ...] = ()
    waiting: WaitingTime | None = None
    given_up: tuple[GivenUp, ...] = ()
    rates: dict[str, Rate] = field(default_factory=dict)
    place_rates: dict[str, dict[str, Rate]] = field(default_factory=dict)
    producers: tuple[ProducerLine, ...] = ()
    ran_at: datetime | None = None

    @property
    def left_by(self) -> datetime:
        """By when what has left the stream is gone: by the clock, of a time that is to come."""
        return self.as_of if self.ran_at is None else min(self.as_of, self.ran_at)

    @property
    def all_verdicts(self) -> frozenset[Verdict]:
        """Of the window, and of what came late before it and needs somebody.

        What waits too long to be looked at, or is given up, is inconclusive: nobody knows whether
        something lacks.
        """
        late = {one.verdict for one in self.late if one.is_red}
        is_overdue = self.waiting is not None and self.waiting.is_overdue
        if is_overdue or any(one.is_red for one in self.given_up):
            late.add(Verdict.INCONCLUSIVE)
        return frozenset({self.verdict, *late})

    @property
    def is_good(self) -> bool:
        """Whether `--check` lets all of it pass."""
        return all(verdict.is_good for verdict in self.all_verdicts)


@dataclass(frozen=True, slots=True)
class FindingLine:
    """One finding, as far as a list shows it."""

    stream: str
    shard_id: str
    message_id: str
    kind: Kind
    cause: Cause
    state: State
    location: str | None
    sent_at: datetime | None
    landed_count: int
    recoverable_until: datetime | None
    state_reason: str | None
    hops: str | None = None  # of FINDINGS


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What one ingest read.

    Versions are those of a Delta sink, from the last one to this one; None where nothing was new,
    or the sink has none.
    """

    stream: str
    trace_files: int
    trace_rows: int
    sink_from_version: int | None
    sink_to_version: int | None
    sink_files_added: int
    sink_files_removed: int
    sink_rows: int
    quarantined: int
    batches: tuple[str, ...]
    notes: tuple[str, ...] = ()


def plain_value(value: object) -> object:
    """The value as JSON knows it: dataclasses become objects, times ISO 8601 texts in UTC."""
    if value is None or isinstance(value, str | int | float):
        return value  # nearly all are, and what follows is slow
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, timedelta):
        return value.total_seconds()
    if is_dataclass(value) and not isinstance(value, type):
        value = {one.name: getattr(value, one.name) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain_value(inner) for key, inner in value.items()}
    if isinstance(value, Sequence):
        return [plain_value(inner) for inner in value]
    return str(value) if isinstance(value, Path) else value


def as_json(value: object) -> str:
    """One JSON document, in ASCII: ids with line ends or escape codes reach no terminal raw."""
    return json.dumps(plain_value(value), indent=2, ensure_ascii=True, allow_nan=False)
