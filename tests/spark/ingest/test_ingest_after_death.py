"""A file of which the process dies: the next run names it, takes the others, and goes on."""

import json
import os
import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from shardaudit.model.source import DEADLY
from tests.faults.forks import Forks

START = datetime(2026, 11, 20, tzinfo=UTC)
# In the place of a defect of Arrow's: whoever reads a file with such an id dies.
_DEFECT = """
import os
import pyarrow.parquet as pq
class ParquetFile(pq.ParquetFile):
    def iter_batches(self, *args, **options):
        if self._has("deadly rows"):
            os.abort()
        return super().iter_batches(*args, **options)
    def _has(self, message_id):
        return self.metadata.row_group(0).column(0).statistics.max == message_id
pq.ParquetFile = ParquetFile
"""


def make_deadly(file: Path) -> None:
    """A column is said to be required, its sizes are those of an optional one.

    Arrow 26 ends the process where it looks at what the footer says of it (found by fuzzing).
    """
    optional, required = b"\x25\x02\x18\x0amessage_id", b"\x25\x00\x18\x0amessage_id"
    content = file.read_bytes()
    assert content.count(optional) == 1
    file.write_bytes(content.replace(optional, required))


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is imported first by whoever looks there."""
    folder = tmp_path_factory.mktemp("broken")
    (folder / "sitecustomize.py").write_text(_DEFECT)
    return folder


@pytest.fixture(scope="module")
def forks(broken: Path) -> Iterator[Forks]:
    """Commands of a process that has the defect."""
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(broken)
            forks = stack.enter_context(Forks())
        yield forks


@pytest.fixture
def project(tmp_path: Path, broken: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of one stream. What its commands start, to look at a file, has the defect as well."""
    monkeypatch.setenv("PYTHONPATH", str(broken), prepend=os.pathsep)
    for folder in ("traces", "sink"):
        (tmp_path / folder).mkdir()
    return tmp_path


def configure(project: Path, sink_format: str) -> None:
    (project / "shardaudit.toml").write_text(
        f"""
        warehouse = "warehouse"
        embedded = {{ shared_machine = true }}
        [streams.events]
        stream_name = "events"
        retention = "168h"
        [streams.events.traces]
        path = "traces"
        format = "parquet"
        [streams.events.sink]
        path = "sink"
        format = "{sink_format}"
        """
    )


def rows(number: int, **more: object) -> pa.Table:
    at = pa.array([START + timedelta(seconds=number)], pa.timestamp("us", "UTC"))
    texts = {
        "message_id": f"m{number}",
        "shard_id": "shardId-000000000000",
        "sequence_number": str(1000 + number),
    }
    columns = {name: pa.array([text]) for name, text in (texts | more).items()}
    return pa.table(columns | {"sent_at": at, "landed_at": at})


def ingest(forks: Forks, project: Path, *, ends: int = 0) -> str:
    """What it prints; it ends with that exit code."""
    return run(forks, project, "ingest", "--stream=events", "--json", ends=ends)


def run(forks: Forks, project: Path, *words: str, ends: int = 0) -> str:
    """What the command prints, which ends with that exit code."""
    line = ["--engine", "embedded", "--config", str(project / "shardaudit.toml"), *words]
    done = forks.run(line, dict(os.environ), said=project / "said")
    assert done.returncode == ends, done.stderr
    return done.stdout


def stored(project: Path, table: str) -> list[dict[str, object]]:
    found: list[dict[str, object]]
    found = DeltaTable(project / "warehouse" / table).to_pyarrow_table().to_pylist()
    return found


def summed(project: Path) -> dict[str, int]:
    """By side how many ids or rows the ledger counts."""
    found: dict[str, int] = {"traces": 0, "sink": 0}
    for row in stored(project, "fingerprints"):
        found[str(row["side"])] += int(str(row["n"]))
    return found


def test_files_that_kill_the_process_are_named_by_the_next_run_and_not_read_again(
    forks: Forks, project: Path
) -> None:
    """Two among the traces, one in a folder of Parquet."""
    configure(project, "parquet")
    for number, bad in ((0, {}), (1, {"message_id": "deadly rows"}), (2, {})):
        # Read by Arrow and not in place: an engine's frames have no such attributes.
        traced = rows(number, attributes={"of": "a row"}, **bad)
        pq.write_table(traced, project / "traces" / f"{number}.parquet")
    for number in range(3):
        pq.write_table(rows(number), project / "sink" / f"{number}.parquet")
    for folder in ("traces", "sink"):
        pq.write_table(rows(9), project / folder / "9.parquet")
        make_deadly(project / folder / "9.parquet")
    ingest(forks, project, ends=-signal.SIGABRT)

    ingest(forks, project)
    refused = {str(row["file"]): str(row["reason"]) for row in stored(project, "quarantine")}
    names = {f"{Path(file).parent.name}/{Path(file).name}" for file in refused}
    assert names == {"traces/1.parquet", "traces/9.parquet", "sink/9.parquet"}
    assert {reason.partition("whoever")[0] for reason in refused.values()} == {DEADLY}
    assert summed(project) == {"traces": 2, "sink": 3}

    for folder in ("traces", "sink"):
        pq.write_table(rows(3), project / folder / "3.parquet")
    assert json.loads(ingest(forks, project))["quarantined"] == 0
    assert len(stored(project, "quarantine")) == len(refused)
    assert summed(project) == {"traces": 3, "sink": 4}


def test_a_file_of_a_delta_sink_is_named_when_the_process_dies_in_the_middle_of_a_batch(
    forks: Forks, project: Path
) -> None:
    configure(project, "delta")
    write_deltalake(project / "sink", rows(0))
    ingest(forks, project)
    before = set((project / "sink").glob("*.parquet"))
    write_deltalake(project / "sink", rows(1), mode="append")
    [deadly] = set((project / "sink").glob("*.parquet")) - before
    pq.write_table(rows(1), deadly)  # delta-rs says nothing of sizes
    make_deadly(deadly)
    [log] = (project / "sink" / "_delta_log").glob("*1.json")
    size = re.sub(r'"size":\d+', f'"size":{deadly.stat().st_size}', log.read_text())
    log.write_text(size)
    write_deltalake(project / "sink", rows(2), mode="append")
    ingest(forks, project, ends=-signal.SIGABRT)
    run(forks, project, "maintain")  # it takes the lock over, and gives it back
    for number in (3, 4):  # the second finishes the batch and reads what is new, the third as well
        ingest(forks, project)
        [refused] = stored(project, "quarantine")
        assert str(refused["reason"]) == f"{DEADLY}whoever reads it dies of SIGABRT"
        assert summed(project)["sink"] == number - 1
        write_deltalake(project / "sink", rows(number), mode="append")
