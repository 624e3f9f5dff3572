"""The oracle itself, on cases small enough to be judged by reading.

First what an id counts as, row by row of docs/verdicts.md, then every way in which a published
audit failed.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from shardaudit.model.verdict import Cause, Kind, State, Verdict
from tests.history import Damage, History, Outcome, Question, SinkRow, Trace
from tests.oracle import reconcile
from tests.oracle_watermark import Record

T0 = datetime(2026, 11, 20, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
TICK = timedelta(milliseconds=1)
SHARD, OTHER = "shardId-000", "shardId-001"
LATE = Question(T0, T0 + 5 * MINUTE, as_of=T0 + timedelta(hours=1))  # all is settled by time


def sent(
    message_id: str, number: str | None = "1", *, minute: float = 0, shard: str = SHARD
) -> Trace:
    return Trace(message_id, shard, number, T0 + minute * MINUTE)


def landed(
    message_id: str,
    number: str | None = "1",
    *,
    minute: float = 0,
    after: float = 0.5,
    shard: str = SHARD,
) -> SinkRow:
    """A row that landed `after` minutes after it was sent."""
    at = T0 + minute * MINUTE
    return SinkRow(message_id, shard, number, at, at + after * MINUTE)


def outcome(
    *events: Trace | SinkRow | Damage, ask: Question = LATE, known: frozenset[str] = frozenset()
) -> Outcome:
    history = History(
        traces=tuple(e for e in events if isinstance(e, Trace)),
        rows=tuple(e for e in events if isinstance(e, SinkRow)),
        damaged=tuple(e for e in events if isinstance(e, Damage)),
        known_shards=known,
    )
    return reconcile(history, ask)


def found(result: Outcome) -> dict[tuple[str, Kind], Cause]:
    return {key: finding.cause for key, finding in result.findings.items()}


def verdicts(result: Outcome, shard: str = SHARD) -> list[Verdict]:
    cells = sorted((start, c.verdict) for (name, start), c in result.cells.items() if name == shard)
    return [verdict for _, verdict in cells]


def watermark(result: Outcome, ask: Question = LATE) -> datetime | None:
    """Where the stream's stands when this is its first audit."""
    record = Record(ask.bucket)
    record.count(result, ask, History())
    return record.watermark(result.findings, ask)


# --------------------------------------------------------- what an id counts as, row by row


def test_nothing_is_found_when_sent_once_and_landed_once() -> None:
    result = outcome(sent("a"), landed("a"))
    assert not result.findings
    assert verdicts(result) == [Verdict.OK] * 5
    assert (result.verdict, watermark(result)) == (Verdict.OK, LATE.end)
    assert result.trace_coverage == 1.0


def test_lost_when_the_settled_frontier_has_passed_it() -> None:
    soon = replace(LATE, as_of=T0 + 13 * MINUTE, end=T0 + 2 * MINUTE)
    passed = landed("b", "2", minute=1, after=1)  # landed exactly a grace ago or more
    result = outcome(sent("a", "1", minute=1), sent("b", "2", minute=1), passed, ask=soon)
    assert found(result) == {("a", Kind.MISSING): Cause.LOST}
    assert result.cells[SHARD, T0 + MINUTE].verdict is Verdict.LOSS


@pytest.mark.parametrize(("late_by", "lost"), [(timedelta(0), True), (TICK, False)])
def test_lost_only_when_the_flush_grace_is_over(late_by: timedelta, *, lost: bool) -> None:
    ask = replace(LATE, as_of=T0 + 11 * MINUTE)
    after = (MINUTE + late_by) / MINUTE
    result = outcome(sent("a"), sent("b", "2"), landed("b", "2", after=after), ask=ask)
    assert (("a", Kind.MISSING) in found(result)) is lost
    assert (result.pending == {"a"}) is not lost


def test_pending_when_position_not_past_it_and_shard_advancing_however_old() -> None:
    fresh = landed("later", "1", minute=4, after=54)  # the consumer is slow but moves
    result = outcome(sent("later", "1", minute=4), fresh, sent("old", "2"))
    assert not result.findings
    assert result.pending == {"old"}
    assert result.cells[SHARD, T0].verdict is Verdict.PENDING
    assert watermark(result) == T0


def test_stuck_when_position_not_past_it_and_shard_stalled() -> None:
    result = outcome(sent("a", "1"), landed("a", "1"), sent("b", "2", minute=2))
    assert found(result) == {("b", Kind.MISSING): Cause.STUCK}
    assert result.cells[SHARD, T0 + 2 * MINUTE].verdict is Verdict.STALLED


@pytest.mark.parametrize(("younger", "stuck"), [(timedelta(0), False), (-TICK, True)])
def test_stuck_only_when_older_than_the_patience(younger: timedelta, *, stuck: bool) -> None:
    ask = replace(LATE, as_of=T0 + 13 * MINUTE)  # grace 10 minutes
    minute = 3 + younger / MINUTE
    result = outcome(sent("a"), landed("a"), sent("b", "2", minute=minute), ask=ask)
    assert (("b", Kind.MISSING) in found(result)) is stuck


@pytest.mark.parametrize(("later", "stuck"), [(timedelta(0), False), (-TICK, True)])
def test_stalled_only_when_the_frontier_is_older_than_the_patience(
    later: timedelta, *, stuck: bool
) -> None:
    ask = replace(LATE, as_of=T0 + 13 * MINUTE)
    frontier = landed("a", after=3 + later / MINUTE)
    result = outcome(sent("a"), frontier, sent("b", "2", minute=1), ask=ask)
    assert (("b", Kind.MISSING) in found(result)) is stuck


def test_stuck_when_the_shard_is_silent() -> None:
    result = outcome(sent("a"), sent("x", shard=OTHER), landed("x", shard=OTHER))
    assert found(result) == {("a", Kind.MISSING): Cause.STUCK}
    assert verdicts(result)[0] is Verdict.SILENT
    assert result.verdict is Verdict.SILENT


@pytest.mark.parametrize(("numbers", "row_number"), [((None, "5"), "5"), (("1", "5"), None)])
def test_lost_once_settled_by_time_when_no_position_can_be_known(
    numbers: tuple[str | None, str], row_number: str | None
) -> None:
    lost, fine = numbers
    fine_row = landed("b", row_number, minute=4)
    events: list[Trace | SinkRow] = [sent("a", lost), sent("b", fine, minute=4), fine_row]
    assert found(outcome(*events)) == {("a", Kind.MISSING): Cause.LOST}
    early = outcome(*events, ask=replace(LATE, as_of=T0 + 10 * MINUTE))
    assert early.pending == {"a"}


@pytest.mark.parametrize(("past", "state"), [(timedelta(0), State.OPEN), (TICK, State.EXPIRED)])
def test_state_expires_and_cause_stays_when_recoverable_until_has_passed(
    past: timedelta, state: State
) -> None:
    ask = replace(LATE, as_of=T0 + LATE.retention + past)
    finding = outcome(sent("a"), ask=ask).findings["a", Kind.MISSING]
    assert (finding.cause, finding.state) == (Cause.STUCK, state)
    assert finding.recoverable_until == T0 + timedelta(hours=24)


@pytest.mark.parametrize(
    ("second", "cause"),
    [
        (landed("a", "1", after=7), Cause.CONSUMER_REPLAY),
        (landed("a", "2"), Cause.PRODUCER_RETRY),
        (landed("a", "1", shard=OTHER), Cause.PRODUCER_RETRY),
    ],
)
def test_cause_of_a_duplicate_is_read_from_its_records(second: SinkRow, cause: Cause) -> None:
    result = outcome(sent("a"), landed("a"), second)
    assert found(result) == {("a", Kind.DUPLICATED): cause}
    cell = result.cells[SHARD, T0]
    assert (cell.matched, cell.duplicated, cell.extra_rows) == (1, 1, 1)
    assert cell.verdict is Verdict.DUPLICATION


def test_cause_of_a_duplicate_is_unknown_when_the_sink_has_no_numbers() -> None:
    result = outcome(sent("a"), landed("a", None), landed("a", None))
    assert found(result) == {("a", Kind.DUPLICATED): Cause.UNKNOWN}


def test_untraced_when_it_landed_and_was_never_acknowledged() -> None:
    result = outcome(landed("a"), ask=replace(LATE, trace_coverage_floor=0.0))
    assert found(result) == {("a", Kind.UNTRACED): Cause.TRACE_LOSS}
    assert verdicts(result)[0] is Verdict.UNTRACED
    assert result.trace_coverage == 0.0


def test_untraced_twice_is_also_duplicated() -> None:
    result = outcome(landed("a"), landed("a"))
    assert found(result) == {
        ("a", Kind.UNTRACED): Cause.TRACE_LOSS,
        ("a", Kind.DUPLICATED): Cause.CONSUMER_REPLAY,
    }
    assert (result.cells[SHARD, T0].extra_rows, result.cells[SHARD, T0].untraced) == (1, 1)


def test_moved_when_no_trace_names_the_shard_it_landed_on() -> None:
    result = outcome(sent("a"), landed("b"), sent("b"), landed("a", shard=OTHER))
    assert found(result) == {("a", Kind.MOVED): Cause.RESHARD}
    here, there = result.cells[SHARD, T0], result.cells[OTHER, T0]
    assert (here.sent, here.matched, here.landed, here.moved) == (2, 2, 1, 1)
    assert (there.sent, there.matched, there.landed, there.moved) == (0, 0, 1, 0)
    assert here.verdict is Verdict.UNTRACED


def test_not_moved_when_one_of_two_attempts_names_the_shard() -> None:
    result = outcome(sent("a"), sent("a", "9", shard=OTHER), landed("a", "9", shard=OTHER))
    assert not result.findings


# ------------------------------------------------------------ verdicts of cells and of audits


def test_mixed_when_a_cell_has_lost_and_duplicated_ids() -> None:
    ok = (sent("z", "9", minute=1), landed("z", "9", minute=1))
    result = outcome(sent("a", "1"), sent("b", "2"), landed("b", "2"), landed("b", "2"), *ok)
    assert verdicts(result) == [Verdict.MIXED] + [Verdict.OK] * 4


def test_inconclusive_when_trace_coverage_is_below_the_floor() -> None:
    rows = [landed(str(i), str(i)) for i in range(100)]
    traces = [sent(str(i), str(i)) for i in range(99)]
    at_floor = outcome(*rows, *traces)
    assert verdicts(at_floor)[0] is Verdict.UNTRACED
    below = outcome(*rows, *traces[1:])
    assert verdicts(below)[0] is Verdict.INCONCLUSIVE
    assert below.verdict is Verdict.INCONCLUSIVE


def test_audit_is_untraced_when_only_a_small_cell_of_a_covered_shard_is_below_the_floor() -> None:
    ids = [str(i) for i in range(200)]
    well = [e for i in ids for e in (sent(i, i), landed(i, i))]
    result = outcome(*well, landed("a", "300", minute=1))
    assert verdicts(result)[1] is Verdict.INCONCLUSIVE
    assert result.verdict is Verdict.UNTRACED


def test_audit_forgives_loss_within_the_tolerance_of_a_shard() -> None:
    ids = [str(i) for i in range(100, 199)]
    well = [e for i in ids for e in (sent(i, i), landed(i, i))]
    tolerant = replace(LATE, tolerance=0.01)
    result = outcome(*well, sent("gone", "1"), ask=tolerant)
    assert verdicts(result)[0] is Verdict.LOSS
    assert result.verdict is Verdict.OK
    assert outcome(*well, sent("gone", "1"), sent("too", "2"), ask=tolerant).verdict is Verdict.LOSS


def test_damaged_cells_are_inconclusive_and_their_absent_ids_pending() -> None:
    damage = Damage("sink", T0 + 30 * timedelta(seconds=1), T0 + MINUTE + TICK)
    well = (sent("z", "9", minute=3), landed("z", "9", minute=3))
    result = outcome(sent("a", "1"), sent("b", "2", minute=2), *well, damage)
    assert found(result) == {("b", Kind.MISSING): Cause.LOST}
    assert result.pending == {"a"}
    assert verdicts(result)[:3] == [Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE, Verdict.LOSS]


@pytest.mark.parametrize(("side", "cause"), [("traces", Cause.UNKNOWN), ("sink", Cause.TRACE_LOSS)])
def test_untraced_is_nobodys_fault_when_a_trace_file_is_damaged(side: str, cause: Cause) -> None:
    result = outcome(landed("a"), Damage(side, T0, T0 + MINUTE))
    assert found(result) == {("a", Kind.UNTRACED): cause}


@pytest.mark.parametrize(("early", "settled"), [(timedelta(0), True), (TICK, False)])
def test_an_empty_cell_is_pending_until_its_end_is_a_patience_ago(
    early: timedelta, *, settled: bool
) -> None:
    ask = replace(LATE, end=T0 + MINUTE, as_of=T0 + 11 * MINUTE - early)
    result = outcome(ask=ask, known=frozenset({SHARD}))
    assert verdicts(result) == [Verdict.OK if settled else Verdict.PENDING]


@pytest.mark.parametrize(
    ("latency_s", "patience_s"),
    [(512, 600), (513, 1024), (1024, 1024), (1025, 2048), (9000, 8640)],
)
def test_patience_follows_the_shards_own_latency_up_to_a_tenth_of_the_retention(
    latency_s: int, patience_s: int
) -> None:
    at_edge = timedelta(seconds=patience_s)
    # The frontier is unknown (no numbers), so that age alone decides.
    slow = landed("slow", None, after=latency_s / 60)
    for beyond, lost in ((timedelta(0), False), (TICK, True)):
        ask = replace(LATE, as_of=T0 + at_edge + beyond)
        result = outcome(sent("slow"), slow, sent("a", "2"), ask=ask)
        assert (("a", Kind.MISSING) in found(result)) is lost


def test_one_slow_message_in_two_hundred_does_not_stretch_the_patience() -> None:
    ids = [str(i) for i in range(200)]
    well = [e for i in ids[1:] for e in (sent(i, i), landed(i, None))]
    slow = (sent("0", "0"), landed("0", None, after=40))
    ask = replace(LATE, as_of=T0 + 10 * MINUTE + TICK)
    assert ("a", Kind.MISSING) in found(outcome(*well, *slow, sent("a", "999"), ask=ask))


# ------------------------------------------------------------ how other audits failed in public


def test_one_stopped_shard_is_seen_behind_many_that_are_healthy() -> None:
    shards = [f"shardId-{i:03d}" for i in range(50)]
    healthy = [
        event
        for s in shards
        for m in range(5)
        for event in (
            sent(f"{s}/{m}", str(m), minute=m, shard=s),
            landed(f"{s}/{m}", str(m), minute=m, shard=s),
        )
    ]
    stopped = [e for e in healthy if not (isinstance(e, SinkRow) and e.shard_id == shards[7])]
    first_row = landed(f"{shards[7]}/0", "0", shard=shards[7])
    result = outcome(*stopped, first_row)
    assert result.verdict is Verdict.STALLED
    assert {f.shard_id for f in result.findings.values()} == {shards[7]}
    assert watermark(result) == T0 + MINUTE


def test_counts_do_not_cancel_when_one_is_lost_and_one_doubled() -> None:
    result = outcome(
        sent("a", "1"), sent("b", "2"), sent("c", "3"),
        landed("b", "2"), landed("c", "3"), landed("c", "3"),
    )  # fmt: skip
    cell = result.cells[SHARD, T0]
    assert cell.sent == cell.landed
    assert (cell.missing, cell.duplicated, cell.extra_rows) == (1, 1, 1)
    assert cell.verdict is Verdict.MIXED


def test_counts_do_not_cancel_when_one_is_lost_and_a_stranger_landed() -> None:
    result = outcome(sent("a", "1"), sent("b", "2"), landed("b", "2"), landed("x", "3"))
    assert found(result) == {
        ("a", Kind.MISSING): Cause.LOST,
        ("x", Kind.UNTRACED): Cause.TRACE_LOSS,
    }


def test_acknowledged_twice_and_landed_twice_is_still_doubled() -> None:
    result = outcome(sent("a", "1"), sent("a", "2"), landed("a", "1"), landed("a", "2"))
    assert found(result) == {("a", Kind.DUPLICATED): Cause.PRODUCER_RETRY}
    assert result.findings["a", Kind.DUPLICATED].sent_count == 2
    assert result.cells[SHARD, T0].sent == 1


def test_more_landed_than_sent_is_not_complete() -> None:
    result = outcome(sent("a", "1"), sent("b", "2"), *[landed("b", "2")] * 3)
    assert result.verdict is Verdict.MIXED


def test_silence_of_the_whole_sink_is_not_success() -> None:
    result = outcome(sent("a"), sent("b", minute=3, shard=OTHER))
    assert result.verdict is Verdict.SILENT
    assert verdicts(result)[0] is Verdict.SILENT
    assert result.trace_coverage is None
    assert len(result.cells) == 10


def test_an_audit_that_saw_nothing_at_all_is_not_success() -> None:
    result = outcome()
    assert result.verdict is Verdict.INCONCLUSIVE
    assert watermark(result) is None


def test_an_idle_shard_is_ok_with_zeros() -> None:
    result = outcome(sent("a"), landed("a"), known=frozenset({OTHER}))
    assert verdicts(result, OTHER) == [Verdict.OK] * 5
    assert result.verdict is Verdict.OK


def test_a_shard_seen_only_outside_the_window_is_in_the_grid() -> None:
    before = (sent("x", minute=-60, shard=OTHER), landed("x", minute=-60, shard=OTHER))
    result = outcome(sent("a"), landed("a"), *before)
    assert len(result.cells) == 10
    assert not result.findings


def test_a_stalled_shard_is_found_though_no_reader_reports_any_age() -> None:
    progress = [sent(str(m), str(m), minute=m) for m in range(5)]
    result = outcome(*progress, landed("0", "0"))
    causes = {f.cause for f in result.findings.values()}
    assert (len(result.findings), causes) == (4, {Cause.STUCK})


def test_watermark_is_the_first_bad_cell_and_not_the_newest_good_one() -> None:
    events = [e for m in range(5) for e in (sent(str(m), str(m), minute=m),)]
    rows = [landed(str(m), str(m), minute=m) for m in (0, 2, 3, 4)]
    result = outcome(*events, *rows)
    assert verdicts(result) == [Verdict.OK, Verdict.LOSS] + [Verdict.OK] * 3
    assert watermark(result) == T0 + MINUTE


@pytest.mark.parametrize(
    ("below", "above"),
    [("9", "10"), ("9" * 18, "1" + "0" * 18), ("9" * 128, "1" + "0" * 128)],
)
def test_sequence_numbers_compare_as_numbers_when_their_lengths_differ(
    below: str, above: str
) -> None:
    hole = outcome(sent("a", below), sent("b", above), landed("b", above))
    tail = outcome(sent("a", above), sent("b", below), landed("b", below))
    assert hole.findings["a", Kind.MISSING].cause is Cause.LOST
    assert tail.findings["a", Kind.MISSING].cause is Cause.STUCK


def test_sequence_numbers_are_told_apart_when_they_differ_in_digit_129() -> None:
    base = "4" * 128
    result = outcome(sent("a", base + "2"), sent("b", base + "1"), landed("b", base + "1"))
    assert result.findings["a", Kind.MISSING].cause is Cause.STUCK


def test_sequence_numbers_are_never_compared_across_shards() -> None:
    result = outcome(
        sent("a", "5"), landed("k", "1"), sent("k", "1"),
        sent("b", "9", shard=OTHER), landed("b", "9", shard=OTHER),
    )  # fmt: skip
    assert result.findings["a", Kind.MISSING].cause is Cause.STUCK


def test_ids_count_once_when_they_have_many_traces_and_many_rows() -> None:
    traces = [sent("a", str(i)) for i in range(3)]
    result = outcome(*traces, *traces, *[landed("a", "1")] * 4)
    cell = result.cells[SHARD, T0]
    assert (cell.sent, cell.matched, cell.landed, cell.extra_rows) == (1, 1, 4, 3)
    assert result.findings["a", Kind.DUPLICATED].sent_count == 3


def test_lost_traces_are_no_lost_messages() -> None:
    ids = [str(i) for i in range(200)]
    result = outcome(*[landed(i, i) for i in ids], *[sent(i, i) for i in ids[1:]])
    assert found(result) == {("0", Kind.UNTRACED): Cause.TRACE_LOSS}
    assert result.trace_coverage == 0.995


def test_wrong_shard_resend_counts_once_and_is_a_producers_retry() -> None:
    result = outcome(
        sent("a", "1"), sent("a", "7", shard=OTHER),
        landed("a", "1"), landed("a", "7", shard=OTHER),
    )  # fmt: skip
    assert found(result) == {("a", Kind.DUPLICATED): Cause.PRODUCER_RETRY}
    assert (result.cells[SHARD, T0].sent, result.cells[OTHER, T0].sent) == (1, 0)
    assert result.cells[SHARD, T0].verdict is Verdict.DUPLICATION


def test_the_first_ingest_decides_the_cell_when_a_retry_is_logged_later() -> None:
    early = Trace("a", OTHER, "7", T0, batch=1)
    late = Trace("a", SHARD, "1", T0, batch=2)
    result = outcome(early, late, landed("a", "1"))
    assert result.cells[OTHER, T0].matched == 1
    assert result.cells[SHARD, T0].landed == 1


@pytest.mark.parametrize(("retry", "verdict"), [("2", Verdict.OK), ("3", Verdict.PENDING)])
def test_a_cell_is_settled_when_the_consumer_passed_every_attempt_in_it(
    retry: str, verdict: Verdict
) -> None:
    ask = replace(LATE, end=T0 + MINUTE, as_of=T0 + 10 * MINUTE + 30 * timedelta(seconds=1))
    rows = (landed("a", "1", after=0.4), landed("b", "2", after=0.5))
    result = outcome(sent("a", "1"), sent("a", retry), sent("b", "2"), *rows, ask=ask)
    assert verdicts(result) == [verdict]
