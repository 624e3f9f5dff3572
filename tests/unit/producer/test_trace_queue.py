"""The numbers of a session are dense: each is a trace's or a gap's, and what is dropped is told."""

import sys
from collections.abc import Callable
from copy import copy
from functools import partial
from itertools import count
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardaudit.producer import trace_queue
from shardaudit.producer.trace_queue import FULL, Gap, TraceColumns, TraceQueue, TraceRun
from tests.unit.producer.puts import traces

NO_ID = "the message id is missing, or no text"
# How many traces are added, or how many records there is no trace of, or None: all is taken out.
STEPS = st.lists(
    st.none() | st.tuples(st.integers(0, 9), st.sampled_from(["", NO_ID, "other"])), max_size=40
)


@given(STEPS, st.integers(1, 7))
def test_all_that_is_added_is_written_or_in_a_gap(
    steps: list[tuple[int, str] | None], capacity: int
) -> None:
    queue, taken, added = TraceQueue(capacity), list[TraceRun | Gap](), 0
    for step in steps:
        if step is None:
            taken += queue.take()
        else:
            many, why = step
            queue.add([why] * many if why else traces(added, many))
            added += many
        assert len(queue) <= capacity + 1
    taken += queue.take()

    counts = [size(e) for e in taken]
    spans = [(e.session_seq, e.session_seq + n) for e, n in zip(taken, counts, strict=True)]
    assert [start for start, _ in spans] == [0, *(end for _, end in spans)][: len(spans)]
    written = [
        (number, name)
        for e in taken
        if isinstance(e, TraceRun)
        for number, name in enumerate(e.traces.message_ids, e.session_seq)
    ]
    dropped = sum(e.count for e in taken if isinstance(e, Gap))
    assert len(written) + dropped == added == queue.numbered
    assert queue.dropped == dropped
    assert all(name == f"m{number}" for number, name in written)


def test_what_has_no_room_is_one_gap_when_the_queue_is_full() -> None:
    queue = TraceQueue(2)
    queue.add(traces(0, 5))
    queue.add([NO_ID])
    queue.add(traces(6, 1))
    assert [*queue.take()] == [TraceRun(0, *traces(0, 2)), Gap(2, 5, FULL)]
    queue.add(traces(7))
    assert queue.take() == [TraceRun(7, *traces(7))]


def test_ids_of_parents_take_the_room_of_traces() -> None:
    queue = TraceQueue(9)
    [of_two] = traces(0, 4)
    of_two = of_two._replace(parent_ids=[("a", "b")] * 4)
    queue.add([of_two])
    queue.add(traces(4, 1))
    assert queue.take() == [TraceRun(0, of_two.only([True] * 3)), Gap(3, 2, FULL)]


def test_each_reason_is_a_gap_of_its_own_when_there_is_room() -> None:
    queue = TraceQueue(9)
    mixed: list[TraceColumns | str] = [NO_ID, NO_ID, "other", *traces(3), NO_ID]
    queue.add(mixed)
    assert [e for e in queue.take() if isinstance(e, Gap)] == [
        Gap(0, 2, NO_ID),
        Gap(2, 1, "other"),
        Gap(4, 1, NO_ID),
    ]


def test_what_comes_late_is_counted_when_the_queue_is_shut() -> None:
    queue = TraceQueue(9)
    queue.add(traces(0))
    queue.shut()
    queue.add(traces(1, 3))
    assert (queue.take(), queue.numbered, queue.dropped) == ([TraceRun(0, *traces(0))], 4, 3)


def test_what_is_dropped_was_numbered_before_whenever_somebody_looks() -> None:
    queue = TraceQueue(9)
    seen: list[int] = []

    class Looking(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            seen.append(queue.numbered - queue.dropped)
            return super().__eq__(other)

    queue.add(map(Looking, [NO_ID, NO_ID]))
    assert seen == [0]


def interrupted(queue: TraceQueue, at: int, handle: Callable[[], None]) -> None:
    """Adds; a signal's handler runs at one of the calls: as Python has it, at a begin or an end."""
    calls = count()

    def profile(frame: FrameType, event: str, _: object) -> None:
        is_call = event in {"call", "c_return"}
        if is_call and frame.f_code.co_filename == trace_queue.__file__ and next(calls) == at:
            handle()

    sys.setprofile(profile)
    try:
        queue.add([NO_ID, *traces(0, 2), "other", *traces(0, 3), NO_ID])
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("handler", ["adds", "drops", "flushes"])
def test_each_number_is_told_once_wherever_a_signal_interrupts(handler: str) -> None:
    for at in range(60):
        queue, taken = TraceQueue(4), list[TraceRun | Gap]()
        queue.add([NO_ID])
        handles: dict[str, Callable[[], None]] = {
            "adds": partial(queue.add, traces(0)),
            "drops": partial(queue.add, [NO_ID]),
            "flushes": partial(take_all, queue, taken),  # the thread does, for which it waits
        }
        interrupted(queue, at, handles[handler])
        take_all(queue, taken)
        told = [e.session_seq + n for e in taken for n in range(size(e))]
        assert sorted(told) == list(range(queue.numbered)), at
        assert queue.dropped == sum(e.count for e in taken if isinstance(e, Gap)), at


def size(entry: TraceRun | Gap) -> int:
    return entry.count if isinstance(entry, Gap) else len(entry.traces.message_ids)


def take_all(queue: TraceQueue, taken: list[TraceRun | Gap]) -> None:
    taken += map(copy, queue.take())  # as they are then: the thread writes them at once
