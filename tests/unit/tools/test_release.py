"""What `make dist` leaves: twice the same, and all of it in the list of checksums."""

import hashlib
import zipfile
from pathlib import Path

import pytest

from tools.release import SUMS, release

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a release."""
    folder = tmp_path_factory.mktemp("release") / "dist"
    release(folder)
    return folder


def contents(folder: Path) -> dict[str, str]:
    """The files of a folder with the hashes of their contents."""
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}


@pytest.mark.drill
def test_made_twice_it_is_the_same(made: Path, tmp_path: Path) -> None:
    (tmp_path / "of-before.whl").touch()
    release(tmp_path)
    assert contents(tmp_path) == contents(made)


def test_each_file_is_in_the_list_of_checksums(made: Path) -> None:
    lines = (line.split("  ") for line in (made / SUMS).read_text().splitlines())
    listed = {name: digest for digest, name in lines}
    assert [name.rpartition(".")[2] for name in sorted(listed)] == ["json", "whl", "gz"]
    assert listed | {SUMS: contents(made)[SUMS]} == contents(made)


def test_the_wheel_holds_the_dags_and_no_tools(made: Path) -> None:
    [wheel] = made.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "shardaudit/airflow/dag_definitions/audit_dag.py" in names
    assert {name.partition("/")[0] for name in names} == {
        "shardaudit",
        "shardaudit-0.1.0.dist-info",
    }
