"""Nights in which outside calls fail and commands are killed, by seed: the tables do not notice."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.faults.night import Night, night
from tests.faults.stormy_proxy import NO_FAULT
from tests.faults.world import NIGHTS_AT_ONCE, PLANTED, World, world_in

SHARES = (0.003, 0.01, 0.03)  # of the requests
# Each day has twenty, without repair; the drill two hundred, and their repairs.
SCHEDULES = "SHARDAUDIT_SCHEDULES"
SEEDS = range(int(os.environ.get(SCHEDULES, "20")))
COMPARED = {
    "findings": ("message_id", "kind", "state", "cause", "shard_id", "recoverable_until"),
    "transitions": ("message_id", "kind", "from_state", "to_state", "changed_at"),
    "backfills": ("shard_id", "state", "expected_ids"),
    "quarantine": ("line", "raw", "reason"),
}
OF_A_CELL = ("verdict", "sent", "landed", "matched", "missing", "pending", "duplicated", "untraced")
SUMS = ("n", "sum_lo", "sum_hi", "own_n")
OF_A_SUM = ("side", "shard_id", "bucket_start")


def told(night: Night) -> dict[str, object]:
    """What a person is told at the end, and what the ledger holds."""
    # The night ends with an audit; where it was repaired, another one proved that.
    audits = [row for row in night.rows("audits") if row["status"] == "published"]
    published = max(audits, key=lambda row: row["started_at"])
    cells = [row for row in night.rows("cells") if row["audit_id"] == published["audit_id"]]
    ledger: Counter[tuple[object, ...]] = Counter()
    for row in night.rows("fingerprints"):
        for name in SUMS:
            ledger[(*(row[key] for key in OF_A_SUM), name)] += row[name] or 0
    rows = {
        name: sorted(str([row[column] for column in columns]) for row in night.rows(name))
        for name, columns in COMPARED.items()
    }
    keys = ("shard_id", "bucket_start", *OF_A_CELL)
    return rows | {
        "cells": sorted(str([row[key] for key in keys]) for row in cells),
        "audit": (published["verdict"], published["watermark"]),
        "ledger": {key: n for key, n in ledger.items() if n},
        "sink": night.landed(),
    }


def passed(
    world: World, folder: Path, *, seed: int, share: float, is_repaired: bool
) -> dict[str, object]:
    with night(world, folder, seed=seed, share=share) as one:
        try:
            one.passes(is_repaired=is_repaired)
            assert bool(one.weather.happened.keys() - {NO_FAULT}) == (share > 0)
            assert one.held_by_the_dead() == []
            return told(one)
        except BaseException as error:
            error.add_note("\n".join([*one.story, f"{one.ends}, {one.weather.happened}"]))
            raise


Asked = tuple[int | None, bool]  # the seed, None: a night without faults; whether it is repaired
Told = Callable[[Asked], dict[str, object]]


@pytest.fixture(scope="session")
def told_by(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Told]:
    """What each night tells: those of all chosen tests side by side, as one mostly waits."""
    chosen = [
        item.callspec.params
        for item in request.session.items
        if isinstance(item, pytest.Function) and "told_by" in item.fixturenames
    ]
    stormy = [
        (seed, is_repaired)
        for seed in SEEDS
        for is_repaired in (False, True)
        if {"seed": seed, "is_repaired": is_repaired} in chosen
    ]
    calm = dict.fromkeys((None, is_repaired) for _, is_repaired in stormy)
    with (
        ThreadPoolExecutor(NIGHTS_AT_ONCE) as pool,
        world_in(tmp_path_factory.mktemp("world")) as world,
    ):
        nights = {
            (seed, is_repaired): pool.submit(
                passed,
                world,
                tmp_path_factory.mktemp("night") / "said",
                seed=seed or 0,
                share=0 if seed is None else SHARES[seed % len(SHARES)],
                is_repaired=is_repaired,
            )
            for seed, is_repaired in (*calm, *stormy)
        }
        yield lambda asked: nights[asked].result()
        pool.shutdown(wait=False, cancel_futures=True)  # those at work end with their world


@pytest.mark.parametrize(
    "is_repaired", [False, pytest.param(True, marks=[pytest.mark.drill])], ids=["found", "repaired"]
)
@pytest.mark.parametrize("seed", SEEDS)
def test_nobody_notices_that_calls_failed_and_commands_were_killed(
    told_by: Told, seed: int, is_repaired: bool
) -> None:
    calm = told_by((None, is_repaired))
    findings = calm["findings"]
    assert isinstance(findings, list)
    assert len(findings) == sum(PLANTED.values())
    assert told_by((seed, is_repaired)) == calm
