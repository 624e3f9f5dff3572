"""What a user runs and what its makers need: two locks, the first a part of the second."""

import re
import tomllib

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.sbom import ROOT, brought


def locked(name: str) -> dict[tuple[str, str], set[str]]:
    """The hashes of each package and version of a lock; some differ by Python's version."""
    entries = re.split(r"(?m)^(?=[a-z0-9])", (ROOT / name).read_text())
    return {
        (match[1], match[2]): set(re.findall(r"--hash=(\S+)", entry))
        for entry in entries
        if (match := re.match(r"([a-z0-9-]+)(?:\[[^]]*\])?==(\S+)", entry))
    }


RUN_TIME, ALL = locked("requirements.lock"), locked("requirements-dev.lock")


def test_both_locks_have_the_same_versions_and_hashes() -> None:
    assert all(ALL.values())
    assert {pin: ALL.get(pin) for pin in RUN_TIME} == RUN_TIME


def test_the_run_time_lock_has_all_that_the_extras_bring_and_no_dev_tool() -> None:
    run_time, all_names = ({name for name, _ in lock} for lock in (RUN_TIME, ALL))
    assert brought("shardaudit", {"airflow", "producer"}) <= run_time
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    dev = {
        canonicalize_name(Requirement(one).name) for one in extras["optional-dependencies"]["dev"]
    }
    # Airflow and a client of gRPC bring it as well.
    assert run_time & dev == {"protobuf"}
    assert dev - {"shardaudit"} <= all_names
