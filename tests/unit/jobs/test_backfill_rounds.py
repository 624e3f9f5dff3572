"""How many windows are read and landed together."""

from hypothesis import given
from hypothesis import strategies as st

from shardaudit.jobs.backfill_ledger import first_round, next_limit

LIMIT = 4000


def windows(*sizes: int) -> list[dict[str, object]]:
    return [{"window_id": str(n), "estimated_bytes": size} for n, size in enumerate(sizes)]


HUNDREDS = st.integers(1, 90).map(lambda n: 100 * n)


@given(sizes=st.lists(HUNDREDS, min_size=1, max_size=30), percent=st.integers(0, 100))
def test_every_window_is_in_one_round_in_order_and_no_round_is_too_large(
    sizes: list[int], percent: int
) -> None:
    """However full the shards are, as long as they are equally full."""
    waiting, limit, seen = windows(*sizes), LIMIT, []
    while waiting:
        these = first_round(waiting, max_bytes=limit)
        estimated = [int(str(row["estimated_bytes"])) for row in these]
        read_bytes = percent * sum(estimated) // 100  # a whole number: nothing is cut off
        assert len(these) == 1 or read_bytes <= LIMIT
        seen += these
        waiting = waiting[len(these) :]
        limit = next_limit(limit, these, read_bytes=read_bytes, at_most=LIMIT)
    assert seen == windows(*sizes)


def test_rounds_grow_when_the_shards_are_nearly_empty_tenfold_at_most() -> None:
    assert next_limit(LIMIT, windows(4000), read_bytes=1, at_most=LIMIT) == 10 * LIMIT
    assert next_limit(LIMIT, windows(4000), read_bytes=800, at_most=LIMIT) == 5 * LIMIT
    assert next_limit(5 * LIMIT, windows(4000), read_bytes=4000, at_most=LIMIT) == LIMIT
    assert next_limit(LIMIT, windows(4000), read_bytes=0, at_most=LIMIT) == 10 * LIMIT
