import json
from datetime import timedelta
from pathlib import Path

from shardaudit.report.summary import as_json
from tests.unit.report.reports import report


def test_report_is_one_document_with_the_names_of_its_fields() -> None:
    document = json.loads(as_json(report()))
    assert document["verdict"] == "loss"
    assert document["as_of"] == "2026-11-20T12:00:00Z"
    assert document["counts"]["missing"] == 3
    assert document["deadlines"][0]["cause"] == "lost"


def test_text_is_lossless_and_ascii_when_an_id_is_odd() -> None:
    odd = "\x1b[2J\n\u202e'\";%日"
    text = as_json({"message_id": odd, "path": Path("a"), "age": timedelta(seconds=90)})
    assert text.isascii()
    assert "\x1b" not in text
    assert json.loads(text) == {"message_id": odd, "path": "a", "age": 90.0}
