"""What is said of the places between producer and sink, and how the tables keep it."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from datetime import datetime
from typing import Any

from shardaudit.model.input_columns import PRODUCER
from shardaudit.model.rates import (
    Rate,
    counts_at_place,
    had_by_traces,
    sampled_rates,
    wilson_interval,
)
from shardaudit.model.route.filters import FilterTime, Unexplained
from shardaudit.model.route.lost_hops import HopLine, lost_hops_from_json, place_of
from shardaudit.model.verdict import Kind
from shardaudit.model.words import counted, messages
from shardaudit.report.plain import harmless, instant
from shardaudit.report.summary import AuditedPlace

_TOLD = {each.name for each in fields(AuditedPlace)}
_WHY_NOT = {
    Unexplained.BELOW: "which is less than its share",
    Unexplained.NOTHING: "which is less than its share",
    Unexplained.UNTOLD: "but traced too few of these{told} as sent for anybody to tell",
}
_FAR_LESS = 0.8  # of what landed came to a filter, or less: a part went another way
_TOLD_TIMES = 5  # of a filter, in notes; all are in the table


def hops_as_json(hops: Sequence[AuditedPlace]) -> str | None:
    """The text that AUDITS holds; None: there is no route."""
    return json.dumps([asdict(hop) for hop in hops], default=_as_text) if hops else None


def _as_text(value: object) -> str:
    """A time: nothing else of a line is no JSON."""
    if not isinstance(value, datetime):
        raise TypeError(type(value).__name__)
    return value.isoformat()


def hops_from_json(text: str | None) -> tuple[AuditedPlace, ...]:
    """The lines of such a text."""
    rows = json.loads(text) if text else []
    return tuple(
        AuditedPlace(
            # Audits of before may have told more of a place.
            **{name: value for name, value in row.items() if name in _TOLD}
            | {
                "after": tuple(row["after"]),
                "ways": tuple(HopLine(**way) for way in row.get("ways", ())),
                "unexplained": tuple(map(_filter_time, row.get("unexplained", ()))),
                "traces_since": (at := row.get("traces_since")) and datetime.fromisoformat(at),
            }
        )
        for row in rows
    )


def doubled_after(hops: Sequence[AuditedPlace]) -> dict[str, tuple[int, int]]:
    """By place how many messages were doubled after it, at least and at most.

    Those that may have taken one of several ways from there count on each of them. None of a place
    without a trace, nor in audits from before ways were kept.
    """
    ways = defaultdict[str, list[int]](list)
    for hop in hops:
        for way in hop.ways:
            ways[way.after].append(way.doubled)
    silent = {hop.location for hop in hops if hop.is_silent}
    return {name: (max(told), sum(told)) for name, told in ways.items() if name not in silent}


def doubled_line(between: tuple[int, int] | None) -> str:
    """One of `doubled_after` in words."""
    if between is None:
        return "–"
    least, most = between
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def hop_counts(hops: Sequence[AuditedPlace]) -> dict[str, dict[str, tuple[int, int]]]:
    """By place `counts_at_place`, `doubled` at most; none of a place without a trace."""
    doubled = doubled_after(hops)
    return {
        hop.location: counts_at_place(
            {
                "had": had_by_traces(hop.received, hop.sent, hop.told_left_out),
                "lost": hop.lost,
                "doubtful": hop.doubtful,
                "doubled": doubled.get(hop.location, (None, None))[1],
            },
            trace_loss=hop.trace_loss,
        )
        for hop in hops
        if not hop.is_silent
    }


def hop_rates(hops: Sequence[AuditedPlace], *, sample_rate: float) -> dict[str, dict[str, Rate]]:
    """By place the rates of `hop_counts`; none where all ids are audited."""
    if sample_rate == 1:
        return {}
    doubled, found = doubled_after(hops), {}
    for name, counts in hop_counts(hops).items():
        rates = sampled_rates(counts, sample_rate=sample_rate)
        if rate := rates.get("doubled"):
            from_least, _ = wilson_interval(doubled[name][0], rate.of)
            rates["doubled"] = replace(rate, between=(from_least, rate.between[1]))
        found[name] = rates
    return found


def _filter_time(row: dict[str, Any]) -> FilterTime:  # Any: JSON
    times = {name: datetime.fromisoformat(row[name]) for name in ("since", "until")}
    return FilterTime(**(row | times))


def filter_notes(hops: Sequence[AuditedPlace]) -> tuple[str, ...]:
    """When what a filter left out is missing all the same, and why."""
    return tuple(
        note
        for hop in hops
        for note in _filter_notes(hop, beside=[one for one in hops if one.after == hop.after])
    )


def _filter_notes(hop: AuditedPlace, *, beside: Sequence[AuditedPlace]) -> Iterator[str]:
    who = " and ".join(harmless(one.location) for one in beside)
    share = sum(one.share or 0 for one in beside)
    for time in hop.unexplained[:_TOLD_TIMES]:
        shard = f" of the shard {harmless(time.shard_id)}" if time.shard_id else ""
        told = "" if time.told is None else f" ({time.told:,})"
        why = _WHY_NOT[Unexplained(time.because)].format(told=told)
        yield (
            f"from {instant(time.since)} to {instant(time.until)} {who} passed on {time.passed:,} "
            f"of {messages(time.received)}{shard}, {why} "
            f"(share {share:g}): what it left out counts as missing"
        )
    if (more := len(hop.unexplained) - _TOLD_TIMES) > 0:
        yield f"{who}: {counted(more, 'such time')} more"


def place_told(kind: str, location: str | None, words: Mapping[str, str]) -> str | None:
    """What a finding says of a place, in the words of its kind; None: nothing.

    What was missing before there were routes has the producer's location.
    """
    if not location or (kind == Kind.MISSING.value and location == PRODUCER):
        return None
    return words.get(kind)


def lost_told(hops: str | None) -> str | None:
    """On which hop a message was lost, or the ones that are likely; None: nothing is known.

    Input:
        hops: of a finding.
    """
    lost = lost_hops_from_json(hops)
    # Beside a hop on which a filter may have left it out, the other one is not sure.
    is_sure = place_of(lost) is not None
    told = [
        f"{hop.after} → {hop.before}{'' if is_sure else f' {hop.probability:.0%}'}"
        for hop in lost
        if hop.before is not None
    ]
    if is_sure:
        return " or ".join(told)
    told += [f"left out by {hop.after} {hop.probability:.0%}" for hop in lost if hop.before is None]
    return f"inconclusive: {', '.join(told)}" if told else None


def route_notes(
    hops: Sequence[AuditedPlace], *, sent: int, missing: int, landed: int
) -> tuple[str, ...]:
    """Where places have no trace, and where it is not clear what lost.

    Input:
        sent, missing, landed: messages of the window, as the producers traced them.
    """
    silent = [harmless(hop.location) for hop in hops if sent and hop.is_silent]
    doubtful = [harmless(hop.location) for hop in hops if hop.doubtful]
    notes = []
    if silent:
        notes.append(
            f"no trace of {', '.join(silent)} in this window: no message can be said to be lost "
            "before it, or doubled after it. Its traces belong into the folder of the stream's "
            "traces"
        )
    notes += [
        f"traces of {harmless(hop.location)} begin at {instant(hop.traces_since)}: of what was "
        "sent before, no message can be said to be lost before it, or doubled after it"
        for hop in hops
        if hop.traces_since is not None
    ]
    if doubtful:
        most = max(hop.doubtful for hop in hops)
        notes.append(
            f"{counted(most, 'missing message')} or more may have been lost before "
            f"{' or '.join(doubtful)}, or further on: inconclusive, as traces of places are lost, "
            "too, a place leads to several, or they are of gaps. Findings say how likely each is"
        )
    if unsent := max((hop.unsent for hop in hops), default=0):
        where = [harmless(hop.location) for hop in hops if hop.unsent]
        notes.append(
            f"{counted(unsent, 'message')} or more that {', '.join(where)} traced did not land, "
            "and no producer traced them: lost, as are the producers' traces, and not counted"
        )
    for hop in hops:
        notes += _left_out_notes(hop)
    notes += _past_notes(hops, missing=missing, landed=landed)
    notes += _nowhere_notes(hops, missing=missing)
    return (*filter_notes(hops), *notes)


def _nowhere_notes(hops: Sequence[AuditedPlace], *, missing: int) -> Iterator[str]:
    """How many missing messages are on no hop."""
    on_hops = hops[0].on_hops if hops else None
    if on_hops is not None and missing > on_hops:
        yield (
            f"{counted(missing - on_hops, 'missing message')} are on no hop of the route: "
            "of gaps, whose messages are not looked up one by one and count as inconclusive on "
            "each hop, or left out by a filter"
        )


def _past_notes(hops: Sequence[AuditedPlace], *, missing: int, landed: int) -> Iterator[str]:
    """Where far more landed than came to a filter with a number, by way of the places before it."""
    sent = {hop.location: hop.sent for hop in hops}
    for hop in hops:
        if hop.share is None or not hop.is_filter or hop.is_silent or hop.traces_since:
            continue
        due = landed
        if PRODUCER not in hop.after:
            due = min(landed, sum(sent[one] for one in hop.after) - missing)
        if hop.received < _FAR_LESS * due:
            yield (
                f"{harmless(hop.location)} received {messages(hop.received)}, and {due:,} landed "
                "that are to come by it: they went past it, or its traces are lost. A loss in it "
                f"may count as left out by its share ({hop.share:g}). If they have another way, "
                'name a place on that; or let it trace what it leaves out (share = "traced")'
            )


def _left_out_notes(hop: AuditedPlace) -> Iterator[str]:
    """Where a place and its configuration differ in whether it tells what it leaves out."""
    who = harmless(hop.location)
    if hop.told_left_out and not hop.is_filter:
        yield (
            f"{who} traced {messages(hop.told_left_out)} as left out, but by its share it passes "
            'on all: what of them did not land is missing. share = "traced" would believe it'
        )
    if hop.share is None and not hop.told_left_out and hop.received > hop.sent:
        yield (
            f'{who} traced no message as left out, though its share is "traced": what it received '
            "and did not send on is missing"
        )
