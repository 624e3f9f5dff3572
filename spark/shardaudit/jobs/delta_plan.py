"""What a batch reads of a Delta sink: the files that commits brought and took, or all of them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from shardaudit.adapters.delta_sink import CommitGoneError, DeltaSink, TableState
from shardaudit.adapters.files import S3Access
from shardaudit.adapters.sink_rows import standard_rows
from shardaudit.adapters.sources import find_damaged
from shardaudit.ingest.columns import resolved_columns
from shardaudit.ingest.commits import Change, UnknownFileError, net_change, still_there
from shardaudit.ingest.inputs import CellShape, DamagedFile, DeltaInputs, SinkInputs
from shardaudit.jobs.sink_reading import Reading, judged
from shardaudit.model.config import Sink


@dataclass(frozen=True)
class DeltaPlan:
    """A batch of a Delta sink. `change` NULL: all is read anew."""

    spark: SparkSession
    access: S3Access
    inputs: DeltaInputs
    change: Change | None

    def reading(self) -> Reading:
        """The rows that came and went, not read yet."""
        sink, inputs, change = DeltaSink(self.spark, self.inputs.path), self.inputs, self.change
        if change is None:
            came = [sink.rows(inputs.to_version, without=inputs.unread)]
            went = []
        else:
            came = sink.rows_of(change.added, version=inputs.to_version)
            went = sink.rows_of(change.removed, version=inputs.to_version)
        added, removed = (
            judged(
                [standard_rows(f, inputs.columns, with_place=True) for f in frames], inputs.shape
            )
            for frames in (came, went)
        )
        return Reading(
            added,
            removed,
            change.added_count if change else sink.file_count(inputs.to_version),
            change.removed_count if change else 0,
        )

    def recovered(self) -> "DeltaPlan | None":
        """Without the files that are broken; if none is, but VACUUM took some: all anew."""
        damaged = self._damaged()
        if damaged:
            return resumed_delta(self.spark, self.access, self.inputs.with_damage(damaged))
        if self.change is not None:
            return DeltaPlan(self.spark, self.access, replace(self.inputs, from_version=None), None)
        return None

    def _damaged(self) -> list[DamagedFile]:
        """The broken ones among the files that are still in the table and were to be read."""
        sink, inputs = DeltaSink(self.spark, self.inputs.path), self.inputs
        files = [f for f in sink.listed(inputs.to_version) if f.path not in inputs.unread]
        if self.change is not None:
            files = [file for file in files if file.path in self.change.added_paths]
        opened = {sink.located(file).path: file for file in files}
        columns = [sink.state().columns[column][0] for column in inputs.columns.values()]
        found = find_damaged(
            self.spark, [sink.located(file) for file in files], self.access, columns=columns
        )
        return [DamagedFile(opened[path], reason) for path, reason in sorted(found.items())]


def plan_delta(
    spark: SparkSession,
    access: S3Access,
    sink: Sink,
    previous: SinkInputs | None,
    *,
    shape: CellShape,
) -> DeltaPlan | None:
    """What is new in a Delta sink since the previous batch; None when nothing is.

    Raises:
        ConfigError: there is no Delta table.
        SinkSchemaError: a column that is needed is gone.
    """
    state = DeltaSink(spark, sink.path).state()
    before = previous if isinstance(previous, DeltaInputs) and previous.path == sink.path else None
    columns = resolved_columns(
        state.columns,
        sink.columns,
        previous=before.columns if before else (),
        version=f"version {state.version} of {sink.path}",
    )
    inputs = DeltaInputs(
        columns=columns,
        shape=shape,
        path=sink.path,
        meaning=_meaning(state, columns),
        to_version=state.version,
    )
    if before is None or before.meaning != inputs.meaning or before.to_version > state.version:
        return DeltaPlan(spark, access, inputs, None)
    if before.to_version == state.version:
        return None
    since = replace(inputs, from_version=before.to_version, excluded=tuple(sorted(before.unread)))
    return resumed_delta(spark, access, since)


def resumed_delta(spark: SparkSession, access: S3Access, inputs: DeltaInputs) -> DeltaPlan:
    """The plan of which only the inputs are known. All is read anew if commits were cleaned up."""
    if inputs.from_version is None:
        return DeltaPlan(spark, access, inputs, None)
    sink = DeltaSink(spark, inputs.path)
    try:
        commits = sink.commits(inputs.from_version, inputs.to_version, access=access)
        change = net_change(commits, excluded=inputs.unread)
    except (CommitGoneError, UnknownFileError):
        return DeltaPlan(spark, access, replace(inputs, from_version=None, excluded=()), None)
    excluded = tuple(sorted(still_there(inputs.excluded, commits)))
    return DeltaPlan(spark, access, replace(inputs, excluded=excluded), change)


def _meaning(state: TableState, columns: Mapping[str, str]) -> str:
    """What the meaning of the rows in a data file hangs on."""
    used = {standard: state.columns[column] for standard, column in columns.items()}
    return json.dumps([state.table_id, list(state.partitions), used], sort_keys=True)
