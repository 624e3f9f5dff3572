"""A trace file in the making: JSON lines, packed as they come, kept in memory until it is whole."""

import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain, islice

from shardaudit.producer.trace_queue import Gap, TraceOccasion, TraceRun

UNFIT = "the trace could not be written as a line"

_GZIP = 31  # of zlib: with a gzip header
_LEVEL = 3
# Lines. While they are packed other threads go on; a longer loop would hold them up.
_AT_ONCE = 100

_encoded = json.JSONEncoder(separators=(",", ":")).encode
_text = json.encoder.encode_basestring_ascii


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
    _gzip: "zlib._Compress" = field(default_factory=lambda: zlib.compressobj(_LEVEL, wbits=_GZIP))

    def __post_init__(self) -> None:
        self._same = _encoded(asdict(self.teller)).removeprefix("{")

    def add(self, entries: Iterable[TraceRun | Gap]) -> int:
        """Packs traces and gaps; says how many traces became gaps because they fit no line."""
        unfit = self._unfit
        lines = chain.from_iterable(map(self._of, entries))
        while some := list(islice(lines, _AT_ONCE)):
            self._pack(some)
        return self._unfit - unfit

    def add_health(self, health: dict[str, int], at: str) -> None:
        """Packs what the log says of itself."""
        self._pack([_encoded({"health": health, "at": at} | self._who) + "\n"])

    def content(self) -> bytes:
        """The whole file; nothing can be added any more."""
        self._parts.append(self._gzip.flush())
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
        packed = self._gzip.compress("".join(lines).encode())
        self._parts.append(packed)
        self.lines += len(lines)
        self.size_bytes += len(packed)

    def _of(self, entry: TraceRun | Gap) -> Iterator[str]:
        """The lines of traces; one that fits none is a gap."""
        if isinstance(entry, Gap):
            yield self._gap(entry)
            return
        self.traces += len(entry.traces)
        occasion: TraceOccasion | None = None
        end = ""
        # As the encoder writes it, in a third of the time: a producer shares its processor with us.
        for at, trace in enumerate(entry.traces, entry.session_seq):
            message_id, sent_at, shard_id, sequence_number, of, parent_ids = trace
            try:
                if of is not occasion:
                    occasion, end = of, self._end(of)
                parents = f'"parent_ids":{_encoded(parent_ids)},' if parent_ids else ""
                line = (
                    f'{{"message_id":{_text(message_id)},"shard_id":{_text(shard_id)},'
                    f'"sequence_number":{_text(sequence_number)},'
                    f'"sent_at":{_text(sent_at) if isinstance(sent_at, str) else sent_at},'
                    f'{parents}"session_seq":{at},{end}'
                )
            except Exception:  # noqa: BLE001 - what no Kinesis answered must not end the thread
                line = self._gap(Gap(at, 1, UNFIT))
                self.traces, self._unfit = self.traces - 1, self._unfit + 1
            yield line

    def _end(self, occasion: TraceOccasion) -> str:
        """What all lines of an occasion end with."""
        stream, acked_at, attempt, event = occasion
        how = f'"attempt":{attempt}' if event is None else f'"event":{_text(event)}'
        return f'"stream":{_text(stream)},{how},"acked_at":{_text(acked_at)},{self._same}\n'

    def _gap(self, gap: Gap) -> str:
        told = {"gap": gap.count, "session_seq": gap.session_seq, "reason": gap.reason}
        return _encoded(told | self._who) + "\n"
