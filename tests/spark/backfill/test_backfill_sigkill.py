"""Thirty kills at random moments of plan and run, then a last run: each message stands once."""

import json
import random
from pathlib import Path

import pytest

from tests.spark.commands import killed, run
from tests.spark.repeated import PLAN, audited_losses, backfill_words, landed, missing

pytestmark = pytest.mark.apache_spark  # repairs

KILLS = 30


@pytest.mark.drill
def test_every_message_lands_once_when_the_backfill_was_killed_again_and_again(
    tmp_path: Path,
) -> None:
    moment = random.Random(20261121)  # noqa: S311 - moments, not secrets
    folder = tmp_path / "demo"
    with audited_losses(folder):
        for kill in range(3):
            killed(folder, PLAN, after_s=moment.uniform(4, 20) if kill else 8)
        planned = json.loads(run(folder, PLAN))
        assert sum(line["expected_ids"] for line in planned["windows"]) > 100
        words = backfill_words(planned["plan_id"])
        before = landed(folder)
        for _ in range(KILLS - 3):
            killed(folder, words, after_s=moment.uniform(5, 45))
        run(folder, words)
        run(folder, words)
    after = landed(folder)
    wanted = missing(folder)
    assert {after[one] for one in wanted} == {1}
    assert {one: n for one, n in after.items() if one not in wanted} == before
