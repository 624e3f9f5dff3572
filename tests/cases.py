"""A random history in short form, and the terms under which a whole stream of them is audited.

Both print as the call that builds them, so that a failure can be pasted into a test.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tests.history import Damage, History, Question, SinkRow, Trace

START = datetime(2026, 11, 20, 12, tzinfo=UTC)
MS = timedelta(milliseconds=1)
BACKFILLS = timedelta(microseconds=7)
PAUSING_SHARD, IDLE_SHARD = 8, 9


@dataclass(frozen=True, slots=True)
class Terms:
    """What all cases of one stream share; `as_of_ms` counts from the window's end."""

    buckets: int
    bucket_ms: int
    grace_ms: int
    retention_ms: int
    as_of_ms: int
    floor: float
    tolerance: float
    sink_has_numbers: bool
    faults: frozenset[str]
    batches: int

    @property
    def gains(self) -> frozenset[str]:
        """The columns that the sink has since the second batch."""
        return frozenset({"shard_id", "sent_at"} if "gains" in self.faults else ())

    @property
    def end_ms(self) -> int:
        """The window's end, from its start."""
        return self.buckets * self.bucket_ms

    @property
    def damaged(self) -> tuple[Damage, ...]:
        """Two buckets near the middle, of which a file of the sink cannot be read."""
        start = START + (self.buckets - 1) // 2 * self.bucket_ms * MS
        damage = Damage("sink", start, start + 2 * self.bucket_ms * MS)
        return (damage,) if "dark" in self.faults else ()

    @property
    def question(self) -> Question:
        """The audit to ask for."""
        end = START + self.end_ms * MS
        return Question(
            start=START,
            end=end,
            as_of=end + self.as_of_ms * MS,
            bucket=self.bucket_ms * MS,
            settle_grace=self.grace_ms * MS,
            retention=self.retention_ms * MS,
            tolerance=self.tolerance,
            trace_coverage_floor=self.floor,
        )


@dataclass(frozen=True, slots=True)
class Case:
    """One history; times in milliseconds from the window's start.

    traces: (message id, shard, number, sent, batch); rows: (…, number, sent, landed, batch, own).
    acked: (message id, shard, number, when that was acknowledged), where that is known.
    dropped: the places of the rows that a lake deletes in the end.
    lacks: (the place of a row, the columns that are NULL in it).
    Backfills land at times of their own, as no consumer does.
    """

    traces: tuple[tuple[str, int, str | None, int, int], ...]
    rows: tuple[tuple[str, int, str | None, int, int | None, int, bool], ...]
    idle_shard: bool = False
    acked: tuple[tuple[str, int, str | None, int], ...] = ()
    dropped: frozenset[int] = frozenset()
    lacks: tuple[tuple[int, str], ...] = ()

    @property
    def size(self) -> int:
        """How much there is to read when it fails."""
        return len(self.traces) + len(self.rows)

    def history(self, number: int) -> History:
        """The case with shards and ids that no other number has."""

        def own_id(text: str) -> str:
            return f"{number}:{text}" if number % 2 else f"{text}#{number}"

        def own_shard(shard: int) -> str:
            return f"case-{number:04d}-shard-{shard}"

        acked = {(i, s, n): START + ms * MS for i, s, n, ms in self.acked}
        lacks = dict(self.lacks)
        return History(
            traces=tuple(
                Trace(
                    message_id=own_id(i),
                    shard_id=own_shard(s),
                    sequence_number=n,
                    sent_at=START + sent * MS,
                    batch=batch,
                    acked_at=acked.get((i, s, n)),
                )
                for i, s, n, sent, batch in self.traces
            ),
            rows=tuple(
                SinkRow(
                    message_id=own_id(i),
                    shard_id=own_shard(s),
                    sequence_number=n,
                    sent_at=START + sent * MS,
                    landed_at=None if landed is None else START + landed * MS + own * BACKFILLS,
                    own=own,
                    lacks=frozenset(lacks.get(place, "").split()),
                )
                for place, (i, s, n, sent, landed, _, own) in enumerate(self.rows)
            ),
            known_shards=frozenset({own_shard(IDLE_SHARD)} if self.idle_shard else ()),
        )


def case_number(shard_id: str) -> int:
    """The number that `Case.history` put into a shard's name."""
    return int(shard_id.split("-")[1])
