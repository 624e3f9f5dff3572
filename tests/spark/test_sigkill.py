"""Kills at random moments, then a last run: the tables are as if nothing had been."""

import json
import random
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

START = datetime(2026, 11, 20, tzinfo=UTC)
AS_OF = START + timedelta(hours=3)
# Columns that name a batch or come from the clock; they differ between any two runs.
PER_RUN = {
    "batch_id",
    "updated_at",
    "started_at",
    "finished_at",
    "ingested_at",
    "planned_at",
    "done_at",
    "quarantined_at",
    "observed_at",
    "inputs",
    "config_digest",
    "audit_id",
    "first_audit_id",
    "last_audit_id",
    "file",
    "bucket_digest",
}


@pytest.mark.parametrize(
    ("engine", "kills"),
    [
        ("embedded", 3),
        pytest.param("embedded", 20, marks=pytest.mark.drill),
        pytest.param("spark", 20, marks=pytest.mark.drill),
    ],
)
def test_tables_are_the_same_when_the_process_was_killed_at_random_moments(
    tmp_path: Path, engine: str, kills: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = [START + timedelta(minutes=nth) for nth in range(kills)]
    monkeypatch.setenv("SHARDAUDIT_ENGINE", engine)
    moment = random.Random(20261121)  # noqa: S311 - moments, not secrets
    killed, undisturbed = (_project(tmp_path / name) for name in ("killed", "undisturbed"))
    duration = _timed_run(_project(tmp_path / "warm_up", rounds=rounds[:1]))
    for nth, minute in enumerate(rounds):
        _produce(killed, nth, minute)
        _produce(undisturbed, nth, minute)
        _killed_run(killed, after_s=moment.uniform(0.1, 1.0) * duration)
    _timed_run(killed)
    _timed_run(undisturbed)
    for table in ("traces", "cells", "findings", "transitions", "quarantine", "audits"):
        assert _rows(killed, table) == _rows(undisturbed, table), table
    assert _cell_totals(killed) == _cell_totals(undisturbed)
    assert len(_rows(killed, "findings")) == 2 * kills


def _project(folder: Path, *, rounds: list[datetime] | None = None) -> Path:
    folder.mkdir()
    (folder / "traces").mkdir()
    (folder / "shardaudit.toml").write_text(
        """
        warehouse = "warehouse"
        embedded = { shared_machine = true }
        [spark]
        "spark.master" = "local[2]"
        "spark.sql.shuffle.partitions" = 1
        "spark.driver.memory" = "1g"
        [streams.events]
        stream_name = "events"
        retention = "168h"
        [streams.events.traces]
        path = "traces"
        format = "json"
        [streams.events.sink]
        path = "sink"
        format = "delta"
        """
    )
    for nth, minute in enumerate(rounds or []):
        _produce(folder, nth, minute)
    return folder


def _produce(folder: Path, nth: int, minute: datetime) -> None:
    """Ten messages: one is lost, one lands twice; and one line of the log is broken."""
    ids = [f"{nth}-{i}" for i in range(10)]
    sent_at = [minute + timedelta(seconds=i) for i in range(10)]
    lines = [
        json.dumps(
            {
                "message_id": one,
                "shard_id": "shardId-000000000000",
                "sequence_number": str(1000 * (nth + 1) + i),
                "sent_at": sent_at[i].isoformat(),
            }
        )
        for i, one in enumerate(ids)
    ]
    (folder / "traces" / f"{nth:03}.jsonl").write_text("\n".join([*lines, "{broken"]) + "\n")
    landed = [*range(1, 10), 9]
    rows = pa.table(
        {
            "message_id": [ids[i] for i in landed],
            "shard_id": ["shardId-000000000000"] * len(landed),
            "sequence_number": [str(1000 * (nth + 1) + i) for i in landed],
            "sent_at": pa.array([sent_at[i] for i in landed], pa.timestamp("us", "UTC")),
            "landed_at": pa.array(
                [sent_at[i] + timedelta(seconds=5) for i in landed], pa.timestamp("us", "UTC")
            ),
        }
    )
    write_deltalake(str(folder / "sink"), rows, mode="append")


def _command(folder: Path) -> list[str]:
    window = ["--from", START.isoformat(), "--to", (START + timedelta(minutes=30)).isoformat()]
    return [
        sys.executable,
        "-m",
        "shardaudit.cli.main",
        "--config",
        str(folder / "shardaudit.toml"),
        "audit",
        "--stream",
        "events",
        *window,
        "--as-of",
        AS_OF.isoformat(),
    ]


def _timed_run(folder: Path) -> float:
    start = time.monotonic()
    done = subprocess.run(_command(folder), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return time.monotonic() - start


def _killed_run(folder: Path, *, after_s: float) -> None:
    run = subprocess.Popen(_command(folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        run.wait(timeout=after_s)
    except subprocess.TimeoutExpired:
        run.send_signal(signal.SIGKILL)
        run.wait()


def _rows(folder: Path, table: str) -> list[str]:
    rows = DeltaTable(str(folder / "warehouse" / table)).to_pyarrow_table().to_pylist()
    return sorted(
        repr({name: value for name, value in row.items() if name not in PER_RUN}) for row in rows
    )


def _cell_totals(folder: Path) -> dict[tuple[str, str, datetime], tuple[int, int, int]]:
    """The ledger's sums: batches may be cut differently, what they add up to may not."""
    totals: dict[tuple[str, str, datetime], tuple[int, int, int]] = {}
    path = str(folder / "warehouse" / "fingerprints")
    for row in DeltaTable(path).to_pyarrow_table().to_pylist():
        cell = (row["side"], row["shard_id"], row["bucket_start"])
        before = totals.get(cell, (0, 0, 0))
        mine = (row["n"], row["sum_lo"], row["sum_hi"])
        totals[cell] = tuple(map(sum, zip(before, mine, strict=True)))  # type: ignore[assignment] # three and three
    return totals
