"""Rows and files of inputs with sensible defaults: a test shows only the fields that matter."""

import gzip
import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

T0 = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
NOW = T0 + timedelta(hours=2)
SHARD = "shardId-000000000000"

Value = object
Line = Mapping[str, Value]


def shard(number: int) -> str:
    """A shard's name as Kinesis writes it."""
    return f"shardId-{number:012d}"


def sequence(number: int, digits: int = 56) -> str:
    """A sequence number of that many digits which grows with the number."""
    return f"4965{number:0{digits - 4}d}"


def trace_line(number: int = 0, **fields: Value) -> dict[str, Value]:
    """The trace of message m<number>, sent <number> seconds after T0."""
    line: dict[str, Value] = {
        "message_id": f"m{number}",
        "shard_id": SHARD,
        "sequence_number": sequence(number),
        "sent_at": (T0 + timedelta(seconds=number)).isoformat(),
    }
    return line | fields


def sink_row(number: int = 0, **fields: Value) -> dict[str, Value]:
    """The delivery of message m<number>: landed 30 s after it was sent."""
    sent_at = T0 + timedelta(seconds=number)
    row: dict[str, Value] = {
        "message_id": f"m{number}",
        "shard_id": SHARD,
        "sequence_number": sequence(number),
        "sent_at": sent_at,
        "landed_at": sent_at + timedelta(seconds=30),
    }
    return row | fields


def noise(number: int) -> str:
    """Text that no compression makes small."""
    return hashlib.sha256(str(number).encode()).hexdigest()


SINK_DDL = (
    "message_id string, shard_id string, sequence_number string, sent_at timestamp, "
    "landed_at timestamp"
)


def jsonl(lines: Iterable[Line | str]) -> bytes:
    """A JSON Lines file; a text stands for a line that is written as it is."""
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    return "".join(f"{text}\n" for text in texts).encode()


def write_lines(path: Path, lines: Iterable[Line | str]) -> Path:
    """A trace file, packed as its name's ending says."""
    content = jsonl(lines)
    match path.suffix:
        case ".gz":
            content = gzip.compress(content, mtime=0)
        case ".zst":
            content = zstandard.compress(content)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def unpacked_lines(content: bytes) -> list[bytes]:
    """The lines of a trace log's file, of gzip or zstd, which must be whole."""
    if content.startswith(b"\x1f\x8b"):
        return gzip.decompress(content).splitlines()
    unpacking = zstandard.ZstdDecompressor().decompressobj()
    lines = unpacking.decompress(content).splitlines()
    assert unpacking.eof, "the zstd file breaks off"
    return lines


def write_parquet(path: Path, rows: Iterable[Line], *, rows_per_group: int = 1000) -> Path:
    """A Parquet file of the rows; Arrow chooses the types."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(rows)), path, row_group_size=rows_per_group)
    return path


def cut_off(path: Path, *, share: float = 0.5) -> Path:
    """The file without its end."""
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    return path


def spoil(path: Path, *, at: float, length: int = 64) -> Path:
    """The file with some bytes turned over, at that share of its length."""
    content = bytearray(path.read_bytes())
    start = int(len(content) * at)
    for i in range(start, min(start + length, len(content))):
        content[i] ^= 0xFF
    path.write_bytes(bytes(content))
    return path
