"""A simulation's folder, read back from its files alone."""

import gzip
import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import zstandard
from deltalake import DeltaTable

from tests.history import History, Question, SinkRow, Trace

Row = dict[str, object]


@dataclass(frozen=True)
class Simulated:
    """What a simulation left behind."""

    folder: Path

    @cached_property
    def facts(self) -> dict[str, object]:
        facts: dict[str, object] = json.loads((self.folder / "simulation.json").read_text())
        return facts

    @cached_property
    def planted(self) -> list[Row]:
        rows: list[Row] = pq.read_table(self.folder / "planted.parquet").to_pylist()
        return rows

    @cached_property
    def traces(self) -> list[Row]:
        files = sorted((self.folder / "traces").iterdir())
        if files[0].suffix == ".parquet":
            rows: list[Row] = ds.dataset(self.folder / "traces").to_table().to_pylist()
            return rows
        return [trace for file in files for trace in _lines(file)]

    @cached_property
    def sink(self) -> list[Row]:
        folder = self.folder / "sink"
        if (folder / "_delta_log").exists():
            table = pa.table(DeltaTable(str(folder)).to_pyarrow_table())
        else:
            table = ds.dataset(folder).to_table()
        rows: list[Row] = table.to_pylist()
        return rows

    @cached_property
    def traces_of(self) -> dict[object, list[Row]]:
        return _by_id(self.traces)

    @cached_property
    def rows_of(self) -> dict[object, list[Row]]:
        return _by_id(self.sink)

    def planted_ids(self, *faults: str) -> set[object]:
        return {row["message_id"] for row in self.planted if row["fault"] in faults}

    def counts(self) -> Counter[object]:
        return Counter(row["fault"] for row in self.planted)

    def instant(self, fact: str) -> datetime:
        return datetime.fromisoformat(str(self.facts[fact]))

    def history(self) -> History:
        """The same for the oracle."""
        return History(
            traces=tuple(
                Trace(
                    str(row["message_id"]),
                    str(row["shard_id"]),
                    str(row["sequence_number"]),
                    _instant(row["sent_at"]),
                    acked_at=_instant(row["acked_at"]),
                )
                for row in self.traces
            ),
            rows=tuple(
                SinkRow(
                    str(row["message_id"]),
                    str(row["shard_id"]),
                    str(row["sequence_number"]),
                    _instant(row["sent_at"]),
                    _instant(row["landed_at"]),
                )
                for row in self.sink
            ),
        )

    def question(self) -> Question:
        return Question(
            self.instant("window_start"), self.instant("window_end"), self.instant("as_of")
        )


def _lines(file: Path) -> list[Row]:
    content = file.read_bytes()
    if file.suffix == ".gz":
        content = gzip.decompress(content)
    elif file.suffix == ".zst":
        content = zstandard.decompress(content)
    return [json.loads(line) for line in content.splitlines()]


def _by_id(rows: list[Row]) -> dict[object, list[Row]]:
    by_id: dict[object, list[Row]] = defaultdict(list)
    for row in rows:
        by_id[row["message_id"]].append(row)
    return by_id


def _instant(value: object) -> datetime:
    return value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
