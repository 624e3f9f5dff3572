"""The canary: synthetic messages with every verdict, cause and state, and the answer to each.

Each audit has them among its inputs and must find them exactly so, else it is rejected. This is the
data alone: who adds a rule to the comparison adds the message that shows it. When the slots lie,
and what the messages add up to, say `canary_plan` and `canary_answers`.
"""

from dataclasses import dataclass, field

from shardaudit.model.verdict import VANISHED, Cause, Kind, State, Verdict

# Shards, by what their consumer does.
RUNNING, STALLED, SILENT, UNNUMBERED, AHEAD = "running", "stalled", "silent", "unnumbered", "ahead"
PLANTED_SHARDS = (RUNNING, STALLED, SILENT, UNNUMBERED, AHEAD)

# Slots are buckets. SEEN and ANCIENT: beyond the retention, SEEN by an audit; OUTAGE: what was sent
# in it landed late; FRESH: within the settle grace; OLD: all others.
SEEN, ANCIENT, OUTAGE, FRESH = "seen", "ancient", "outage", "fresh"
SOUND, HOLED, DOUBLED, MIXED, CANCELLED, REMOVED = (
    "sound",
    "holed",
    "doubled",
    "mixed",
    "cancelled",
    "removed",
)
UNTRACED, MOVED, WAITING, CARRIED, CHANGED, DAMAGED = (
    "untraced",
    "moved",
    "waiting",
    "carried",
    "changed",
    "damaged",
)
STAMPED, RESTAMPED = "stamped", "stamped anew"
OLD = (
    *(SOUND, HOLED, DOUBLED, STAMPED, RESTAMPED, MIXED, CANCELLED, REMOVED),
    *(UNTRACED, MOVED, WAITING, CARRIED, CHANGED, DAMAGED),
)

RecordKey = tuple[str, str | None]  # shard, sequence number


def _one(shard: str, number: str | None, times: int = 1) -> tuple[RecordKey, ...]:
    return ((shard, number),) * times


@dataclass(frozen=True, slots=True)
class Earlier:
    """What an earlier audit left of a message, and what must become of it.

    `after`: None when this audit has nothing to say of it. `is_same`: the evidence did not change.
    `has_time`: the deadline that was found then is still to come.
    """

    state: State
    after: State | None
    kind: Kind = Kind.MISSING
    cause: Cause = Cause.LOST
    is_same: bool = True
    has_time: bool = True


@dataclass(frozen=True, slots=True)
class Planted:
    """One synthetic message: its traces (the first is counted), its rows, and the answer.

    `again`: the slot of its later attempts, where their producer stamped them anew.
    `own`: rows that our backfill landed; `later`: that came with the second batch of the sink;
    `gone`: that went with it.
    `in_evidence`: an earlier audit read it, and nobody could read it again; `was_read`: one did.
    `is_held_back`: the
    stream took it only now; `is_of_a_clock_ahead`: by its producer's clock a day later than it did.
    `not_landed`: lost | stuck | pending | vanished. `causes`: by the other kinds.
    """

    name: str
    slot: str
    sent: tuple[RecordKey, ...] = ()
    landed: tuple[RecordKey, ...] = ()
    again: str | None = None
    own: tuple[RecordKey, ...] = ()
    later: tuple[RecordKey, ...] = ()
    gone: tuple[RecordKey, ...] = ()
    in_evidence: bool = False
    was_read: bool = False
    is_held_back: bool = False
    is_of_a_clock_ahead: bool = False
    not_landed: str | None = None
    causes: dict[Kind, Cause] = field(default_factory=dict)
    before: Earlier | None = None

    @property
    def rows(self) -> tuple[RecordKey, ...]:
        """The rows that are in the sink now."""
        return tuple(row for row in self.landed + self.own + self.later if row not in self.gone)

    @property
    def home(self) -> str:
        """The shard that it counts on."""
        return (self.sent or self.rows or _one(RUNNING, None))[0][0]

    def slot_of(self, record: RecordKey) -> str:
        """The slot in which one of its traces or rows lies."""
        return self.again if self.again and record != self.sent[0] else self.slot

    @property
    def found(self) -> dict[Kind, Cause]:
        """What must be found of it."""
        if self.not_landed in {Cause.LOST, Cause.STUCK}:
            return {Kind.MISSING: Cause(self.not_landed)}
        return self.causes


@dataclass(frozen=True, slots=True)
class PlantedGap:
    """A cell of which nothing landed: so many messages, none of which anybody reads.

    `last`: the greatest of their sequence numbers. `count`: 0 where the cell is whole by now.
    """

    shard: str
    slot: str
    count: int
    last: str
    cause: Cause
    before: Earlier | None = None


LOST, STUCK, PENDING = Cause.LOST.value, Cause.STUCK.value, Verdict.PENDING.value

MESSAGES = (
    # All is well; the settled frontier of RUNNING is 100. By text, 9 would be beyond it.
    Planted("replayed", SOUND, _one(RUNNING, "8"), _one(RUNNING, "8"),
            before=Earlier(State.REPLAYED, State.RECOVERED)),
    Planted("deduped", SOUND, _one(RUNNING, "100"), _one(RUNNING, "100"),
            before=Earlier(State.OPEN, State.RECOVERED, Kind.DUPLICATED, Cause.CONSUMER_REPLAY)),
    Planted("at rest", SOUND, _one(STALLED, "20"), _one(STALLED, "20")),
    Planted("without number", SOUND, _one(UNNUMBERED, None), _one(UNNUMBERED, None)),
    Planted("passed by", SOUND, _one(AHEAD, "7"), _one(AHEAD, "7")),
    # Lost: the position has passed it.
    Planted("lost", HOLED, _one(RUNNING, "9"), not_landed=LOST),
    Planted("beside the lost", HOLED, _one(RUNNING, "11"), _one(RUNNING, "11")),
    Planted("known lost", HOLED, _one(STALLED, "5"), not_landed=LOST,
            before=Earlier(State.OPEN, State.OPEN)),
    Planted("lost again", REMOVED, _one(RUNNING, "24"), _one(RUNNING, "24"),
            gone=_one(RUNNING, "24"), not_landed=LOST,
            before=Earlier(State.RECOVERED, State.OPEN)),
    Planted("expired", ANCIENT, _one(RUNNING, "6"), not_landed=LOST,
            before=Earlier(State.OPEN, State.EXPIRED)),
    Planted("held back", ANCIENT, _one(RUNNING, "28"), not_landed=LOST, is_held_back=True),
    Planted("of a clock ahead", ANCIENT, _one(RUNNING, "33"), not_landed=LOST,
            is_of_a_clock_ahead=True),
    Planted("kept for longer", HOLED, _one(RUNNING, "29"), not_landed=LOST,
            before=Earlier(State.EXPIRED, State.OPEN)),
    Planted("replayed in vain", HOLED, _one(RUNNING, "10"), not_landed=LOST,
            before=Earlier(State.REPLAYED, State.REPLAYED)),
    # Deleted when their cell, which was complete, had left the stream: of one all, of one half.
    Planted("deleted when old", ANCIENT, _one(AHEAD, "2"), _one(AHEAD, "2"),
            gone=_one(AHEAD, "2"), not_landed=VANISHED),
    Planted("deleted alone", ANCIENT, _one(STALLED, "1"), _one(STALLED, "1"),
            gone=_one(STALLED, "1"), not_landed=VANISHED,
            before=Earlier(State.OPEN, State.FALSE_ALARM)),
    Planted("deleted too early", ANCIENT, _one(UNNUMBERED, None), _one(UNNUMBERED, None),
            gone=_one(UNNUMBERED, None), not_landed=LOST),
    Planted("beside the deleted", ANCIENT, _one(STALLED, "4"), _one(STALLED, "4")),
    # Deleted when their cell had left the stream: an audit knew it, but for one that was lost. And
    # one of which an audit knew that it had been deleted so.
    Planted("deleted as seen", SEEN, _one(RUNNING, "2"), _one(RUNNING, "2"),
            gone=_one(RUNNING, "2"), not_landed=VANISHED),
    Planted("lost as seen", SEEN, _one(RUNNING, "3"), not_landed=LOST, was_read=True,
            before=Earlier(State.EXPIRED, State.EXPIRED)),
    Planted("seen as deleted", SEEN, _one(STALLED, "8"), _one(STALLED, "8"),
            gone=_one(STALLED, "8"), not_landed=VANISHED),
    # Doubled.
    Planted("delivered twice", DOUBLED, _one(RUNNING, "12"), _one(RUNNING, "12", 2),
            causes={Kind.DUPLICATED: Cause.CONSUMER_REPLAY},
            before=Earlier(State.OPEN, State.OPEN, Kind.DUPLICATED, Cause.CONSUMER_REPLAY)),
    Planted("sent twice", DOUBLED, _one(RUNNING, "13") + _one(RUNNING, "14"),
            _one(RUNNING, "13") + _one(RUNNING, "14"),
            causes={Kind.DUPLICATED: Cause.PRODUCER_RETRY}),
    Planted("twice without number", DOUBLED, _one(UNNUMBERED, None), _one(UNNUMBERED, None, 2),
            causes={Kind.DUPLICATED: Cause.UNKNOWN}),
    # Retries with a time of their own: the cells of neither attempt tell that there are two.
    Planted("stamped anew", STAMPED, _one(RUNNING, "30") + _one(RUNNING, "31"),
            _one(RUNNING, "30") + _one(RUNNING, "31"), again=RESTAMPED,
            causes={Kind.DUPLICATED: Cause.PRODUCER_RETRY}),
    Planted("stamped anew elsewhere", STAMPED, _one(STALLED, "6") + _one(RUNNING, "32"),
            _one(STALLED, "6") + _one(RUNNING, "32"), again=RESTAMPED,
            causes={Kind.DUPLICATED: Cause.PRODUCER_RETRY}),
    Planted("landed by its retry", STAMPED, _one(AHEAD, "5") + _one(AHEAD, "6"),
            _one(AHEAD, "6"), again=RESTAMPED),
    # By the late rows of an outage nobody waits longer: without them `stuck` would be pending.
    Planted("late of an outage", OUTAGE, _one(STALLED, "2"), _one(STALLED, "2")),
    # Rows of our own backfills: they move no frontier, and a silent shard stays silent.
    Planted("delivered and backfilled", DOUBLED, _one(RUNNING, "27"), _one(RUNNING, "27"),
            own=_one(RUNNING, "27"), causes={Kind.DUPLICATED: Cause.BACKFILL}),
    Planted("backfilled beyond the stop", SOUND, _one(STALLED, "500"), own=_one(STALLED, "500")),
    Planted("backfilled of the silent", SOUND, _one(SILENT, "3"), own=_one(SILENT, "3")),
    # Counts that cancel: one too few, one too many.
    Planted("lost of the mixed", MIXED, _one(RUNNING, "15"), not_landed=LOST),
    Planted("twice of the mixed", MIXED, _one(RUNNING, "16"), _one(RUNNING, "16", 2),
            causes={Kind.DUPLICATED: Cause.CONSUMER_REPLAY}),
    Planted("lost of the cancelled", CANCELLED, _one(RUNNING, "17"), not_landed=LOST),
    Planted("extra of the cancelled", CANCELLED, (), _one(RUNNING, "18"),
            causes={Kind.UNTRACED: Cause.TRACE_LOSS}),
    Planted("untraced", UNTRACED, (), _one(RUNNING, "19"),
            causes={Kind.UNTRACED: Cause.TRACE_LOSS}),
    Planted("moved", MOVED, _one(RUNNING, "21"), _one(STALLED, "3"),
            causes={Kind.MOVED: Cause.RESHARD}),
    # Neither here nor lost: the position has not passed it, or nobody knows where it is.
    Planted("landing", FRESH, _one(RUNNING, "1000"), _one(RUNNING, "1000")),
    Planted("unsettled", WAITING, _one(RUNNING, "101"), not_landed=PENDING,
            before=Earlier(State.OPEN, None)),
    Planted("on its way", WAITING, _one(RUNNING, "1001"), not_landed=PENDING),
    Planted("stuck", WAITING, _one(STALLED, "30"), not_landed=STUCK,
            before=Earlier(State.ACCEPTED, State.OPEN, cause=Cause.STUCK, is_same=False)),
    Planted("behind the stop", FRESH, _one(STALLED, "31"), not_landed=PENDING),
    Planted("silent", WAITING, _one(SILENT, "1"), not_landed=STUCK,
            before=Earlier(State.PLANNED, State.PLANNED, cause=Cause.STUCK)),
    Planted("still silent", FRESH, _one(SILENT, "2"), not_landed=PENDING),
    Planted("overdue", WAITING, _one(UNNUMBERED, None), not_landed=LOST),
    Planted("overdue with number", WAITING, _one(UNNUMBERED, "2"), not_landed=LOST),
    Planted("not overdue", FRESH, _one(UNNUMBERED, None), not_landed=PENDING),
    Planted("settled early", FRESH, _one(AHEAD, "4"), _one(AHEAD, "4")),
    # What an earlier audit read holds while its bucket is the same, and not a batch longer.
    Planted("carried", CARRIED, _one(RUNNING, "22"), in_evidence=True, not_landed=LOST,
            before=Earlier(State.ACCEPTED, State.ACCEPTED)),
    Planted("arrived since", CHANGED, _one(RUNNING, "23"), later=_one(RUNNING, "23"),
            before=Earlier(State.OPEN, State.FALSE_ALARM)),
    # A file that may have fed the slot cannot be read.
    Planted("in the dark", DAMAGED, _one(RUNNING, "25"), not_landed=PENDING,
            before=Earlier(State.OPEN, None)),
    Planted("dark trace", DAMAGED, (), _one(RUNNING, "26"),
            causes={Kind.UNTRACED: Cause.UNKNOWN}),
    # Of a window that nobody looks at any more.
    Planted("long gone", ANCIENT,
            before=Earlier(State.OPEN, State.EXPIRED, has_time=False)),
)  # fmt: skip

PLANTED_GAPS = (
    PlantedGap(AHEAD, HOLED, 1_000, "3", Cause.LOST),
    PlantedGap(SILENT, HOLED, 2_000, "4", Cause.STUCK,
               before=Earlier(State.PLANNED, State.PLANNED, cause=Cause.STUCK)),
    PlantedGap(AHEAD, SOUND, 0, "7", Cause.LOST,
               before=Earlier(State.REPLAYED, State.RECOVERED)),
)  # fmt: skip

# Of the cells in which not all is well, or that are not settled; no trace or row: OK in OLD.
VERDICTS = {
    (RUNNING, SEEN): Verdict.LOSS,
    (RUNNING, ANCIENT): Verdict.LOSS,
    (UNNUMBERED, ANCIENT): Verdict.LOSS,
    (RUNNING, HOLED): Verdict.LOSS,
    (STALLED, HOLED): Verdict.LOSS,
    (AHEAD, HOLED): Verdict.LOSS,
    (SILENT, HOLED): Verdict.SILENT,
    (RUNNING, REMOVED): Verdict.LOSS,
    (RUNNING, DOUBLED): Verdict.DUPLICATION,
    (UNNUMBERED, DOUBLED): Verdict.DUPLICATION,
    (RUNNING, STAMPED): Verdict.DUPLICATION,
    (STALLED, STAMPED): Verdict.DUPLICATION,
    (RUNNING, MIXED): Verdict.MIXED,
    (RUNNING, CANCELLED): Verdict.LOSS,
    (RUNNING, UNTRACED): Verdict.UNTRACED,
    (RUNNING, MOVED): Verdict.UNTRACED,
    (RUNNING, WAITING): Verdict.PENDING,
    (STALLED, WAITING): Verdict.STALLED,
    (SILENT, WAITING): Verdict.SILENT,
    (UNNUMBERED, WAITING): Verdict.LOSS,
    (RUNNING, CARRIED): Verdict.LOSS,
    (AHEAD, FRESH): Verdict.OK,
    **{(shard, FRESH): Verdict.PENDING for shard in PLANTED_SHARDS if shard != AHEAD},
    **{(shard, DAMAGED): Verdict.INCONCLUSIVE for shard in PLANTED_SHARDS},
}
