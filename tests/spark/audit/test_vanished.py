"""Rows that leave the sink: a loss while the stream has a message of their minute, none later."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from shardaudit.audit.gates import Gates, open_gates
from shardaudit.model.retention import Longer
from shardaudit.model.tables.audit_tables import CELLS, GATES
from shardaudit.model.verdict import State, Verdict
from shardaudit.model.watermark import LEFT_THE_SINK
from shardaudit.store.warehouse import Warehouse
from tests.builders import T0, sequence
from tests.history import Damage, Departure, Finding, FindingKey, History, Question, SinkRow, Trace
from tests.lifecycle import fold
from tests.oracle import reconcile
from tests.oracle_vanished import Memory
from tests.oracle_watermark import Record
from tests.spark.golden import assert_summary
from tests.spark.trial import Published, Trial
from tests.spark.ungated import ungated

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
DAY = timedelta(days=1)
# The minute's messages leave the stream at T0 + 24:01.
EARLY, LATE = T0 + 22 * HOUR, T0 + 25 * HOUR
LATER = EARLY + 25 * HOUR  # what was retried early has left the stream too
LAST_OF_ALL = LATER + 5 * HOUR
IDS, LAST = ["0", "1", "2", "3"], "120"  # named by the second in which they were sent
HELD_BACK = "30"
NO_SHARD, ANY = frozenset({"shard_id"}), frozenset[str]()

Change = tuple[str, list[str]]  # what happens to which ids
Week = tuple[dict[datetime, list[Change]], tuple[str, int, int, int]]


@dataclass
class Days:
    """A stream and what the oracle has to know of it. Each week has a shard of its own, and a twin.

    Of each four messages of one minute, and one two minutes later: its consumer is past the four.
    """

    trial: Trial
    history: History = field(default_factory=History)
    findings: dict[FindingKey, Finding] = field(default_factory=dict)
    record: Record = field(default_factory=lambda: Record(MINUTE))
    memory: Memory = field(default_factory=Memory)
    batch: int = 0

    def log(self, rows: Iterable[SinkRow], *, acked_at: datetime | None = None) -> None:
        """The traces of some messages."""
        traces = tuple(
            Trace(
                *(row.message_id, row.shard_id, row.sequence_number, row.sent_at),
                batch=self.batch,
                acked_at=acked_at,
            )
            for row in rows
        )
        self.trial.log(traces)
        self.history = replace(self.history, traces=self.history.traces + traces)

    def change(self, changes: Mapping[str, list[Change]], *, at: datetime) -> None:
        """What happens to the sink in each week before one ingest."""
        self.batch += 1
        told = [(week, what, ids) for week, some in changes.items() for what, ids in some]
        self._remove(
            {
                (f"{week}/{i}", shard)
                for week, what, ids in told
                if what.startswith("gone")
                for i in ids
                for shard in ([week] if what == "gone here" else [week, f"{week}, its twin"])
            },
            at,
        )
        for acked_at in (at, None):
            sent = [
                row
                for week, what, ids in told
                if what.startswith("sent") and (what == "sent, as of then") is (acked_at is None)
                for ahead in [1000 if what == "sent, on its way" else 0]
                for row in self.rows(week, ids, at, twin=what == "sent elsewhere", ahead=ahead)
            ]
            if sent:
                self.log(sent, acked_at=acked_at)
        came = tuple(
            row
            for week, what, ids in told
            if what.startswith("landed")
            for row in self.rows(week, ids, at, twin=what == "landed elsewhere")
            for row in [replace(row, lacks=NO_SHARD if what == "landed without a shard" else ANY)]
        )
        self.trial.land(came)
        self.history = replace(self.history, rows=self.history.rows + came)
        self.trial.ingest(now=at)

    def rows(
        self, week: str, ids: list[str], at: datetime, *, twin: bool = False, ahead: int = 0
    ) -> list[SinkRow]:
        """Rows of some of a week's messages, landed then; `ahead`: of their times' numbers."""
        return [
            SinkRow(
                message_id=f"{week}/{i}",
                shard_id=f"{week}, its twin" if twin else week,
                sequence_number=sequence(int(i) + ahead),
                sent_at=T0 + int(i) * SECOND,
                landed_at=at,
                seen_at=at,
                batch=self.batch,
            )
            for i in ids
        ]

    def _remove(self, some: set[tuple[str, str]], at: datetime) -> None:
        gone = [row for row in self.history.rows if (row.message_id, row.shard_id) in some]
        self.trial.remove(gone)
        self.history = replace(
            self.history,
            rows=tuple(row for row in self.history.rows if row not in gone),
            left=self.history.left + tuple(Departure(row, self.batch, at) for row in gone),
        )

    def damage(self, damage: Damage | None) -> None:
        """A file of the last ingest cannot be read, until there is none."""
        self.trial.say_damaged("sink", damage)
        self.history = replace(self.history, damaged=(damage,) if damage else ())

    def audit(self, *, at: datetime, **changed: Any) -> Published:
        """An audit, which says what the oracle says. `changed`: fields of its question."""
        question = replace(Question(T0, T0 + 3 * MINUTE, at), **changed)
        published = self.trial.audit(question)
        outcome = reconcile(self.history, question, self.memory)
        self.findings = fold(self.findings, outcome, question)
        self.memory.note(self.history, question, outcome, self.findings)
        self.record.count(outcome, question, self.history, self.findings)
        assert published.cells == outcome.cells
        assert published.findings == self.findings
        assert published.watermark == self.record.watermark(self.findings, question)
        assert_summary(published, outcome)
        return published


def begun(
    warehouse: Warehouse,
    folder: Path,
    weeks: Iterable[str],
    *,
    in_parquet: bool = False,
    gates: Gates | None = None,
) -> Days:
    """The stream after all of the weeks' messages landed."""
    ask = Question(T0, T0 + 3 * MINUTE, T0 + HOUR)
    days = Days(Trial(warehouse, folder, ask, in_parquet=in_parquet, gates=gates or ungated()))
    days.batch += 1
    days.log(row for week in weeks for row in days.rows(week, [*IDS, LAST], T0))
    days.change({week: [("landed", [*IDS, LAST])] for week in weeks}, at=T0 + 3 * MINUTE)
    assert days.audit(at=T0 + HOUR).audit.verdict == Verdict.OK
    return days


ANEW = [(what, IDS[:1]) for what in ("gone", "landed without a shard")]
BY_RETRY = [(what, IDS[:1]) for what in ("sent elsewhere", "landed elsewhere", "gone here")]
# What happens when; then verdict, rows, vanished, missing of its minute in the end.
WEEKS: dict[str, Week] = {
    "all of it deleted": ({LATE: [("gone", IDS)]}, ("ok", 0, 4, 0)),
    "one of it deleted": ({LATE: [("gone", IDS[:1])]}, ("ok", 3, 1, 0)),
    "deleted bit by bit": (
        {LATE: [("gone", IDS[:1])], LATE + HOUR: [("gone", IDS[1:])]},
        ("ok", 0, 4, 0),
    ),
    "deleted by mistake, while the stream had it": ({EARLY: [("gone", IDS)]}, ("loss", 0, 0, 4)),
    "one by mistake, the rest later": (
        {EARLY: [("gone", IDS[:1])], LATE: [("gone", IDS[1:])]},
        ("loss", 0, 3, 1),
    ),
    "one by mistake, one later, the rest later still": (
        {EARLY: [("gone", IDS[:1])], LATE: [("gone", IDS[1:2])], LATE + HOUR: [("gone", IDS[2:])]},
        ("loss", 0, 3, 1),
    ),
    "one landed twice, all deleted": (
        {EARLY: [("landed", IDS[:1])], LATE: [("gone", IDS)]},
        ("ok", 0, 4, 0),
    ),
    "one landed twice, another deleted, the rest later": (
        {EARLY: [("landed", IDS[:1])], LATE: [("gone", IDS[1:2])], LATE + HOUR: [("gone", IDS)]},
        ("ok", 0, 4, 0),
    ),
    "by mistake, restored, and deleted later": (
        {EARLY: [("gone", IDS)], EARLY + HOUR: [("landed", IDS)], LATE: [("gone", IDS)]},
        ("ok", 0, 4, 0),
    ),
    "deleted and restored": (
        {LATE: [("gone", IDS)], LATE + HOUR: [("landed", IDS)]},
        ("ok", 4, 0, 0),
    ),
    "restored, and deleted again": (
        {LATE: [("gone", IDS)], LATE + HOUR: [("landed", IDS)], LATER: [("gone", IDS)]},
        ("ok", 0, 4, 0),
    ),
    "one deleted, and all landed again": (
        {LATE: [("gone", IDS[:1])], LATE + HOUR: [("landed", IDS)]},
        ("duplication", 7, 0, 0),
    ),
    "rewritten between two ingests": (
        {EARLY: [("gone", IDS), ("landed", IDS)], LATE: [("gone", IDS)]},
        ("ok", 0, 4, 0),
    ),
    "one written without its shard, the rest deleted": (
        {EARLY: ANEW, LATE: [("gone", IDS[1:])]},
        ("ok", 1, 3, 0),
    ),
    "one by mistake, one written without its shard, the rest deleted": (
        {EARLY: [*ANEW, ("gone", IDS[1:2])], LATE: [("gone", IDS[2:])]},
        ("loss", 1, 2, 1),
    ),
    "deleted, and one written to another shard": (
        {LATE: [("gone", IDS), ("landed elsewhere", IDS[:1])]},
        ("untraced", 0, 3, 0),
    ),
    "one landed by its retry alone, all deleted": (
        {
            EARLY: BY_RETRY,
            LATER: [],
            LAST_OF_ALL: [("gone", IDS)],
        },
        ("ok", 0, 4, 0),
    ),
    "one landed by its retry alone, deleted while the stream had that": (
        {
            EARLY: BY_RETRY,
            LATE: [("gone", IDS)],
        },
        ("loss", 0, 3, 1),
    ),
    "one by mistake, one landed by its retry alone, deleted while the stream had that": (
        {EARLY: [*BY_RETRY, ("gone", IDS[1:2])], LATE: [("gone", IDS)]},
        ("loss", 0, 2, 2),
    ),
    "one by mistake, one sent again elsewhere, deleted while the stream had that": (
        {EARLY: [("sent elsewhere", IDS[:1]), ("gone", IDS[1:2])], LATE: [("gone", IDS)]},
        ("loss", 0, 2, 2),
    ),
    "one by mistake, one sent again elsewhere, all deleted": (
        {
            EARLY: [("sent elsewhere", IDS[:1]), ("gone", IDS[1:2])],
            LATER: [],
            LAST_OF_ALL: [("gone", IDS)],
        },
        ("loss", 0, 3, 1),
    ),
    "sent again elsewhere, all deleted while the stream had that": (
        {EARLY: [("sent elsewhere", IDS[:1])], LATE: [("gone", IDS)]},
        ("ok", 0, 4, 0),
    ),
    "one by mistake, one landed by its retry alone, all deleted": (
        {EARLY: [*BY_RETRY, ("gone", IDS[1:2])], LATER: [], LAST_OF_ALL: [("gone", IDS)]},
        ("loss", 0, 3, 1),
    ),
    "all deleted, then one came that was held back": (
        {
            LATE: [("gone", IDS)],
            LATE + HOUR: [("sent", [HELD_BACK])],
            LATER: [("landed", [HELD_BACK])],
        },
        ("ok", 1, 4, 0),
    ),
    "all deleted, then one was lost that was held back": (
        {LATE: [("gone", IDS)], LATE + HOUR: [("sent", [HELD_BACK])]},
        ("loss", 0, 4, 1),
    ),
    "all deleted, then one came whose traces do not say that it was held back": (
        {
            LATE: [("gone", IDS)],
            LATE + HOUR: [("sent, as of then", [HELD_BACK])],
            LATER: [("landed", [HELD_BACK])],
        },
        ("ok", 1, 4, 0),
    ),
    "all deleted, then one was lost whose traces do not say that it was held back": (
        {LATE: [("gone", IDS)], LATE + HOUR: [("sent, as of then", [HELD_BACK])]},
        ("loss", 0, 4, 1),
    ),
    "one by mistake, the rest later, then one came that was held back": (
        {
            EARLY: [("gone", IDS[:1])],
            LATE: [("gone", IDS[1:])],
            LATE + HOUR: [("sent", [HELD_BACK]), ("landed", [HELD_BACK])],
        },
        ("loss", 1, 3, 1),
    ),
    "one by mistake, one held back came, the rest deleted": (
        {
            EARLY: [("gone", IDS[:1])],
            LATE: [("sent", [HELD_BACK]), ("gone", IDS[1:]), ("landed", [HELD_BACK])],
        },
        ("loss", 1, 3, 1),
    ),
    "one by mistake, the rest later, then one came that was held back, and one again": (
        {
            EARLY: [("gone", IDS[:1])],
            LATE: [("gone", IDS[1:])],
            LATE + HOUR: [("sent, as of then", [*IDS[2:], HELD_BACK]), ("landed", [HELD_BACK])],
        },
        ("loss", 1, 3, 1),
    ),
    "one by mistake, one held back is on its way, and comes when the rest is deleted": (
        {
            EARLY: [("gone", IDS[:1])],
            LATE: [("sent, on its way", [HELD_BACK])],
            LATE + HOUR: [("landed", [HELD_BACK]), ("gone", IDS[1:])],
        },
        ("loss", 1, 3, 1),
    ),
    "one held back came and was deleted later than the rest": (
        {
            LATE: [("gone", IDS)],
            LATE + HOUR: [("sent", [HELD_BACK]), ("landed", [HELD_BACK])],
            LAST_OF_ALL: [("gone", [HELD_BACK])],
        },
        ("ok", 0, 5, 0),
    ),
}  # fmt: skip


def test_what_leaves_the_sink_is_lost_only_while_the_stream_has_its_minute(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    days = begun(warehouse, tmp_path, WEEKS)
    published = lived(days, WEEKS)
    states = {
        week: {f.state for f in days.findings.values() if f.shard_id == week} for week in WEEKS
    }
    assert {week for week, found in states.items() if State.EXPIRED in found} == {
        week for week, (_, expected) in WEEKS.items() if expected[0] == "loss"
    }
    assert states["by mistake, restored, and deleted later"] == {State.FALSE_ALARM}
    assert published.audit.vanished == sum(expected[2] for _, expected in WEEKS.values())


def lived(days: Days, weeks: Mapping[str, Week]) -> Published:
    """The last audit of the weeks, each of which ends as expected."""
    for at in sorted({at for changes, _ in weeks.values() for at in changes}):
        days.change({week: of.get(at, []) for week, (of, _) in weeks.items()}, at=at)
        published = days.audit(at=at + MINUTE)
    cells = {week: published.cells[week, T0] for week in weeks}
    found = {w: (c.verdict, c.landed, c.vanished, c.missing) for w, c in cells.items()}
    assert found == {week: expected for week, (_, expected) in weeks.items()}
    return published


@pytest.mark.drill
def test_what_comes_later_takes_nothing_of_what_was_known_when_traces_are_in_parquet(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    weeks = {week: of for week, of in WEEKS.items() if "then one" in week}
    assert len(weeks) > 3
    lived(begun(warehouse, tmp_path, weeks, in_parquet=True), weeks)


@pytest.mark.parametrize("is_audited_before", [pytest.param(True, marks=pytest.mark.drill), False])
def test_what_left_the_sink_before_the_retention_was_lowered_stays_lost(
    warehouse: Warehouse, tmp_path: Path, is_audited_before: bool
) -> None:
    days = begun(warehouse, tmp_path, ["by mistake", "by the lake"])
    days.change({"by mistake": [("gone", IDS)]}, at=LATE)
    if is_audited_before:
        days.audit(at=LATE + MINUTE, retention=7 * DAY)
    lowered = {"longer": (Longer(7 * DAY, LATE + HOUR),)}
    days.change({"by the lake": [("gone", IDS)]}, at=LATE + 2 * HOUR)
    published = days.audit(at=LATE + 2 * HOUR + MINUTE, **lowered)
    cells = {shard: published.cells[shard, T0] for shard in ("by mistake", "by the lake")}
    assert {s: (c.verdict, c.missing, c.vanished) for s, c in cells.items()} == {
        "by mistake": ("loss", 4, 0),
        "by the lake": ("ok", 0, 4),
    }
    assert {finding.state for finding in published.findings.values()} == {State.EXPIRED}


@pytest.mark.parametrize(
    ("at", "held"),
    [(LATE, True), pytest.param(LATE + 2 * HOUR, False, marks=pytest.mark.drill)],
)
def test_what_left_the_sink_before_the_retention_was_lowered_holds_the_watermark(
    warehouse: Warehouse, tmp_path: Path, at: datetime, held: bool
) -> None:
    days = begun(warehouse, tmp_path, ["week"])
    if not held:
        days.audit(at=LATE + HOUR + MINUTE, retention=7 * DAY)
    days.change({"week": [("gone", IDS)]}, at=at)
    later = {"start": T0 + 3 * MINUTE, "end": T0 + 6 * MINUTE}
    lowered = {"longer": (Longer(7 * DAY, LATE + HOUR),)}
    published = days.audit(at=LATE + 3 * HOUR, **later, **lowered)
    assert published.watermark == (T0 if held else T0 + 6 * MINUTE)


def test_rows_that_get_other_ids_when_the_stream_had_them_no_more_were_not_lost(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    # A person's ids are made unreadable: in each cell as many rows as before, and none ever left.
    days = begun(warehouse, tmp_path, ["week"], gates=open_gates(None))
    days.change({"week": [("gone", IDS[:1]), ("landed", [HELD_BACK])]}, at=LATE)
    cell = days.audit(at=LATE + MINUTE).cells["week", T0]
    assert (cell.landed, cell.vanished, cell.missing, cell.untraced) == (4, 1, 0, 1)


def test_what_comes_to_a_minute_takes_back_no_shard_of_which_a_lake_dropped_it(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    days = begun(warehouse, tmp_path, ["dropped", "late"])
    days.change({"dropped": [("gone", IDS)]}, at=LATE)
    days.audit(at=LATE + MINUTE)
    came = [("sent, as of then", [HELD_BACK]), ("landed", [HELD_BACK])]
    days.change({"late": came}, at=LATE + HOUR)
    later = {"start": T0 + 3 * MINUTE, "end": T0 + 6 * MINUTE}
    assert days.audit(at=LATE + 2 * HOUR, **later).watermark == T0 + 6 * MINUTE


@pytest.mark.drill
def test_a_minute_that_the_lake_dropped_is_not_read_by_id_and_told_in_a_sentence(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    days = begun(warehouse, tmp_path, ["week"], gates=open_gates(None))
    days.change({"week": [("gone", IDS)]}, at=LATE)
    published = days.audit(at=LATE + MINUTE)
    assert (published.audit.vanished, published.audit.vanished_until) == (4, T0 + MINUTE)
    assert published.watermark == T0 + 3 * MINUTE
    of_audit = pc.field("audit_id") == published.audit.audit_id
    cells = {row["bucket_start"]: row for row in warehouse.rows(CELLS, where=of_audit)}
    assert (cells[T0]["compared"], cells[T0]["reason"]) == ("fingerprint", LEFT_THE_SINK)
    assert cells[T0]["sums_digest"] is not None
    gates = warehouse.rows(GATES, where=of_audit & (pc.field("suite") == "audit_result"))
    assert [(row["state"], "vanished 4" in row["results"]) for row in gates] == [("passed", True)]
    # An audit as of an earlier time reads what is there now; it is judged by what was known.
    again = days.audit(at=EARLY)
    assert (again.audit.vanished, days.findings) == (4, {})
    assert again.watermark == T0 + 3 * MINUTE


@pytest.mark.drill
def test_a_minute_that_the_lake_dropped_is_read_again_while_a_file_of_it_is_unreadable(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    weeks = ("one lost, then dropped", "dropped")
    days = begun(warehouse, tmp_path, weeks)
    days.change({weeks[0]: [("gone", IDS[:1])]}, at=EARLY)
    days.audit(at=EARLY + MINUTE)
    days.change({weeks[0]: [("gone", IDS[1:])], weeks[1]: [("gone", IDS)]}, at=LATE)
    before = days.audit(at=LATE + MINUTE)
    days.damage(Damage("sink", T0, T0 + MINUTE))
    dark = days.audit(at=LATE + 2 * MINUTE)
    days.damage(None)
    after = days.audit(at=LATE + 3 * MINUTE)
    told = {
        (week, n): (published.cells[week, T0].verdict, published.cells[week, T0].pending)
        for week in weeks
        for n, published in enumerate((before, dark, after))
    }
    assert told == {
        **{(weeks[0], 0): ("loss", 0), (weeks[1], 0): ("ok", 0)},
        **{(weeks[0], 1): ("inconclusive", 4), (weeks[1], 1): ("inconclusive", 4)},
        **{(weeks[0], 2): ("loss", 0), (weeks[1], 2): ("ok", 0)},
    }
