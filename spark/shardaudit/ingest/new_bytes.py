"""How much an ingest would read now, by listings, logs and the ledger of batches; no engine."""

from collections.abc import Iterable

from shardaudit.adapters.files.files import S3Access, list_files, s3_access
from shardaudit.adapters.lake.delta_log import CommitGoneError
from shardaudit.adapters.lake.delta_sink_reader import DeltaSink
from shardaudit.ingest.delta_plan import is_behind
from shardaudit.ingest.rules.batch_inputs import (
    DeltaInputs,
    ParquetInputs,
    SinkInputs,
    TraceInputs,
    sink_inputs,
)
from shardaudit.ingest.rules.commits import UnknownFileError, net_change
from shardaudit.model.config.parts import Sink
from shardaudit.model.config.settings import Settings
from shardaudit.model.source import DeltaFile, SourceFile
from shardaudit.model.tables.audit_tables import BATCHES
from shardaudit.store.audits import done_batches, read_rows


def bytes_to_ingest(settings: Settings, name: str) -> int:
    """The size of the files of the stream that no finished batch has read, on both sides.

    What is read once more, as after the configuration was mended, is not among it.

    Raises:
        ConfigError: there is no such sink, or none that can be read.
        StorageError, LastingError: an input could not be reached.
    """
    stream, access = settings.stream(name), s3_access(settings.aws)
    batches = read_rows(settings, BATCHES, where=done_batches(name))
    done = sorted(batches, key=lambda row: int(row["number"]))
    texts: dict[str, list[str]] = {"traces": [], "sink": []}
    for row in done:
        texts[row["side"]].append(row["inputs"])
    known = {file for text in texts["traces"] for file in TraceInputs.from_json(text).files}
    listed = list_files(stream.traces.path, access)
    of_traces = _size(file for file in listed if file not in known)
    if stream.sink.place is not None:  # its sink is made of the traces
        return of_traces
    before = sink_inputs(texts["sink"][-1]) if texts["sink"] else None
    of_sink = _new_in_delta if stream.sink.format == "delta" else _new_in_folder
    return of_traces + _size(of_sink(stream.sink, before, access))


def _new_in_delta(
    sink: Sink, before: SinkInputs | None, access: S3Access
) -> Iterable[SourceFile | DeltaFile]:
    """What commits brought and took since; all files where these do not say it."""
    version = DeltaSink(sink.path, access).at()
    known = before if isinstance(before, DeltaInputs) and before.path == sink.path else None
    if known is None or not is_behind(version, known):
        return version.files()
    try:
        change = net_change(version.commits_since(known.to_version), excluded=known.unread)
    except (CommitGoneError, UnknownFileError):
        return version.files()
    return [*change.added, *change.removed]


def _new_in_folder(
    sink: Sink, before: SinkInputs | None, access: S3Access
) -> Iterable[SourceFile | DeltaFile]:
    """The files that were not there; all where one of those that were is gone."""
    listed = list_files(sink.path, access)
    known = set(before.files) if isinstance(before, ParquetInputs) else set()
    return [file for file in listed if file not in known] if known <= set(listed) else listed


def _size(files: Iterable[SourceFile | DeltaFile]) -> int:
    return sum(file.size_bytes for file in files)
