"""What a batch reads of a folder of Parquet files: the new ones, or all of them."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from shardaudit.adapters.files.files import FileStore, at_once, has_folder, list_files
from shardaudit.adapters.lake.parquet_file import Footer, may_lack
from shardaudit.adapters.lake.sink_file import SinkFile, parquet_file, partition_columns
from shardaudit.adapters.lake.sink_rows import SinkReader
from shardaudit.ingest.rules.batch_inputs import (
    PLACES,
    DamagedFile,
    ParquetInputs,
    SinkInputs,
    groups_with,
    with_landings,
)
from shardaudit.ingest.rules.deliveries import READABLE_TYPES, SinkTypeError
from shardaudit.ingest.rules.sink_columns import resolved_columns
from shardaudit.ingest.sink_reading import Reading, parquet_files
from shardaudit.model.config.eras import Eras
from shardaudit.model.config.parts import Sink
from shardaudit.model.errors import ConfigError
from shardaudit.model.input_columns import REQUIRED
from shardaudit.model.source import FileGroup, SourceFile, is_appended


@dataclass(frozen=True)
class ParquetPlan:
    """A batch of a Parquet sink."""

    reader: SinkReader
    inputs: ParquetInputs

    def reading(self) -> Reading:
        """The new files. To take any away, all is read anew."""
        return Reading(self.reader, self.inputs, self._fresh(), [])

    @property
    def own(self) -> list[SinkFile]:
        """The new files that backfills of ours added."""
        return [file for file in self._fresh() if is_appended(file.path)]

    def knowing(self, landings: Iterable[int]) -> "ParquetPlan":
        """The same, with more times at which backfills landed rows."""
        return replace(self, inputs=with_landings(self.inputs, landings))

    def recovered(self) -> "ParquetPlan | None":
        """Without the files that are broken; None when none is."""
        fresh = self._fresh()
        found = self.reader.damaged(fresh)
        if not found:
            return None
        damaged = [DamagedFile(f.known, found[f.path]) for f in fresh if f.path in found]
        groups = _without(self.inputs.groups, found)
        inputs = replace(self.inputs.with_damage(damaged), groups=groups)
        return ParquetPlan(self.reader, inputs)

    def _fresh(self) -> list[SinkFile]:
        files = parquet_files(self.inputs.path, self.inputs.groups)
        if self.inputs.added is None:
            return files
        added = set(self.inputs.added)
        return [file for file in files if file.path in added]


def plan_parquet(
    reader: SinkReader, sink: Sink, previous: SinkInputs | None, *, shape: Eras
) -> ParquetPlan | None:
    """What is new in a Parquet sink since the previous batch; None when nothing is.

    Raises:
        ConfigError: the folder is a Delta table.
        SinkSchemaError: a column that is needed is gone.
    """
    if has_folder(f"{sink.path}/_delta_log", reader.access):
        raise ConfigError(f"sink.path {sink.path}", "a Delta table", 'format = "delta" for it')
    meaning = json.dumps([sink.path, dict(sink.columns)], sort_keys=True)
    same = isinstance(previous, ParquetInputs) and previous.meaning == meaning
    before = previous if isinstance(previous, ParquetInputs) and same else None
    listed = list_files(sink.path, reader.access)
    known = set(before.files) if before else set()
    if not known <= set(listed):
        before, known = None, set()  # a file is gone or was rewritten
    restored = _restored(reader, sink, before) if before and before.unread else set()
    known -= restored
    fresh = [file for file in listed if file not in known]
    if not fresh and (before or previous is None):
        return None
    inputs = ParquetInputs(
        columns=before.columns if before else {},
        shape=shape,
        path=sink.path,
        meaning=meaning,
        groups=before.groups if before else (),
        added=tuple(file.path for file in fresh) if before else None,
        excluded=tuple(sorted(before.unread - restored)) if before else (),
        own_landings=previous.own_landings if previous else (),
        gaps=before.gaps if before else (),
    )
    return ParquetPlan(reader, _with_files(inputs, sink, reader.footers(fresh)))


def reread_parquet(
    reader: SinkReader, inputs: ParquetInputs, faults: Mapping[str, str]
) -> ParquetPlan | None:
    """The files that were ingested, all anew but for those that cannot be read any more.

    Input:
        faults: path -> reason.
    Output:
        None where one of them is gone, or another file by now: an ingest goes by that.
    """
    broken = [file for group in inputs.groups for file in group.files if file.path in faults]
    now = at_once(FileStore(reader.access).found, [file.path for file in broken])
    if not broken or now != broken:
        return None
    rest = replace(
        inputs,
        damaged=tuple(DamagedFile(file, faults[file.path]) for file in broken),
        excluded=tuple(sorted(inputs.unread)),
        groups=_without(inputs.groups, faults),
        added=None,
    )
    return ParquetPlan(reader, rest)


def _restored(reader: SinkReader, sink: Sink, before: ParquetInputs) -> set[SourceFile]:
    """The files that could not be read and are what they should be again, by size and time too."""
    nothing = ParquetInputs(columns=before.columns, shape=before.shape, path=sink.path)
    inputs = _with_files(nothing, sink, reader.footers(sorted(before.unread)))
    files = parquet_files(sink.path, inputs.groups)
    return {file.known for file in files if not reader.damaged([file])}


def _with_files(
    inputs: ParquetInputs, sink: Sink, footers: Mapping[SourceFile, Footer]
) -> ParquetInputs:
    """The inputs with these files too, grouped by what their footers say."""
    damaged = [
        DamagedFile(file, footer.fault)
        for file, footer in footers.items()
        if footer.fault is not None
    ]
    types = {
        file: _types(sink.path, file, footer)
        for file, footer in footers.items()
        if footer.fault is None
    }
    if not types:
        return inputs.with_damage(damaged)
    columns = resolved_columns(
        sorted({column for found in types.values() for column in found}),
        sink.mapped,
        # A writer may have no place for its rows, or no more: their traces then place them.
        previous=inputs.columns.keys() - {*PLACES, *sink.without},
        version=f"the new files in {sink.path}",
    )
    used = [(file, _used(file, found, sink, columns)) for file, found in types.items()]
    groups = _grouped([*_pairs(inputs.groups), *used])
    gaps = [
        file.path
        for file, columns_of in used
        if may_lack(parquet_file(sink.path, file, columns_of), footers[file], PLACES)
    ]
    return replace(
        inputs.with_damage(damaged),
        columns={**inputs.columns, **columns},
        groups=groups,
        gaps=(*inputs.gaps, *gaps),
    )


def _types(folder: str, file: SourceFile, footer: Footer) -> dict[str, str]:
    """Column -> Spark type, the partition folders' columns among them."""
    in_file = {column.name: column.kind for column in footer.columns}
    return in_file | dict.fromkeys(partition_columns(folder, file.path), "string")


def _used(
    file: SourceFile, types: Mapping[str, str], sink: Sink, folder: Mapping[str, str]
) -> dict[str, tuple[str, str]]:
    """Standard name -> (column, Spark type) of one file, which must have what is needed."""
    needed = {name: c for name, c in folder.items() if name in REQUIRED}
    wished = {name: c for name, c in sink.columns.items() if c in types} | needed
    columns = resolved_columns(list(types), wished, previous=(), version=f"file {file.path}")
    for standard, column in columns.items():
        if types[column] not in READABLE_TYPES:
            wanted = f"one of {', '.join(READABLE_TYPES)} in {file.path}"
            raise SinkTypeError(column=standard, found=types[column], wanted=wanted)
    return {standard: (column, types[column]) for standard, column in columns.items()}


def _pairs(
    groups: Iterable[FileGroup],
) -> Iterable[tuple[SourceFile, Mapping[str, tuple[str, str]]]]:
    return ((file, group.columns) for group in groups for file in group.files)


def _grouped(
    files: Iterable[tuple[SourceFile, Mapping[str, tuple[str, str]]]],
) -> tuple[FileGroup, ...]:
    """The files put together that are read in the same way."""
    groups: dict[str, tuple[Mapping[str, tuple[str, str]], list[SourceFile]]] = {}
    for file, columns in files:
        groups.setdefault(json.dumps(columns, sort_keys=True), (columns, []))[1].append(file)
    return tuple(
        FileGroup(columns, tuple(sorted(of))) for _, (columns, of) in sorted(groups.items())
    )


def _without(groups: Sequence[FileGroup], paths: Collection[str]) -> tuple[FileGroup, ...]:
    """The groups without the files of these paths."""
    return groups_with(groups, {f.path for g in groups for f in g.files} - set(paths))
