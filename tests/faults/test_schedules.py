"""Nights in which outside calls fail and commands are killed, by seed: the tables do not notice."""

import logging
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.night import Night, night
from tests.faults.stormy_proxy import NO_FAULT
from tests.faults.world import PLANTED, World, world_in
from tests.unit.simulate.simulated import Simulated

log = logging.getLogger(__name__)

SHARES = (0.003, 0.01, 0.03)  # of the requests
# Each day has one of each share, without repair; the drill two hundred, and their repairs.
SCHEDULES = "SHARDAUDIT_SCHEDULES"
SEEDS = range(int(os.environ.get(SCHEDULES, len(SHARES))))
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


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """What all nights have in common."""
    with world_in(tmp_path_factory.mktemp("world")) as made:
        yield made


@pytest.fixture(scope="session")
def undisturbed() -> dict[bool, dict[str, object]]:
    """What a night without faults tells, repaired and not; filled when first asked for."""
    return {}


def passed(
    world: World, folder: Path, *, seed: int, share: float, is_repaired: bool
) -> dict[str, object]:
    with night(world, folder, seed=seed, share=share) as one:
        one.passes(is_repaired=is_repaired)
        log.info("seed %d, share %s: %s, %s", seed, share, one.ends, one.weather.happened)
        log.info("gave up: %s", "\n".join(one.gave_up))
        assert bool(one.weather.happened.keys() - {NO_FAULT}) == (share > 0)
        assert one.held_by_the_dead() == []
        return told(one)


@pytest.mark.parametrize(
    "is_repaired", [False, pytest.param(True, marks=[pytest.mark.drill])], ids=["found", "repaired"]
)
@pytest.mark.parametrize("seed", SEEDS)
def test_nobody_notices_that_calls_failed_and_commands_were_killed(
    world: World,
    tmp_path: Path,
    undisturbed: dict[bool, dict[str, object]],
    seed: int,
    is_repaired: bool,
) -> None:
    if is_repaired not in undisturbed:
        calm = passed(world, tmp_path / "calm", seed=seed, share=0, is_repaired=is_repaired)
        planted = Simulated(world.folder / "lake").planted_ids(*PLANTED)
        findings = calm["findings"]
        assert isinstance(findings, list)
        assert len(findings) == len(planted) > 0
        undisturbed[is_repaired] = calm
    share = SHARES[seed % len(SHARES)]
    stormy = passed(world, tmp_path / "stormy", seed=seed, share=share, is_repaired=is_repaired)
    assert stormy == undisturbed[is_repaired]
