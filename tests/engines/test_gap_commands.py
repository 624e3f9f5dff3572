"""A shard that is silent for an hour: its gaps, as people list, read and accept them."""

import json
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.engines.commands import STREAM, of, run, without_java

HOUR = ["--from", "2026-11-01T00:00:00Z", "--to", "2026-11-01T01:00:00Z"]


def test_a_gap_is_listed_its_messages_are_read_and_it_is_accepted(tmp_path: Path) -> None:
    lake, there = tmp_path / "silent", without_java(tmp_path)
    size = ["--messages", "150000", "--shards", "2", "--hours", "1"]
    silent = ["--out", str(lake), *size, "--fault", "silent_shard=1"]
    assert run(["simulate", "files", *silent], there).returncode == 0

    def said(*words: str) -> Any:  # Any: an answer in JSON
        done = run(of(lake, *words, "--json"), there)
        assert done.returncode == 0, done.stderr[-2000:]
        return json.loads(done.stdout)

    audit = said("audit", *STREAM, *HOUR, "--as-of", "2026-11-01T01:30:00Z")
    listed = said("findings", "list", *STREAM, "--limit", "100")
    lost = pq.read_table(lake / "planted.parquet").to_pylist()
    by_minute = Counter(row["sent_at"].replace(second=0, microsecond=0) for row in lost)
    assert {
        datetime.fromisoformat(gap["bucket_start"]): gap["count"] for gap in listed["gaps"]
    } == {minute: count for minute, count in by_minute.items() if count >= 1_000}
    assert listed["total"] + sum(gap["count"] for gap in listed["gaps"]) == len(lost)
    assert audit["counts"]["missing"] == len(lost)

    gap = listed["gaps"][0]
    page = tmp_path / "silent.html"
    assert run(of(lake, "report", *STREAM, "--out", str(page)), there).returncode == 0
    assert f'<td class="right">{gap["count"]:,}</td><td>stuck</td>' in page.read_text()
    start = datetime.fromisoformat(gap["bucket_start"])
    end = start + timedelta(minutes=1)
    of_gap = ["--gap", gap["shard_id"], gap["bucket_start"], "--limit", "100000"]
    read = {row["message_id"] for row in said("findings", "list", *STREAM, *of_gap)["messages"]}
    assert read == {row["message_id"] for row in lost if start <= row["sent_at"] < end}

    its = ["--gaps", "--from", start.isoformat(), "--to", end.isoformat(), "--reason", "known"]
    assert said("findings", "accept", *STREAM, *its)["accepted"] == 1
    [accepted] = said("findings", "list", *STREAM, "--state", "accepted")["gaps"]
    assert accepted["bucket_start"] == gap["bucket_start"]
