"""Trace files with bytes turned over, many at once, through a whole `ingest` as it is started.

An oracle opens each file with Python's own libraries: what that cannot open must be named, what it
can must be found, but for the lines that are others now.
"""

import gzip
import io
import json
import os
import random
import subprocess
import sys
import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from deltalake import DeltaTable

from shardaudit.model.exit_code import ExitCode
from tests.builders import sink_row, trace_line, write_parquet
from tests.fuzz.hostile import CASES

FILES, LINES = 30, 24
BATCHES = range(max(1, CASES // 250))
MOST_KIB, RUNS = 2 * 2**20, 3
CONFIG = """\
warehouse = "lake"
engine = "embedded"
[embedded]
shared_machine = true
[streams.events]
stream_name = "events"
retention = "168h"
traces = {{ path = "traces", format = "{format}" }}
sink = {{ path = "sink", format = "parquet" }}
"""
Ids = set[str]


@dataclass(frozen=True, slots=True)
class Damaged:
    """A file as it lies there: the good lines that are still in it; None: it cannot be opened."""

    name: str
    content: bytes
    ids: Ids | None


def turned_over(content: bytes, draw: random.Random) -> bytes:
    """The content with some bytes replaced, taken out or put in, or without its end."""
    changed = bytearray(content)
    # In half of them not at the end, where Parquet says what is where.
    most = draw.choice([len(changed), len(changed) // 3])
    for _ in range(draw.choice([1, 1, 2, 8])):
        at = draw.randrange(most + 1)
        changed[at : at + draw.choice([0, 1, 1, 4, 64])] = draw.randbytes(draw.choice([0, 1, 1, 4]))
    if draw.random() < 0.2:
        del changed[draw.randrange(len(changed) + 1) :]
    return bytes(changed)


def json_file(number: int, draw: random.Random) -> tuple[str, bytes, list[str]]:
    """Its ending, its content, and its lines, one good trace each."""
    lines = [json.dumps(good(number, line)) for line in range(LINES)]
    text = "".join(f"{line}\n" for line in lines).encode()
    ending = draw.choice(["jsonl", "jsonl.gz", "jsonl.zst"])
    match ending:
        case "jsonl.gz":
            text = gzip.compress(text, mtime=0)
        case "jsonl.zst":
            text = zstandard.ZstdCompressor(write_checksum=True).compress(text)
    return ending, text, lines


def good(number: int, line: int) -> dict[str, object]:
    """A trace that no other file has."""
    return {**trace_line(number * LINES + line), "message_id": f"file{number:03d}-{line}"}


def json_ids(content: bytes, lines: list[str]) -> Ids | None:
    """The ids of the lines that are as they were; None: what is packed is damaged."""
    try:
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
        elif content[:4] == b"\x28\xb5\x2f\xfd":
            content = zstandard.ZstdDecompressor().stream_reader(content).read()
    except (OSError, EOFError, zstandard.ZstdError, zlib.error):
        return None
    found = set(content.split(b"\n"))
    return {json.loads(line)["message_id"] for line in lines if line.encode() in found}


def parquet_file(number: int, draw: random.Random) -> tuple[bytes, list[dict[str, object]]]:
    """Its content and its rows."""
    rows = [good(number, line) for line in range(LINES)]
    content = io.BytesIO()
    pq.write_table(
        pa.Table.from_pylist(rows),
        content,
        compression=draw.choice(["none", "snappy", "zstd", "gzip"]),
        use_dictionary=draw.random() < 0.5,
        row_group_size=draw.choice([9, LINES]),
        data_page_version=draw.choice(["1.0", "2.0"]),
    )
    return content.getvalue(), rows


def parquet_ids(content: bytes, rows: list[dict[str, object]]) -> Ids | None:
    """The ids of the rows that are as they were; None: the file is damaged."""
    try:
        table = pq.read_table(io.BytesIO(content))
        table.validate(full=True)
        found = table.to_pylist()
    except (OSError, pa.ArrowException, UnicodeDecodeError, ValueError, OverflowError):
        return None
    return {str(row["message_id"]) for row in rows if found.count(row) == 1}


def some_files(kind: str, seed: int) -> list[Damaged]:
    """A third of them sound."""
    draw = random.Random(f"{kind} {seed}")  # noqa: S311 - a test
    made: list[Damaged] = []
    for number in range(FILES):
        sound = number % 3 == 0
        if kind == "json":
            ending, content, lines = json_file(number, draw)
            content = content if sound else turned_over(content, draw)
            made.append(Damaged(f"{number:03d}.{ending}", content, json_ids(content, lines)))
        else:
            content, rows = parquet_file(number, draw)
            content = content if sound else turned_over(content, draw)
            made.append(Damaged(f"{number:03d}.parquet", content, parquet_ids(content, rows)))
        assert not sound or (made[-1].ids is not None and len(made[-1].ids) == LINES)
    return made


def ingested(folder: Path) -> tuple[int, int, str]:
    """The exit code of an ingest, its memory at most in KiB, and what it said."""
    words = ["--config", str(folder / "shardaudit.toml"), "ingest", "--stream=events"]
    with (folder / "said.txt").open("w+b") as said:
        begun = subprocess.Popen(
            [sys.executable, "-m", "shardaudit.cli.main", *words], stdout=said, stderr=said
        )
        _, status, used = os.wait4(begun.pid, 0)
        begun.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        return begun.returncode, used.ru_maxrss, said.read().decode(errors="replace")


def found_ids(folder: Path) -> Counter[str]:
    """How often the warehouse has which message, whether as a row or in the copy of a file."""
    traces = DeltaTable(str(folder / "lake" / "traces")).to_pyarrow_table()
    found = Counter(traces.filter(traces["counted"])["message_id"].to_pylist())
    for copy in (folder / "lake" / "kept_files").rglob("*.parquet"):
        found.update(pq.read_table(copy)["message_id"].to_pylist())
    return found


@pytest.mark.parametrize("kind", ["json", "parquet"])
@pytest.mark.parametrize("seed", BATCHES)
def test_an_ingest_names_what_is_damaged_and_takes_the_rest(
    tmp_path: Path, kind: str, seed: int
) -> None:
    files = some_files(kind, seed)
    (tmp_path / "traces").mkdir()
    for file in files:
        (tmp_path / "traces" / file.name).write_bytes(file.content)
    write_parquet(tmp_path / "sink" / "a.parquet", [sink_row(0)])
    (tmp_path / "shardaudit.toml").write_text(CONFIG.format(format=kind))
    for _ in range(RUNS):
        code, used_kib, said = ingested(tmp_path)
        assert code in {ExitCode.DONE, ExitCode.RETRY}, said[-2000:]
        assert "Traceback" not in said
        assert used_kib < MOST_KIB
        if code == ExitCode.DONE:
            break
    assert code == ExitCode.DONE, said[-2000:]
    refused = DeltaTable(str(tmp_path / "lake" / "quarantine")).to_pyarrow_table()
    named = {Path(path).name for path in refused["file"].to_pylist()}
    assert {file.name for file in files if file.ids is None} <= named
    ids, wanted = found_ids(tmp_path), set[str]().union(*(file.ids or () for file in files))
    assert {one: ids[one] for one in wanted if ids[one] != 1} == {}
