"""Text files as bytes and as lines: plain, gzip, zstd; runs in a Python worker, no Spark.

What can be read before a damage is given, then the damage itself, without a line number.
"""

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import NamedTuple, Protocol

import zstandard

from shardaudit.model.trace_line import NO_OBJECT

_ZSTD_STEP_BYTES = 4 * 2**10

_GZIP = b"\x1f\x8b"
# A frame of content, or one to be passed over, as pzstd puts before each. RFC 8878.
_ZSTD = (b"\x28\xb5\x2f\xfd", *(bytes([kind]) + b"\x2a\x4d\x18" for kind in range(0x50, 0x60)))
_ENDINGS = {".gz": "gzip", ".gzip": "gzip", ".zst": "zstd", ".zstd": "zstd"}
_OTHERS = {
    b"PAR1": "Parquet",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"PK\x03\x04": "zip",
    b"\x04\x22\x4d\x18": "lz4",
    b"\xff\x06\x00\x00sNaPpY": "snappy",
    b"Obj\x01": "Avro",
    b"ORC": "ORC",
}

RAW_BYTES = 4096

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class ReadSizes:
    """How much is read at a time, of plain and of packed files, and the longest line."""

    chunk_bytes: int = 4 * 2**20
    packed_bytes: int = 128 * 2**10
    line_bytes: int = 8 * 2**20


USUAL_SIZES = ReadSizes()


class Readable(Protocol):
    """A file that is open for reading bytes."""

    def read(self, size: int) -> bytes:
        """At most `size` bytes; none at the end."""


class DamageError(Exception):
    """The rest of the file cannot be had. Never leaves the reader."""


class _Unpacker(Protocol):
    """One member of a gzip file, one frame of a zstd file."""

    @property
    def is_finished(self) -> bool:
        """Whether its end was seen."""

    @property
    def unused(self) -> bytes:
        """What came after the end."""

    def unpack(self, packed: bytes) -> Iterator[bytes]:
        """What the bytes unpack to; of corrupt ones, what comes before the damage."""


def text(file: Readable, path: str, sizes: ReadSizes = USUAL_SIZES) -> Iterator[bytes]:
    """The unpacked bytes of a file. What it is, its first bytes say; its name must not disagree."""
    head = file.read(sizes.packed_bytes)
    packed = chain([head], iter(partial(file.read, sizes.packed_bytes), b""))
    if head.startswith(_GZIP):
        yield from _unpacked(packed, partial(_Gzip, sizes.chunk_bytes), "gzip")
    elif head.startswith(_ZSTD):
        yield from _unpacked(packed, partial(_Zstd, sizes.chunk_bytes), "zstd")
    else:
        _refuse_other_kinds(head, path)
        yield head
        while chunk := file.read(sizes.chunk_bytes):
            yield chunk


def _refuse_other_kinds(head: bytes, path: str) -> None:
    for ending, kind in _ENDINGS.items():
        if path.endswith(ending) and head:
            raise DamageError(f"the file is named {ending} but does not begin as {kind} does")
    for magic, kind in _OTHERS.items():
        if head.startswith(magic):
            raise DamageError(f"the file is {kind}; wanted JSON Lines, plain, gzip or zstd")


def _unpacked(
    file: Iterator[bytes], unpacker: Callable[[], _Unpacker], kind: str
) -> Iterator[bytes]:
    """The content of all members (gzip) or frames (zstd), one after the other."""
    member: _Unpacker | None = None
    packed = next(file, b"")
    while packed:
        if member is None:
            packed = packed.lstrip(b"\0")  # tape-like padding between or after members
        if packed:
            member = member or unpacker()
            yield from member.unpack(packed)
            packed = b""
            if member.is_finished:
                packed, member = member.unused, None
        packed = packed or next(file, b"")
    if member is not None:
        raise DamageError(f"the {kind} file breaks off")


class _Gzip:
    def __init__(self, chunk_bytes: int) -> None:
        self._chunk_bytes = chunk_bytes
        self._member = zlib.decompressobj(wbits=31)  # 31: with a gzip header

    @property
    def is_finished(self) -> bool:
        return self._member.eof

    @property
    def unused(self) -> bytes:
        return self._member.unused_data

    def unpack(self, packed: bytes) -> Iterator[bytes]:
        # A thousand times as much may come out as goes in.
        while packed:
            before = self._member.copy()
            try:
                yield self._member.decompress(packed, self._chunk_bytes)
            except zlib.error as error:
                yield from _until_damage(before, packed)
                raise DamageError(f"the gzip file is corrupt: {error}") from error
            packed = self._member.unconsumed_tail


def _parts(unpacked: bytes, size_bytes: int) -> Iterator[bytes]:
    """The same in pieces: of 4 KiB of zstd 128 MiB may come, and its reader gives them at once."""
    for start in range(0, len(unpacked), size_bytes):
        yield unpacked[start : start + size_bytes]


def _until_damage(member: "zlib._Decompress", packed: bytes) -> Iterator[bytes]:
    """Byte by byte, since a call that fails gives nothing of what it had unpacked."""
    for at in range(len(packed)):
        try:
            yield member.decompress(packed[at : at + 1])
        except zlib.error:
            return


class _Zstd:
    def __init__(self, chunk_bytes: int) -> None:
        self._chunk_bytes = chunk_bytes
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._unused = b""

    @property
    def is_finished(self) -> bool:
        return self._frame.eof

    @property
    def unused(self) -> bytes:
        return self._unused

    def unpack(self, packed: bytes) -> Iterator[bytes]:
        # In small steps: a call that fails gives nothing of what it had unpacked.
        for end in range(_ZSTD_STEP_BYTES, len(packed) + _ZSTD_STEP_BYTES, _ZSTD_STEP_BYTES):
            step = packed[end - _ZSTD_STEP_BYTES : end]
            try:
                yield from _parts(self._frame.decompress(step), self._chunk_bytes)
            except zstandard.ZstdError as error:
                raise DamageError(f"the zstd file is corrupt: {error}") from error
            if self._frame.eof:
                self._unused = self._frame.unused_data + packed[end:]
                return


class Lines(NamedTuple):
    """Lines that are not blank, and their numbers from 1.

    `fault` says why the one line, or with the number None the rest of the file, cannot be used;
    of it there is but the beginning.
    """

    numbers: Sequence[int | None]
    texts: Sequence[bytes]
    fault: str | None = None


def line_groups(file: Readable, path: str, sizes: ReadSizes = USUAL_SIZES) -> Iterator[Lines]:
    """The lines of an open file in their order, some thousands at a time."""
    lines = _Cutter(sizes)
    try:
        for chunk in text(file, path, sizes):
            yield from lines.take(chunk)
        yield from lines.finish()
    except DamageError as damage:
        yield from lines.damage(str(damage))


class _Cutter:
    """Cuts chunks into lines: carries the line that has not ended and the line count along."""

    def __init__(self, sizes: ReadSizes) -> None:
        self._chunk_bytes, self._line_bytes = sizes.chunk_bytes, sizes.line_bytes
        self._count = 0
        self._ended: list[bytes] = []
        self._ended_bytes = 0
        self._open: list[bytes] = []  # of a line that is too long, but the beginning
        self._open_bytes = 0

    def take(self, chunk: bytes) -> Iterator[Lines]:
        """Cuts what is at most a chunk long."""
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
            if max(map(len, whole), default=0) <= self._line_bytes:
                self._ended += whole
            else:
                for line in whole:
                    self._go_on(line)
                    yield from self._end()
            self._go_on(last)
        self._ended_bytes += len(chunk)
        if self._ended_bytes >= self._chunk_bytes:
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
        if self._open_bytes > self._line_bytes:
            self._open = [b"".join(self._open)[:RAW_BYTES]]

    def _end(self) -> Iterator[Lines]:
        line, size_bytes = b"".join(self._open), self._open_bytes
        self._open, self._open_bytes = [], 0
        if size_bytes <= self._line_bytes:
            self._ended.append(line)
            return
        yield from self._group()
        self._count += 1
        yield Lines([self._count], [line], f"{NO_OBJECT}longer than {self._line_bytes} bytes")

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
