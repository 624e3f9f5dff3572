"""Which audit speaks for its stream."""

from datetime import datetime, timedelta

from shardaudit.model.audit_id import StoredAudit, ended_at, newest_audit
from tests.builders import T0

HOUR = timedelta(hours=1)


def audit(audit_id: str, *, end: datetime = T0, status: str = "published") -> dict[str, object]:
    order = {"as_of": T0 + HOUR, "started_at": T0 + HOUR, "audit_id": audit_id}
    return {"window_end": end, "status": status, **order}


def newest(*rows: StoredAudit) -> object:
    found = newest_audit(rows)
    return found and found["audit_id"]


def test_the_published_audit_that_reaches_furthest_speaks() -> None:
    part = audit("part", end=T0 - HOUR) | {"as_of": T0 + 2 * HOUR}
    rejected = audit("rejected", end=T0 + HOUR, status="rejected")
    assert newest(part, audit("night"), rejected) == "night"
    assert newest(rejected) is None
    assert newest() is None


def test_of_the_same_time_the_one_that_looked_later_speaks() -> None:
    again = audit("again") | {"as_of": T0 + 2 * HOUR}
    assert newest(again, audit("night")) == "again"
    later = audit("later") | {"started_at": T0 + 2 * HOUR}
    never_noted = audit("z") | {"started_at": None}
    assert newest(later, audit("night"), never_noted) == "later"


def test_an_audit_ended_when_it_was_over_whatever_is_noted_of_that() -> None:
    times = {"finished_at": T0 + 3 * HOUR, "started_at": T0 + 2 * HOUR, "as_of": T0 + HOUR}
    assert ended_at(times) == T0 + 3 * HOUR
    assert ended_at(times | {"finished_at": None}) == T0 + 2 * HOUR
    assert ended_at(times | {"finished_at": None, "started_at": None}) == T0 + HOUR
