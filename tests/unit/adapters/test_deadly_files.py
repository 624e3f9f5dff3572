"""Children read files one by one: the file of which one dies is named, the others are not."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from shardaudit.adapters.lake.deadly_files import deadly_among
from shardaudit.model.source import DEADLY, SourceFile


@dataclass(frozen=True)
class Trial:
    """A file whose reading does what its name says."""

    what: str

    @property
    def file(self) -> SourceFile:
        return SourceFile(self.what, 1, 0)

    def read(self, _spark: SparkSession | None) -> None:
        match self.what.partition(" ")[0]:
            case "aborts":
                os.abort()
            case "fills":
                bytearray(2**40)
            case "once":
                file = Path(self.what.partition(" ")[2])
                if not file.exists():
                    file.touch()
                    os.kill(os.getpid(), signal.SIGKILL)
            case "raises":
                raise ValueError("the run itself meets it")


@pytest.mark.slow
def test_what_kills_the_process_is_named_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAIL_RUNTIME__MEMORY_POOL__FAIR__MAX_SIZE", str(2**31))
    names = ["fine", "aborts", "raises", "fills all memory", "fine, too", "aborts again"]
    found = deadly_among([Trial(name) for name in names], with_engine=False)
    assert found.keys() == {"aborts", "fills all memory", "aborts again"}
    assert found["aborts"] == f"{DEADLY}whoever reads it dies of SIGABRT"
    assert found["fills all memory"] == (f"{DEADLY}it takes more memory than there is (3.0 GiB)")


@pytest.mark.slow
def test_a_file_is_no_cause_where_only_one_child_dies(tmp_path: Path) -> None:
    """Of the machine's memory, which another process took."""
    names = ["fine", f"once {tmp_path / 'killed'}", "aborts"]
    found = deadly_among([Trial(name) for name in names], with_engine=False)
    assert found.keys() == {"aborts"}


def test_no_child_is_started_for_no_file() -> None:
    assert deadly_among([], with_engine=True) == {}
