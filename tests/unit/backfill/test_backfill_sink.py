"""Where a sink's columns come from, told without an engine."""

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable, Schema

from shardaudit.backfill.landing import sink_sources
from shardaudit.backfill.run import check_landing
from shardaudit.model.config.settings import Settings
from shardaudit.model.errors import ConfigError
from shardaudit.model.input_columns import Origin


def settings(folder: Path, **sink: object) -> Settings:
    stream = {
        "stream_name": "kinesis-events",
        "traces": {"path": str(folder / "traces")},
        "sink": {"path": str(folder / "sink"), "exclusive": True, **sink},
    }
    return Settings.model_validate({"warehouse": str(folder), "streams": {"events": stream}})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With a Delta sink that computes one column and needs another."""
    computed = {"delta.generationExpression": "CAST(sent_at AS DATE)"}
    fields = [
        {"name": name, "type": kind, "nullable": nullable, "metadata": metadata}
        for name, kind, nullable, metadata in (
            ("message_id", "string", False, {}),
            ("sent_at", "timestamp", True, {}),
            ("landed_at", "timestamp", True, {}),
            ("day", "date", True, computed),
            ("tenant", "string", False, {}),
        )
    ]
    schema = Schema.from_json(json.dumps({"type": "struct", "fields": fields}))
    DeltaTable.create(tmp_path / "sink", schema)
    return tmp_path


def test_sources_are_told_when_every_column_has_one(folder: Path) -> None:
    found = sink_sources(settings(folder, derived={"tenant": "'x'"}), "events")
    assert {source.field.name: source.origin for source in found} == {
        "message_id": Origin.PAYLOAD,
        "sent_at": Origin.PAYLOAD,
        "landed_at": Origin.RECORD,
        "day": Origin.TABLE,
        "tenant": Origin.DERIVED,
    }
    check_landing(settings(folder, derived={"tenant": "'x'"}), "events")


def test_plan_is_refused_when_a_needed_column_has_no_source(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"sink column tenant.*it is NOT NULL"):
        check_landing(settings(folder), "events")
    assert len(sink_sources(settings(folder), "events", only_ids=True)) == 2


def test_plan_is_refused_when_there_is_no_sink(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="wanted a Delta table"):
        check_landing(settings(tmp_path), "events")
