from hashlib import sha256
from pathlib import Path

import pytest

from shardaudit.adapters.engine.jars import (
    LOCK,
    SETS,
    JarsWrongError,
    coordinates,
    fetch_jars,
    jar_problems,
    locked_jars,
)


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


def test_the_lock_says_where_a_repository_has_each_jar() -> None:
    asked = {one for jars in SETS.values() for one in jars.coordinates}
    found = {":".join(coordinates(jar)) for name in SETS for jar in locked_jars(name)}
    assert asked <= found
    assert "com.google.apis:google-api-services-storage:v1-rev20260524-2.0.0" in found


@pytest.mark.slow
def test_a_jar_comes_into_place_once_its_hash_is_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", (tmp_path / "mirror").as_uri())
    jar = tmp_path / "mirror" / "org" / "example" / "a-b_2.13" / "1.0" / "a-b_2.13-1.0.jar"
    jar.parent.mkdir(parents=True)
    jar.write_bytes(b"wrong")
    name = "org.example_a-b_2.13-1.0.jar"
    lock = tmp_path / "lock"
    lock.write_text(f"{sha256(b'right').hexdigest()}  spark/{name}\n")
    placed = tmp_path / "jars" / "spark"
    with pytest.raises(JarsWrongError, match="has another content"):
        fetch_jars("spark", cache=tmp_path, lock=lock)
    assert not placed.exists()
    jar.write_bytes(b"right")
    fetch_jars("spark", cache=tmp_path, lock=lock)
    assert {file.name: file.read_bytes() for file in placed.iterdir()} == {name: b"right"}
