"""How many losses are false, and how many unseen, when traces get lost as well as messages.

`python -m tests.bench.trace_loss [MESSAGES]` simulates so many, ten million at a time: 0.01 % of
the messages never land, 0.005 % of each place's traces are lost. It compares what our audit calls
missing, and what an audit by traces alone would, with what was lost, and removes each part.
"""

import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from rich.console import Console
from rich.table import Table

from tests.bench.commands import FOLDER, SHARDS, run, shardaudit

LOSS, TRACE_LOSS = 1e-4, 5e-5  # the published shares of messages and of traces
PART = 10_000_000
Ids = set[str]


@dataclass(frozen=True, slots=True)
class Counts:
    """Of some messages. `by_traces`: called lost by who compares the traces of two places."""

    messages: int
    lost: int
    lost_without_trace: int  # at the producer: nothing but the sink could have told of them
    found: int  # by our audit
    false: int
    unseen: int
    by_traces: int
    by_traces_false: int

    def __add__(self, other: "Counts") -> "Counts":
        both = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
        return Counts(*(one + another for one, another in both))


def main(messages: int) -> None:
    """Prints the counts of all parts."""
    total = Counts(*[0] * len(fields(Counts)))
    for seed, size in enumerate(_parts(messages), start=1):
        total += _counted(size, seed=seed)
    table = Table("what", "count", "÷ messages")
    for field in fields(Counts):
        count = getattr(total, field.name)
        table.add_row(field.name.replace("_", " "), f"{count:,}", f"{count / messages:.7%}")
    Console().print(table)


def _parts(messages: int) -> Iterator[int]:
    while messages > 0:
        yield min(messages, PART)
        messages -= PART


def _counted(messages: int, *, seed: int) -> Counts:
    chance = np.random.default_rng(seed)
    folder = FOLDER / "trace_loss"
    shutil.rmtree(folder, ignore_errors=True)
    planted = f"--fault=lost={chance.binomial(messages, LOSS)}"
    made = ["simulate", "files", "--out", str(folder), f"--messages={messages}"]
    run(shardaudit([*made, planted, f"--shards={SHARDS}", f"--seed={seed}"]))
    untraced = _without_some_traces(folder / "traces", chance)
    run(shardaudit(_audit(folder)))
    lost = set(pq.read_table(folder / "planted.parquet")["message_id"].to_pylist())
    findings = DeltaTable(folder / "warehouse" / "findings").to_pyarrow_table()
    missing = findings.filter(pc.field("kind") == "missing")
    found = set(missing["message_id"].to_pylist())
    landed_untold = _landed_without_trace(folder / "sink", chance) - untraced
    shutil.rmtree(folder)
    return Counts(
        messages=messages,
        lost=len(lost),
        lost_without_trace=len(lost & untraced),
        found=len(found),
        false=len(found - lost),
        unseen=len(lost - found),
        by_traces=len(lost - untraced) + len(landed_untold),
        by_traces_false=len(landed_untold),
    )


def _audit(folder: Path) -> list[str]:
    simulated = json.loads((folder / "simulation.json").read_text())
    window = [f"--from={simulated['window_start']}", f"--to={simulated['window_end']}"]
    of = ["--stream", simulated["stream"], "--as-of", simulated["as_of"]]
    return ["--config", str(folder / "shardaudit.toml"), "audit", *of, *window]


def _without_some_traces(folder: Path, chance: np.random.Generator) -> Ids:
    """Loses some of the producer's traces; the ids of those."""
    lost: Ids = set()
    for path in folder.glob("*.parquet"):
        traces = pq.read_table(path)
        keeps = pa.array(chance.random(traces.num_rows) >= TRACE_LOSS)
        lost |= set(traces.filter(pc.invert(keeps))["message_id"].to_pylist())
        pq.write_table(traces.filter(keeps), path)
    return lost


def _landed_without_trace(sink: Path, chance: np.random.Generator) -> Ids:
    """The landed messages of which a trace of the sink's own would be lost."""
    lost: Ids = set()
    for batch in DeltaTable(sink).to_pyarrow_dataset().to_batches(columns=["message_id"]):
        is_lost = pa.array(chance.random(batch.num_rows) < TRACE_LOSS)
        lost |= set(batch.filter(is_lost)["message_id"].to_pylist())
    return lost


if __name__ == "__main__":
    main(int(float(sys.argv[1])) if sys.argv[1:] else 50_000_000)
