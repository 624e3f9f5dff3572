"""A trace file in the making: JSON lines, packed as they come, kept in memory until it is whole."""

import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from shardaudit.producer.trace_queue import Gap, Numbered, Trace

UNFIT = "the trace could not be written as a line"

_GZIP = 31  # of zlib: with a gzip header
_LEVEL = 3

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
    _same: str = field(init=False)  # the end of each trace
    _parts: list[bytes] = field(default_factory=list)
    _gzip: "zlib._Compress" = field(default_factory=lambda: zlib.compressobj(_LEVEL, wbits=_GZIP))

    def __post_init__(self) -> None:
        self._same = _encoded(asdict(self.teller)).removeprefix("{")

    def add(self, entries: Sequence[Numbered | Gap]) -> int:
        """Packs traces and gaps; says how many traces became gaps because they fit no line."""
        lines, unfit = [], 0
        for entry in entries:
            if isinstance(entry, Gap):
                lines.append(self._gap(entry))
                continue
            try:
                lines.append(self._trace(*entry))
            except Exception:  # noqa: BLE001 - what no Kinesis answered must not end the thread
                lines.append(self._gap(Gap(entry.session_seq, 1, UNFIT)))
                unfit += 1
        self.traces += sum(isinstance(entry, Numbered) for entry in entries) - unfit
        self._pack(lines)
        return unfit

    def add_health(self, health: dict[str, int], at: str) -> None:
        """Packs what the log says of itself."""
        self._pack([_encoded({"health": health, "at": at} | self._who)])

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
        packed = self._gzip.compress("".join(f"{line}\n" for line in lines).encode())
        self._parts.append(packed)
        self.lines += len(lines)
        self.size_bytes += len(packed)

    def _trace(self, session_seq: int, trace: Trace) -> str:
        # As the encoder writes it, in a third of the time: a producer shares its processor with us.
        sent_at, event = trace.sent_at, trace.event
        how = f'"attempt":{trace.attempt}' if event is None else f'"event":{_text(event)}'
        if trace.parent_ids:
            how = f'{how},"parent_ids":{_encoded(trace.parent_ids)}'
        return (
            f'{{"message_id":{_text(trace.message_id)},"stream":{_text(trace.stream)},'
            f'"shard_id":{_text(trace.shard_id)},"sequence_number":{_text(trace.sequence_number)},'
            f'"sent_at":{_text(sent_at) if isinstance(sent_at, str) else sent_at},'
            f'{how},"session_seq":{session_seq},'
            f'"acked_at":{_text(trace.acked_at)},{self._same}'
        )

    def _gap(self, gap: Gap) -> str:
        told = {"gap": gap.count, "session_seq": gap.session_seq, "reason": gap.reason}
        return _encoded(told | self._who)
