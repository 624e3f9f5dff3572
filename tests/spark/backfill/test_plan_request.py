"""A run of the DAG finds the plan that its own command made, and no other."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import write_deltalake

from shardaudit.adapters.lake.delta_rs import DeltaRs
from shardaudit.backfill.questions import asked_plan
from shardaudit.model.config.settings import load_settings
from shardaudit.model.tables.backfill_tables import BACKFILLS
from shardaudit.store.audits import read_rows
from tests.spark.commands import run

CONFIG = """
warehouse = "lake"
engine = "embedded"
[streams.events]
stream_name = "events"
retention = "8760h"
traces = { path = "traces" }
sink = { path = "sink" }
backfill = { mode = "request", request_to = "asked" }
"""
SENT = datetime(2026, 11, 1, tzinfo=UTC)
RANGE = ["--from=2026-11-01T00:00:00Z", "--to=2026-11-01T01:00:00Z"]


def test_a_plan_is_noted_for_the_run_that_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    config = tmp_path / "shardaudit.toml"
    config.write_text(CONFIG)
    (tmp_path / "traces").mkdir()
    instants = pa.array([SENT, SENT], pa.timestamp("us", "UTC"))
    texts = {"message_id": ["m", "n"], "shard_id": ["s", "t"], "sequence_number": ["1", "2"]}
    rows = pa.table({**texts, "sent_at": instants, "landed_at": instants})
    write_deltalake(str(tmp_path / "sink"), rows)
    run(tmp_path, ["ingest", "--stream=events"])

    planning = ["backfill", "plan", "--stream=events", "--as-of=2026-11-02T00:00:00Z", "--json"]
    made = json.loads(run(tmp_path, [*planning, *RANGE, "--shard=s", "--request=r1"]))
    settings = load_settings(config)
    planned = read_rows(settings, BACKFILLS, where=pc.field("plan_id") == made["plan_id"])
    approved = [row | {"state": "approved"} for row in planned]
    DeltaRs(settings.warehouse, settings.aws).upsert(approved, BACKFILLS)
    assert "no audit has judged yet what was sent to 1 shard from 2026-11-01" in made["on_its_way"]
    nothing = json.loads(run(tmp_path, [*planning, "--request=r2"]))
    assert (nothing["windows"], nothing["handed_over"]) == ([], [made["plan_id"]])
    assert json.loads(run(tmp_path, [*planning, "--shard=t"]))["handed_over"] == []
    run(tmp_path, ["dedupe", "plan", "--stream=events", "--request=r3"])
    found = [asked_plan(settings, name) for name in ("r1", "r2", "r3")]
    assert [asked.plan_id for asked in found] == [made["plan_id"], None, None]
    assert [asked.what.value for asked in found] == ["missing", "missing", "duplicates"]
    scope = "--from=2026-11-01T00:00:00+00:00 --to=2026-11-01T01:00:00+00:00 --shard=s"
    assert [asked.scope for asked in found] == [scope, "", ""]


def test_a_message_is_in_the_plan_of_each_shard_that_holds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A retry put it on another shard, too: its finding names the first one."""
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    (tmp_path / "shardaudit.toml").write_text(CONFIG)
    (tmp_path / "traces").mkdir()
    later = SENT + timedelta(minutes=50)
    landed = [("n", "s", "2", SENT), ("o", "t", "6", SENT), ("p", "s", "3", later)]
    landed.append(("q", "t", "7", later))
    lines = [
        json.dumps(
            {"message_id": m, "stream": "events", "shard_id": shard, "sequence_number": number}
            | {"sent_at": at.isoformat(), "attempt": int(number)}
        )
        for m, shard, number, at in (("m", "s", "1", SENT), ("m", "t", "5", SENT), *landed)
    ]
    (tmp_path / "traces" / "one.jsonl").write_text("\n".join(lines))
    names = ("message_id", "shard_id", "sequence_number", "sent_at")
    rows = [dict(zip((*names, "landed_at"), (*row, row[-1]), strict=True)) for row in landed]
    write_deltalake(str(tmp_path / "sink"), pa.Table.from_pylist(rows))
    as_of = "--as-of=2026-11-02T00:00:00Z"
    run(tmp_path, ["audit", "--stream=events", *RANGE, as_of])
    planning = ["backfill", "plan", "--stream=events", as_of, "--json"]
    plans = [json.loads(run(tmp_path, [*planning, f"--shard={shard}"])) for shard in ("s", "t")]
    found = [[(w["shard_id"], w["expected_ids"]) for w in plan["windows"]] for plan in plans]
    assert found == [[("s", 1)], [("t", 1)]]
