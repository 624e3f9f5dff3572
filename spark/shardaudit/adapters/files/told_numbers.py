"""Which numbers of which sessions a trace file tells, gathered while it is read; no Spark.

A line that is set aside tells its number, too: of another stream, refused, or not in the sample.
What a file tells is one text, so that it goes with the file's rows to the driver.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from shardaudit.adapters.files.loose_traces import LOOSE, without_passed_over
from shardaudit.adapters.lake.parquet_file import open_parquet, unreadable
from shardaudit.model.input_columns import PRODUCER
from shardaudit.model.number_spans import BEYOND_NUMBERS, MOST_RUNS, Told
from shardaudit.model.trace_line import (
    GAP,
    HEALTH,
    PASSED_OVER,
    Json,
    read_object,
    told_by_the_log,
)
from shardaudit.model.window import unix_micros

TOLD_NUMBERS = pa.schema([("file", pa.string()), ("raw", pa.string())])

_SESSION = ("location", "producer_id", "session")
_WHOSE = (*_SESSION, "told")
_NUMBERS = ("first", "last", "since", "until")  # times in µs since 1970
_SPANS = pa.schema(
    [*((name, pa.string()) for name in _WHOSE), *((name, pa.int64()) for name in _NUMBERS)]
)
_SOME_ROWS, _MOST_ROWS = 10_000, 200_000
_BATCH_ROWS = 200_000
_DIGITS = r"^[0-9]{1,18}$"
_OF_HEALTH = ("written", "dropped", "queued")
_WHOLE = ("flushed", "closed")
_Row = list[str | int | None]  # of _SPANS


@dataclass(slots=True)
class _Health:
    """A session has so many numbers, as was first said `since`; it was last heard of `until`.

    `whole`: how many of them were in files, or dropped, when it was last flushed or closed.
    """

    numbered: int
    since: int | None
    until: int | None
    whole: int = 0

    @property
    def times(self) -> tuple[int | None, int | None]:
        """As a span has them."""
        return self.since, self.until


class ToldNumbers:
    """Gathers what the lines of a file tell. `columns`: standard name -> key of a line's object.

    `most_rows`: in memory; of whom more are left has a session for each trace.
    """

    def __init__(self, columns: Mapping[str, str], most_rows: int = _MOST_ROWS) -> None:
        self._columns, self._most_rows = columns, most_rows
        self._spans = _SPANS.empty_table()
        self._waiting: list[pa.Table] = []
        self._rows: list[_Row] = []  # of lines that were read one by one
        self._health: dict[tuple[str | None, ...], _Health] = {}
        self._is_too_much = False

    def add(self, loose: pa.RecordBatch) -> None:
        """Takes rows of LOOSE."""
        digits = pc.match_substring_regex(loose["session_seq"], _DIGITS)
        rows = loose.filter(pc.and_(digits, loose["session"].is_valid()))
        at = pc.coalesce(_micros(rows, "acked_at"), _micros(rows, "sent_at"))
        whose = [_with_location(name, rows[name]) for name in _SESSION]
        self.add_traces(whose, rows["session_seq"].cast(pa.int64()), at)
        # Of them the line alone is there: a field is of a wrong type, or the log tells of itself.
        others = pc.and_(loose["fault"].is_valid(), loose["session"].is_null())
        for raw in loose["raw"].filter(others).drop_null().to_pylist():
            self._add_line(raw)

    def add_traces(self, whose: Sequence[pa.Array], numbers: pa.Array, at: pa.Array) -> None:
        """Takes traces: of each its location, producer and session, its number, its time."""
        if not len(numbers):
            return
        arrays = [*whose, _repeated(Told.LINES.value, len(numbers)), numbers, numbers, at, at]
        self._add(_joined(pa.Table.from_arrays(arrays, names=_SPANS.names)))

    def as_text(self) -> str | None:
        """A JSON list of what they told: of each span the values of _SPANS; None: nothing."""
        self._join()
        rows: list[_Row] = [list(row.values()) for row in self._spans.to_pylist()]
        for who, health in self._health.items():
            rows.append([*who, Told.HEALTH.value, 0, health.numbered - 1, *health.times])
            if health.whole:
                rows.append([*who, Told.WHOLE.value, 0, health.whole - 1, *health.times])
        if self._is_too_much:
            rows.append([PRODUCER, None, None, Told.SPARSE.value, 0, 0, None, None])
        return json.dumps(_with_times(rows)) if rows else None

    def _add(self, spans: pa.Table) -> None:
        if self._is_too_much:
            return
        self._waiting.append(spans)
        if sum(map(len, self._waiting)) > self._most_rows:
            self._join()

    def _join(self) -> None:
        if self._rows:
            by_column = zip(*self._rows, strict=True)
            arrays = [pa.array(v, t) for v, t in zip(by_column, _SPANS.types, strict=True)]
            self._waiting.append(pa.Table.from_arrays(arrays, schema=_SPANS))
        spans = _thinned(_joined(pa.concat_tables([self._spans, *self._waiting])))
        self._is_too_much |= len(spans) > self._most_rows
        self._spans = _SPANS.empty_table() if self._is_too_much else spans
        self._waiting, self._rows = [], []

    def _add_line(self, raw: str) -> None:
        """Takes a line by what stands in it; without a session it tells nothing."""
        line, _ = read_object(raw.encode())
        location, *names = (_text(line.get(self._columns[name])) for name in _SESSION)
        producer_id, session = names
        if session is None:
            return
        who = (location or PRODUCER, producer_id, session)
        told = told_by_the_log(line, self._columns)
        if told == PASSED_OVER:
            self._add_health(who, line)
            return
        first = _whole(line.get(self._columns["session_seq"]))
        count = 1 if told is None else _whole(line.get(GAP))
        if first is None or not count:
            return
        span = [first, first + count - 1, None, None]
        self._rows.append([*who, Told.LINES.value, *span])
        if told is not None:
            self._rows.append([*who, Told.GAP.value, *span])
        if len(self._rows) > _SOME_ROWS:
            self._join()

    def _add_health(self, who: tuple[str | None, ...], line: Mapping[str, Json]) -> None:
        """Takes how many numbers there are, when that was first said, and what was said last."""
        counts = [_whole(line[HEALTH].get(name)) for name in _OF_HEALTH]
        numbered, at = sum(count or 0 for count in counts), _micros_of(line.get("at"))
        if None in counts or not numbered or len(self._health) >= self._most_rows:
            return
        health = self._health.setdefault(who, _Health(numbered, at, at))
        if numbered > health.numbered:
            health.numbered, health.since = numbered, at
        health.until = max((t for t in (health.until, at) if t is not None), default=None)
        if any(line[HEALTH].get(name) is True for name in _WHOLE):
            health.whole = max(health.whole, numbered - (counts[-1] or 0))


def with_told_numbers(
    batches: Iterator[pa.RecordBatch],
    path: str,
    columns: Mapping[str, str],
    most_rows: int = _MOST_ROWS,
) -> Iterator[pa.RecordBatch]:
    """The rows of LOOSE of a file, and one more that is passed over: it tells their numbers."""
    told = ToldNumbers(columns, most_rows)
    for batch in batches:
        told.add(batch)
        yield without_passed_over(batch)
    if (text := told.as_text()) is not None:
        values = dict.fromkeys(LOOSE.names) | {"file": path, "line": 0, "raw": text}
        yield pa.RecordBatch.from_pylist([values | {"fault": PASSED_OVER}], schema=LOOSE)


def parquet_numbers(
    file: pa.NativeFile, path: str, columns: Mapping[str, str], most_rows: int = _MOST_ROWS
) -> Iterator[pa.RecordBatch]:
    """What the rows of a plain Parquet file tell, in one row of TOLD_NUMBERS.

    Input:
        columns: standard name -> column, for those that the file has.
    """
    told = ToldNumbers(columns, most_rows)
    whose = [columns[name] for name in _SESSION if name in columns]
    at = columns["acked_at" if "acked_at" in columns else "sent_at"]
    try:
        source = open_parquet(file, few_values=whose)
        for batch in source.iter_batches(_BATCH_ROWS, columns=[*whose, columns["session_seq"], at]):
            _add_plain(told, batch, columns)
    except (pa.ArrowException, OSError) as error:
        unreadable(file, error)  # raises what the storage says; of damage tells who reads the rows
        return
    yield pa.RecordBatch.from_pylist([{"file": path, "raw": told.as_text()}], schema=TOLD_NUMBERS)


def lost_numbers(path: str, _: str) -> pa.RecordBatch:
    """The row of a file that cannot be read."""
    return pa.RecordBatch.from_pylist([{"file": path, "raw": None}], schema=TOLD_NUMBERS)


def _add_plain(told: ToldNumbers, batch: pa.RecordBatch, columns: Mapping[str, str]) -> None:
    numbers = batch[columns["session_seq"]].cast(pa.int64())
    is_numbered = pc.and_(batch[columns["session"]].is_valid(), pc.greater_equal(numbers, 0))
    is_numbered = pc.and_(is_numbered, pc.less(numbers, BEYOND_NUMBERS)).fill_null(fill_value=False)
    if is_numbered.false_count:
        batch, numbers = batch.filter(is_numbered), numbers.filter(is_numbered)
    nothing = _repeated(None, len(batch))
    whose = [
        _with_location(name, batch[columns[name]] if name in columns else nothing)
        for name in _SESSION
    ]
    at = batch[columns["acked_at" if "acked_at" in columns else "sent_at"]]
    precise = at.cast(pa.timestamp("us", at.type.tz), safe=False)
    told.add_traces(whose, numbers, precise.cast(pa.int64()))


def _with_location(name: str, column: pa.Array) -> pa.Array:
    """A column of _SESSION; who says no location is the producer."""
    if name != "location" or not column.null_count:
        return column
    if column.null_count == len(column):
        return _repeated(PRODUCER, len(column))
    return column.cast(pa.string()).fill_null(PRODUCER)


def _repeated(text: str | None, size: int) -> pa.Array:
    """So many times the same text."""
    indices = pa.repeat(pa.scalar(None if text is None else 0, pa.int32()), size)
    return pa.DictionaryArray.from_arrays(indices, pa.array([text or ""], pa.string()))


def _joined(spans: pa.Table) -> pa.Table:
    """The spans by session and number, those that overlap or touch as one; of nested ones few more.

    Traces that wait in a row have consecutive numbers: it is mostly one span for each session.
    """
    if not len(spans):
        return spans
    codes = _codes(spans)
    by = pa.table({"code": codes, "first": spans["first"]})
    order = pc.sort_indices(by, [("code", "ascending"), ("first", "ascending")])
    codes, first, last = (column.take(order) for column in (codes, *_numbers(spans)))
    touches = pc.less_equal(first[1:], pc.add(last[:-1], 1))
    return _merged(spans, order, _begins(pc.and_(pc.equal(codes[1:], codes[:-1]), touches)))


def _thinned(spans: pa.Table) -> pa.Table:
    """The spans, in order; of a session that has too many one, as SPARSE."""
    if len(spans) <= MOST_RUNS:
        return spans
    codes = _codes(spans)
    each = pc.value_counts(codes)
    counts = each.field("counts").take(pc.index_in(codes, each.field("values")))
    is_of_lines = pc.equal(spans["told"].combine_chunks(), Told.LINES.value)
    is_sparse = pc.and_(pc.greater(counts, MOST_RUNS), is_of_lines)
    begins = pc.or_(_begins(pc.equal(codes[1:], codes[:-1])), pc.invert(is_sparse))
    merged = _merged(spans, pa.array(range(len(spans))), begins)
    told = pc.if_else(is_sparse.filter(begins), Told.SPARSE.value, merged["told"])
    return merged.set_column(_WHOSE.index("told"), "told", told)


def _begins(goes_on: pa.Array) -> pa.Array:
    """Of each row whether it begins a span; of the second one on, whether it does not."""
    return pa.concat_arrays([pa.array([True]), pc.invert(goes_on)])


def _merged(spans: pa.Table, order: pa.Array, begins: pa.Array) -> pa.Table:
    """One span of each row that begins one, and of those up to the next in that order."""
    island = pc.cumulative_sum(begins.cast(pa.int32()))
    numbers = spans.select(_NUMBERS).take(order).append_column("island", island)
    ends = [("first", "min"), ("last", "max"), ("since", "min"), ("until", "max")]
    made = numbers.group_by("island", use_threads=False).aggregate(ends)
    whose = spans.select(_WHOSE).take(order.filter(begins))
    arrays = [*whose.columns, *(made[f"{name}_{how}"] for name, how in ends)]
    return pa.Table.from_arrays(arrays, names=_SPANS.names).cast(_SPANS)


def _codes(spans: pa.Table) -> pa.Array:
    """Of each row a number that says whose it is, and what."""
    codes = pa.repeat(pa.scalar(0, pa.int64()), len(spans))
    for name in _WHOSE:
        column = spans[name].combine_chunks()
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        if len(column.dictionary) <= 1 and not column.null_count:
            continue
        own = column.indices.cast(pa.int64()).fill_null(len(column.dictionary))
        # From 0 on again: no product must overflow.
        own = pc.add(pc.multiply(codes, len(column.dictionary) + 1), own)
        codes = own.dictionary_encode().indices.cast(pa.int64())
    return codes


def _numbers(spans: pa.Table) -> list[pa.Array]:
    return [spans[name].combine_chunks() for name in ("first", "last")]


def _micros(rows: pa.RecordBatch, name: str) -> pa.Array:
    """A time of LOOSE in microseconds; NULL: none, or no time."""
    texts = rows[f"{name}_text"]
    if texts.null_count == len(texts):
        return rows[f"{name}_us"]
    try:
        told = texts.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    except pa.ArrowInvalid:  # some of them: of each alone
        told = pa.array(map(_micros_of, texts.to_pylist()), pa.int64())
    return pc.coalesce(rows[f"{name}_us"], told)


def _micros_of(text: Json) -> int | None:
    try:
        at = datetime.fromisoformat(text)
        return unix_micros(at) if at.tzinfo else None
    except (TypeError, ValueError, OverflowError):
        return None


def _with_times(rows: list[_Row]) -> list[_Row]:
    """The rows; one without a time has those of its session in the file."""
    times: dict[tuple[str | int | None, ...], list[int]] = {}
    for row in rows:
        times.setdefault(tuple(row[:3]), []).extend(at for at in row[6:] if isinstance(at, int))
    return [
        row if row[-1] is not None else [*row[:6], min(at, default=None), max(at, default=None)]
        for row in rows
        for at in [times[tuple(row[:3])]]
    ]


def _text(value: Json) -> str | None:
    return value if type(value) is str else str(value) if type(value) is int else None


def _whole(value: Json) -> int | None:
    """A number, or count, of traces; None: it is none."""
    if type(value) is str and re.match(_DIGITS, value):
        value = int(value)
    return value if type(value) is int and 0 <= value < BEYOND_NUMBERS // 2 else None
