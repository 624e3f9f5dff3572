"""A file of the sink that was ingested breaks later: it is named, and no audit ends for it."""

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from shardaudit.adapters.lake.sink_rows import UnsoundFilesError
from shardaudit.model.config.choices import SinkFormat
from shardaudit.model.errors import LockLostError
from shardaudit.model.verdict import Verdict
from shardaudit.model.window import Window
from shardaudit.store.transitions import Said, accept_time
from shardaudit.store.warehouse import Warehouse
from tests.builders import NOW, T0, cut_off, sequence, spoil
from tests.history import Question, SinkRow, Trace
from tests.spark.ingest.dying import Dying
from tests.spark.lake import Lake
from tests.spark.trial import Published, Trial

MINUTE = timedelta(minutes=1)
DRILL = pytest.mark.drill
SENT = [Trace(f"m{i}", "shard-0", sequence(i), T0 + i * MINUTE) for i in range(4)]
# By what broke: a file without its end, without anything, with other bytes in its pages or footer.
WAYS: dict[str, Callable[[Path], object]] = {
    "cut": cut_off,
    "empty": lambda path: path.write_bytes(b""),
    "pages": lambda path: spoil(path, at=0.02, length=200),
    "footer": lambda path: spoil(path, at=0.99, length=20),
}


def land(trial: Trial, *numbers: int) -> Path:
    """Lands messages, ingests; gives the file that they are in."""
    folder = trial.folder / trial.name / "sink"
    before = set(folder.glob("*.parquet"))
    rows = [
        SinkRow(t.message_id, t.shard_id, t.sequence_number, t.sent_at, t.sent_at + MINUTE)
        for t in (SENT[n] for n in numbers)
    ]
    trial.land(rows)
    trial.ingest()
    [path] = set(folder.glob("*.parquet")) - before
    return path


def verdicts(published: Published) -> list[Verdict]:
    return [
        cell.verdict for _, cell in sorted(published.cells.items(), key=lambda item: item[0][1])
    ]


@pytest.fixture
def trial(warehouse: Warehouse, tmp_path: Path) -> Trial:
    """A message in each of four minutes."""
    trial = Trial(warehouse, tmp_path, Question(T0, T0 + 4 * MINUTE, NOW))
    trial.log(SENT)
    return trial


@pytest.mark.parametrize(
    ("sink_format", "way", "keeps_its_time"),
    [
        (SinkFormat.DELTA, "cut", False),
        *(
            pytest.param(SinkFormat.DELTA, way, False, marks=DRILL)
            for way in ("pages", "empty", "footer")
        ),
        *(pytest.param(SinkFormat.PARQUET, "pages", kept, marks=DRILL) for kept in (False, True)),
        (SinkFormat.PARQUET, "footer", True),
    ],
)
def test_cells_are_inconclusive_when_a_file_breaks_and_heal_when_it_is_back(
    trial: Trial, sink_format: SinkFormat, way: str, keeps_its_time: bool
) -> None:
    trial.sink_format = sink_format
    land(trial, 0)
    path = land(trial, 1, 2)
    land(trial, 3)
    content, was = path.read_bytes(), path.stat()
    WAYS[way](path)
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
    trial.ingest()
    broken = trial.audit()
    assert verdicts(broken) == [Verdict.OK, *3 * [Verdict.INCONCLUSIVE]]
    assert broken.findings == {}
    lake = Lake(trial.warehouse.spark, trial.warehouse, trial.folder)
    [refused] = lake.refused()
    assert (refused.file.rpartition("/")[2], refused.line) == (path.name, None)
    trial.ingest()
    assert verdicts(trial.audit()) == verdicts(broken)

    path.write_bytes(content)  # from a backup
    if keeps_its_time:  # as `cp -p` does
        os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
    trial.ingest()
    assert verdicts(trial.audit()) == 4 * [Verdict.OK]


def test_watermark_passes_when_a_person_says_that_it_may_stay_inconclusive(trial: Trial) -> None:
    land(trial, 0)
    path = land(trial, 1, 2)
    land(trial, 3)
    path.write_bytes(b"")
    trial.ingest()
    assert trial.audit().watermark == T0 + MINUTE
    said = Said("events", Window(T0 + MINUTE, NOW), ("shard-0",), "disk", is_inconclusive=True)
    for _ in range(2):
        accept_time(trial.warehouse, said, by="ann", now=NOW)
    published = trial.audit()
    assert published.watermark == T0 + 4 * MINUTE
    assert verdicts(published) == [Verdict.OK, *3 * [Verdict.INCONCLUSIVE]]


def test_batch_that_was_left_unfinished_is_finished_first(trial: Trial) -> None:
    """A run died before it said that a batch is done; then a file of an earlier one breaks."""
    path = land(trial, 0, 1)
    spark, place = trial.warehouse.spark, str(trial.folder / "warehouse")
    trial.warehouse = Warehouse(spark, place, check=Dying(before=3))  # plan, fingerprints, done
    with pytest.raises(LockLostError):
        land(trial, 2, 3)
    trial.warehouse = Warehouse(spark, place)
    content = path.read_bytes()
    path.write_bytes(b"")
    with pytest.raises(UnsoundFilesError):
        trial.audit()
    trial.ingest()
    assert set(verdicts(trial.audit())) == {Verdict.INCONCLUSIVE}
    path.write_bytes(content)
    trial.ingest()
    assert verdicts(trial.audit()) == 4 * [Verdict.OK]


def test_next_try_helps_when_the_sink_has_done_without_the_file_since(trial: Trial) -> None:
    land(trial, 0, 1)
    path = land(trial, 2, 3)
    trial.remove([SinkRow("m3", "shard-0", sequence(3), SENT[3].sent_at, SENT[3].sent_at + MINUTE)])
    path.unlink()  # as VACUUM does
    with pytest.raises(UnsoundFilesError, match="the file is gone"):
        trial.audit()
    trial.ingest()
    published = trial.audit()
    assert verdicts(published)[:3] == 3 * [Verdict.OK]
    assert published.cells["shard-0", SENT[3].sent_at].sent == 1
    assert trial.damage() == ()
