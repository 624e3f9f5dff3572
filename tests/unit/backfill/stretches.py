"""Stretches of missing messages, for the tests of ranges and plans."""

from dataclasses import replace
from datetime import timedelta

from shardaudit.backfill.rules.planned import Stretch
from shardaudit.model.verdict import Cause
from tests.builders import T0, sequence, shard

RETENTION = timedelta(hours=24)


def stretch(start_s: int = 0, end_s: int | None = None, **fields: object) -> Stretch:
    """Ten lost messages of a cell, sent within these seconds after T0."""
    end_s = start_s if end_s is None else end_s
    found = Stretch(
        shard_id=shard(0),
        bucket_start=T0 + timedelta(seconds=start_s // 60 * 60),
        cause=Cause.LOST,
        ids=10,
        first_sent_at=T0 + timedelta(seconds=start_s),
        last_sent_at=T0 + timedelta(seconds=end_s),
        deadline=T0 + timedelta(seconds=start_s) + RETENTION,
        first_sequence=sequence(start_s),
        last_sequence=sequence(end_s),
    )
    return replace(found, **fields)  # type: ignore[arg-type] # fields of the test's choice
