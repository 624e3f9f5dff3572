"""The commands on other work than `commands` gives them, each against the scripts on its files.

`python -m tests.bench.shapes [SHAPE …]`: `json` (200,000 messages in JSON lines), `gzip` (10
million in JSON lines, ingest alone), `empty` and `other` (10 million, of which nothing is alike on
both sides), `day` (the last of seven days of 10 million each comes in), `nights` (a hundred
nights, each with a batch of its own and the upkeep of the morning after). All cold, the files read
once before.
"""

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from subprocess import CalledProcessError

import duckdb
from deltalake import DeltaTable, write_deltalake
from rich.console import Console

from tests.bench.commands import (
    ENGINES,
    FOLDER,
    SHARDS,
    Measured,
    fault_options,
    fresh_warehouse,
    measured_table,
    run,
    script,
    shardaudit,
    simulated,
    the_same,
    warm,
)

Found = dict[str, Measured]

A_DAY = 10_000_000  # messages
SMALL_DAY = 20_000  # messages, of a night of a hundred
_TIME = "'%Y-%m-%dT%H:%M:%S.%gZ'"


def main(shapes: Sequence[str]) -> int:
    """Measures each shape, one process after the other; 1: some could not be measured."""
    failed = []
    for shape in shapes:
        try:
            found = SHAPES[shape]()
        except CalledProcessError as error:
            failed.append(f"{shape}: {error}")
            continue
        Console().print(measured_table(shape, found, load=os.getloadavg()[0]))
        said = {name: measured.seconds for name, measured in found.items()}
        (FOLDER / f"shape-{shape}.json").write_text(json.dumps(said, indent=2))
    Console().print(*failed, sep="\n")
    return int(bool(failed))


def _json() -> Found:
    folder = _copied(simulated("2e5"), "json-2e5")
    _to_json_lines(folder, "jsonl")
    return _audited(folder)


def _gzip() -> Found:
    folder = _copied(simulated("1e7"), "json-1e7")
    _to_json_lines(folder, "jsonl.gz")
    _empty_sink(folder)
    found = {"Spark script": run(script("spark_parse", folder))}
    for engine in ENGINES:
        config = fresh_warehouse(folder, engine)
        ingest = ["--config", config, "ingest", "--stream", "events"]
        found[f"ingest, {engine}"] = run(shardaudit(ingest))
    return found


def _empty() -> Found:
    folder = _copied(simulated("1e7"), "empty-1e7")
    _empty_sink(folder)
    return _audited(folder)


def _other() -> Found:
    folder = _copied(simulated("1e7"), "other-1e7")
    sink = DeltaTable(str(folder / "sink"))
    columns = ", ".join(field.name for field in sink.schema().fields)
    files = f"read_parquet('{folder}/sink/**/*.parquet', hive_types_autocast = false)"
    # Were none the same, a gate would shut; the scripts know no doubled id without a trace.
    is_same = "hash(message_id) % 1000 = 0 or count(*) over (partition by message_id) > 1"
    other = f"if({is_same}, message_id, message_id || '-x')"
    named = columns.replace("message_id", f"{other} as message_id")
    rows = duckdb.connect().sql(f"select {named} from {files}").to_arrow_reader(500_000)  # noqa: S608 - our own folder
    write_deltalake(str(folder / "other"), rows, partition_by=["day"])
    shutil.rmtree(folder / "sink")
    (folder / "other").rename(folder / "sink")
    return _audited(folder)


def _day() -> Found:
    folder, days = FOLDER / "seven-days", 7
    if not (folder / "simulation.json").exists():
        size = [f"--messages={days * A_DAY}", f"--hours={24 * days}", f"--shards={SHARDS}"]
        run(shardaudit(["simulate", "files", "--out", str(folder), *size, *fault_options(A_DAY)]))
    start, end, as_of = _times(folder)
    last = end - timedelta(days=1)
    config = fresh_warehouse(folder, "embedded")
    with _without_the_last(folder, days):
        run(shardaudit(_audit(config, start, last, as_of - timedelta(days=1))))
    shutil.copytree(folder / "warehouse", folder / "six-days", dirs_exist_ok=True)
    warm(folder)
    found = {"DuckDB script": run(script("duckdb", folder))}
    for engine in ENGINES:
        config = fresh_warehouse(folder, engine)
        shutil.copytree(folder / "six-days", folder / "warehouse")
        audit = _audit(config, last, end, as_of)
        found[f"the seventh day, {engine}"] = run(shardaudit(audit))
    return found


@contextmanager
def _without_the_last(folder: Path, days: int) -> Iterator[None]:
    """Trace files and sink commits are as many each day, in the order of time."""
    away = folder / "seventh"
    away.mkdir(exist_ok=True)
    moved: list[tuple[Path, Path]] = []
    for files in (folder.glob("traces/*"), folder.glob("sink/_delta_log/*.json")):
        ordered = sorted(files)
        last = ordered[len(ordered) * (days - 1) // days :]
        moved += [(file.rename(away / file.name), file) for file in last]
    yield
    for there, file in moved:
        there.rename(file)


def _nights() -> Found:
    folder, nights = FOLDER / "nights", 100
    if not (folder / "simulation.json").exists():
        size = [f"--messages={nights * SMALL_DAY}", f"--hours={24 * nights}", "--shards=8"]
        size.append("--start=2026-01-01T00:00:00Z")  # so that no night is to come
        run(shardaudit(["simulate", "files", "--out", str(folder), "--no-faults", *size]))
        _a_file_a_day(folder)
    start, _, _ = _times(folder)
    away = folder / "to-come"
    found = {}
    config = fresh_warehouse(folder, "embedded")
    for side in ("traces", "sink"):  # of nights measured before
        shutil.rmtree(folder / side, ignore_errors=True)
        (folder / side).mkdir()
    for night in range(nights):
        for side in ("traces", "sink"):
            file = f"{night:03d}.parquet"
            shutil.copy(away / side / file, folder / side / file)
        day = start + timedelta(days=night)
        end = day + timedelta(days=1)
        measured = run(shardaudit(_audit(config, day, end, end + timedelta(minutes=30))))
        run(shardaudit(["--config", config, "maintain"]))  # as the DAG does each morning
        if night % 10 in {0, 1, 9}:
            found[f"night {night + 1}"] = measured
    return found


def _a_file_a_day(folder: Path) -> None:
    for side in ("traces", "sink"):
        away = folder / "to-come" / side
        away.mkdir(parents=True)
        files = f"{folder}/{side}/**/*.parquet"
        query = f"select *, dense_rank() over (order by sent_at::date) - 1 d from '{files}'"  # noqa: S608
        engine = duckdb.connect()
        engine.execute(f"create table rows as {query}")
        for (day,) in engine.sql("select distinct d from rows").fetchall():
            target = away / f"{day:03d}.parquet"
            select = f"select * exclude (d) from rows where d = {day} order by sent_at"  # noqa: S608
            engine.execute(f"copy ({select}) to '{target}' (format parquet)")
        shutil.rmtree(folder / side)
    config = folder / "shardaudit.toml"
    text = config.read_text()
    config.write_text(text.replace('format = "delta"', 'format = "parquet"'))


def _audited(folder: Path) -> Found:
    """Both scripts, and a first audit on both engines."""
    warm(folder)
    found = {"Spark script": run(script("spark", folder))}
    found |= {"DuckDB script": run(script("duckdb", folder))}
    for engine in ENGINES:
        audit = _audit(fresh_warehouse(folder, engine), *_times(folder))
        found[f"first audit, {engine}"] = run(shardaudit(audit))
    the_same(found)
    return found


def _audit(config: str, start: datetime, end: datetime, as_of: datetime) -> list[str]:
    window = [f"--from={start.isoformat()}", f"--to={end.isoformat()}"]
    at = ["--as-of", as_of.isoformat()]
    return ["--config", config, "--json", "audit", "--stream", "events", *window, *at]


def _times(folder: Path) -> tuple[datetime, datetime, datetime]:
    facts = json.loads((folder / "simulation.json").read_text())
    start, end, as_of = (facts[name] for name in ("window_start", "window_end", "as_of"))
    return datetime.fromisoformat(start), datetime.fromisoformat(end), datetime.fromisoformat(as_of)


def _copied(folder: Path, name: str) -> Path:
    copy = FOLDER / name
    shutil.rmtree(copy, ignore_errors=True)
    ignored = shutil.ignore_patterns("warehouse")
    return Path(shutil.copytree(folder, copy, ignore=ignored))


def _to_json_lines(folder: Path, suffix: str) -> None:
    """A file an hour, as a producer that turns its log by age writes them."""
    times = ", ".join(
        f"strftime({name} at time zone 'UTC', {_TIME}) as {name}"
        for name in ("sent_at", "acked_at")
    )
    parquet = list(folder.glob("traces/*.parquet"))
    for hour in range(24):
        traces = f"from '{folder}/traces/*.parquet' where hour(sent_at) = {hour}"
        query = f"select * replace ({times}) {traces} order by acked_at"
        target = folder / "traces" / f"{hour:02d}.{suffix}"
        duckdb.execute(f"copy ({query}) to '{target}' (format json)")
    for file in parquet:
        file.unlink()
    config = folder / "shardaudit.toml"
    config.write_text(config.read_text().replace('format = "parquet"', 'format = "json"'))


def _empty_sink(folder: Path) -> None:
    """One row stays: DuckDB reads no list of no files."""
    sink = DeltaTable(str(folder / "sink"))
    query = f"select min(message_id) from '{folder}/sink/**/*.parquet'"  # noqa: S608 - our own folder
    [(first,)] = duckdb.connect().sql(query).fetchall()
    sink.delete(f"message_id <> '{first}'")
    sink.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)


SHAPES: dict[str, Callable[[], Found]] = {
    "json": _json,
    "gzip": _gzip,
    "empty": _empty,
    "other": _other,
    "day": _day,
    "nights": _nights,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(SHAPES)))
