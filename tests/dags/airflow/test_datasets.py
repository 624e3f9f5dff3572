"""What the tasks tell OpenLineage. Its provider is not installed here: two classes stand for it."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from shardaudit.airflow.launch import ShardauditJob
from shardaudit.airflow.planned_jobs import PlannedJob, planned_upkeep
from shardaudit.airflow.telemetry import Lineage, lineage
from shardaudit.model.tables.all_tables import OF_LEDGER, OF_WATCH
from shardaudit.model.tables.audit_tables import QUIET_TIMES
from shardaudit.model.tables.backfill_tables import PLAN_REQUESTS


@dataclass
class Dataset:
    """As `openlineage.client.event_v2.Dataset` is built."""

    namespace: str
    name: str


@dataclass
class OperatorLineage:
    """As the provider's class is built."""

    inputs: list[Dataset]
    outputs: list[Dataset]


def job(config: Path, *command: str) -> PlannedJob:
    """As the DAGs plan it: `dedupe run` is the action `run`."""
    words = ["--config", str(config), *command, "--stream=events"]
    return {"stream": "events", "driver": {}, "arguments": {command[-1]: words}, "engines": {}}


def test_an_audit_reads_the_users_data_and_writes_ours(config: Path) -> None:
    config.write_text(
        config.read_text()
        .replace('warehouse = "warehouse"', 'warehouse = "s3a://lake/our/own"')
        .replace('path = "sink/events"', 'path = "s3a://lake"')
    )
    found = lineage("audit", job(config, "audit"))
    own = "our/own/quiet_times"  # what people said
    assert found.inputs == (
        ("file", f"{config.parent}/traces/events"),
        ("s3://lake", "/"),
        ("s3://lake", own),
    )
    assert {space for space, _ in found.outputs} == {"s3://lake"}
    assert {"our/own/traces", "our/own/cells"} <= {name for _, name in found.outputs}


@pytest.mark.parametrize(
    ("command", "written"),
    [
        (["audit"], "traces"),
        (["audit"], "audits"),
        (["watch"], "positions"),
        (["backfill", "plan"], "backfill_ids"),
        (["backfill", "replay"], "backfills"),
        (["backfill", "verify"], "findings"),
        (["dedupe", "plan"], "dedupe_ids"),
        (["dedupe", "remove"], "removed_rows"),
        (["dedupe", "verify"], "findings"),
    ],
)
def test_every_job_says_what_it_reads_and_writes(
    config: Path, command: list[str], written: str
) -> None:
    found = lineage(command[-1], job(config, *command))
    assert found.inputs
    assert ("file", f"{config.parent}/warehouse/{written}") in found.outputs


def test_each_table_is_written_by_a_job_unless_people_write_it(config: Path) -> None:
    commands = [
        ["audit"], ["watch"], *(["backfill", word] for word in ("plan", "replay")),
        ["backfill", "verify"], *(["dedupe", word] for word in ("plan", "remove", "verify")),
    ]  # fmt: skip
    written = {
        Path(name).name
        for command in commands
        for _, name in lineage(command[-1], job(config, *command)).outputs
    }
    of_people = {QUIET_TIMES, PLAN_REQUESTS}
    assert written - {"events"} == {
        table.name for table in (*OF_LEDGER, *OF_WATCH) if table not in of_people
    }


@pytest.mark.usefixtures("config")
def test_an_upkeep_moves_no_data() -> None:
    assert lineage("maintain", planned_upkeep()) == Lineage((), ())


def test_the_operator_answers_in_the_providers_words(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fakes: Mapping[str, object] = {
        "airflow.providers.openlineage": None,
        "airflow.providers.openlineage.extractors": OperatorLineage,
        "openlineage": None,
        "openlineage.client": None,
        "openlineage.client.event_v2": Dataset,
    }
    for name, holds in fakes.items():
        module = ModuleType(name)
        if isinstance(holds, type):
            setattr(module, holds.__name__, holds)
        monkeypatch.setitem(sys.modules, name, module)
    task = ShardauditJob(task_id="audit", command="audit", planned=job(config, "audit"))
    told = task.get_openlineage_facets_on_complete(None)
    assert Dataset("file", f"{config.parent}/sink/events") in told.inputs
    assert Dataset("file", f"{config.parent}/warehouse/findings") in told.outputs
