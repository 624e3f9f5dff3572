"""A command as a child: its lines as they come, and an end that leaves nobody behind."""

import sys
import threading
import time
from pathlib import Path

import pytest

from shardaudit.airflow.launch import Child
from shardaudit.model.exit_code import ExitCode
from shardaudit.store.lock import process_start

# Says a line, and the next one only when the file is there.
IN_STEPS = """
import pathlib, sys, time
print("one", file=sys.stderr, flush=True)
while not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.01)
print("two")
"""
# Gives back what it holds when it is interrupted, as our commands do.
POLITE = """
import pathlib, sys, time
pathlib.Path(sys.argv[1]).touch()
try:
    print("at work", flush=True)
    time.sleep(600)
except KeyboardInterrupt:
    pathlib.Path(sys.argv[1]).unlink()
    sys.exit(75)
"""
# Does not hear it, and has a child of its own that does not either.
DEAF = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(os.getpid(), other.pid, flush=True)
time.sleep(600)
"""


def child(program: str, *words: str) -> Child:
    return Child([sys.executable, "-c", program, *words])


def test_lines_are_told_as_they_come_from_both_outputs(tmp_path: Path) -> None:
    go, told = tmp_path / "go", []

    def tell(line: str) -> None:
        told.append(line)
        go.touch()

    assert child(IN_STEPS, str(go)).follow(tell) == 0
    assert told == ["one", "two"]


@pytest.mark.parametrize("code", [0, 1, 2, 3, 75, -9, -15])
def test_exit_code_is_the_command_s_or_the_signal_that_ended_it(code: int) -> None:
    program = f"import os, sys; os.kill(os.getpid(), {-code}) if {code} < 0 else sys.exit({code})"
    assert child(program).follow(lambda _: None) == code


def test_what_is_no_utf_8_is_told_all_the_same() -> None:
    told: list[str] = []
    child(r"import os; os.write(1, b'a\xffb\n')").follow(told.append)
    assert told == [r"a\xffb"]


def test_it_gives_back_what_it_holds_when_it_is_ended(tmp_path: Path) -> None:
    held = tmp_path / "held"
    one = child(POLITE, str(held))
    assert one.follow(lambda _: one.end()) == ExitCode.RETRY
    assert not held.exists()


def test_nobody_of_its_group_is_left_when_it_does_not_hear() -> None:
    one = child(DEAF)
    pids: list[int] = []

    def tell(line: str) -> None:
        pids.extend(map(int, line.split()))
        one.end(polite_s=0.3)

    assert one.follow(tell) == -9
    assert len(pids) == 2
    deadline = time.monotonic() + 10  # the system ends the second when it comes to it
    while any(map(process_start, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [process_start(pid) for pid in pids] == [None, None]


def test_it_is_ended_when_whoever_follows_it_fails(tmp_path: Path) -> None:
    held = tmp_path / "held"
    with pytest.raises(TimeoutError):
        child(POLITE, str(held)).follow(_fail)
    assert not held.exists()


def _fail(_: str) -> None:
    raise TimeoutError


def test_it_may_be_ended_twice_and_when_it_has_ended() -> None:
    one = child("print('done')")
    assert one.follow(lambda _: None) == 0
    for _ in range(2):
        one.end()


def test_it_can_be_ended_while_somebody_waits_for_it() -> None:
    one = child("import os, time; os.close(1); os.close(2); time.sleep(600)")
    threading.Timer(0.2, one.end).start()
    assert one.follow(lambda _: None) < 0
