"""A trace file in the making: JSON lines, packed as they come, kept in memory until it is whole."""

import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain, islice
from typing import Any, Protocol  # Any: an answer of no Kinesis has what it likes

from shardaudit.producer.trace_queue import Gap, TraceColumns, TraceOccasion, TraceRun

try:
    from msgspec.json import encode as _quoted
except ImportError:
    _quoted = json.encoder.encode_basestring_ascii  # type: ignore[assignment] # as long

try:
    from zstandard import ZstdCompressor
except ImportError:
    ZstdCompressor = None  # type: ignore[assignment, misc] # the package alone is enough

ENDING = ".jsonl.gz" if ZstdCompressor is None else ".jsonl.zst"  # of a file's name
UNFIT = "the trace could not be written as a line"

_GZIP = 31  # of zlib: with a gzip header
_LEVEL = 1  # of both: with more it takes longer, and hardly less room
# Lines. While they are packed other threads go on; a longer loop would hold them up.
_AT_ONCE = 500

_encoded = json.JSONEncoder(separators=(",", ":")).encode
_text = json.encoder.encode_basestring_ascii


class _Packer(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


def _packer() -> _Packer:
    """zstandard's, in a fifth of zlib's time, where it is installed."""
    if ZstdCompressor is None:
        return zlib.compressobj(_LEVEL, wbits=_GZIP)
    return ZstdCompressor(level=_LEVEL).compressobj()


@dataclass(frozen=True, slots=True)
class Teller:
    """Who writes, as each line says it."""

    producer_id: str
    session: str
    location: str
    sample_rate: float


@dataclass(slots=True)
class PackedLines:
    """The lines of one file. `traces`: how many of them are traces."""

    teller: Teller
    lines: int = 0
    traces: int = 0
    size_bytes: int = 0
    _unfit: int = 0
    _same: str = field(init=False)  # the end of each trace
    _parts: list[bytes] = field(default_factory=list)
    _packer: _Packer = field(default_factory=_packer)

    def __post_init__(self) -> None:
        self._same = _encoded(asdict(self.teller)).removeprefix("{")

    def add(self, entries: Iterable[TraceRun | Gap]) -> int:
        """Packs traces and gaps; says how many traces became gaps because they fit no line."""
        entries, unfit = list(entries), self._unfit
        # First: whoever looks at what an error ended counts them.
        self.traces += sum(len(it.traces.message_ids) for it in entries if isinstance(it, TraceRun))
        lines = chain.from_iterable(map(self._of, entries))
        while some := list(islice(lines, _AT_ONCE)):
            self._pack(some)
        return self._unfit - unfit

    def add_health(self, health: dict[str, int], at: str) -> None:
        """Packs what the log says of itself."""
        self._pack([_encoded({"health": health, "at": at} | self._who) + "\n"])

    def content(self) -> bytes:
        """The whole file; nothing can be added any more."""
        self._parts.append(self._packer.flush())
        self._parts = [b"".join(self._parts)]
        return self._parts[0]

    @property
    def _who(self) -> dict[str, str]:
        """What a line that is no trace says of its teller."""
        teller = self.teller
        return {
            "session": teller.session,
            "producer_id": teller.producer_id,
            "location": teller.location,
        }

    def _pack(self, lines: Sequence[str]) -> None:
        packed = self._packer.compress("".join(lines).encode())
        self._parts.append(packed)
        self.lines += len(lines)
        self.size_bytes += len(packed)

    def _of(self, entry: TraceRun | Gap) -> Iterable[str]:
        """The lines of traces; one that fits none is a gap."""
        if isinstance(entry, Gap):
            return [self._gap(entry)]
        number, traces = entry
        try:
            return self._lines(number, traces)
        except Exception:  # noqa: BLE001 - what no Kinesis answered must not end the thread
            return [self._line(number + at, one) for at, one in enumerate(traces.each())]

    def _line(self, number: int, trace: TraceColumns) -> str:
        """Of one trace; a gap's where it fits none."""
        try:
            return self._lines(number, trace)[0]
        except Exception:  # noqa: BLE001 - as above
            self.traces, self._unfit = self.traces - 1, self._unfit + 1
            return self._gap(Gap(number, 1, UNFIT))

    def _lines(self, number: int, traces: TraceColumns) -> list[str]:
        """As the encoder writes them, in a quarter of the time: the producer waits meanwhile.

        Raises:
            TypeError: a field is no text.
        """
        occasion, message_ids, sent_ats, shard_ids, sequence_numbers, parent_ids = traces
        quote, end = '"', self._end(occasion)
        if {*map(type, sent_ats)} == {int}:  # epoch milliseconds
            quote, sent_ats = "", [*map(str, sent_ats)]
        columns: list[Sequence[Any]] = [message_ids, shard_ids, sequence_numbers, sent_ats]
        if not _are_plain([*chain(*columns)]):
            columns = [[_text(one)[1:-1] for one in column] for column in columns]
        numbers = range(number, number + len(message_ids))
        parents = [f'"parent_ids":{_encoded(of)},' if of else "" for of in parent_ids]
        return [
            f'{{"message_id":"{message_id}","shard_id":"{shard_id}",'
            f'"sequence_number":"{sequence_number}","sent_at":{quote}{sent_at}{quote},'
            f'{of}"session_seq":{at},{end}'
            for at, message_id, shard_id, sequence_number, sent_at, of in zip(
                numbers, *columns, parents or [""] * len(numbers), strict=True
            )
        ]

    def _end(self, occasion: TraceOccasion) -> str:
        """What all lines of an occasion end with."""
        stream, acked_at, attempt, event = occasion
        how = f'"attempt":{attempt}' if event is None else f'"event":{_text(event)}'
        return f'"stream":{_text(stream)},{how},"acked_at":{_text(acked_at)},{self._same}\n'

    def _gap(self, gap: Gap) -> str:
        told = {"gap": gap.count, "session_seq": gap.session_seq, "reason": gap.reason}
        return _encoded(told | self._who) + "\n"


def _are_plain(texts: Sequence[Any]) -> bool:
    """Whether all are texts that JSON has between quotes as they are, as nearly all fields are."""
    if {*map(type, texts)} != {str}:
        return False
    joined = "".join(texts)
    return joined.isascii() and len(_quoted(joined)) == len(joined) + len('""')
