"""What was asked of a shard once is not asked again."""

import pytest

from shardaudit.backfill.rules.reading import OldestRecord
from shardaudit.model.get_records import StoredRecord
from tests.builders import T0


@pytest.mark.parametrize("first", [None, StoredRecord("1", "k", T0, b"")])
def test_the_oldest_record_is_the_one_of_the_first_question(first: StoredRecord | None) -> None:
    """Also that there was none."""
    later = StoredRecord("2", "k", T0, b"")
    oldest = OldestRecord()
    assert (oldest.once(lambda: first), oldest.once(lambda: later)) == (first, first)
