"""An audit that was killed does not run for ever in the tables: the next one says it failed."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow.compute as pc
import pytest

from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.job import audit
from shardaudit.model.retention import Retention
from shardaudit.model.tables.audit_tables import AUDITS
from shardaudit.model.verdict import Verdict
from shardaudit.model.window import Window
from shardaudit.page.page_reading import read_line
from shardaudit.report.next_steps import given_up_line
from shardaudit.report.progress import NO_PROGRESS, Progress
from shardaudit.report.summary import GivenUp
from tests.builders import NOW, T0, sink_row, trace_line
from tests.spark.audit.nights import DAY_S, of_day, published, settings_of, sound_days, told
from tests.spark.audit.nights import audited as audited_night
from tests.spark.lake import Lake
from tests.spark.ungated import ungated

LATER = NOW + timedelta(hours=1)


class Killed(BaseException):
    """What no code of ours sees, as SIGKILL."""


@dataclass
class Stopping:
    """A progress that ends the audit when it would judge its gates."""

    by: type[BaseException]

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        if name == "gates":
            raise self.by
        yield


def audited(lake: Lake, as_of: datetime, progress: Progress = NO_PROGRESS) -> None:
    window = Window(T0, T0 + timedelta(minutes=5))
    request = AuditRequest(lake.name, lake.stream, window, as_of, Retention(timedelta(days=7)))
    audit(lake.warehouse, request, ungated(), now=as_of, progress=progress)


def statuses(lake: Lake) -> list[str]:
    rows = sorted(lake.rows(AUDITS), key=lambda row: row.as_of)
    return [row.status for row in rows]


@pytest.fixture
def fed(lake: Lake) -> Lake:
    lake.log("a.jsonl", [trace_line(n) for n in range(3)])
    lake.land([sink_row(n) for n in range(3)])
    lake.ingest(now=NOW)
    return lake


def test_a_killed_audit_is_failed_when_the_next_one_runs(fed: Lake) -> None:
    with pytest.raises(Killed):
        audited(fed, NOW, Stopping(Killed))
    assert statuses(fed) == ["running"]
    audited(fed, LATER)
    assert statuses(fed) == ["failed", "published"]
    [dead] = [row for row in fed.rows(AUDITS) if row.status == "failed"]
    assert dead.finished_at is not None


# By another try of the night, or by the next one, which has another id.
@pytest.mark.parametrize("night", [1, pytest.param(2, marks=pytest.mark.drill)])
def test_a_late_span_that_was_killed_before_its_last_write_is_audited_again(
    lake: Lake, night: int
) -> None:
    sound_days(lake, 1)
    of_day(lake, 1, *range(0, DAY_S, 3600))
    lake.log("late.jsonl", [trace_line(630), trace_line(690)])
    report = audited_night(lake, 1)
    [late] = lake.warehouse.rows(AUDITS, where=pc.field("audit_id") == report.late[0].audit_id)
    # Its watermark has moved: nothing holds the span any more, but one minute that came since.
    lake.warehouse.upsert([late | {"status": "running", "verdict": None}], AUDITS)
    lake.log("later.jsonl", [trace_line(631)])
    of_day(lake, night, *range(1, DAY_S, 3600))
    [(span, verdict, _)] = told(report)
    assert told(audited_night(lake, night)) == [(span, verdict, 3)]
    of_day(lake, night + 1, *range(0, DAY_S, 3600))
    assert told(audited_night(lake, night + 1)) == []


def test_a_night_that_was_killed_before_its_last_write_is_told_by_the_next_one(lake: Lake) -> None:
    sound_days(lake, 1)
    of_day(lake, 1, *range(0, DAY_S, 3600))
    report = audited_night(lake, 1)
    [own] = lake.warehouse.rows(AUDITS, where=pc.field("audit_id") == report.audit_id)
    # Its watermark has moved: no hold tells of it any more.
    lake.warehouse.upsert([own | {"status": "running", "verdict": None}], AUDITS)
    of_day(lake, 2, *range(0, DAY_S, 3600))
    window = Window(report.window_start, report.window_end)
    assert told(audited_night(lake, 2)) == [(window, Verdict.OK, 0)]


def test_a_night_that_three_audits_failed_over_is_given_up_and_told(lake: Lake) -> None:
    night = sound_days(lake, 1)
    [own] = lake.warehouse.rows(AUDITS, where=pc.field("audit_id") == night.audit_id)
    late = {"inputs": json.dumps({"late_of": "a night"}), "status": "failed"}
    failed = [own | late | {"audit_id": f"try-{n}"} for n in range(2)]
    lake.warehouse.upsert([own | {"status": "failed"}, *failed], AUDITS)
    of_day(lake, 1, *range(0, DAY_S, 3600))
    report = audited_night(lake, 1)
    lost = GivenUp(night.window_start, night.window_end, night.as_of, is_red=False)
    for one in (report, published(lake, report)):
        assert (told(one), one.given_up, one.is_good) == ([], (lost,), True)
    audits, now = lake.warehouse.rows(AUDITS, where=pc.scalar(True)), report.as_of
    line, _ = read_line(settings_of(lake), lake.name, audits, findings=[], now=now)
    assert given_up_line(lost) in line.notes


def test_an_interrupted_audit_says_at_once_that_it_failed(fed: Lake) -> None:
    with pytest.raises(KeyboardInterrupt):
        audited(fed, NOW, Stopping(KeyboardInterrupt))
    assert statuses(fed) == ["failed"]
