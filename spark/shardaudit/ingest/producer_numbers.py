"""What each producer numbered, and what of it came, was dropped, or never came.

By what the files of all batches tell, whatever the order in which they came: a file that comes
later closes its hole. It moves no verdict: a message is untraced by its own row, and the coverage
of a cell counts it there.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from shardaudit.adapters.lake.delta_rs import Row
from shardaudit.adapters.lake.delta_schema import in_utc
from shardaudit.ingest.batches import batch_number
from shardaudit.model.number_spans import Numbering, NumberSpan, Told, apart, greatest, number_holes
from shardaudit.model.tables.ledger_tables import TRACE_SESSIONS
from shardaudit.model.window import Window
from shardaudit.report.summary import BrokenSession, HoleLine, ProducerLine
from shardaudit.store.warehouse import Warehouse

# A producer writes a file each minute. What is not there by then does not come, or very late.
SETTLED = timedelta(minutes=10)

_WHOSE = ["location", "producer_id", "session"]
_MOST_NAMED = 20  # of the holes, and broken sessions, of a producer
_MOST_PRODUCERS = 100


@dataclass(slots=True)
class _Session:
    """What is told of one. `is_cut`: it began before its numbers were kept."""

    spans: dict[Told, list[NumberSpan]] = field(default_factory=lambda: defaultdict(list))
    dropped: set[tuple[NumberSpan, int]] = field(default_factory=set)
    is_cut: bool = False

    @property
    def numbered(self) -> int:
        """How many numbers there are at least, by its lines and by those of health."""
        return max(self._known(Told.LINES), self._known(Told.HEALTH))

    @property
    def ended_at(self) -> datetime | None:
        """When it was last heard of, and not all that it had numbered was in files.

        None: it was flushed then, or closed, or it says nothing of itself, as other logs.
        """
        heard = [at for spans in self.spans.values() for *_, at in spans if at is not None]
        says_it = self.spans[Told.HEALTH] and self._known(Told.WHOLE) < self.numbered
        return max(heard) if says_it and heard else None

    def _known(self, told: Told) -> int:
        return max((span.last + 1 for span in self.spans[told]), default=0)


def producer_lines(
    warehouse: Warehouse,
    stream: str,
    window: Window,
    *,
    as_of: datetime,
    among: Collection[str] | None = None,
) -> tuple[ProducerLine, ...]:
    """The producers that numbered traces in the window, those that lost most first.

    Input:
        among: locations, of which alone they are wanted.
    """
    of_stream = pc.field("stream") == stream
    rows = warehouse.columns(TRACE_SESSIONS, names=TRACE_SESSIONS.names, where=of_stream)
    if not rows:  # none, or none left of them
        return ()
    first = min(map(batch_number, pc.unique(rows["batch_id"]).to_pylist()))
    near = map(in_utc, _near(rows, window).to_pylist())
    asked = (row for row in near if among is None or row["location"] in among)
    heard = in_utc({"at": pc.max(rows["last_at"]).as_py()})["at"]
    # What was before it was deleted, or read by a version that kept no numbers.
    return lines_of(asked, window, as_of=as_of, cut=first, heard=heard)


def lines_of(
    rows: Iterable[Row],
    window: Window,
    *,
    as_of: datetime,
    cut: int | None,
    heard: datetime | None,
) -> tuple[ProducerLine, ...]:
    """The same of rows of TRACE_SESSIONS.

    Input:
        cut: the first batch of which there are rows: its sessions may have begun before.
        heard: until when any session of the stream was heard of; None: until `as_of`.
    """
    sessions: dict[Numbering, _Session] = defaultdict(_Session)
    for row in rows:
        who = Numbering(*(row[name] or "" for name in _WHOSE))
        _add(sessions[who], row, is_cut=batch_number(row["batch_id"]) == cut)
    producers: dict[tuple[str, str], list[tuple[str, _Session]]] = defaultdict(list)
    for who, session in sessions.items():
        producers[who.location, who.producer_id or ""].append((who.session or "", session))
    # Where nobody was heard of since, files are late.
    over = min(as_of, heard or as_of) - SETTLED
    lines = [
        _with_broken(_line(*who, dict(of), window, as_of), of, window, over=over)
        for who, of in producers.items()
    ]
    seen = [line for line in lines if line.numbered or line.unnumbered or line.broken_off]
    seen.sort(key=lambda line: (line.came - line.numbered, line.location, line.producer_id))
    return tuple(seen[:_MOST_PRODUCERS])


def _near(rows: pa.Table, window: Window) -> pa.Table:
    """The rows of the sessions that were there in the window, or nobody knows when."""
    for name in _WHOSE:
        filled = rows[name].fill_null("")
        rows = rows.set_column(rows.schema.get_field_index(name), name, filled)
    ends = rows.group_by(_WHOSE).aggregate([("first_at", "min"), ("last_at", "max")])
    is_over = pc.less(ends["last_at_max"], pa.scalar(window.start))
    is_later = pc.greater_equal(ends["first_at_min"], pa.scalar(window.end))
    is_elsewhere = pc.or_(is_over, is_later).fill_null(fill_value=False)
    near = ends.filter(pc.invert(is_elsewhere)).select(_WHOSE)
    return rows.join(near, keys=_WHOSE, join_type="left semi")


def _add(session: _Session, row: Mapping[str, object], *, is_cut: bool) -> None:
    span = NumberSpan(*(row[name] for name in ("first_seq", "last_seq", "first_at", "last_at")))  # type: ignore[arg-type] # as the table says
    told, dropped = Told(str(row["told"])), row["dropped"]
    if isinstance(dropped, int) and dropped < span.size:
        session.dropped.add((span, dropped))
    else:
        session.spans[told].append(span)
    session.is_cut |= is_cut


def _line(
    location: str,
    producer_id: str,
    sessions: Mapping[str, _Session],
    window: Window,
    as_of: datetime,
) -> ProducerLine:
    told = dropped = lost = unnumbered = 0
    found: list[HoleLine] = []
    for name, session in sorted(sessions.items()):
        if sparse := session.spans[Told.SPARSE]:
            unnumbered += any(_is_in(span, window) for span in sparse)
            continue
        told += round(sum(_share(span, window) for span in apart(session.spans[Told.LINES])))
        gaps = [(span, span.size) for span in apart(session.spans[Told.GAP])]
        dropped += sum(count for span, count in (*gaps, *session.dropped) if _is_in(span, window))
        lacking = [span for span in _holes(session, as_of) if _is_in(span, window)]
        lost += sum(span.size for span in lacking)
        found += [HoleLine(name, *span) for span in lacking]
    found.sort(key=lambda hole: hole.first - hole.last)
    came = max(0, told - dropped)
    return ProducerLine(
        location=location,
        producer_id=producer_id,
        numbered=came + dropped + lost,
        came=came,
        dropped=dropped,
        lost=lost,
        unnumbered=unnumbered,
        holes=tuple(found[:_MOST_NAMED]),
    )


def _with_broken(
    line: ProducerLine,
    sessions: Iterable[tuple[str, _Session]],
    window: Window,
    *,
    over: datetime,
) -> ProducerLine:
    """The line, with the sessions that ended in the window, before `over`, and were not closed."""
    broken = [
        BrokenSession(name, session.numbered, at)
        for name, session in sessions
        if (at := session.ended_at) is not None and window.start <= at < window.end and at <= over
    ]
    broken.sort(key=lambda one: one.at, reverse=True)
    return replace(line, broken_off=len(broken), broken=tuple(broken[:_MOST_NAMED]))


def _holes(session: _Session, as_of: datetime) -> list[NumberSpan]:
    """The numbers that never came; a file that may still be on its way is waited for."""
    lines, health = session.spans[Told.LINES], session.spans[Told.HEALTH]
    known = greatest(health) if health else None
    if session.is_cut and not lines:
        return []
    begin = min(span.first for span in lines) if session.is_cut else 0
    found = number_holes(lines, begin=begin, known=known)
    return [span for span in found if span.until is None or span.until <= as_of - SETTLED]


def _is_in(span: NumberSpan, window: Window) -> bool:
    if span.since is None or span.until is None:
        return True
    return span.since < window.end and span.until >= window.start


def _share(span: NumberSpan, window: Window) -> float:
    """How many of its numbers are of the window, about: as many as of its time."""
    if span.since is None or span.until is None or span.since == span.until:
        return span.size * _is_in(span, window)
    inside = min(span.until, window.end) - max(span.since, window.start)
    return span.size * max(0.0, min(1.0, inside / (span.until - span.since)))
