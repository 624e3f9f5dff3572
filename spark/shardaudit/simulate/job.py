"""Simulates a producer, a stream and a consumer, with faults planted; says what was planted.

`run` goes through a Kinesis endpoint, `files` writes the same straight to files, `serve` is the
Kinesis stand-in alone.
"""

import argparse
import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import duckdb

from shardaudit.model.errors import ConfigError
from shardaudit.model.exit_code import ExitCode
from shardaudit.report.progress import NO_PROGRESS, Progress
from shardaudit.simulate.kinesis_stream import simulated_stream
from shardaudit.simulate.messages import (
    connect,
    create_made_up_records,
    create_messages,
    create_puts,
)
from shardaudit.simulate.options import add_arguments, scenario_of, serve_from
from shardaudit.simulate.output import (
    BUCKET,
    BucketFolder,
    LocalFolder,
    ParquetSink,
    SimulatedSink,
    simulation_bucket,
)
from shardaudit.simulate.planted_faults import create_faults, create_outcome
from shardaudit.simulate.producer import consume, produce
from shardaudit.simulate.s3proxy import S3Endpoint, s3_proxy
from shardaudit.simulate.scenario import Scenario, roles
from shardaudit.simulate.stand_in_process import kinesis_stand_in
from shardaudit.simulate.written_files import (
    Folder,
    Places,
    SinkTable,
    configuration,
    land_by_hour,
    simulation_facts,
    write_files,
    write_planted,
    write_trace_logs,
)

__all__ = ["add_arguments", "run", "simulate_files", "simulate_stream"]

STREAM_STAGES = 6
FILE_STAGES = 3


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where the stream is (None: a stand-in as long as it takes), and whether files go to S3."""

    kinesis_url: str | None = None
    s3: bool = False


def run(
    args: argparse.Namespace,
    *,
    show: Callable[[Mapping[str, object]], None],
    progress: Progress = NO_PROGRESS,
) -> int:
    """Does what the arguments say; hands the simulation's facts to `show`."""
    if args.action == "serve":
        return serve_from(args)
    scenario = scenario_of(args)
    if args.action == "files":
        simulate_files(scenario, args.out, sink_format=args.sink_format, progress=progress)
    else:
        endpoints = Endpoints(args.endpoint_url, args.s3)
        simulate_stream(scenario, args.out, endpoints=endpoints, progress=progress)
    show({"out": str(args.out), **json.loads(simulation_facts(scenario))})
    return ExitCode.DONE


def simulate_stream(
    scenario: Scenario,
    out: Path,
    *,
    endpoints: Endpoints,
    progress: Progress = NO_PROGRESS,
) -> None:
    """Puts the messages on a stream, reads it, and leaves logs, sink and documents in the folder.

    Raises:
        ConfigError: the folder is not empty, or so many faults do not fit in.
    """
    _require_empty(out)
    with ExitStack() as stack:
        url = endpoints.kinesis_url or stack.enter_context(kinesis_stand_in())
        s3 = stack.enter_context(s3_proxy(out / "s3")) if endpoints.s3 else None
        engine = stack.enter_context(connect())
        stream, parts = simulated_stream(url, scenario.stream), roles(scenario)
        with progress.stage("make messages"):
            create_messages(engine, scenario)
            create_puts(engine, scenario, parts)
        with progress.stage("produce"):
            produce(engine, stream, scenario, parts)
        with progress.stage("consume"):
            consume(engine, stream, scenario)
        with progress.stage("plant faults"):
            create_faults(engine, scenario, parts)
            create_outcome(engine, scenario, parts)
        traces, sink, places = _stream_outputs(out, s3, endpoints)
        with progress.stage("write trace logs"):
            write_trace_logs(engine, scenario, traces)
        with progress.stage("land in the sink"):
            land_by_hour(engine, sink)
        _write_documents(engine, scenario, out=out, places=places)
        stream.run_clock(scenario.as_of)


def simulate_files(
    scenario: Scenario, out: Path, *, sink_format: str = "delta", progress: Progress = NO_PROGRESS
) -> None:
    """Writes the traces (Parquet) and the sink of the same messages, without a stream between."""
    _require_empty(out)
    parts = roles(scenario)
    sink: SinkTable = (
        SimulatedSink(str(out / "sink")) if sink_format == "delta" else ParquetSink(out / "sink")
    )
    with connect() as engine:
        with progress.stage("make messages"):
            create_messages(engine, scenario)
            create_puts(engine, scenario, parts)
            create_made_up_records(engine, scenario, parts)
        with progress.stage("plant faults"):
            create_faults(engine, scenario, parts)
            create_outcome(engine, scenario, parts)
        with progress.stage("write traces and sink"):
            write_files(engine, scenario, traces=out / "traces", sink=sink)
        places = Places("warehouse", "traces", "parquet", "sink", sink_format)
        _write_documents(engine, scenario, out=out, places=places)


def _stream_outputs(
    out: Path, s3: S3Endpoint | None, endpoints: Endpoints
) -> tuple[Folder, SinkTable, Places]:
    kinesis = endpoints.kinesis_url
    if s3 is None:
        places = Places("warehouse", "traces", "json", "sink", "delta", kinesis)
        return LocalFolder(out / "traces"), SimulatedSink(str(out / "sink")), places
    client = simulation_bucket(s3)
    root = f"s3a://{BUCKET}"
    places = Places(
        f"{root}/warehouse", f"{root}/traces", "json", f"{root}/sink", "delta", kinesis, s3.url
    )
    sink = SimulatedSink(f"s3://{BUCKET}/sink", s3.storage_options())
    return BucketFolder(client, "traces"), sink, places


def _write_documents(
    engine: duckdb.DuckDBPyConnection, scenario: Scenario, *, out: Path, places: Places
) -> None:
    out.mkdir(parents=True, exist_ok=True)
    write_planted(engine, out / "planted.parquet")
    (out / "simulation.json").write_text(simulation_facts(scenario), encoding="utf-8")
    (out / "shardaudit.toml").write_text(configuration(scenario, places), encoding="utf-8")


def _require_empty(out: Path) -> None:
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError("--out", str(out), "a folder that is empty or does not exist")
