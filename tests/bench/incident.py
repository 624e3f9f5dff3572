"""The incident at its size: one of two shards silent for five days, 100 of 200 million messages.

`python -m tests.bench.incident [MESSAGES]` types, each cold on the embedded engine: the first audit
with its ingest, two more, a watch, a plan of all that is missing; then it repairs an hour from a
stand-in that holds this hour, and audits again. It prints seconds and peak memory, how many rows
gaps and findings are, and how long the page takes, and writes them to `.bench/incident.json`.
"""

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
from deltalake import DeltaTable
from rich.console import Console

from shardaudit.adapters.clock import now
from shardaudit.model.config.settings import load_settings
from shardaudit.page.airflow_door import Rights
from shardaudit.page.site import Site
from shardaudit.producer.message_fields import instant_with_ms
from shardaudit.simulate.kinesis_stream import simulated_stream
from shardaudit.simulate.stand_in.served_stream import hash_starts
from shardaudit.simulate.stand_in_process import kinesis_stand_in
from shardaudit.simulate.stream import Put
from tests.bench.commands import FOLDER, Measured, fresh_warehouse, measured_table, run, shardaudit

SHARDS, HOURS = 2, 120
REPAIRED = 60  # the hour of the silence that is repaired
ARRIVES = timedelta(milliseconds=500)  # after it was sent
AROUND = timedelta(minutes=6)  # of that hour is on the stream, too: a window reads a bit more
BATCH = 500
# Seconds of a third audit by those of the second: it does not cost more while a gap stays open.
AT_MOST = {"GiB": 4.0, "rows": 50_000, "page seconds": 2.0, "growth": 1.5}


def main(messages: str) -> int:
    """Exit code 1 when something takes more than it may."""
    console, folder = Console(), simulated(messages)
    facts = json.loads((folder / "simulation.json").read_text())
    words = ["--config", fresh_warehouse(folder, "embedded"), "--json"]
    of_stream = ["--stream", facts["stream"], "--as-of", facts["as_of"]]
    audit = ["audit", *of_stream, "--from", facts["window_start"], "--to", facts["window_end"]]
    asked = {"first audit": audit, "again": audit, "a third time": audit}
    asked |= {"watch": ["watch", *of_stream]}
    asked |= {"plan of all": ["backfill", "plan", *of_stream, "--include-stuck"]}
    found = {}
    for name, command in asked.items():
        found[name] = run(shardaudit([*words, *command]))
        console.print(f"{name}: {found[name].seconds:.1f} s, {found[name].peak_gib:.2f} GiB")
    rows = counted(folder)
    with hour_on_a_stream(folder, facts) as (config, hour):
        words = ["--config", config, "--json"]
        plan = run(shardaudit([*words, "backfill", "plan", *of_stream, *hour, "--include-stuck"]))
        named = ["--plan", json.loads(plan.said)["plan_id"], "--as-of", facts["as_of"]]
        approved = [*named, "--approve-as", "bench"]
        found["plan of an hour"] = plan
        found["its repair"] = run(shardaudit([*words, "backfill", "run", *approved]))
        found["audited again"] = run(shardaudit([*words, *audit]))
    pages = page_seconds(folder, facts["stream"], hour[-1])
    after = counted(folder)
    console.print(measured_table(f"{messages} messages", found, load=os.getloadavg()[0]))
    console.print(f"rows {rows}, after the repair {after}; page {pages}")
    told = {name: asdict(of) for name, of in found.items()}
    said = {"rows": rows, "after": after, "pages": pages, "load": os.getloadavg()[0], **told}
    FOLDER.joinpath("incident.json").write_text(json.dumps(said, indent=2))
    return int(is_too_much(found, rows, pages))


def simulated(messages: str) -> Path:
    """The folder of it, made once (200 million: a quarter of an hour, 20 GB of memory or disk)."""
    folder = FOLDER / f"incident-{messages}"
    if not (folder / "simulation.json").exists():
        size = [f"--messages={messages}", f"--shards={SHARDS}", f"--hours={HOURS}"]
        made = ["simulate", "files", "--out", str(folder), *size, "--fault=silent_shard=1"]
        run(shardaudit(made))
    return folder


def counted(folder: Path) -> dict[str, int]:
    """Rows of the tables that grow with what is missing."""
    rows = {}
    for name in ("findings", "gaps", "transitions"):
        place = str(folder / "warehouse" / name)
        if DeltaTable.is_deltatable(place):
            rows[name] = DeltaTable(place).to_pyarrow_dataset().count_rows()
    return rows


@contextmanager
def hour_on_a_stream(folder: Path, facts: Mapping[str, str]) -> Iterator[tuple[str, list[str]]]:
    """A stream with the silent shard's messages of an hour: a configuration, and which hour."""
    start = datetime.fromisoformat(facts["window_start"]) + timedelta(hours=REPAIRED)
    end = start + timedelta(hours=1)
    os.environ |= {"AWS_ACCESS_KEY_ID": "stand-in", "AWS_SECRET_ACCESS_KEY": "stand-in"}
    with kinesis_stand_in() as url:
        stream = simulated_stream(url, facts["stream"])
        stream.create(shards=SHARDS, retention=timedelta(hours=HOURS))
        of_hour = _traced(folder, start - AROUND, end + AROUND)
        first = of_hour[0][1] + ARRIVES
        step_ms = (of_hour[-1][1] + ARRIVES - first) / timedelta(milliseconds=1) / len(of_hour)
        stream.hold_clock(first, step_ms=step_ms)
        key = str(hash_starts(SHARDS)[int(of_hour[0][0][-12:])])
        for number in range(0, len(of_hour), BATCH):
            puts = [
                Put(message_id, key, _payload(message_id, sent_at))
                for _, sent_at, message_id in of_hour[number : number + BATCH]
            ]
            assert None not in stream.put(puts)
        stream.hold_clock(datetime.fromisoformat(facts["as_of"]))
        config = folder / "repair.toml"
        aws = f'[aws]\nregion = "us-east-1"\nendpoints = {{ kinesis = "{url}" }}\n\n[streams.'
        made = (folder / "shardaudit.toml").read_text().replace("[streams.", aws, 1)
        config.write_text(made)
        hour = ["--from", start.isoformat(), "--to", end.isoformat(), "--shard", of_hour[0][0]]
        yield str(config), hour


def _traced(folder: Path, start: datetime, end: datetime) -> list[tuple[str, datetime, str]]:
    """Of each message that is missing in that time: shard, `sent_at`, id; by time."""
    lost = pq.ParquetFile(folder / "planted.parquet").read_row_group(0, ["shard_id"])
    of_hour = [
        ("shard_id", "=", lost["shard_id"][0].as_py()),
        ("sent_at", ">=", start),
        ("sent_at", "<", end),
    ]
    names = ["shard_id", "sent_at", "message_id"]
    found = pq.read_table(folder / "traces", columns=names, filters=of_hour).to_pydict()
    return sorted(zip(*(found[name] for name in names), strict=True), key=lambda row: row[1:])


def _payload(message_id: str, sent_at: datetime) -> bytes:
    message = {"message_id": message_id, "sent_at": instant_with_ms(sent_at), "amount": 1}
    return json.dumps(message).encode()


def page_seconds(folder: Path, stream: str, shard: str) -> dict[str, float]:
    """How long the page's answers take, the first in a process that has read nothing yet."""
    settings = load_settings(folder / "shardaudit.toml")
    pages = Site(lambda: settings, now).pages().by_path
    rights = Rights(may_backfill=True, may_see=lambda _: True)
    of_stream = {"stream": stream}
    shown = {"/": {}, "/stream": of_stream, "/shard": of_stream | {"first": shard, "last": shard}}
    taken = {}
    for path, query in shown.items():
        start = time.perf_counter()
        body = str(pages[path](query, rights).body)
        taken[path] = round(time.perf_counter() - start, 2)
        assert stream in body
    return taken


def is_too_much(
    found: Mapping[str, Measured], rows: Mapping[str, int], pages: Mapping[str, float]
) -> bool:
    """Whether something took more memory or time than it may, or the tables more rows."""
    audits = [of.peak_gib for name, of in found.items() if "repair" not in name]
    many = rows.get("findings", 0) + rows.get("gaps", 0)
    growth = found["a third time"].seconds / found["again"].seconds
    seen = {"GiB": max(audits), "rows": many, "page seconds": max(pages.values()), "growth": growth}
    return any(seen[name] > most for name, most in AT_MOST.items())


if __name__ == "__main__":
    sys.exit(main(*(sys.argv[1:] or ["2e8"])))
