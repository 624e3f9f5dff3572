"""The span of time that an unreadable file may belong to."""

from datetime import UTC, datetime, timedelta

from shardaudit.ingest.rules.batch_summary import damaged_span
from shardaudit.model.source import SourceFile
from shardaudit.model.window import Window
from tests.builders import T0

WEEK = timedelta(days=7)
SECOND = timedelta(seconds=1)


def file(path: str, written: datetime) -> SourceFile:
    return SourceFile(path, 1, int(written.timestamp() * 1000))


def span(*files: SourceFile, batch_from: datetime | None = None, **kept: datetime) -> Window | None:
    return damaged_span(files, kept_from=kept, batch_from=batch_from, audit_window=WEEK)


def test_no_span_when_no_file_is_damaged() -> None:
    assert span(batch_from=T0) is None


def test_span_begins_with_what_was_kept_when_rows_were() -> None:
    begin = T0 - timedelta(hours=1)
    assert span(file("a", T0), a=begin, batch_from=T0 - WEEK) == Window(begin, T0 + SECOND)


def test_span_begins_with_the_batch_when_nothing_was_kept() -> None:
    begin = T0 - timedelta(hours=1)
    assert span(file("a", T0), batch_from=begin) == Window(begin, T0 + SECOND)


def test_span_begins_a_window_earlier_when_the_batch_is_empty() -> None:
    assert span(file("a", T0)) == Window(T0 - WEEK, T0 + SECOND)


def test_span_is_never_empty_when_rows_are_from_after_the_file_was_written() -> None:
    begin = T0 + timedelta(hours=1)
    assert span(file("a", T0), a=begin) == Window(begin, begin + SECOND)


def test_span_covers_all_files_when_several_are_damaged() -> None:
    late = T0 + timedelta(hours=3)
    found = span(file("a", T0), file("b", late), a=T0 - SECOND, b=late - SECOND)
    assert found == Window(T0 - SECOND, late + SECOND)
    assert found.start.tzinfo is UTC
