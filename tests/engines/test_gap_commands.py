"""A shard that is silent for an hour: its gaps, as people list, read and accept them."""

import json
import subprocess
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.engines.commands import STREAM, of, run, without_java

HOUR = ["--from", "2026-11-01T00:00:00Z", "--to", "2026-11-01T01:00:00Z"]


@dataclass
class Silent:
    """A lake in which nothing of one shard landed for an hour, audited."""

    folder: Path
    environment: dict[str, str]

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return run(of(self.folder, *words), self.environment)

    def said(self, *words: str) -> Any:  # Any: an answer in JSON
        done = self.run(*words, "--json")
        assert done.returncode == 0, done.stderr[-2000:]
        return json.loads(done.stdout)

    @cached_property
    def listed(self) -> Any:  # Any: an answer in JSON
        """What was listed before anybody accepted a gap."""
        return self.said("findings", "list", *STREAM, "--limit", "100")

    @cached_property
    def lost(self) -> list[dict[str, Any]]:  # Any: rows of a file
        rows: list[dict[str, Any]] = pq.read_table(self.folder / "planted.parquet").to_pylist()
        return rows


@pytest.fixture(scope="module")
def silent(tmp_path_factory: pytest.TempPathFactory) -> Silent:
    folder = tmp_path_factory.mktemp("gaps")
    silent = Silent(folder / "silent", without_java(folder))
    size = ["--messages", "150000", "--shards", "2", "--hours", "1"]
    words = ["--out", str(silent.folder), *size, "--fault", "silent_shard=1"]
    assert run(["simulate", "files", *words], silent.environment).returncode == 0
    audit = silent.said("audit", *STREAM, *HOUR, "--as-of", "2026-11-01T01:30:00Z")
    assert audit["counts"]["missing"] == len(silent.lost)
    return silent


def minute_of(gap: dict[str, str]) -> tuple[datetime, datetime]:
    start = datetime.fromisoformat(gap["bucket_start"])
    return start, start + timedelta(minutes=1)


def test_each_minute_of_which_thousands_are_lost_is_listed_as_a_gap(silent: Silent) -> None:
    gaps = silent.listed["gaps"]
    by_minute = Counter(row["sent_at"].replace(second=0, microsecond=0) for row in silent.lost)
    assert {datetime.fromisoformat(gap["bucket_start"]): gap["count"] for gap in gaps} == {
        minute: count for minute, count in by_minute.items() if count >= 1_000
    }
    assert silent.listed["total"] + sum(gap["count"] for gap in gaps) == len(silent.lost)


def test_a_gap_stands_in_the_report_with_its_count(silent: Silent) -> None:
    page = silent.folder / "silent.html"
    assert silent.run("report", *STREAM, "--out", str(page)).returncode == 0
    assert f'<td class="right">{silent.listed["gaps"][0]["count"]:,}</td><td>stuck</td>' in (
        page.read_text()
    )


def test_the_messages_of_a_gap_are_read_from_the_traces(silent: Silent) -> None:
    gap = silent.listed["gaps"][0]
    start, end = minute_of(gap)
    of_gap = ["findings", "list", *STREAM, "--gap", gap["shard_id"], gap["bucket_start"]]
    said = silent.said(*of_gap, "--limit", "100000")
    read = {row["message_id"] for row in said["messages"]}
    assert read == {row["message_id"] for row in silent.lost if start <= row["sent_at"] < end}
    assert said["total"] == len(read)
    shown = silent.run(*of_gap, "--limit", "3").stdout
    assert f"these are the first 3 of {len(read):,}" in shown


def test_an_accepted_gap_is_listed_as_accepted(silent: Silent) -> None:
    gap = silent.listed["gaps"][0]
    start, end = minute_of(gap)
    its = ["--gaps", "--from", start.isoformat(), "--to", end.isoformat(), "--reason", "known"]
    assert silent.said("findings", "accept", *STREAM, *its)["accepted"] == 1
    [accepted] = silent.said("findings", "list", *STREAM, "--state", "accepted")["gaps"]
    assert accepted["bucket_start"] == gap["bucket_start"]
