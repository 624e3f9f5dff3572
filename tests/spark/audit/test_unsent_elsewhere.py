"""Of many untraced messages those are named that landed twice, wherever; all others are counted."""

from collections import Counter
from datetime import timedelta

import pytest

from shardaudit.audit import comparison, looked_into
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.job import audit
from shardaudit.model.retention import Retention
from shardaudit.model.tables.audit_tables import AUDITS, FINDINGS
from shardaudit.model.tables.gap_tables import GAPS
from shardaudit.model.verdict import Kind
from shardaudit.model.window import Window
from tests.builders import NOW, T0, shard, sink_row, trace_line
from tests.spark.lake import Lake
from tests.spark.ungated import ungated

MINUTES = 8
FEW = 15  # untraced messages that are named
Of = tuple[int, int]  # the number of a shard, and of a minute


@pytest.fixture
def many_others(lake: Lake) -> Lake:
    """Twenty others in one cell; eight of them in another one, too, of every sort; single ones."""
    sent, landed = list[tuple[Of, str]](), list[tuple[Of, str]]()
    landed += [((0, 0), f"other-{n}") for n in range(20)]
    landed += [((1, 1), "other-0")]  # differs by it alone
    sent += [((2, 2), f"gap-{n}") for n in range(1010)]
    landed += [((2, 2), "other-1"), ((2, 2), "other-2")]
    for minute in range(3, MINUTES):  # some of these differ as if by one id
        sent += [((3, minute), f"lost-{minute}")]
        landed += [((3, minute), f"other-{minute}"), ((3, minute), f"beside-{minute}")]
    for minute in range(MINUTES):
        sent += [((4, minute), f"sound-{minute}-{n}") for n in range(3)]
        landed += [((4, minute), f"sound-{minute}-{n}") for n in range(3)]
        landed += [((4, minute), f"single-{minute}")]
    lake.log("a.jsonl", [trace_line(at[1] * 60, **_of(at, message)) for at, message in sent])
    lake.land([sink_row(at[1] * 60, **_of(at, message)) for at, message in landed])
    return lake


def _of(at: Of, message: str) -> dict[str, object]:
    return {"shard_id": shard(at[0]), "message_id": message}


def test_who_landed_twice_is_named_and_who_landed_once_is_counted(
    many_others: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (comparison, looked_into):
        monkeypatch.setattr(module, "MOST_NAMED", FEW)
    many_others.ingest(now=NOW)
    window = Window(T0, T0 + MINUTES * timedelta(minutes=1))
    request = AuditRequest(
        many_others.name, many_others.stream, window, NOW, Retention(timedelta(days=1))
    )
    counts = audit(many_others.warehouse, request, ungated(), now=NOW).counts
    told = {name: counts[name] for name in ("missing", "untraced", "duplicated", "extra_rows")}
    assert told == {"missing": 1015, "untraced": 33, "duplicated": 8, "extra_rows": 8}
    named = Counter(row.kind for row in many_others.rows(FINDINGS))
    assert named == {Kind.MISSING: 5, Kind.UNTRACED: 8, Kind.DUPLICATED: 8}
    assert [row["count"] for row in many_others.rows(GAPS)] == [1010]
    assert [row.unnamed for row in many_others.rows(AUDITS)] == [25]
