from datetime import UTC, datetime

import pytest

from shardaudit.report.plain import cell, harmless, instant


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain id-1 'x\";%", "plain id-1 'x\";%"),
        ("naïve 日本 🙂", "naïve 日本 🙂"),
        ("a\nb\r\tc", r"a\nb\r\tc"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("\x9b31m", r"\x9b31m"),
        ("a\u202eb\u2028c", r"a\u202eb\u2028c"),
        ("\ud800", r"\ud800"),
        (r"a\n", r"a\\n"),
    ],
)
def test_text_is_shown_without_what_a_terminal_obeys(text: str, shown: str) -> None:
    assert harmless(text) == shown


def test_cell_is_cut_and_no_markup_when_the_id_is_long() -> None:
    assert cell("[red]" + "x" * 1024).plain == "[red]" + "x" * 58 + "…"
    assert cell("[link=x]").plain == "[link=x]"
    assert cell(None).plain == "–"


def test_times_read_like_people_say_them() -> None:
    assert instant(datetime(2026, 11, 20, 1, 2, 3, 999, tzinfo=UTC)) == "2026-11-20T01:02:03Z"
    assert instant(None) == "–"
