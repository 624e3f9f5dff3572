from hashlib import sha256
from pathlib import Path

import pytest

from shardaudit.adapters.engine.jars import LOCK, jar_problems


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache with one right jar, and a lock that names it and another."""
    right = sha256(b"right").hexdigest()
    (tmp_path / "lock").write_text(f"{right}  spark/a-1.jar\n{right}  s3proxy/b-1.jar\n")
    folder = tmp_path / "jars" / "spark"
    folder.mkdir(parents=True)
    (folder / "a-1.jar").write_bytes(b"right")
    return tmp_path


def test_cache_is_right_when_it_holds_what_the_lock_says(cache: Path) -> None:
    assert jar_problems(["spark"], cache=cache, lock=cache / "lock") == []


def test_missing_wrong_and_surplus_jars_are_named(cache: Path) -> None:
    (cache / "jars" / "spark" / "a-1.jar").write_bytes(b"wrong")
    (cache / "jars" / "spark" / "c-1.jar").write_bytes(b"")
    assert jar_problems(cache=cache, lock=cache / "lock") == [
        "spark/c-1.jar is not in jars.lock",
        "spark/a-1.jar has another content than jars.lock says",
        "s3proxy/b-1.jar is missing",
    ]


def test_lock_of_the_project_has_hashes_and_no_address() -> None:
    lines = LOCK.read_text().splitlines()
    assert len(lines) > 100
    assert all(len(line.split("  ")[0]) == 64 and "://" not in line for line in lines)
    assert any("delta-spark" in line for line in lines)
