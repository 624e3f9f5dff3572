"""Whatever is done to a Delta table, its rows come out even: of a version, and between any two."""

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from shardaudit.adapters.lake.delta_sink_reader import DeltaSink, DeltaVersion
from shardaudit.adapters.lake.sink_batches import deleted_rows
from shardaudit.ingest.rules.commits import net_change
from shardaudit.model.source import DeletionVector, DeltaFile
from tests.sink_reading import ACCESS, delta_rows
from tests.vectors import inline, stored

COLUMNS = {"message_id": "number", "shard_id": "shard"}
Rows = Counter[tuple[object, ...]]
OPERATIONS = ("append", "delete", "delete_by_vector", "update", "optimize", "restore", "checkpoint")
STEPS = st.lists(
    st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 10_000)), min_size=1, max_size=9
)


class Sink:
    """A table, and what stands in each of its versions."""

    def __init__(self, path: Path) -> None:
        self.path = path
        schema = pa.schema([("number", pa.int64()), ("shard", pa.string())])
        DeltaTable.create(
            path,
            schema,
            partition_by=["shard"],
            configuration={"delta.enableDeletionVectors": "true"},
        )
        self.versions: list[Rows] = [Counter()]
        self._next = 0

    def version(self, number: int) -> DeltaVersion:
        return DeltaSink(str(self.path), ACCESS).at(number)

    @property
    def newest(self) -> DeltaVersion:
        return self.version(len(self.versions) - 1)

    def append(self, number: int) -> None:
        numbers = list(range(self._next, self._next + 5 + number % 20))
        self._next = numbers[-1] + 1
        shards = [f"shard {n % 2}%" for n in numbers]
        write_deltalake(self.path, pa.table({"number": numbers, "shard": shards}), mode="append")
        new: Rows = Counter((str(n), shard) for n, shard in zip(numbers, shards, strict=True))
        self._is_now(self.versions[-1] + new)

    def delete(self, number: int) -> None:
        if DeltaTable(self.path).delete(f"number % 5 = {number % 5}")["num_deleted_rows"]:
            self._is_now(self._without(lambda n: n % 5 == number % 5))

    def update(self, number: int) -> None:
        changed = {k for k in self.versions[-1] if int(str(k[0])) % 7 == number % 7}
        if changed:
            DeltaTable(self.path).update(
                updates={"shard": "'moved'"}, predicate=f"number % 7 = {number % 7}"
            )
            kept = self._without(lambda n: n % 7 == number % 7)
            moved: Rows = Counter(
                (k[0], "moved") for k in changed for _ in range(self.versions[-1][k])
            )
            self._is_now(kept + moved)

    def optimize(self, _: int) -> None:
        if DeltaTable(self.path).optimize.compact()["numFilesAdded"]:
            self._is_now(self.versions[-1])

    def restore(self, number: int) -> None:
        if len(self.versions) > 1:
            version = number % (len(self.versions) - 1)
            DeltaTable(self.path).restore(version)
            self._is_now(self.versions[version])

    def checkpoint(self, _: int) -> None:
        DeltaTable(self.path).create_checkpoint()

    def delete_by_vector(self, number: int) -> None:
        """As Apache Spark deletes: the file stays, and gets another vector."""
        version = self.newest
        files = version.files()
        if not files:
            return
        file = files[number % len(files)]
        before = rows_that_are_gone(file, self.path)
        [rows] = [list(delta_rows(version, [file_with(file, None)], COLUMNS).elements())]
        gone = before | {row for row in range(len(rows)) if (row * 7 + number) % 3 == 0}
        if len(gone) == len(rows) or gone == before:
            return
        vector = [
            lambda: inline(gone),
            lambda: stored(self.path, gone, prefix="pq"),
            lambda: stored(self.path.parent / "other place", gone, is_absolute=True),
        ][number % 3]()
        left = delta_rows(version, [file_with(file, vector)], COLUMNS)
        lost = delta_rows(version, [file], COLUMNS) - left
        self._commit({"remove": action(file)}, {"add": action(file_with(file, vector))})
        self._is_now(self.versions[-1] - lost)

    def _commit(self, *actions: dict[str, object]) -> None:
        text = "".join(f"{json.dumps(one)}\n" for one in ({"commitInfo": {}}, *actions))
        (self.path / "_delta_log" / f"{len(self.versions):020d}.json").write_text(text)

    def _without(self, is_gone: object) -> Rows:
        assert callable(is_gone)
        return Counter({k: n for k, n in self.versions[-1].items() if not is_gone(int(str(k[0])))})

    def _is_now(self, rows: Rows) -> None:
        self.versions.append(+rows)
        assert DeltaTable(self.path).version() == len(self.versions) - 1


def file_with(file: DeltaFile, vector: DeletionVector | None) -> DeltaFile:
    return DeltaFile(file.path, file.size_bytes, file.modified_ms, file.partition_values, vector)


def rows_that_are_gone(file: DeltaFile, folder: Path) -> set[int]:
    return set(deleted_rows(file.vector, str(folder), ACCESS)) if file.vector else set()


def action(file: DeltaFile) -> dict[str, object]:
    """A file in the log."""
    common = {
        "path": file.path,
        "partitionValues": dict(file.partition_values),
        "size": file.size_bytes,
        "modificationTime": file.modified_ms,
        "deletionTimestamp": file.modified_ms,
        "extendedFileMetadata": True,
        "dataChange": True,
        "stats": '{"numRecords": 30, "tightBounds": false}',
    }
    if file.vector is None:
        return common
    names = ("storageType", "pathOrInlineDv", "offset", "sizeInBytes", "cardinality")
    described = dict(zip(names, asdict(file.vector).values(), strict=True))
    return common | {"deletionVector": {k: v for k, v in described.items() if v is not None}}


@settings(max_examples=settings().max_examples // 4)  # of up to ten commits each
@given(STEPS)
def test_rows_come_out_even_whatever_was_done(steps: list[tuple[str, int]]) -> None:
    with TemporaryDirectory() as folder:
        sink = Sink(Path(folder) / "a sink")
        for operation, number in [("append", 12), *steps]:
            getattr(sink, operation)(number)
        for number, wanted in enumerate(sink.versions):
            version = sink.version(number)
            assert delta_rows(version, version.files(), COLUMNS) == wanted, number
            for before in range(number):
                change = net_change(version.commits_since(before))
                rows = sink.versions[before] + delta_rows(version, change.added, COLUMNS)
                rows.subtract(delta_rows(version, change.removed, COLUMNS))
                assert rows == wanted, (before, number)
