"""Who stands still, and who only waits: by a clock and a processor time of the tests' own."""

import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from shardaudit.adapters.pulse import (
    STILL_AFTER,
    Pulse,
    call_ended,
    processor_seconds,
)

LOOK_S = 10.0


class World:
    """A clock, and the processor time of a run that uses a share of a processor."""

    def __init__(self, share: float) -> None:
        self.at, self.spent, self.share = 1000.0, 50.0, share
        self.pulse = Pulse(spent=lambda: self.spent, clock=lambda: self.at)

    def looks(self, seconds: float) -> Iterator[bool]:
        for _ in range(int(seconds / LOOK_S)):
            self.at += LOOK_S
            self.spent += LOOK_S * self.share
            yield self.pulse.stands_still()


@pytest.mark.parametrize("share", [0.0, 0.006])  # an idle JVM
def test_a_run_that_does_nothing_stands_still_when_its_time_is_over(share: float) -> None:
    found = list(World(share).looks(STILL_AFTER.total_seconds() * 2))
    first = found.index(True)
    assert first * LOOK_S == pytest.approx(STILL_AFTER.total_seconds(), abs=2 * LOOK_S)


@pytest.mark.parametrize("share", [0.01, 2.0])
def test_a_run_that_works_never_stands_still(share: float) -> None:
    assert not any(World(share).looks(24 * 3600))


def test_a_run_whose_calls_end_never_stands_still() -> None:
    for n, stands_still in enumerate(World(0.0).looks(6 * 3600)):
        if n % 60 == 0:
            call_ended()
        assert not stands_still


def test_a_run_that_was_stopped_itself_does_not_stand_still() -> None:
    """SIGSTOP, a laptop's lid: nobody looked meanwhile."""
    world = World(0.0)
    assert not any(world.looks(60))
    world.at += 24 * 3600
    assert not any(world.looks(60))


def test_less_than_before_is_work_and_so_is_what_nobody_can_tell() -> None:
    world = World(0.0)
    nearly = STILL_AFTER.total_seconds() - 100
    assert not any(world.looks(nearly))
    world.spent -= 20  # a process that ended
    assert not any(world.looks(nearly))
    assert not any(Pulse(spent=lambda: None, clock=lambda: world.at).stands_still() for _ in "123")


def test_the_time_of_all_below_counts_also_when_they_have_ended() -> None:
    busy = "import time\nwhile time.process_time() < 0.3: pass"
    both = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])"
    before = processor_seconds()
    if before is None:
        pytest.skip("no /proc")
    subprocess.run([sys.executable, "-c", both], check=True)
    after = processor_seconds()
    assert after is not None
    assert after - before >= 0.3
    assert time.process_time() <= after


_NO_TEXT = """
open("/proc/self/comm", "wb").write(b"caf\\xc3")
print(flush=True)
input()
"""


def test_a_process_whose_name_is_no_text_is_looked_at_like_any() -> None:
    """As of one that is cut in the middle of a letter."""
    with subprocess.Popen(
        [sys.executable, "-c", _NO_TEXT], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert processor_seconds() is not None
        other.kill()
