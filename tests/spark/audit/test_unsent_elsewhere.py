"""Of many untraced messages those are named that landed twice, wherever; all others are counted."""

from collections import Counter
from datetime import timedelta

import pytest

from shardaudit.audit import window_ledger
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.evidence import Near
from shardaudit.audit.job import audit
from shardaudit.model.retention import Retention
from shardaudit.model.tables.audit_tables import AUDITS, FINDINGS
from shardaudit.model.tables.gap_tables import GAPS
from shardaudit.model.verdict import LIVE, Kind
from shardaudit.model.window import Window
from shardaudit.report.summary import AuditReport
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


def _audited(lake: Lake, minutes: int, hours: int = 0) -> AuditReport:
    at, window = NOW + timedelta(hours=hours), Window(T0, T0 + timedelta(minutes=minutes))
    lake.ingest(now=at)
    request = AuditRequest(lake.name, lake.stream, window, at, Retention(timedelta(days=1)))
    return audit(lake.warehouse, request, ungated(), now=at)


def test_who_landed_twice_is_named_and_who_landed_once_is_counted(
    many_others: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window_ledger, "MOST_NAMED", FEW)
    counts = _audited(many_others, MINUTES).counts
    told = {name: counts[name] for name in ("missing", "untraced", "duplicated", "extra_rows")}
    assert told == {"missing": 1015, "untraced": 33, "duplicated": 8, "extra_rows": 8}
    named = Counter(row.kind for row in many_others.rows(FINDINGS))
    assert named == {Kind.MISSING: 5, Kind.UNTRACED: 8, Kind.DUPLICATED: 8}
    assert [row["count"] for row in many_others.rows(GAPS)] == [1010]
    assert [row.unnamed for row in many_others.rows(AUDITS)] == [25]


def test_a_gap_in_which_others_landed_stays_one_when_these_are_few_by_now(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window_ledger, "MOST_NAMED", FEW)
    sent = [((0, 0), f"gap-{n}") for n in range(1010)]
    others = [((0, minute), f"other-{minute}-{n}") for minute in (0, 1) for n in range(12)]
    lake.log("a.jsonl", [trace_line(0, **_of(at, message)) for at, message in sent])
    lake.land([sink_row(at[1] * 60, **_of(at, message)) for at, message in others])
    told = []
    for hours, minutes in ((0, 2), (1, 1), (2, 1)):
        if hours == 2:
            lake.land([sink_row(0, **_of(at, message)) for at, message in sent])
        report = _audited(lake, minutes, hours)
        live = [row["count"] for row in lake.rows(GAPS) if row.state in LIVE]
        named = Counter(row.kind for row in lake.rows(FINDINGS) if row.state in LIVE)
        told.append((report.counts["missing"], report.counts["untraced"], live, dict(named)))
    assert told == [
        (1010, 24, [1010], {}),
        (1010, 12, [1010], {}),
        (0, 12, [], {Kind.UNTRACED: 12}),
    ]


def test_doubled_messages_have_nothing_else_read_than_their_cells(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window_ledger, "MOST_NAMED", FEW)
    monkeypatch.setattr(Near, "unsent", lambda *_: pytest.fail("all minutes are read by id"))
    cells = [(of, minute) for of in range(30) for minute in (0, 1)]
    sent = [(at, f"{at}-{n}") for at in cells for n in range(9)]
    twice = [(at, message) for at, message in sent if at == (0, 0)]
    others = [((0, 1), f"other-{n}") for n in range(FEW)]
    lake.log("a.jsonl", [trace_line(at[1] * 60, **_of(at, message)) for at, message in sent])
    landed = sent + twice + others
    lake.land([sink_row(at[1] * 60, **_of(at, message)) for at, message in landed])
    counts = _audited(lake, 2).counts
    assert {n: counts[n] for n in ("duplicated", "untraced", "missing")} == {
        "duplicated": 9,
        "untraced": FEW,
        "missing": 0,
    }
