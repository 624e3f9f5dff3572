from datetime import timedelta
from pathlib import Path

import pytest

from shardaudit.adapters.files.consumer_positions import read_position_files
from shardaudit.adapters.files.files import S3Access
from tests.builders import NOW, Line, sequence, write_lines

NO_S3 = S3Access()


def line(shard: str, number: int, *, minutes_ago: int) -> dict[str, object]:
    at = NOW - timedelta(minutes=minutes_ago)
    return {
        "shard_id": shard,
        "sequence_number": sequence(number),
        "observed_at": at.isoformat(),
    }


def test_the_newest_line_of_each_shard_counts_as_of_a_time(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl", [line("b", 5, minutes_ago=9), line("a", 7, minutes_ago=1)])
    write_lines(
        tmp_path / "b.jsonl.gz", [line("a", 6, minutes_ago=5), line("b", 9, minutes_ago=-1)]
    )
    found = read_position_files(str(tmp_path), NO_S3, as_of=NOW)
    assert [(p.shard_id, p.checkpoint) for p in found] == [("a", sequence(7)), ("b", sequence(5))]
    assert found[0].reported_at == NOW - timedelta(minutes=1)


def test_a_line_that_cannot_be_used_is_told_and_takes_no_other_with_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    good = line("a", 7, minutes_ago=1)
    bad: list[Line | str] = [
        "{",
        "[]",
        good | {"shard_id": 5},
        good | {"sequence_number": "0x12"},
        good | {"observed_at": "2026-11-20T12:00:00"},
        good | {"observed_at": None},
    ]
    write_lines(tmp_path / "a.jsonl", [*bad, good])
    (found,) = read_position_files(str(tmp_path), NO_S3, as_of=NOW)
    assert found.checkpoint == sequence(7)
    assert f"{tmp_path}/a.jsonl:4: sequence_number: found '0x12'" in caplog.text
    assert "1 lines more" in caplog.text
