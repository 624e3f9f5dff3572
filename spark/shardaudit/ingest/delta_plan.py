"""What a batch reads of a Delta sink: the files that commits brought and took, or all of them."""

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from shardaudit.adapters.files.files import StorageError
from shardaudit.adapters.lake.delta_log import CommitGoneError
from shardaudit.adapters.lake.delta_sink_reader import DeltaSink, DeltaVersion
from shardaudit.adapters.lake.sink_file import SinkFile
from shardaudit.adapters.lake.sink_rows import SinkReader
from shardaudit.ingest.rules.batch_inputs import (
    DamagedFile,
    DeltaInputs,
    SinkInputs,
    with_landings,
)
from shardaudit.ingest.rules.commits import (
    UnknownFileError,
    backfilled_files,
    net_change,
    still_there,
)
from shardaudit.ingest.rules.deliveries import READABLE_TYPES, SinkTypeError
from shardaudit.ingest.rules.sink_columns import resolved_columns
from shardaudit.ingest.sink_reading import Reading
from shardaudit.model.config.eras import Eras
from shardaudit.model.config.parts import Sink
from shardaudit.model.errors import ConfigError

log = logging.getLogger(__name__)

# Where all is read anew, backfills are looked for in as many of the newest commits.
_LOOKED_BACK = 1000


@dataclass(frozen=True)
class DeltaPlan:
    """A batch of a Delta sink up to a version of it."""

    reader: SinkReader
    version: DeltaVersion
    inputs: DeltaInputs
    came: Sequence[SinkFile]
    went: Sequence[SinkFile]
    own: Sequence[SinkFile]

    def reading(self) -> Reading:
        """The files that came and went."""
        return Reading(self.reader, self.inputs, self.came, self.went)

    def knowing(self, landings: Iterable[int]) -> "DeltaPlan":
        """The same, with more times at which backfills landed rows."""
        return replace(self, inputs=with_landings(self.inputs, landings))

    def recovered(self) -> "DeltaPlan | None":
        """Without the files that are broken; all anew, if they are not in the table any more."""
        if not self.reader.faults(self.came) and self.reader.faults(self.went):
            return _all_anew(self.reader, self.version, self.inputs)  # as VACUUM leaves it
        found = self.reader.damaged(self.came)
        there = {file.path for file in self.version.files()} if found else set()
        damaged = {
            file.known: DamagedFile(file.known, found[file.path])
            for file in self.came
            if file.path in found and file.known.path in there
        }
        if damaged:
            inputs = self.inputs.with_damage(sorted(damaged.values(), key=lambda d: d.file))
            return _planned(self.reader, self.version, inputs)
        if self.inputs.is_full or not (found or self.reader.damaged(self.went)):
            return None
        return _all_anew(self.reader, self.version, self.inputs)


def plan_delta(
    reader: SinkReader, sink: Sink, previous: SinkInputs | None, *, shape: Eras
) -> DeltaPlan | None:
    """What is new in a Delta sink since the previous batch; None when nothing is.

    Raises:
        ConfigError: there is no Delta table, or none that can be read.
        SinkSchemaError: a column that is needed is gone.
        SinkTypeError: a column cannot be what it should be.
        StorageError: the log could not be read.
    """
    version = DeltaSink(sink.path, reader.access).at()
    before = previous if isinstance(previous, DeltaInputs) and previous.path == sink.path else None
    columns = resolved_columns(
        version.columns,
        sink.mapped,
        previous=before.columns.keys() - set(sink.without) if before else (),
        version=f"version {version.number} of {sink.path}",
    )
    _check_types(version, columns)
    inputs = DeltaInputs(
        columns=columns,
        shape=shape,
        path=sink.path,
        meaning=_meaning(version, columns),
        to_version=version.number,
        own_landings=previous.own_landings if previous else (),
        commit=version.commit_mark(version.number),
    )
    if before is None or before.meaning != inputs.meaning or not is_behind(version, before):
        return _all_anew(reader, version, inputs)
    if _is_restored(reader, version, before):
        return _all_anew(reader, version, inputs)
    if before.to_version == version.number:
        return None
    since = replace(inputs, from_version=before.to_version, excluded=tuple(sorted(before.unread)))
    return _planned(reader, version, since)


def resumed_delta(reader: SinkReader, inputs: DeltaInputs) -> DeltaPlan | None:
    """The plan of which only the inputs are known. All is read anew if commits were cleaned up.

    None where the version that was to be read is no more, or is another one by now.
    """
    try:
        version = DeltaSink(inputs.path, reader.access).at(inputs.to_version)
    except (ConfigError, StorageError) as error:
        log.warning("version %d is to be read no more: %s", inputs.to_version, error)
        return None
    if not is_behind(version, inputs):
        return None
    return _planned(reader, version, inputs)


def reread_delta(
    reader: SinkReader, inputs: DeltaInputs, faults: Mapping[str, str]
) -> DeltaPlan | None:
    """The version that was ingested, all anew but for files that cannot be read any more.

    Input:
        faults: path -> reason; none: what a commit said of its rows was not so.
    Output:
        None where the newest version has done without one of them: an ingest will; or where all was
        read anew already.
    """
    sink = DeltaSink(inputs.path, reader.access)
    version = sink.at(inputs.to_version)
    files = [version.sink_file(file, inputs.columns) for file in version.files()]
    broken = [DamagedFile(f.known, faults[f.path]) for f in files if f.path in faults]
    there = {file.path for file in sink.at().files()}
    is_known = inputs.is_full if not faults else not broken
    if is_known or any(damaged.file.path not in there for damaged in broken):
        return None
    rest = replace(inputs, damaged=tuple(broken), excluded=tuple(sorted(inputs.unread)))
    return _all_anew(reader, version, rest)


def _planned(reader: SinkReader, version: DeltaVersion, inputs: DeltaInputs) -> DeltaPlan:
    if inputs.from_version is None:
        return _all_anew(reader, version, inputs)
    try:
        commits = version.commits_since(inputs.from_version)
        change = net_change(commits, excluded=inputs.unread)
    except (CommitGoneError, UnknownFileError):
        return _all_anew(reader, version, replace(inputs, excluded=()))
    came, went = (
        [version.sink_file(file, inputs.columns) for file in files]
        for files in (change.added, change.removed)
    )
    excluded = tuple(sorted(still_there(inputs.excluded, commits)))
    own = _own(version, inputs, commits)
    return DeltaPlan(reader, version, replace(inputs, excluded=excluded), came, went, own)


def _all_anew(reader: SinkReader, version: DeltaVersion, inputs: DeltaInputs) -> DeltaPlan:
    unread = inputs.unread
    files = [file for file in version.files() if file.path not in unread]
    came = [version.sink_file(file, inputs.columns) for file in files]
    own = _own(version, inputs, version.last_commits(_LOOKED_BACK))
    return DeltaPlan(reader, version, replace(inputs, from_version=None), came, [], own)


def is_behind(version: DeltaVersion, before: DeltaInputs) -> bool:
    """Whether the version has the one before among its own: a backup may have been put back."""
    if before.to_version > version.number:
        return False
    return before.commit in {"", version.commit_mark(before.to_version)}


def _is_restored(reader: SinkReader, version: DeltaVersion, before: DeltaInputs) -> bool:
    """Whether a file that could not be read is what it should be again."""
    if not before.unread:
        return False
    files = [f for f in version.files() if f.path in before.unread]
    unread = [version.sink_file(file, before.columns) for file in files]
    return any(not reader.damaged([file]) for file in unread)


def _own(version: DeltaVersion, inputs: DeltaInputs, commits: Iterable[str]) -> list[SinkFile]:
    """The files that backfills of ours added in these commits."""
    return [version.sink_file(file, inputs.columns) for file in backfilled_files(commits)]


def _check_types(version: DeltaVersion, columns: Mapping[str, str]) -> None:
    kinds = {field.name: field.kind for field in version.fields}
    for standard, column in columns.items():
        if json.loads(version.columns[column].kind) not in READABLE_TYPES:
            wanted = f"one of {', '.join(READABLE_TYPES)}"
            raise SinkTypeError(column=standard, found=kinds[column], wanted=wanted)


def _meaning(version: DeltaVersion, columns: Mapping[str, str]) -> str:
    """What the meaning of the rows in a data file hangs on."""
    found = {standard: version.columns[column] for standard, column in columns.items()}
    used = {standard: (column.physical, column.kind) for standard, column in found.items()}
    # So version 0.1 wrote it; another text, and every sink would be read anew.
    partitions = version.partitions or [""]
    return json.dumps([version.table_id, partitions, used], sort_keys=True)
