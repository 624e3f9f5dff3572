"""Gaps: planned by their cells, read again, and proven by the ledger."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise

import pyarrow.compute as pc
import pytest

from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.gates import open_gates
from shardaudit.audit.job import audit
from shardaudit.backfill.ledger import stored_windows
from shardaudit.backfill.plan_job import PlanRequest, plan_backfill, stuck_ids
from shardaudit.backfill.rules.planned import Plan
from shardaudit.backfill.run import Running, replay_of, run_backfill
from shardaudit.backfill.verify import Verified
from shardaudit.ingest.job import ingest
from shardaudit.model.config.settings import Settings
from shardaudit.model.retention import Retention
from shardaudit.model.tables.audit_tables import CELLS, FINDINGS
from shardaudit.model.tables.backfill_tables import BACKFILL_IDS
from shardaudit.model.tables.gap_tables import GAP_TRANSITIONS, GAPS
from shardaudit.model.window import Window
from shardaudit.simulate.kinesis_stream import KinesisStream, endpoint_client
from shardaudit.simulate.stand_in_process import StandInControl, kinesis_stand_in
from shardaudit.simulate.stream import Put
from tests.builders import T0
from tests.spark.audit.nights import settings_of
from tests.spark.lake import Lake

pytestmark = [pytest.mark.apache_spark, pytest.mark.drill]  # repairs; minutes

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
NOW = T0 + 2 * HOUR
GAP, SIZE = (5, 6, 7), 1_200
KEPT = Retention(24 * HOUR)
WINDOW = Window(T0, T0 + 12 * MINUTE)


@dataclass
class Outage:
    """A stream of one shard whose consumer left out three minutes, and one message beside."""

    lake: Lake
    url: str

    @property
    def settings(self) -> Settings:
        self.lake.settings = {"retention": KEPT.length}
        values = settings_of(self.lake).model_dump()
        aws = {"region": "us-east-1", "endpoint_url": self.url}
        return Settings.model_validate(values | {"aws": aws})

    def produced(self) -> None:
        """Puts all messages on the stream, in their order, and lands those that were read."""
        client, control = endpoint_client(self.url), StandInControl(self.url)
        stream = KinesisStream(client, "kinesis-events", control)
        stream.hold_clock(T0)
        stream.create(shards=1, retention=KEPT.length)
        for minute in range(12):
            self._minute(stream, minute, SIZE if minute in GAP else 12)
        stream.run_clock(NOW)

    def _minute(self, stream: KinesisStream, minute: int, count: int) -> None:
        start, step = T0 + minute * MINUTE, 59_000 // count
        traces, rows = [], []
        stream.hold_clock(start, step_ms=step)
        for first in range(0, count, 400):
            numbers = range(first, min(first + 400, count))
            sent = {n: start + n * timedelta(milliseconds=step) for n in numbers}
            puts = [
                Put(
                    "key",
                    "0",
                    json.dumps(
                        {"message_id": f"{minute}-{n}", "sent_at": sent[n].isoformat()}
                    ).encode(),
                )
                for n in numbers
            ]
            for n, ack in zip(numbers, stream.put(puts), strict=True):
                assert ack is not None
                line = {"message_id": f"{minute}-{n}", "shard_id": ack.shard_id}
                line["sequence_number"] = ack.sequence_number
                at = sent[n].isoformat()
                traces.append(line | {"sent_at": at, "acked_at": at})
                if minute not in GAP and (minute, n) != (2, 3):
                    rows.append(line | {"sent_at": sent[n], "landed_at": sent[n] + MINUTE})
        self.lake.log(f"{minute}.jsonl", traces)
        if rows:
            self.lake.land(rows)

    def audited(self) -> None:
        stream = self.settings.stream(self.lake.name)
        ingest(self.lake.warehouse, self.lake.name, stream, now=NOW)
        request = AuditRequest(self.lake.name, stream, WINDOW, NOW, KEPT)
        audit(self.lake.warehouse, request, open_gates(None), now=NOW)

    def planned(self) -> Plan:
        stream = self.settings.stream(self.lake.name)
        request = PlanRequest(self.lake.name, stream, NOW, KEPT)
        return plan_backfill(self.lake.warehouse, request, now=NOW)

    def run(self, plan: Plan) -> Verified:
        replay = replay_of(self.lake.warehouse, self.settings, plan.plan_id, as_of=NOW)
        verified = run_backfill(Running(replay, self.settings, open_gates(None), "ann"))
        assert verified is not None
        return verified

    def states(self) -> list[tuple[str, int, str]]:
        rows = self.lake.rows(GAPS)
        return sorted((row.state, row["count"], row.cause) for row in rows)


@pytest.fixture
def outage(lake: Lake) -> Iterator[Outage]:
    """Audited."""
    with kinesis_stand_in() as url:
        outage = Outage(lake, url)
        outage.produced()
        outage.audited()
        yield outage


def test_gaps_are_planned_read_again_and_proven_by_their_cells(outage: Outage) -> None:
    lake = outage.lake
    assert outage.states() == [("open", SIZE, "lost")] * 3
    found = [row.message_id for row in lake.rows(FINDINGS)]
    assert (found, stuck_ids(lake.warehouse, lake.name, shard_ids=[])) == (["2-3"], 0)
    plan = outage.planned()
    windows = stored_windows(lake.warehouse, plan.plan_id)
    starts = sorted((w.expected_ids, bool(w.start_sequence_number)) for w in windows)
    assert starts == [(1, True), (3 * SIZE, True)]
    again = outage.planned().plan_id
    ids = [row.message_id for row in lake.rows(BACKFILL_IDS)]
    assert (again, ids) == (plan.plan_id, ["2-3"])

    verified = outage.run(plan)
    assert (verified.recovered, verified.left, verified.expired) == (3 * SIZE + 1, 0, 0)
    states = {w.state for w in stored_windows(lake.warehouse, plan.plan_id)}
    assert (states, outage.states()) == ({"verified"}, [("recovered", SIZE, "lost")] * 3)
    transitions = lake.warehouse.counts(
        GAP_TRANSITIONS, by=["from_state", "to_state"], having={"stream": lake.name}
    )
    steps = [None, "open", "planned", "replayed", "recovered"]
    assert transitions == {step: 3 for step in pairwise(steps)}
    newest = lake.warehouse.rows(CELLS, where=pc.field("audit_id") == verified.audit_id)
    rows = lake.spark.read.format("delta").load(str(lake.sink)).count()
    assert ({row["verdict"] for row in newest}, rows) == ({"ok"}, 9 * 12 + 3 * SIZE)
