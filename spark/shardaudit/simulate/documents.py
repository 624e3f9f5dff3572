"""What tells about a simulation: the planted findings, its facts, and a configuration for it."""

import json
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from shardaudit.simulate.scenario import Scenario

PLANTED_COLUMNS = (
    "stream, shard_id, message_id, kind, cause, state, sent_at, recoverable_until, fault"
)


@dataclass(frozen=True, slots=True)
class Places:
    """Where traces, sink and warehouse are, as the configuration names them."""

    warehouse: str
    traces: str
    trace_format: str
    sink: str
    sink_format: str
    kinesis_url: str | None = None
    s3_url: str | None = None


def planted_findings(engine: duckdb.DuckDBPyConnection) -> pa.Table:
    """One row is a finding that the audit must make; always in the same order."""
    order = "kind, cause, shard_id, sent_at, message_id"
    return engine.sql(f"select {PLANTED_COLUMNS} from planted order by {order}").to_arrow_table()  # noqa: S608 - constants


def simulation_facts(scenario: Scenario) -> str:
    """The simulation as JSON: what is needed to audit it, and to make it again."""
    facts = {
        "stream": scenario.stream,
        "seed": scenario.seed,
        "window_start": _text(scenario.window.start.isoformat()),
        "window_end": _text(scenario.window.end.isoformat()),
        "as_of": _text(scenario.as_of.isoformat()),
        "messages": scenario.messages,
        "shards": scenario.shards,
        "retention_hours": int(scenario.retention.total_seconds()) // 3600,
        "faults": dict(sorted(scenario.faults.items())),
    }
    return json.dumps(facts, indent=2) + "\n"


def configuration(scenario: Scenario, places: Places) -> str:
    """A `shardaudit.toml` for it. Local folders are relative to the file."""
    hours = int(scenario.retention.total_seconds()) // 3600
    return "\n".join(
        [
            f"warehouse = {_toml(places.warehouse)}",
            'engine = "embedded"  # one machine, no JVM; "spark": Apache Spark, the same answers',
            "",
            *_aws(places),
            f"[streams.{_toml(scenario.stream)}]",
            f"stream_name = {_toml(scenario.stream)}",
            f'retention = "{hours}h"',
            "",
            f"[streams.{_toml(scenario.stream)}.traces]",
            f"path = {_toml(places.traces)}",
            f"format = {_toml(places.trace_format)}",
            "",
            f"[streams.{_toml(scenario.stream)}.sink]",
            f"path = {_toml(places.sink)}",
            f"format = {_toml(places.sink_format)}",
            "exclusive = true",
            "derived = { day = \"date_format(sent_at, 'yyyy-MM-dd')\" }",
            "",
            f"[streams.{_toml(scenario.stream)}.backfill]",
            'fields = { payload = "$" }',
            "read_share = 1.0",
            "",
        ]
    )


def _aws(places: Places) -> list[str]:
    endpoints = {"kinesis": places.kinesis_url, "s3": places.s3_url}
    given = [f"{name} = {_toml(url)}" for name, url in endpoints.items() if url is not None]
    if not given:
        return []
    again = [
        "# The simulation's S3 has stopped. To start it again on its port (credentials of your own",
        "# choice in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, here and there):",
        "#   shardaudit simulate serve --s3 s3 --s3-port "
        + (places.s3_url or "").rpartition(":")[2],
    ]
    return [
        *(again if places.s3_url else []),
        "[aws]",
        'region = "us-east-1"',
        f"endpoints = {{ {', '.join(given)} }}",
        "",
    ]


def _toml(text: str) -> str:
    return json.dumps(text)  # a JSON string is a TOML basic string


def _text(instant: str) -> str:
    return instant.replace("+00:00", "Z")
