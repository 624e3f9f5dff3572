"""The download: nothing in it is a formula, and it reads back as it was."""

import csv
import io
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardaudit.page.page_findings import CSV_COLUMNS, csv_lines, finding_rows

AT = datetime(2026, 11, 1, tzinfo=UTC)


def finding(message_id: str) -> dict[str, object]:
    row: dict[str, object] = dict.fromkeys(CSV_COLUMNS)
    return row | {
        "stream": "events",
        "message_id": message_id,
        "kind": "missing",
        "sent_at": AT,
        "sequence_numbers": ["1", "2"],
        "attributes": [("table", "orders"), ("row", "=1")],
    }


@given(st.text())
def test_no_cell_of_the_download_starts_a_formula(message_id: str) -> None:
    text = "".join(csv_lines([finding(message_id)]))
    for cells in csv.reader(io.StringIO(text, newline="")):
        assert len(cells) == len(CSV_COLUMNS)
        assert not any(cell.lstrip(" ").startswith(tuple("=+-@\t\r\n")) for cell in cells)


def test_a_hostile_id_is_marked_as_text_and_otherwise_kept() -> None:
    text = "".join(csv_lines([finding('=cmd()|"x"!A1')]))
    (row,) = csv.DictReader(io.StringIO(text, newline=""))
    assert row["message_id"] == '\'=cmd()|"x"!A1'
    assert (row["sequence_numbers"], row["attributes"]) == ("1 2", "table=orders row==1")


@pytest.mark.parametrize("begin", ["\0", "\ufeff", "\u200b \u00a0"])
@pytest.mark.parametrize("sign", ["=", "\uff1d", "\uff0b", "\uff0d", "\uff20"])
def test_a_formula_is_marked_behind_what_cannot_be_seen(begin: str, sign: str) -> None:
    text = "".join(csv_lines([finding(f"{begin}{sign}cmd()")]))
    (row,) = csv.DictReader(io.StringIO(text, newline=""))
    assert row["message_id"] == f"'{begin}{sign}cmd()"


def test_an_attribute_without_a_value_is_downloaded_by_its_name() -> None:
    row = finding("a") | {"attributes": [("gone", None), ("n", "1")]}
    (read,) = csv.DictReader(io.StringIO("".join(csv_lines([row])), newline=""))
    assert read["attributes"] == "gone n=1"


def test_a_finding_has_its_own_steps_oldest_first() -> None:
    steps = [
        {"message_id": m, "kind": "missing", "to_state": s, "changed_at": AT, "reason": None}
        for m, s in (("a", "open"), ("b", "open"), ("a", "recovered"))
    ]
    steps[2]["changed_at"] = AT.replace(hour=2)
    (found,) = finding_rows([finding("a")], reversed(steps))
    assert [step.to_state for step in found.steps or ()] == ["open", "recovered"]
    assert found.attributes == (("row", "=1"), ("table", "orders"))
