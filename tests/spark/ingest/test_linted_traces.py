"""What the ingest would refuse of somebody's trace files, by file and line."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from shardaudit.adapters.files.files import S3Access
from shardaudit.ingest.linted_traces import LintReport, linted_traces
from shardaudit.model.config.settings import Stream
from shardaudit.model.errors import ConfigError
from tests.builders import NOW, Line, cut_off, noise, trace_line, write_lines
from tests.spark.lake import Lake

BAD: list[Line | str] = [
    trace_line(0, stream="somebody's"),
    "no json",
    trace_line(1, sequence_number=4959),
    '{"gap": 3, "session": "s", "session_seq": 7}',
    trace_line(2, sent_at="2026-11-24T12:00:00"),
    trace_line(3, parent_ids=["m2", "m3"]),
    trace_line(4, location="router", event="sent"),
    trace_line(5, location="router", event="arrived"),
    trace_line(6, event="whatever a producer says"),
    trace_line(7, location="router", event="left_out"),
]
FAULTS = [
    "bad.jsonl:2: the line is not JSON",
    "bad.jsonl:3: sequence_number is not a text: as a JSON number it may have lost digits",
    "bad.jsonl:5: sent_at is not an ISO 8601 time with a zone, nor epoch milliseconds",
    "bad.jsonl:6: parent_ids names the message itself",
    "bad.jsonl:7: the trace is of another location than producer",
    "bad.jsonl:8: event is none of received, sent and left_out",
    "bad.jsonl:10: the trace is of another location than producer",
]


def lint(
    spark: SparkSession, *files: Path, stream: tuple[str, Stream] | None = None
) -> tuple[LintReport, list[str]]:
    paths = [str(file) for file in files]
    report = linted_traces(spark, paths, S3Access(), stream=stream, now=NOW)
    return report, [str(replace(f, file=Path(f.file).name)) for f in report.faults]


def test_faults_are_named_by_file_and_line(spark: SparkSession, tmp_path: Path) -> None:
    sound = write_lines(tmp_path / "sound.jsonl.gz", [trace_line(number) for number in range(9)])
    torn = cut_off(
        write_lines(
            tmp_path / "a-torn.jsonl.gz",
            [trace_line(n, attributes={"n": noise(n)}) for n in range(2000)],
        )
    )
    bad = write_lines(tmp_path / "bad.jsonl", BAD)
    report, faults = lint(spark, bad, sound, torn, bad)
    assert faults == [*FAULTS, "a-torn.jsonl.gz: the gzip file breaks off"]
    assert (report.files, report.gaps, report.faulty) == (3, 1, 8)
    assert 9 + 2 < report.traces < 2000 + 11


def test_names_and_stream_are_those_of_the_configuration(lake: Lake) -> None:
    lake.trace_columns = {"message_id": "id"}
    lines = [trace_line(0), trace_line(1, stream="others"), trace_line(2)]
    path = lake.log("a.jsonl", [{"id": line.pop("message_id"), **line} for line in lines])
    _, faults = lint(lake.spark, path, stream=("events", lake.stream))
    assert faults == ["a.jsonl:2: the trace is of another stream than events or kinesis-events"]
    _, faults = lint(lake.spark, path)
    assert faults == [f"a.jsonl:{line}: message_id is missing" for line in (1, 2, 3)]


def test_file_that_no_ingest_reads_is_a_fault(spark: SparkSession, tmp_path: Path) -> None:
    sound = [trace_line(0), trace_line(1)]
    files = [write_lines(tmp_path / name, sound) for name in ("_a.jsonl", ".b.jsonl", "c.jsonl")]
    report, faults = lint(spark, *files)
    hidden = "no ingest reads it: its name, or that of a folder, begins with . or _"
    assert faults == [f"_a.jsonl: {hidden}", f".b.jsonl: {hidden}"]
    assert (report.traces, report.faulty) == (6, 2)


def test_file_below_a_hidden_folder_of_the_log_is_a_fault(lake: Lake) -> None:
    folder = Path(lake.stream.traces.path)
    names = ("_tmp/a.jsonl", ".x/y/b.jsonl", "_day=1/c.jsonl", "d.jsonl")
    files = []
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        files.append(write_lines(folder / name, [trace_line(0)]))
    _, faults = lint(lake.spark, *files, stream=("events", lake.stream))
    assert [fault.partition(":")[0] for fault in faults] == ["a.jsonl", "b.jsonl"]
    assert lint(lake.spark, *files)[1] == []  # nobody says where the log begins


def test_numbers_that_lack_between_those_of_a_file_are_a_fault(
    spark: SparkSession, tmp_path: Path
) -> None:
    def numbered(*numbers: int) -> list[Line | str]:
        return [trace_line(n, session="s", session_seq=n) for n in numbers]

    gap = '{"gap": 2, "session": "s", "session_seq": 3}'
    holes = write_lines(tmp_path / "a.jsonl", [*numbered(0, 1, 2), gap, *numbered(5, 9, 11)])
    others = write_lines(tmp_path / "b.jsonl", numbered(20, 10))
    lack = "a.jsonl: session s: no line of the given files has session_seq {}, nor tells a gap"
    report, faults = lint(spark, holes)
    assert faults == [lack.format("6 to 8"), lack.format("10 to 10")]
    assert (report.traces, report.gaps, report.faulty) == (6, 1, 2)
    # What another file has lacks in none; what lies between two files nobody knows.
    _, faults = lint(spark, holes, others)
    assert faults == [lack.format("6 to 8"), lack.replace("a.jsonl", "b.jsonl").format("12 to 19")]


@pytest.mark.parametrize(
    ("rate", "is_share"),
    [("1", True), ("0.01", True), ("0", False), ("1.5", False), ("-1", False), ('"NaN"', False)],
)
def test_sample_rate_that_is_no_share_is_a_fault(
    spark: SparkSession, tmp_path: Path, rate: str, *, is_share: bool
) -> None:
    line = json.dumps(trace_line(0))[:-1] + f', "sample_rate": {rate}}}'
    _, faults = lint(spark, write_lines(tmp_path / "a.jsonl", [line]))
    said = ["a.jsonl:1: sample_rate is not above 0 and at most 1"]
    assert faults == ([] if is_share else said)


def test_file_that_is_not_there_is_an_argument(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a file that is there"):
        lint(spark, tmp_path / "none.jsonl")
