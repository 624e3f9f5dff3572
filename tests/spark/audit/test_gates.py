"""Each gate, broken on purpose: nothing is published, and the sentence says what to do."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from shardaudit.adapters.engine.door import Engine
from shardaudit.adapters.suite_files import load_suites
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.gates import open_gates
from shardaudit.audit.job import audit
from shardaudit.model.errors import GateError, InvariantError
from shardaudit.model.retention import Retention
from shardaudit.model.tables.audit_tables import (
    AUDITS,
    CELLS,
    FINDINGS,
    FINGERPRINTS,
    GATES,
    TRACES,
)
from shardaudit.model.tables.table import Table
from shardaudit.model.tables.watch_tables import NOTIFICATIONS
from shardaudit.model.window import Window
from shardaudit.report.summary import AuditReport
from tests.builders import Line, sink_row, trace_line, write_parquet
from tests.spark.lake import Lake

NIGHT = datetime.fromisoformat("2026-11-20T02:00:00Z")
HOUR = timedelta(hours=1)
PER_HOUR = 12


@dataclass
class Nights:
    """A stream, audited night after night over its last day."""

    lake: Lake
    suites: str | None = None

    def feed(self, hours: Sequence[int], *, traced: bool = True, landed: bool = True) -> None:
        """Messages sent that many hours before the first night, evenly."""
        lines, rows = [], []
        for hour in hours:
            for n in range(PER_HOUR):
                number = 1000 * hour + n
                sent_at = NIGHT - hour * HOUR + n * HOUR / PER_HOUR
                lines.append(trace_line(number, sent_at=sent_at.isoformat()))
                landed_at = sent_at + timedelta(seconds=30)
                rows.append(sink_row(number, sent_at=sent_at, landed_at=landed_at))
        if traced:
            self.lake.log(f"{min(hours)}.jsonl", lines)
        if landed:
            self.lake.land(rows)

    def audit(self, night: int = 0) -> AuditReport:
        """The audit of one night, after the ingest."""
        as_of = NIGHT + night * 24 * HOUR
        self.lake.ingest(now=as_of)
        request = AuditRequest(
            name=self.lake.name,
            stream=self.lake.stream,
            window=Window(as_of - 24 * HOUR, as_of),
            as_of=as_of,
            retention=Retention(timedelta(days=7)),
        )
        return audit(self.lake.warehouse, request, open_gates(self.suites), now=as_of)

    def refused(self, night: int = 0) -> str:
        """What the audit of a night says that its gates do not let pass; nothing is published."""
        before = [self._published(table) for table in (CELLS, FINDINGS)]
        with pytest.raises((GateError, InvariantError)) as error:
            self.audit(night)
        assert [self._published(table) for table in (CELLS, FINDINGS)] == before
        newest = max(self.lake.rows(AUDITS), key=lambda row: row.as_of)
        assert newest.status == "rejected"
        assert any(state != "passed" for state in self.states(newest.audit_id).values())
        return str(error.value)

    def states(self, audit_id: str) -> Mapping[str, str]:
        """What the stored gates say, by suite."""
        stored = [row for row in self.lake.rows(GATES) if row.audit_id == audit_id]
        for row in stored:
            assert {check["state"] for check in json.loads(row.results)} <= {
                "passed",
                "failed",
                "broken",
            }
        return {row.suite: row.state for row in stored}

    def tamper(self, table: Table) -> DeltaTable:
        """A table of ours, for what nobody should do."""
        return DeltaTable(f"{self.lake.folder}/warehouse/{table.name}")

    def _published(self, table: Table) -> int:
        return len(self.lake.rows(table))


@pytest.fixture
def nights(lake: Lake) -> Nights:
    """A stream with a healthy day before the first night."""
    made = Nights(lake)
    made.feed(range(24, 0, -1))
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The shipped suites, for the user to edit."""
    copy = tmp_path / "suites"
    copy.mkdir()
    for suite in load_suites(None):
        (copy / Path(suite.file).name).write_text(Path(suite.file).read_text())
    return copy


def in_sql(at: datetime) -> str:
    """The time as delta-rs compares it with a column."""
    return f"arrow_cast('{at.isoformat()}', 'Timestamp(Microsecond, Some(\"UTC\"))')"


def storm(lines: int, **fields: object) -> list[Line]:
    return [trace_line(n, **{"sent_at": NIGHT.isoformat()} | fields) for n in range(lines)]


def test_all_gates_are_open_when_all_is_well(nights: Nights) -> None:
    report = nights.audit()
    assert (report.verdict, report.notes) == ("pending", ())  # the last minute is not settled
    assert nights.states(report.audit_id) == dict.fromkeys(
        ("traces", "sink", "ledger", "audit_result"), "passed"
    )
    assert {(row.suite, row.rows) for row in nights.lake.rows(GATES)} == {
        ("traces", 1),
        ("sink", 1),
        ("ledger", 24),
        ("audit_result", 1),
    }


def test_an_audit_keeps_what_ran_it_and_how_long_its_rows_took_to_land(
    nights: Nights, engine: Engine
) -> None:
    assert nights.audit().engine == engine.version
    [row] = nights.lake.rows(AUDITS)
    assert row.engine == engine.version
    assert (row.latency_p50, row.latency_p99) == (32.0, 32.0)  # all of them took 30 s


def test_an_audit_that_dies_of_an_error_is_stored_as_failed_until_it_runs_again(
    nights: Nights, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken, pytest.raises(ConnectionError, match="no answer"):
        broken.setattr("shardaudit.audit.job.publish", _no_answer)
        nights.audit()
    assert [row.status for row in nights.lake.rows(AUDITS)] == ["failed"]
    assert nights.audit().status == "published"
    assert [row.status for row in nights.lake.rows(AUDITS)] == ["published"]


def _no_answer(*_: object, **__: object) -> None:
    raise ConnectionError("no answer")


def test_a_storm_in_the_first_hours_of_a_larger_sample_is_no_small_part_of_a_smaller_one(
    nights: Nights,
) -> None:
    """The part of the window that is audited first is of the sample of before."""
    nights.lake.settings["sample_rate"] = 0.01
    nights.lake.ingest(now=NIGHT)
    nights.lake.settings["sample_rate"] = 1.0
    nights.feed([0])
    nights.lake.ingest(now=NIGHT)
    sound = [trace_line(131_400 + n) for n in range(12)]  # after midnight
    nights.lake.log("new.jsonl", [*sound, *storm(100, message_id=None)])
    assert "lines 112, refused 100" in nights.refused(2)


def test_a_storm_of_null_ids_stops_and_stays_until_a_person_says_so(
    nights: Nights, folder: Path
) -> None:
    nights.lake.ingest(now=NIGHT)
    nights.lake.log("storm.jsonl", [*storm(190, message_id=None), *storm(10)])
    said = nights.refused()
    assert (
        "traces: at least half of the lines of a batch of traces can be used – not so: "
        "events/traces/2 (refused_share 0.95, lines 200, refused 190" in said
    )
    assert "main_reason message_id is missing" in said
    assert "mend the producer's log or the mapping of its columns" in said
    text = (folder / "traces.yaml").read_text()
    (folder / "traces.yaml").write_text(
        text.replace("lines >= 100", "lines >= 100 and batch_id != 'events/traces/2'")
    )
    nights.suites = str(folder)
    nights.audit(1)  # no audit stood on the batch yet: without the line it would be shut again
    nights.suites = None
    assert nights.audit(2).status == "published"  # it is history now
    titles = [row.text.splitlines()[0] for row in nights.lake.rows(NOTIFICATIONS)]
    rejected = "shardaudit: the audit of events is rejected, its last good verdict stays"
    assert titles.count(rejected) == 1


def test_a_clock_in_1970_and_null_ids_in_the_sink_stop(nights: Nights) -> None:
    nights.lake.log("clock.jsonl", storm(150, sent_at=86_400_000))
    nights.lake.land([sink_row(n, message_id=None) for n in range(400)])
    said = nights.refused()
    assert "traces: hardly any trace of a batch has an impossible time – not so" in said
    assert "impossible_times 150" in said
    assert "main_reason sent_at is before 2000" in said
    assert "A producer's clock is wrong" in said
    assert "sink: at least half of the rows of a batch of the sink can be used – not so" in said
    assert "refused 400" in said


def test_half_a_day_without_trace_logs_stops(lake: Lake) -> None:
    nights = Nights(lake)
    nights.feed(range(24, 17, -1))
    nights.feed(range(17, 5, -1), traced=False)
    nights.feed(range(5, 0, -1))
    said = nights.refused()
    assert (
        "ledger: there is no stretch of 6 hours in which rows landed and not one trace was logged "
        "– not so: 2026-11-19T09:00Z (hours_without_traces 12, sent 0, landed 12, "
        "rows_without_traces 144" in said
    )
    assert "; 11 more of 12. The trace logs of that time did not arrive" in said


def test_half_a_day_that_was_in_the_ledger_and_is_gone_stops(nights: Nights) -> None:
    nights.audit()
    for table in (FINGERPRINTS, TRACES):
        nights.tamper(table).delete(f"bucket_start < {in_sql(NIGHT - 12 * HOUR)}")
    nights.lake.land()
    as_of = NIGHT
    request = AuditRequest(
        nights.lake.name,
        nights.lake.stream,
        Window(as_of - 20 * HOUR, as_of),
        as_of,
        Retention(timedelta(days=7)),
    )
    with pytest.raises((GateError, InvariantError)):
        audit(nights.lake.warehouse, request, open_gates(None), now=as_of)
    stored = {row.suite: row for row in nights.lake.rows(GATES) if row.audit_id == request.audit_id}
    assert stored["ledger"].state == "failed"
    (check,) = [c for c in json.loads(stored["ledger"].results) if c["state"] == "failed"]
    assert check["sentence"].startswith(
        "ledger: the ledger still has every message that the last published audit counted – "
        "not so: 2026-11-19T06:00Z (sent 0, sent_before 12, landed 0"
    )
    assert check["details"]["rows"][0]["hour"] == "2026-11-19T06:00:00Z"


def test_a_result_that_does_not_add_up_stops(nights: Nights) -> None:
    first = NIGHT - 24 * HOUR
    nights.lake.ingest(now=NIGHT)
    is_cell = f"bucket_start = {in_sql(first)} AND side = 'traces'"
    nights.tamper(FINGERPRINTS).update({"n": "n + 1"}, predicate=is_cell)
    said = nights.refused()
    assert "its numbers do not add up: " in said
    torn = "cell shardId-000000000000 2026-11-19T02:00:00Z: the ledger counts 2 ids sent and 1 rows"
    assert torn in said
    (row,) = [row for row in nights.lake.rows(GATES) if row.suite == "audit_result"]
    assert row.state == "failed"
    assert "the audit's numbers add up – not so: " in json.loads(row.results)[0]["sentence"]


def test_sides_whose_ids_mean_different_things_stop(lake: Lake) -> None:
    rows = [sink_row(n, message_id=f"x{n}") for n in range(1200)]
    lake.log("a.jsonl", [trace_line(n) for n in range(1200)])
    lake.land(rows)
    nights = Nights(lake)
    assert "traces and sink of a shard have message ids in common – not so" in nights.refused(1)


def test_a_warning_publishes_with_a_note(nights: Nights, folder: Path) -> None:
    text = (folder / "traces.yaml").read_text()
    (folder / "traces.yaml").write_text(text.replace("severity: error", "severity: warn"))
    nights.suites = str(folder)
    nights.lake.log("storm.jsonl", storm(300, message_id="\n" * 2000))
    report = nights.audit()
    assert report.status == "published"
    (note,) = report.notes
    assert note.startswith("traces: at least half of the lines")
    assert nights.states(report.audit_id)["traces"] == "passed"


def test_a_check_that_breaks_stops_and_is_told_from_bad_data(nights: Nights, folder: Path) -> None:
    text = (folder / "ledger.yaml").read_text()
    (folder / "ledger.yaml").write_text(text.replace("rows_without_traces >= 100", "rows >= 100"))
    nights.suites = str(folder)
    said = nights.refused()
    assert "nobody knows, the check itself broke: UndefinedVariableError: " in said
    assert "ledger.yaml, line " in said
    assert "broken" in [row.state for row in nights.lake.rows(GATES) if row.suite == "ledger"]


def test_a_gate_opens_when_the_configuration_was_mended(lake: Lake) -> None:
    nights = Nights(lake)
    hours = range(24, 0, -1)
    nights.feed(hours, landed=False)
    lake.trace_columns = {"message_id": "id"}
    assert "traces: at least half of the lines" in nights.refused()
    lake.trace_columns = {}
    nights.feed(hours, traced=False)
    assert nights.audit(night=0).counts["matched"] == 24 * PER_HOUR


def test_the_gate_of_the_sink_opens_when_its_columns_were_mended(spark_lake: Lake) -> None:
    lake = spark_lake
    lake.sink_format = "parquet"
    lake.sink_columns = {"sent_at": "landed_at", "landed_at": "said"}
    nights = Nights(lake)
    lines = [trace_line(n, sent_at=(NIGHT - HOUR).isoformat()) for n in range(200)]
    lake.log("a.jsonl", lines)
    landed = {"landed_at": NIGHT, "sent_at": NIGHT - HOUR, "said": "noon"}
    write_parquet(lake.folder / "sink" / "a.parquet", [sink_row(n, **landed) for n in range(200)])
    assert "sink: at least half of" in nights.refused()
    lake.sink_columns = {}
    assert nights.audit().counts["matched"] == 200
