"""Lines of a text file, plain, gzip or zstd; runs in a Python worker, no Spark.

What can be read before a damage is given, then the damage itself, without a line number.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from shardaudit.adapters.files.unpack import CHUNK_BYTES, DamageError, Readable, text

MAX_LINE_BYTES = 8 * 2**20
RAW_BYTES = 4096

_BOM = b"\xef\xbb\xbf"


class Lines(NamedTuple):
    """Lines that are not blank, and their numbers from 1.

    `fault` says why the one line, or with the number None the rest of the file, cannot be used;
    of it there is but the beginning.
    """

    numbers: Sequence[int | None]
    texts: Sequence[bytes]
    fault: str | None = None


def line_groups(file: Readable, path: str) -> Iterator[Lines]:
    """The lines of an open file in their order, some thousands at a time."""
    lines = _Cutter()
    try:
        for chunk in text(file, path):
            yield from lines.take(chunk)
        yield from lines.finish()
    except DamageError as damage:
        yield from lines.damage(str(damage))


class _Cutter:
    """Cuts chunks into lines: carries the line that has not ended and the line count along."""

    def __init__(self) -> None:
        self._count = 0
        self._ended: list[bytes] = []
        self._ended_bytes = 0
        self._open: list[bytes] = []  # of a line that is too long, but the beginning
        self._open_bytes = 0

    def take(self, chunk: bytes) -> Iterator[Lines]:
        """Cuts what is at most CHUNK_BYTES long."""
        blank, _, rest = chunk.rpartition(b"\n")
        if blank.isspace() and not self._open_bytes:  # a file of blanks is millions of lines
            yield from self._group()
            self._count += blank.count(b"\n") + 1
            chunk = rest
        first, *others = chunk.split(b"\n")
        self._go_on(first)
        if others:
            yield from self._end()
            *whole, last = others
            if max(map(len, whole), default=0) <= MAX_LINE_BYTES:
                self._ended += whole
            else:
                for line in whole:
                    self._go_on(line)
                    yield from self._end()
            self._go_on(last)
        self._ended_bytes += len(chunk)
        if self._ended_bytes >= CHUNK_BYTES:
            yield from self._group()

    def finish(self) -> Iterator[Lines]:
        if self._open_bytes:
            yield from self._end()
        yield from self._group()

    def damage(self, reason: str) -> Iterator[Lines]:
        yield from self._group()
        yield Lines([None], [b"".join(self._open)[:RAW_BYTES]], reason)

    def _go_on(self, part: bytes) -> None:
        self._open.append(part)
        self._open_bytes += len(part)
        if self._open_bytes > MAX_LINE_BYTES:
            self._open = [b"".join(self._open)[:RAW_BYTES]]

    def _end(self) -> Iterator[Lines]:
        line, size_bytes = b"".join(self._open), self._open_bytes
        self._open, self._open_bytes = [], 0
        if size_bytes <= MAX_LINE_BYTES:
            self._ended.append(line)
            return
        yield from self._group()
        self._count += 1
        yield Lines([self._count], [line], f"the line is longer than {MAX_LINE_BYTES} bytes")

    def _group(self) -> Iterator[Lines]:
        lines, self._ended, self._ended_bytes = self._ended, [], 0
        if not lines:
            return
        if self._count == 0:
            lines[0] = lines[0].removeprefix(_BOM)
        numbers = range(self._count + 1, self._count + 1 + len(lines))
        self._count += len(lines)
        if all(map(bytes.strip, lines)):
            yield Lines(numbers, lines)
            return
        kept = [(number, line) for number, line in zip(numbers, lines, strict=True) if line.strip()]
        yield Lines([number for number, _ in kept], [line for _, line in kept])
