"""A simulated stream with planted losses, its sink, and the repairs of it."""

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any  # of what a command says in JSON

import pyarrow.compute as pc
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from shardaudit.audit.gates import open_gates
from shardaudit.backfill.dedupe_plan import stored_dedupe
from shardaudit.backfill.dedupe_run import Dedupe
from shardaudit.backfill.landing import backfill_sink
from shardaudit.backfill.ledger import stored_windows
from shardaudit.backfill.plan_job import PlanRequest, plan_backfill
from shardaudit.backfill.rules.approval import configured_for
from shardaudit.backfill.rules.planned import REPLAY, Plan, StoredDedupe, StoredWindow
from shardaudit.backfill.run import ACTIONS, Running, replay_of, run_backfill
from shardaudit.backfill.verify import Verified
from shardaudit.cli.backfill_command import exit_code
from shardaudit.model.config.settings import Settings, load_settings
from shardaudit.model.exit_code import ExitCode
from shardaudit.model.retention import Retention
from shardaudit.model.tables.audit_tables import FINDINGS, GATES, QUARANTINE
from shardaudit.simulate.job import Endpoints, simulate_stream
from shardaudit.simulate.kinesis_stream import endpoint_client
from shardaudit.simulate.scenario import Scenario
from shardaudit.simulate.stand_in_process import StandInControl, kinesis_stand_in
from shardaudit.store.warehouse import Warehouse
from tests.spark.commands import EMBEDDED, audit, run
from tests.spark.moved_inputs import move_inputs
from tests.unit.simulate.simulated import Simulated

START = datetime(2026, 11, 1, tzinfo=UTC)
NAME = "events"


@dataclass
class Loss:
    """A simulated stream, its sink, and the stand-in that still has the records."""

    warehouse: Warehouse
    scenario: Scenario
    folder: Path
    control: StandInControl

    @property
    def settings(self) -> Settings:
        return load_settings(self.folder / "shardaudit.toml")

    @property
    def simulated(self) -> Simulated:
        return Simulated(self.folder)

    @property
    def kept(self) -> Retention:
        return Retention(self.scenario.retention)

    def audited(self) -> None:
        """By the embedded engine: what is looked at here is the repair."""
        audit(self.folder, self.scenario)

    def as_audited(self, folder: Path) -> None:
        """Takes the files and the warehouse of a folder in which the same was planted and audited.

        Their times stay, and the batches know them by their new paths.
        """
        for name in ("traces", "sink", "warehouse"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
            shutil.copytree(folder / name, self.folder / name)
        move_inputs(self.warehouse, NAME, old=folder, new=self.folder)

    def planted_messages(self) -> list[str]:
        """What was planted, where, as text."""
        return sorted(map(str, self.simulated.planted))

    def planned(self, **wanted: object) -> Plan:
        request = PlanRequest(
            NAME,
            self.settings.stream(NAME),
            self.scenario.as_of,
            self.kept,
            configured=configured_for(self.settings, NAME),
            **wanted,  # type: ignore[arg-type] # the test's choice
        )
        return plan_backfill(self.warehouse, request, now=self.scenario.as_of)

    def run(self, plan: Plan, *, approve_as: str | None = "ann") -> Verified | None:
        return run_backfill(self.running(plan, approve_as=approve_as))

    def ran(self, plan: Plan) -> Verified:
        """What the proof says after a run that had something to do."""
        verified = self.run(plan)
        assert verified is not None
        return verified

    def running(self, plan: Plan, *, approve_as: str | None) -> Running:
        replay = replay_of(self.warehouse, self.settings, plan.plan_id, as_of=self.scenario.as_of)
        return Running(replay, self.settings, open_gates(None), approve_as)

    def replayed(self, plan: Plan) -> ExitCode:
        running = self.running(plan, approve_as="ann")
        assert run_backfill(running, ACTIONS[REPLAY]) is None
        return exit_code(running, REPLAY)

    def proof(self, plan: Plan, *, ends: ExitCode = ExitCode.DONE) -> dict[str, Any]:
        """What `backfill verify` says, and how it ends: by the embedded engine, as in a night."""
        words = ["backfill", "verify", "--plan", plan.plan_id, "--json"]
        as_of = ["--as-of", self.scenario.as_of.isoformat()]
        said: dict[str, Any] = json.loads(
            run(self.folder, [EMBEDDED, *words, *as_of], exit_code=ends)
        )
        return said

    def dedupe(self, plan_id: str, *, approve_as: str | None = "ann") -> StoredDedupe:
        plan = stored_dedupe(self.warehouse, plan_id)
        assert plan is not None
        dedupe = Dedupe(
            warehouse=self.warehouse,
            settings=self.settings,
            gates=open_gates(None),
            plan=plan,
            sink=backfill_sink(self.warehouse.spark, self.settings, NAME),
            retention=self.kept,
            now=lambda: self.scenario.as_of,
            owner="test",
        )
        dedupe.remove(approve_as=approve_as)
        dedupe.verify()
        return dedupe.plan

    def gates(self, plan: Plan) -> dict[str, tuple[str, int]]:
        """What was judged when the plan was verified: by suite its state and its rows."""
        rows = self.warehouse.rows(GATES, where=pc.field("plan_id") == plan.plan_id)
        return {row["suite"]: (row["state"], row["rows"]) for row in rows}

    def windows(self, plan: Plan) -> list[StoredWindow]:
        return stored_windows(self.warehouse, plan.plan_id)

    def findings(self) -> Counter[tuple[str, str]]:
        """(planted as, state) of the missing messages."""
        planted = {row["message_id"]: str(row["fault"]) for row in self.simulated.planted}
        rows = self.warehouse.read(FINDINGS).where(F.col("kind") == "missing").collect()
        return Counter((planted[row.message_id], row.state) for row in rows)

    def records(self, stream: str) -> list[bytes]:
        """The contents of all records that a stream holds."""
        client = endpoint_client(self.control.url)
        found = []
        for shard in client.list_shards(StreamName=stream)["Shards"]:
            iterator: str | None = client.get_shard_iterator(
                StreamName=stream, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
            )["ShardIterator"]
            while iterator:
                answer = client.get_records(ShardIterator=iterator)
                found += [record["Data"] for record in answer["Records"]]
                more = answer["Records"] or answer.get("ChildShards")
                iterator = answer.get("NextShardIterator") if more else None
        return found

    def quarantined(self) -> list[Row]:
        """What was set aside."""
        return self.warehouse.read(QUARANTINE).collect()

    def landed(self) -> Counter[object]:
        return Counter(row["message_id"] for row in Simulated(self.folder).sink)


@contextmanager
def planted_loss(spark: SparkSession, folder: Path) -> Iterator[Loss]:
    """2,000 messages on 6 shards; 12 lost, 3 of them too long ago, some beside a duplicate."""
    scenario = Scenario(
        stream=NAME,
        seed=11,
        messages=2000,
        shards=6,
        start=START,
        hours=24,
        faults={"lost": 9, "expired": 3, "replay": 2, "cancel": 1, "stuck_shard": 1, "reshard": 1},
    )
    with kinesis_stand_in() as url:
        simulate_stream(scenario, folder, endpoints=Endpoints(url))
        warehouse = Warehouse(spark, str(folder / "warehouse"))
        loss = Loss(warehouse, scenario, folder, StandInControl(url))
        yield loss
