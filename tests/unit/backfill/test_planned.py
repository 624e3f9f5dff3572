"""What is stored of a plan has the columns of its table, and comes back as it was."""

from dataclasses import fields
from datetime import timedelta

import pytest

from shardaudit.backfill.ledger import sent_spans
from shardaudit.backfill.rules.planned import StoredDedupe, StoredWindow, WindowState
from shardaudit.model.tables.backfill_tables import BACKFILLS, DEDUPES
from shardaudit.model.tables.table import Table
from shardaudit.model.window import Window
from tests.builders import NOW, T0
from tests.unit.backfill.windows import stored_window

WINDOW = stored_window(state=WindowState.INCOMPLETE, sent_from=T0, sent_to=NOW, error="late")
DEDUPE = StoredDedupe(
    plan_id="p",
    stream="events",
    ids=1,
    extra_rows=2,
    sent_from=T0,
    sent_to=NOW,
    created_at=NOW,
    updated_at=NOW,
)


@pytest.mark.parametrize(("kind", "table"), [(StoredWindow, BACKFILLS), (StoredDedupe, DEDUPES)])
def test_fields_are_the_columns_of_the_table(
    kind: type[StoredWindow | StoredDedupe], table: Table
) -> None:
    assert sorted(field.name for field in fields(kind)) == sorted(table.names)


def test_a_window_comes_back_from_its_row() -> None:
    row = WINDOW.row()
    assert type(row["state"]) is str
    assert StoredWindow.of(row) == WINDOW


def test_a_dedupe_comes_back_from_its_row() -> None:
    row = DEDUPE.row()
    assert type(row["state"]) is str
    assert StoredDedupe.of(row) == DEDUPE


def test_when_its_messages_were_sent_is_known_by_both_ends() -> None:
    assert WINDOW.sent == Window(T0, NOW)
    assert stored_window(sent_from=None).sent is None


MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


def test_what_lies_more_than_a_day_from_any_window_is_not_audited_again() -> None:
    seconds = timedelta(seconds=10)  # whole buckets are audited
    late = stored_window(sent_from=None, sent_to=None)
    windows = [
        stored_window(sent_from=T0 + start + seconds, sent_to=T0 + start + 2 * seconds)
        for start in (6 * DAY, timedelta(), DAY)
    ]
    assert sent_spans([late, *windows], bucket=MINUTE) == [
        Window(T0, T0 + DAY + MINUTE),
        Window(T0 + 6 * DAY, T0 + 6 * DAY + MINUTE),
    ]
    many = [
        stored_window(sent_from=T0 + 3 * n * DAY, sent_to=T0 + (3 * n + 1) * DAY) for n in range(20)
    ]
    assert len(sent_spans(many, bucket=MINUTE)) == 8
    [only] = sent_spans([late], bucket=MINUTE)  # of a version that did not store it
    assert only.start >= late.window_start
