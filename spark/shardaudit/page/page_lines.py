"""The list of streams, one shard's urgency and the trend over audits, as frozen values.

Input everywhere: rows by the names of the warehouse's tables. What is old or was never looked at
has no verdict that could be taken for a good one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from shardaudit.model.audit_id import (
    audit_order,
    audit_reach,
    ended_at,
    late_of,
    newest_audit,
    published_audits,
    shape_of,
)
from shardaudit.model.config.eras import CellShape
from shardaudit.model.rates import (
    Rate,
    audit_rates,
    counts_of_rates,
    rate_changes,
    sampled_rates,
)
from shardaudit.model.verdict import AuditStatus, Level, Verdict, by_rank
from shardaudit.model.window import Window, earlier
from shardaudit.page.page_words import UNKNOWN, Metric
from shardaudit.report.health import OLD_AUDIT, OLD_WATCH, is_old
from shardaudit.report.route_lines import hop_counts, hops_from_json
from shardaudit.report.summary import AuditedPlace
from shardaudit.store.read_findings import OpenCount

StoredRow = Mapping[str, Any]  # Any: a column's type is what model/tables/audit_tables.py says

_MINUTES = CellShape(60, 1.0)
TREND_AUDITS = 60


@dataclass(frozen=True, slots=True)
class Refused:
    """An audit that published nothing: `status` is `rejected` or `failed`."""

    audit_id: str
    status: str
    as_of: datetime
    self_check: str | None


@dataclass(frozen=True, slots=True)
class StreamLine:
    """One stream. `verdict` is UNKNOWN without an audit; `is_old`: it no longer says anything.

    `verdict` is of its newest audit's window; `watermark` of the stream since its first audit, and
    `watermark_reason` says why not further.
    `refused`: the audit after it, when that one was rejected or failed and published nothing.
    `looked_again`: how many audits after it looked at a part of its time, as after a backfill.
    `engine`: what ran the audit; None for one from before it was kept.
    `read_at`: when something new was last read, of the side for which that is longer ago.
    `notes`: what its newest audit found of the stream's habits, a sentence each; `hops`: what the
    places of its route traced; `rates`: of `audit_rates`; `place_rates`: of `hop_rates`.
    `not_known`: what its newest watch could not know: with a level of none that is not well.
    """

    name: str
    verdict: str
    is_old: bool
    audit_id: str | None
    audited_at: datetime | None
    window: Window | None
    coverage: float | None
    watermark: datetime | None
    watermark_reason: str | None
    engine: str | None
    findings: dict[str, int]
    deadline: datetime | None
    level: str
    watched_at: datetime | None
    is_watch_old: bool
    refused: Refused | None
    looked_again: int
    read_at: datetime | None = None
    is_read_old: bool = True
    notes: tuple[str, ...] = ()
    hops: tuple[AuditedPlace, ...] = ()
    rates: Mapping[str, Rate] = field(default_factory=dict)
    place_rates: Mapping[str, Mapping[str, Rate]] = field(default_factory=dict)
    not_known: tuple[str, ...] = ()

    @property
    def covered_between(self) -> tuple[float, float] | None:
        """The interval of the coverage; None where all ids are audited."""
        if not self.rates:
            return None
        least, most = self.rates["untraced"].between
        return 1 - most, 1 - least

    @property
    def judged_id(self) -> str | None:
        """The audit that came to its gates last."""
        return self.refused.audit_id if self.refused else self.audit_id

    @property
    def badge(self) -> str:
        """The verdict's look: an old one looks like none."""
        return UNKNOWN if self.is_old else self.verdict


@dataclass(frozen=True, slots=True)
class ShardDue:
    """A shard that is not well, by the newest watch. `hours_left`: until `start_by`."""

    shard_id: str
    state: str
    level: str
    start_by: datetime | None
    recoverable_until: datetime | None
    hours_left: float | None
    hours_to_read: float | None
    hole_messages: int  # missing behind its consumer, at least
    advice: str | None


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """One published audit; rates are per million, latencies in seconds.

    `rates`: of `audit_rates`; `usual`: what was usual before, a fraction, of each rate that
    changed with this audit.
    """

    audit_id: str
    end: datetime
    verdict: str
    lost: float
    doubled: float
    coverage: float | None
    latency: Mapping[Metric, float | None]
    rates: Mapping[str, Rate] = field(default_factory=dict)
    usual: Mapping[str, float] = field(default_factory=dict)


def stream_line(
    name: str,
    *,
    audits: Sequence[StoredRow],
    findings: Iterable[OpenCount],
    shards: Sequence[StoredRow],
    now: datetime,
) -> StreamLine:
    """The stream's line: `audits` are all of its, `shards` those of its newest watch."""
    published, newest = published_audits(audits), newest_audit(audits)
    audited_at: datetime | None = newest["as_of"] if newest else None
    last = max(published, key=ended_at, default=None)
    refused = _refused(audits, newest)
    mine = [found for found in findings if found.stream == name]
    watched_at = max((row["observed_at"] for row in shards), default=None)
    levels = [Level(row["level"]) for row in shards if row["level"]]
    return StreamLine(
        name=name,
        verdict=Verdict(newest["verdict"]).value if newest else UNKNOWN,
        is_old=refused is not None or is_old(audited_at, now, limit=OLD_AUDIT),
        audit_id=newest["audit_id"] if newest else None,
        audited_at=audited_at,
        window=Window(newest["window_start"], newest["window_end"]) if newest else None,
        coverage=newest["trace_coverage"] if newest else None,
        watermark=last["watermark"] if last else None,
        watermark_reason=last["watermark_reason"] if last else None,
        engine=newest["engine"] if newest else None,
        findings={found.kind: found.ids for found in mine},
        deadline=min((f.deadline for f in mine if f.deadline), default=None),
        level=max(levels, key=by_rank).value if levels else UNKNOWN,
        watched_at=watched_at,
        is_watch_old=is_old(watched_at, now, limit=OLD_WATCH),
        refused=refused,
        looked_again=sum(_is_again(row, newest) for row in published) if newest else 0,
    )


def due_shards(shards: Iterable[StoredRow], *, now: datetime) -> tuple[ShardDue, ...]:
    """The shards that somebody has to do something about, the first `start_by` first."""
    noted = [row for row in shards if row["level"] not in {None, Level.NONE.value}]
    lines = [
        ShardDue(
            shard_id=row["shard_id"],
            state=row["state"],
            level=row["level"],
            start_by=earlier(row["start_by"], row["hole_start_by"]),
            recoverable_until=earlier(row["recoverable_until"], row["hole_recoverable_until"]),
            hours_left=_hours(earlier(row["start_by"], row["hole_start_by"]), now),
            hours_to_read=row["hours_to_read"],
            hole_messages=row["hole_messages"] or 0,
            advice=row["advice"],
        )
        for row in noted
    ]
    lines.sort(key=lambda line: (line.hours_left is None, line.hours_left or 0, line.shard_id))
    return tuple(lines)


def trend(audits: Iterable[StoredRow], *, usual: CellShape = _MINUTES) -> tuple[TrendPoint, ...]:
    """The last published audits, oldest first; an audit of nothing sent has no rates of its own.

    One that looked at a part again, as after a backfill, is no point beside those of the whole; nor
    is one of what came late.
    """
    ordered = _ordered(audits)
    changes = _changes(ordered, [counts_of_rates(row) for row in ordered])
    return tuple(
        TrendPoint(
            audit_id=row["audit_id"],
            end=row["window_end"],
            verdict=row["verdict"],
            lost=1e6 * row["missing"] / max(1, row["sent"]),
            doubled=1e6 * row["extra_rows"] / max(1, row["landed"]),
            coverage=row["trace_coverage"],
            latency={Metric.P50: row["latency_p50"], Metric.P99: row["latency_p99"]},
            rates=audit_rates(row, sample_rate=shape_of(row, usual).sample_rate),
            usual=changes[row["audit_id"]],
        )
        for row in ordered[-TREND_AUDITS:]
    )


def place_trends(
    audits: Iterable[StoredRow], *, usual: CellShape = _MINUTES
) -> dict[str, tuple[TrendPoint, ...]]:
    """By place the same of the audits that knew of it, in the order of the newest's route.

    `lost`: before the place; `coverage`: what it traced of what passed it.
    """
    ordered = _ordered(audits)
    hops = [hops_from_json(row["hops"]) for row in ordered]
    counts = [hop_counts(each) for each in hops]
    trends = {}
    for place in (hop.location for hop in (hops[-1] if hops else ())):
        knew = [n for n, of in enumerate(counts) if place in of]
        rows = [ordered[n] for n in knew]
        mine = [_of_place(counts[n][place]) for n in knew]
        changes = _changes(rows, mine)
        trends[place] = tuple(
            _place_point(row, of, shape_of(row, usual).sample_rate, changes[row["audit_id"]])
            for row, of in zip(rows[-TREND_AUDITS:], mine[-TREND_AUDITS:], strict=True)
        )
    return trends


def _of_place(counts: Mapping[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    """By the names of a stream's rates; of nothing, where it is not known."""
    return {"missing": counts["lost"], "untraced": counts.get("trace_loss", (0, 0))}


def _place_point(
    row: StoredRow,
    counts: Mapping[str, tuple[int, int]],
    sample_rate: float,
    usual: Mapping[str, float],
) -> TrendPoint:
    (lost, due), (untraced, passed) = counts["missing"], counts["untraced"]
    return TrendPoint(
        audit_id=row["audit_id"],
        end=row["window_end"],
        verdict=row["verdict"],
        lost=1e6 * lost / max(1, due),
        doubled=0.0,
        coverage=1 - untraced / passed if passed else None,
        latency={},
        rates=sampled_rates(counts, sample_rate=sample_rate),
        usual=usual,
    )


def _ordered(audits: Iterable[StoredRow]) -> list[StoredRow]:
    """The audits of a trend, and as many before it as its changes are judged by."""
    for_itself = (row for row in published_audits(audits) if late_of(row) is None)
    ordered = sorted(for_itself, key=audit_reach)[-4 * TREND_AUDITS :]
    return [row for row in ordered if not any(_is_again(row, other) for other in ordered)]


def _changes(
    ordered: Sequence[StoredRow], counts: Sequence[Mapping[str, tuple[int, int]]]
) -> dict[str, dict[str, float]]:
    """By audit what was usual of the rates that changed with it.

    Of the newest audit and of those before it that share no time with one: what was lost in an hour
    is in each window that holds it.
    """
    usual: dict[str, dict[str, float]] = {row["audit_id"]: {} for row in ordered}
    apart: list[int] = []
    for at, row in reversed(list(enumerate(ordered))):
        if not apart or row["window_end"] <= ordered[apart[0]]["window_start"]:
            apart.insert(0, at)
    for name in counts[0] if counts else ():
        for nth, before in rate_changes([counts[at][name] for at in apart]).items():
            usual[ordered[apart[nth]]["audit_id"]][name] = before
    return usual


def _is_again(row: StoredRow, first: StoredRow) -> bool:
    """Whether an audit looked later at a part of the time that another one had looked at."""
    begins, ends = row["window_start"], row["window_end"]
    whole = first["window_start"], first["window_end"]
    is_part = whole[0] <= begins and ends <= whole[1] and (begins, ends) != whole
    return bool(is_part and audit_order(row) > audit_order(first))


_REFUSED = (AuditStatus.REJECTED, AuditStatus.FAILED)


def _refused(audits: Iterable[StoredRow], newest: StoredRow | None) -> Refused | None:
    """The last of the later audits without a result: what is shown is not the last word."""
    since = ended_at(newest) if newest else None
    later = [
        row
        for row in audits
        if row["status"] in _REFUSED and (since is None or ended_at(row) > since)
    ]
    if not later:
        return None
    last = max(later, key=audit_order)
    return Refused(last["audit_id"], last["status"], last["as_of"], last["self_check"])


def _hours(until: datetime | None, now: datetime) -> float | None:
    return None if until is None else round((until - now).total_seconds() / 3600, 1)
