"""What to look at next, from the numbers of an audit, and whether a repair would come in time."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from shardaudit.model.retention import bytes_at_most, time_to_read
from shardaudit.model.verdict import AuditStatus, Cause
from shardaudit.model.words import length, messages
from shardaudit.report.plain import harmless, instant
from shardaudit.report.summary import AuditReport, DeadlineLine, GivenUp, LateAudit, WaitingTime

HABIT = 10  # so many messages of a window that have several times are no accident
AUDIT_EVERY = timedelta(days=1)  # the usual schedule of the DAG nightly_audit


def next_steps(report: AuditReport) -> list[str]:
    """Sentences in the order of urgency; empty when nothing is wrong."""
    listing = f"shardaudit findings list --stream {report.stream}"
    steps = [_deadline(report, line) for line in _nearest(report.deadlines)]
    for kind, meaning in (
        ("missing", "acknowledged and not in the sink"),
        ("duplicated", "more than once in the sink"),
        ("untraced", "in the sink without a trace"),
        ("moved", "on another shard than their trace says"),
    ):
        ids = report.counts.get(kind, 0)
        if ids:
            steps.append(f"{messages(ids)} {meaning}: {listing} --kind {kind}")
    if report.quarantined:
        steps.append(
            f"{report.quarantined:,} lines or files of the input were set aside with a reason: "
            "see the table quarantine"
        )
    return steps


def late_lines(
    late: Iterable[LateAudit], waiting: WaitingTime | None, given_up: Iterable[GivenUp]
) -> list[str]:
    """What an audit looked at besides its window, what that is, and what waits, or is given up."""
    lines = [
        f"{instant(one.window_start)} to {instant(one.window_end)} was not proven complete: "
        f"audited, too: {one.verdict if one.status == AuditStatus.PUBLISHED else one.status}"
        + (f", {messages(one.missing)} missing" if one.missing else "")
        for one in late
    ]
    if waiting:
        lines.append(_waiting_line(waiting))
    return [*lines, *map(given_up_line, given_up)]


def given_up_line(one: GivenUp) -> str:
    """What is known of a span that no audit looks at by itself any more, and what to do."""
    start, end = instant(one.window_start), instant(one.window_end)
    return (
        f"nobody knows whether {start} to {end} is complete: no audit looked at it to its end, as "
        f"was found as of {instant(one.failed_at)}, and none will by itself any more. Audit it by "
        f"hand (`shardaudit audit --stream … --from {start} --to {end}`): where one failed, the "
        "last line says what fails"
    )


def _waiting_line(waiting: WaitingTime) -> str:
    line = (
        f"{length(waiting.length)} before the window, from {instant(waiting.first)} on, wait to be "
        f"audited, some since {instant(waiting.since)}: an audit looks at no more of it than its "
        "own window is long, in few spans, and at what was rejected before last"
    )
    if not waiting.is_overdue:
        return line
    return (
        f"{line}. Some that the stream still has wait for half of the time that it keeps records: "
        "audit them by hand (`shardaudit audit --from … --to …`), or audit more often"
    )


def _nearest(deadlines: tuple[DeadlineLine, ...]) -> list[DeadlineLine]:
    """The most urgent line of each cause."""
    first: dict[Cause, DeadlineLine] = {}
    for line in sorted(deadlines, key=lambda line: line.recoverable_until):
        first.setdefault(line.cause, line)
    return list(first.values())


def _deadline(report: AuditReport, line: DeadlineLine) -> str:
    shard, until = harmless(line.shard_id), instant(line.recoverable_until)
    if line.recoverable_until <= report.left_by:
        return f"{shard}: {messages(line.ids)} {left_from(line.recoverable_until)}"
    left = length(line.recoverable_until - report.left_by)
    if line.cause is Cause.STUCK:
        return (
            f"{shard}: its consumer stands still before {messages(line.ids)}; "
            f"restart it by {until} ({left} left)"
        )
    were = "was" if line.ids == 1 else "were"
    return (
        f"{shard}: {messages(line.ids)} {were} passed over, and can be read again until "
        f"{until} ({left} left)"
    )


def left_from(until: datetime) -> str:
    """What became of messages that nobody can read any more, the first of them since then."""
    return f"left the stream, the first at {instant(until)}"


def retention_note(kept_s: int | None, configured: timedelta | None) -> str | None:
    """A sentence where Kinesis keeps records for another time than is configured.

    Input:
        kept_s: how long they are kept, seconds; None: an older audit did not note it.
    """
    if kept_s is None or configured is None or timedelta(seconds=kept_s) == configured:
        return None
    return (
        f"Kinesis keeps records for {length(timedelta(seconds=kept_s))}, configured is a retention "
        f"of {length(configured)}: deadlines are counted with what Kinesis says"
    )


def vanished_note(vanished: int | None, until: datetime | None) -> str | None:
    """A sentence where rows left the sink after the stream had lost their messages.

    Input:
        vanished: how many messages; None: an older audit did not count them. until: the end of the
        last cell that had some.
    """
    if not vanished or until is None:
        return None
    return (
        f"{messages(vanished)}, the last sent before {instant(until)}, landed and left the sink "
        "when the stream no longer had them: no loss, and nothing that a backfill could bring back"
    )


def unnamed_notes(unnamed: int | None) -> tuple[str, ...]:
    """What to know where untraced messages are only counted, and no finding names them.

    Input:
        unnamed: how many, few perhaps: those in gaps stay so; None: an older audit named all.
    """
    if not unnamed:
        return ()
    return (
        f"{messages(unnamed)} landed without a trace and are only counted: no finding names them. "
        "Traces were lost, or a producer writes none; or, where about as many are missing, "
        "the sink writes other ids than the traces (cut, in capitals, with a prefix)",
    )


def stamping_note(stamped_anew: int | None) -> str | None:
    """A sentence where a producer gives retries another `sent_at` as a habit.

    Input:
        stamped_anew: messages that have several; None: an older audit did not count them.
    """
    if stamped_anew is None or stamped_anew < HABIT:
        return None
    return (
        f"{messages(stamped_anew)} were acknowledged more than once, in different minutes of their "
        "sent_at: a producer stamps retries anew. Each counts once, and is found as duplicated "
        "where two attempts landed, unless a trace is lost or more than a day lies between them. "
        "sent_at should be the message's, the same in all its attempts. If these are other "
        "messages whose ids were used before, none of them that is lost is found: an id must not "
        "come again within a day"
    )


def too_short(retention: timedelta, *, read_share: float) -> str | None:
    """A sentence when the retention is shorter than the way from a loss to its repair.

    At worst a message is lost just after an audit, found by the next one, and all that its shard
    took in between is read again.
    """
    to_read = time_to_read(bytes_at_most(AUDIT_EVERY), share=read_share)
    needed = AUDIT_EVERY + to_read
    if retention >= needed:
        return None
    return (
        f"the stream keeps records for {length(retention)}; an audit every {length(AUDIT_EVERY)} "
        f"and at most {length(to_read)} to read a full shard's day again "
        f"(backfill.read_share = {read_share:g}) are {length(needed)}: what was lost may leave the "
        "stream before it is back"
    )
