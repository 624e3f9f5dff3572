"""What the cells of a shard add up to, and what must add up."""

from dataclasses import replace

import pytest

from shardaudit.audit.rules.totals import (
    TOTALS,
    Around,
    ShardTotals,
    broken_invariants,
    coverage,
    shard_coverages,
)
from shardaudit.ingest.rules.placed_rows import UNKNOWN_SHARD
from shardaudit.model.verdict import Verdict

KINDS = ("missing", "duplicated", "untraced", "moved")


def shard(
    *verdicts: Verdict,
    lost: int = 0,
    sent: int = 1000,
    matched: int = 90,
    untraced: int = 10,
    is_damaged: bool = False,
    is_doubtful: bool = False,
    around: Around | None = None,
) -> ShardTotals:
    sums = dict.fromkeys(TOTALS, 0) | {"sent": sent, "matched": matched, "untraced": untraced}
    totals = ShardTotals(
        "s0", sums, lost, frozenset(verdicts), is_damaged, is_doubtful, coverage(sums)
    )
    if around is None:
        return totals
    totals = replace(totals, around=around)
    return replace(totals, trace_coverage=coverage(totals.traced))


@pytest.mark.parametrize(
    ("totals", "verdict"),
    [
        (shard(), Verdict.OK),
        (shard(Verdict.OK, Verdict.PENDING, Verdict.LOSS, lost=10), Verdict.LOSS),
        (shard(Verdict.OK, Verdict.PENDING), Verdict.PENDING),
        (shard(Verdict.OK, Verdict.LOSS, lost=11), Verdict.LOSS),
        (shard(Verdict.OK, Verdict.LOSS, lost=10), Verdict.LOSS),
        (shard(Verdict.OK, Verdict.LOSS, lost=9), Verdict.OK),
        (shard(Verdict.LOSS, lost=9), Verdict.OK),
        (shard(Verdict.MIXED, lost=9), Verdict.DUPLICATION),
        (shard(Verdict.MIXED, lost=11), Verdict.MIXED),
        (shard(Verdict.STALLED, Verdict.MIXED, lost=9), Verdict.STALLED),
        (shard(Verdict.SILENT, lost=0), Verdict.SILENT),
    ],
)
def test_a_shard_has_its_worst_verdict_after_what_is_tolerated(
    totals: ShardTotals, verdict: Verdict
) -> None:
    # 9.5 of a thousand: what is lost of ten is more, and of nine less.
    assert totals.verdict(tolerance=0.0095, coverage_floor=0.9) is verdict


def test_as_many_as_are_tolerated_are_no_loss() -> None:
    assert shard(Verdict.LOSS, lost=10).verdict(tolerance=0.01, coverage_floor=0) is Verdict.OK
    assert shard(Verdict.LOSS, lost=1).verdict(tolerance=0.0, coverage_floor=0) is Verdict.LOSS


@pytest.mark.parametrize(
    ("totals", "verdict"),
    [
        (shard(Verdict.INCONCLUSIVE), Verdict.UNTRACED),
        (shard(Verdict.INCONCLUSIVE, matched=89, untraced=11), Verdict.INCONCLUSIVE),
        (shard(Verdict.INCONCLUSIVE, matched=0, untraced=0), Verdict.UNTRACED),
        (shard(Verdict.INCONCLUSIVE, is_damaged=True), Verdict.INCONCLUSIVE),
        (shard(Verdict.INCONCLUSIVE, is_doubtful=True), Verdict.INCONCLUSIVE),
        (shard(Verdict.LOSS, is_doubtful=True), Verdict.INCONCLUSIVE),  # lost: tolerated
        (shard(Verdict.OK, Verdict.PENDING), Verdict.PENDING),
        (shard(Verdict.INCONCLUSIVE, Verdict.DUPLICATION), Verdict.DUPLICATION),
    ],
)
def test_a_shard_is_inconclusive_by_its_own_coverage_not_by_that_of_a_cell(
    totals: ShardTotals, verdict: Verdict
) -> None:
    assert totals.verdict(tolerance=0, coverage_floor=0.9) is verdict


def test_coverage_is_the_share_of_landed_ids_with_a_trace() -> None:
    assert coverage({"matched": 3, "untraced": 1}) == 0.75
    assert coverage({"matched": 0, "untraced": 1}) == 0
    assert coverage({"matched": 0, "untraced": 0}) is None


def test_what_has_no_shard_is_judged_by_the_coverage_of_the_stream() -> None:
    sums = {
        "s0": {"matched": 7, "untraced": 0},
        "s1": {"matched": 0, "untraced": 0},
        UNKNOWN_SHARD: {"matched": 0, "untraced": 1},
    }
    assert shard_coverages(sums) == {"s0": 1, "s1": None, UNKNOWN_SHARD: 0.875}
    assert shard_coverages({"s0": sums["s0"]}) == {"s0": 1}


SOUND = {
    "sent": 10,
    "matched": 4,
    "missing": 3,
    "pending": 1,
    "filtered": 2,
    "landed": 9,
    "vanished": 2,
    "extra_rows": 5,
    "untraced": 2,
    "duplicated": 4,
    "moved": 1,
    "cells": 7,
    "grid_cells": 7,
    "without_verdict": 0,
    "impossible": 0,
}


def test_what_adds_up_is_not_told() -> None:
    assert broken_invariants(SOUND, {kind: SOUND[kind] for kind in KINDS}) == []
    nothing = dict.fromkeys(SOUND, 0)
    assert broken_invariants(nothing, {}) == []


@pytest.mark.parametrize("name", SOUND)
@pytest.mark.parametrize("by", [1, -1])
def test_each_number_that_is_off_is_told(name: str, by: int) -> None:
    told = broken_invariants(SOUND | {name: SOUND[name] + by}, {k: SOUND[k] for k in KINDS})
    equations = {"matched": 2, "missing": 2, "untraced": 2}
    assert len(told) == equations.get(name, 1)
    a, b = SOUND["sent"], sum(SOUND[n] for n in ("matched", "missing", "pending", "filtered"))
    if name == "sent":
        assert told == [f"sent = matched + missing + pending + filtered ({a + by} against {b})"]


@pytest.mark.parametrize("kind", KINDS)
def test_findings_that_no_cell_counts_are_told(kind: str) -> None:
    kinds = {k: SOUND[k] for k in KINDS}
    [told] = broken_invariants(SOUND, kinds | {kind: SOUND[kind] + 1})
    assert told.startswith(f"the findings of kind {kind} ")


@pytest.mark.parametrize(
    ("totals", "verdict"),
    [
        (shard(Verdict.LOSS, lost=1, sent=10, around=Around(due=90)), Verdict.OK),
        (shard(Verdict.LOSS, lost=1, sent=10, around=Around(due=89)), Verdict.LOSS),
        (shard(Verdict.LOSS, lost=1, sent=10, around=Around(due=90, lost=1)), Verdict.LOSS),
        (shard(Verdict.LOSS, lost=1, sent=10, around=Around(due=190, lost=1)), Verdict.OK),
        (shard(Verdict.OK, sent=10, around=Around(due=90, lost=50)), Verdict.OK),
        (shard(Verdict.INCONCLUSIVE, matched=8, untraced=2, around=Around(matched=10)), "untraced"),
        (
            shard(Verdict.INCONCLUSIVE, matched=8, untraced=2, around=Around(matched=9)),
            "inconclusive",
        ),
        (
            shard(
                Verdict.INCONCLUSIVE, matched=8, untraced=2, around=Around(matched=18, untraced=1)
            ),
            "inconclusive",
        ),
    ],
)
def test_a_few_minutes_are_judged_by_the_totals_of_the_time_around_them(
    totals: ShardTotals, verdict: str
) -> None:
    assert totals.verdict(tolerance=0.01, coverage_floor=0.9) == verdict
