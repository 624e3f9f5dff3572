import subprocess
import sys

from shardaudit.store.lock import machine, own_start, process_start


def test_process_is_told_from_a_later_one_by_its_start() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        start = process_start(child.pid)
        assert start is not None
        assert process_start(child.pid) == start
        child.kill()
        child.wait()
        assert process_start(child.pid) is None


def test_killed_process_is_gone_when_nobody_has_buried_it_yet() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        child.kill()
        while process_start(child.pid) is not None:
            pass
        assert child.returncode is None
        child.wait()


def test_own_process_and_machine_have_names() -> None:
    assert own_start() != "unknown"
    assert machine()
