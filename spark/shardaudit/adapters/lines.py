"""Lines of a text file, plain, gzip or zstd, as Arrow batches; runs in a Python worker, no Spark.

What can be read before a damage is given, then the damage itself as a row without a line number.
"""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from shardaudit.adapters.unpack import CHUNK_BYTES, DamageError, Readable, text

MAX_LINE_BYTES = 8 * 2**20
RAW_BYTES = 4096

SCHEMA = pa.schema(
    [("file", pa.string()), ("line", pa.int64()), ("raw", pa.string()), ("fault", pa.string())]
)

_BOM = b"\xef\xbb\xbf"


def line_batches(file: Readable, path: str) -> Iterator[pa.RecordBatch]:
    """The lines of an open file that are not blank, numbered from 1, in batches of SCHEMA.

    `fault` says why a line, or with `line` NULL the rest of the file, cannot be used.
    """
    lines = _Lines(path)
    try:
        for chunk in text(file, path):
            yield from lines.take(chunk)
        yield from lines.finish()
    except DamageError as damage:
        yield from lines.damage(str(damage))


def lost_file(path: str, reason: str) -> pa.RecordBatch:
    """The row that says that nothing of a file can be had."""
    values = {"file": path, "line": None, "raw": None, "fault": reason}
    return pa.RecordBatch.from_pylist([values], schema=SCHEMA)


class _Lines:
    """Cuts chunks into lines: carries the unfinished last line and the line count along."""

    def __init__(self, path: str) -> None:
        self._path, self._count = path, 0
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._too_long = b""  # how a line begins that is too long to be kept until its end

    def take(self, chunk: bytes) -> Iterator[pa.RecordBatch]:
        self._pending.append(chunk)
        self._pending_bytes += len(chunk)
        if self._pending_bytes >= CHUNK_BYTES:
            yield from self._ended()

    def finish(self) -> Iterator[pa.RecordBatch]:
        yield from self._ended()
        if self._too_long:
            yield self._long_line()
        elif self._pending_bytes:
            yield from self._batches(b"".join(self._pending))

    def damage(self, reason: str) -> Iterator[pa.RecordBatch]:
        yield from self._ended()
        yield self._row(None, self._too_long or b"".join(self._pending), reason)

    def _ended(self) -> Iterator[pa.RecordBatch]:
        """The lines that have ended by now."""
        body, newline, rest = b"".join(self._pending).rpartition(b"\n")
        if newline and self._too_long:
            yield self._long_line()
            _, newline, body = body.partition(b"\n")
        if newline:
            yield from self._batches(body)
        if not self._too_long and len(rest) > MAX_LINE_BYTES:
            self._too_long = rest[:RAW_BYTES]
        self._pending = [] if self._too_long else [rest]
        self._pending_bytes = sum(map(len, self._pending))

    def _long_line(self) -> pa.RecordBatch:
        self._count += 1
        begin, self._too_long = self._too_long, b""
        return self._row(self._count, begin, f"the line is longer than {MAX_LINE_BYTES} bytes")

    def _batches(self, body: bytes) -> Iterator[pa.RecordBatch]:
        if self._count == 0:
            body = body.removeprefix(_BOM)
        packed = pc.split_pattern(pa.array([body], pa.binary()), b"\n").flatten()
        first = self._count + 1
        self._count += len(packed)
        numbers = pa.array(range(first, self._count + 1), pa.int64())
        try:
            lines = packed.cast(pa.string())
        except pa.ArrowInvalid:  # somewhere in it are bytes that are not UTF-8: look line by line
            yield from self._batch_with_bad_bytes(numbers, packed)
            return
        faults = pa.nulls(len(lines), pa.string())
        yield self._without_blanks(numbers, lines, faults)

    def _batch_with_bad_bytes(
        self, numbers: pa.Array, packed: pa.Array
    ) -> Iterator[pa.RecordBatch]:
        texts: list[str] = []
        faults: list[str | None] = []
        for line in packed.to_pylist():
            try:
                texts.append(line.decode())
                faults.append(None)
            except UnicodeDecodeError:
                texts.append(_shown(line))
                faults.append("the line is not UTF-8")
        yield self._without_blanks(
            numbers, pa.array(texts, pa.string()), pa.array(faults, pa.string())
        )

    def _without_blanks(
        self, numbers: pa.Array, lines: pa.Array, faults: pa.Array
    ) -> pa.RecordBatch:
        files = pa.repeat(pa.scalar(self._path, pa.string()), len(lines))
        batch = pa.RecordBatch.from_arrays([files, numbers, lines, faults], schema=SCHEMA)
        return batch.filter(pc.not_equal(pc.ascii_trim_whitespace(lines), ""))

    def _row(self, line: int | None, raw: bytes, fault: str) -> pa.RecordBatch:
        values = {"file": self._path, "line": line, "raw": _shown(raw) or None, "fault": fault}
        return pa.RecordBatch.from_pylist([values], schema=SCHEMA)


def _shown(raw: bytes) -> str:
    return raw[:RAW_BYTES].decode(errors="replace")
