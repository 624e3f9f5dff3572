"""What becomes of a finding: by what was known of it, and what an audit finds now."""

from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import SparkSession

from shardaudit.audit.rules.classify import Damage
from shardaudit.audit.rules.findings import AuditFacts, folded_findings, transitions
from shardaudit.model.retention import Retention, Shorter
from shardaudit.model.tables.audit_tables import FINDINGS, TRANSITIONS
from shardaudit.model.window import Window
from tests.builders import NOW, T0
from tests.spark.audit.frames import frame

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
TICK = timedelta(microseconds=1)
DAY = 24 * HOUR
WINDOW = Window(T0, T0 + HOUR)
DARK = (T0 + 30 * MINUTE, T0 + 31 * MINUTE)
KINDS_DDL = (
    "message_id string, kind string, shard_id string, cause string, location string, hops string, "
    "sent_at timestamp, first_landed_at timestamp, last_landed_at timestamp, sent_count bigint, "
    "landed_count bigint, sequence_numbers array<string>, arrived_at timestamp, "
    "attributes map<string,string>"
)
PENDING_DDL = "message_id string"

EVIDENCE: dict[str, object] = {"sent_count": 1, "landed_count": 0, "sequence_numbers": ["7"]}
# Whether it is found now, what was known of it (None: nothing), its state after, why it changed
# (None: it did not, or the audit has nothing to say of it).
Case = tuple[dict[str, object] | None, dict[str, object] | None, str | None, str | None]
GONE_BY: dict[str, object] = {"sent_at": NOW - 2 * DAY, "arrived_at": NOW - 2 * DAY}
CASES: dict[str, Case] = {
    "new": ({}, None, "open", "found by the audit"),
    "new, out of time": (GONE_BY, None, "expired", "the stream's retention has run out"),
    "new, at its deadline": ({"arrived_at": NOW - DAY}, None, "open", "found by the audit"),
    "new, a moment after it": (
        {"arrived_at": NOW - DAY - TICK},
        None,
        "expired",
        "the stream's retention has run out",
    ),
    "new and doubled": ({"kind": "duplicated"} | GONE_BY, None, "open", "found by the audit"),
    "open": ({}, {}, "open", None),
    "planned": ({}, {"state": "planned"}, "planned", None),
    "replayed": ({}, {"state": "replayed"}, "replayed", None),
    "run out": (GONE_BY, {}, "expired", "the stream's retention has run out"),
    "planned and run out": (
        GONE_BY,
        {"state": "planned"},
        "expired",
        "the stream's retention has run out",
    ),
    "replayed and run out": (
        GONE_BY,
        {"state": "replayed"},
        "expired",
        "the stream's retention has run out",
    ),
    "back within the retention": (
        {},
        {"state": "expired"},
        "open",
        "the stream keeps it for longer than was known",
    ),
    "still expired": (GONE_BY, {"state": "expired"}, "expired", None),
    "accepted": ({}, {"state": "accepted"}, "accepted", None),
    "accepted and run out": (GONE_BY, {"state": "accepted"}, "accepted", None),
    "accepted, more was sent": (
        {},
        {"state": "accepted", "sent_count": 2},
        "open",
        "new evidence since it was accepted",
    ),
    "accepted, more landed": (
        {},
        {"state": "accepted", "landed_count": 1},
        "open",
        "new evidence since it was accepted",
    ),
    "accepted when it was stuck": (
        {},
        {"state": "accepted", "cause": "stuck"},
        "open",
        "new evidence since it was accepted",
    ),
    "accepted, other numbers": (
        {},
        {"state": "accepted", "sequence_numbers": ["8"]},
        "open",
        "new evidence since it was accepted",
    ),
    "recovered and lost again": (
        {},
        {"state": "recovered"},
        "open",
        "found again after it was closed",
    ),
    "false alarm, lost now": (
        {},
        {"state": "false_alarm"},
        "open",
        "found again after it was closed",
    ),
    "recovered, lost again, run out": (
        GONE_BY,
        {"state": "recovered"},
        "expired",
        "the stream's retention has run out",
    ),
    "arrived": (None, {}, "false_alarm", "it arrived later"),
    "arrived after its plan": (None, {"state": "planned"}, "false_alarm", "it arrived later"),
    "arrived by the replay": (
        None,
        {"state": "replayed"},
        "recovered",
        "landed after the replay",
    ),
    "arrived, thought to have run out": (
        None,
        {"state": "expired"},
        "false_alarm",
        "it arrived later",
    ),
    "removed": (
        None,
        {"kind": "duplicated"},
        "recovered",
        "a later audit no longer finds it",
    ),
    "traced": (
        None,
        {"kind": "untraced"},
        "false_alarm",
        "a later audit no longer finds it",
    ),
    "accepted and arrived": (
        None,
        {"state": "accepted"},
        "false_alarm",
        "it arrived later",
    ),
    "recovered before": (None, {"state": "recovered"}, None, None),
    "before the window": (None, {"sent_at": T0 - TICK}, None, None),
    "first of the window": (
        None,
        {"sent_at": T0},
        "false_alarm",
        "it arrived later",
    ),
    "last of the window": (
        None,
        {"sent_at": WINDOW.end - TICK},
        "false_alarm",
        "it arrived later",
    ),
    "after the window": (None, {"sent_at": WINDOW.end}, None, None),
    "in the dark": (None, {"sent_at": DARK[0]}, None, None),
    "pending": (None, {}, None, None),
    "of another window, run out": (
        None,
        {"sent_at": T0 - 2 * DAY, "arrived_at": None},
        "expired",
        "the stream's retention has run out",
    ),
    "of another window, arrival known": (
        None,
        {
            "sent_at": T0 - 2 * DAY,
            "arrived_at": NOW - HOUR,
            "recoverable_until": NOW - HOUR + DAY,
        },
        None,
        None,
    ),
    "of another window, deadline moved": (
        None,
        {"sent_at": T0 - 2 * DAY, "arrived_at": NOW - HOUR},
        "open",
        None,
    ),
    "of another window, landed since": (
        None,
        {"sent_at": T0 - 2 * DAY, "arrived_at": None, "is_complete": True},
        "false_alarm",
        "it arrived later",
    ),
    "of another window, run out and landed": (
        None,
        {"sent_at": T0 - 2 * DAY, "state": "expired", "is_complete": True},
        "false_alarm",
        "it arrived later",
    ),
    "of another window, replayed and landed": (
        None,
        {"sent_at": T0 - 2 * DAY, "state": "replayed", "is_complete": True},
        "recovered",
        "landed after the replay",
    ),
    "run out by a later audit": (
        {},
        {"judged_as_of": NOW + 2 * DAY},
        "expired",
        "the stream's retention has run out",
    ),
}


def facts(retention: Retention | None = None) -> AuditFacts:
    return AuditFacts(
        audit_id="this",
        stream="s",
        window=WINDOW,
        as_of=NOW,
        over_by=NOW,
        bucket=MINUTE,
        retention=retention or Retention(DAY),
        damage=Damage(sink=(DARK,)),
    )


def folded(
    spark: SparkSession, cases: dict[str, Case], about: AuditFacts
) -> dict[str, dict[str, object]]:
    now, before = [], []
    for name, (found, known, *_) in cases.items():
        usual: dict[str, object] = {
            "message_id": name,
            "kind": "missing",
            "cause": "lost",
            "shard_id": "s0",
        }
        usual |= {"sent_at": T0 + MINUTE, "arrived_at": T0 + MINUTE} | EVIDENCE
        if found is not None:
            now.append(usual | {"location": "now"} | found)
        if known is not None:
            kind = {"kind": found["kind"]} if found and "kind" in found else {}
            until = {"recoverable_until": T0 + MINUTE + DAY} if not found else {}
            before.append(
                usual
                | {"stream": "s", "state": "open", "location": "before", "opened_at": T0}
                | {"first_audit_id": "first", "last_audit_id": "last", "state_reason": "why"}
                | {"judged_as_of": NOW - HOUR}
                | until
                | kind
                | known
            )
    columns = FINDINGS.ddl + ", judged_as_of timestamp, is_complete boolean"
    told = folded_findings(
        frame(spark, KINDS_DDL, now),
        frame(spark, columns, before),
        frame(spark, PENDING_DDL, [{"message_id": "pending"}]),
        about,
    )
    assert {row.message_id for row in transitions(told, TRANSITIONS, about).collect()} == {
        row.message_id for row in told.collect() if row.state != row.from_state
    }
    rows = [row.asDict() for row in told.collect()]
    assert len({row["message_id"] for row in rows}) == len(rows)
    return {str(row["message_id"]): row for row in rows}


def test_a_finding_goes_on_as_the_evidence_says(spark: SparkSession) -> None:
    told = folded(spark, CASES, facts())
    expected = {name: state for name, (_, _, state, _) in CASES.items() if state}
    assert {name: row["state"] for name, row in told.items()} == expected
    for name, (found, known, state, why) in CASES.items():
        if state is None:
            continue
        wanted = {
            "state_reason": why or "why",
            "from_state": None if known is None else known.get("state", "open"),
            "first_audit_id": "this" if known is None else "first",
            "last_audit_id": "last" if found is None else "this",
            "location": "before" if found is None else "now",
            "stream": "s",
        }
        assert {key: told[name][key] for key in wanted} == wanted, name
        opened = told[name]["opened_at"]
        assert isinstance(opened, datetime)
        assert opened.astimezone(UTC) == (NOW if known is None else T0), name


FULL: dict[str, object] = {
    "location": "now",
    "hops": "[]",
    "first_landed_at": T0,
    "last_landed_at": T0,
    "attributes": {"a": "1", "b": "2"},
}
KNOWN = FULL | {"recoverable_until": T0 + MINUTE + DAY}
# What a finding may be found to be, other than it was.
OTHERS: dict[str, object] = {
    "shard_id": "s1",
    "cause": "stuck",
    "location": None,
    "hops": None,
    "sent_at": T0 + 2 * MINUTE,
    "first_landed_at": None,
    "last_landed_at": T0 + TICK,
    "sent_count": 2,
    "landed_count": 1,
    "sequence_numbers": ["7", "8"],
    "arrived_at": T0 + TICK,
    "attributes": {"a": "1", "b": "3"},
}

# Told by the state, the deadline and the audit.
OF_ITS_LIFE = {
    *("stream", "message_id", "kind", "state", "state_reason", "recoverable_until"),
    *("first_audit_id", "last_audit_id", "opened_at", "updated_at"),
}


def test_a_finding_is_written_again_only_when_it_is_found_otherwise(spark: SparkSession) -> None:
    others = {name: KNOWN | {name: value} for name, value in OTHERS.items()} | {
        "later gone": KNOWN | {"recoverable_until": NOW},
        "new": None,
    }
    alike = {
        "same": KNOWN,
        "in another order": KNOWN | {"attributes": {"b": "2", "a": "1"}},
        "accepted": KNOWN | {"state": "accepted"},
    }
    cases: dict[str, Case] = {
        name: (FULL, known, None, None) for name, known in (others | alike).items()
    }
    told = folded(spark, cases, facts())
    assert {name: row["is_news"] for name, row in told.items()} == {
        name: name in others for name in cases
    }
    assert {*OTHERS} == {*FINDINGS.names} - OF_ITS_LIFE


def until(row: dict[str, object]) -> datetime | None:
    at = row["recoverable_until"]
    assert at is None or isinstance(at, datetime)
    return at and at.astimezone(UTC)


def test_only_what_is_missing_has_a_deadline_and_what_is_over_keeps_its_own(
    spark: SparkSession,
) -> None:
    told = folded(spark, CASES, facts())
    assert until(told["new"]) == T0 + MINUTE + DAY
    assert until(told["new and doubled"]) is None
    assert until(told["run out"]) == NOW - DAY
    assert until(told["of another window, run out"]) == T0 - DAY
    earlier = T0 + HOUR
    cases: dict[str, Case] = {
        "arrived": (None, {"recoverable_until": earlier}, "false_alarm", None),
        "back": (None, {"recoverable_until": earlier, "state": "replayed"}, "recovered", None),
        "open": (None, {"recoverable_until": earlier, "sent_at": T0 - HOUR}, "open", None),
    }
    told = folded(spark, cases, facts())
    assert until(told["arrived"]) == until(told["back"]) == earlier
    assert until(told["open"]) == T0 + MINUTE + DAY
    assert told["open"]["state"] == "open"


@pytest.mark.parametrize(
    ("arrived", "kept"),
    [(-3 * HOUR - TICK, 2 * HOUR), (-3 * HOUR, DAY), (-HOUR, DAY)],
)
def test_what_left_under_a_shorter_retention_is_gone(
    spark: SparkSession, arrived: timedelta, kept: timedelta
) -> None:
    about = facts(Retention(DAY, Shorter(2 * HOUR, NOW - HOUR)))
    cases: dict[str, Case] = {"lost": ({"arrived_at": NOW + arrived}, None, None, None)}
    row = folded(spark, cases, about)["lost"]
    assert until(row) == NOW + arrived + kept
    assert row["state"] == ("open" if kept == DAY else "expired")
