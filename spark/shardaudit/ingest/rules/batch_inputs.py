"""What a batch reads, stored with it: a crash is repaired by reading exactly that again."""

import json
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import astuple, dataclass, fields, replace
from typing import Any, Self, TypeVar

from shardaudit.model.config.eras import Eras, eras_of_values
from shardaudit.model.source import DEADLY, KEPT_BACK, FileGroup, KeptFiles, SourceFile

# A sink without one of these is compared by id, each row put where its trace is.
PLACES = ("shard_id", "sent_at")


@dataclass(frozen=True)
class DamagedFile:
    """A file that could not be read to its end, found so by this batch."""

    file: SourceFile
    reason: str

    @property
    def is_kept_back(self) -> bool:
        """Whether nothing is known to be wrong with the file: the storage did not give it."""
        return self.reason.startswith(KEPT_BACK)

    @property
    def is_deadly(self) -> bool:
        """Whether a process died of reading it: as long as it is the same file, none does again."""
        return self.reason.startswith(DEADLY)


@dataclass(frozen=True)
class _Inputs:
    """What all inputs share: the text that BATCHES holds, and the damage that was found in them.

    `shape`: how ids are put into cells.
    """

    columns: Mapping[str, str]
    shape: Eras
    damaged: tuple[DamagedFile, ...] = ()

    def as_json(self) -> str:
        """The text that BATCHES holds."""
        values = {field.name: _plain(getattr(self, field.name)) for field in fields(self)}
        return json.dumps(values, sort_keys=True, separators=(",", ":"))

    @property
    def has_places(self) -> bool:
        """Whether there is a column for each row's shard and one for its time."""
        return not self.columns or set(PLACES) <= self.columns.keys()

    def older(self) -> Self:
        """What of it is kept once there is a newer batch, which says again what holds for all."""
        return self

    def with_damage(self, damaged: Sequence[DamagedFile]) -> Self:
        """The same, knowing of more unreadable files."""
        return replace(self, damaged=(*self.damaged, *damaged))


@dataclass(frozen=True)
class TraceInputs(_Inputs):
    """Trace files. `columns`: of `trace_columns`.

    `kept`: NULL when the rows are put into TRACES. `streams`: the names that a line may bear; none
    in what an older version wrote. `locations`: the places whose traces are taken in.
    """

    format: str = "json"
    files: tuple[SourceFile, ...] = ()
    kept: KeptFiles | None = None
    streams: tuple[str, ...] = ()
    locations: tuple[str, ...] = ()

    def reads_like(self, other: "TraceInputs") -> bool:
        """Whether a line is to the one what it is to the other."""
        mine = (self.columns, self.format, self.locations)
        same = mine == (other.columns, other.format, other.locations)
        return same and self.streams in {(), other.streams}

    def heals(self, damaged: SourceFile) -> bool:
        """Whether a later version of a file that was damaged once is read here, to its end."""
        unread = {damage.file.path for damage in self.damaged}
        return damaged.path in {file.path for file in self.files} - unread

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inputs that a text of `as_json` holds."""
        values = _common(text)
        files = {"files": _files(values["files"]), "kept": _kept_files(values.get("kept"))}
        names = {name: tuple(values.get(name, ())) for name in ("streams", "locations")}
        return cls(**values | files | names)


@dataclass(frozen=True)
class DeltaInputs(_Inputs):
    """A Delta table under `path` up to a version; from scratch when `from_version` is NULL.

    `columns`: standard name -> column, those that the table has. `meaning`: what the meaning of a
    row hangs on; when it changes, all is read anew. `excluded`: paths of files in the table, as its
    log has them, that earlier batches found unreadable. `own_landings`: see `with_landings`.
    `commit`: what tells the version's commit from another of its number; empty: nobody knows.
    """

    path: str = ""
    meaning: str = ""
    to_version: int = 0
    from_version: int | None = None
    excluded: tuple[str, ...] = ()
    own_landings: tuple[int, ...] = ()
    commit: str = ""
    format: str = "delta"

    @property
    def is_full(self) -> bool:
        """Whether all is read anew."""
        return self.from_version is None

    def older(self) -> Self:
        """Without what the newest says of all."""
        return replace(self, own_landings=())

    @property
    def unread(self) -> set[str]:
        """The paths of all files in the table that do not count."""
        return {*self.excluded, *(damage.file.path for damage in self.damaged)}

    def heals(self, damaged: SourceFile) -> bool:
        """Whether a file that was damaged once does no harm any more."""
        return damaged.path not in self.unread

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inputs that a text of `as_json` holds."""
        values = _common(text)
        return cls(**values | {"excluded": tuple(values["excluded"]), **_landings(values)})


@dataclass(frozen=True)
class ParquetInputs(_Inputs):
    """A folder of Parquet files under `path`: all that count, and which of them are new.

    `added` NULL: all is read anew. `excluded`: files that earlier batches found unreadable.
    `own_landings`: see `with_landings`.
    `gaps`: paths of files of which some rows may lack a place, by what their footers say.
    `is_whole`: not where `groups` and `gaps` are of the new files alone, see `older`.
    """

    path: str = ""
    meaning: str = ""
    groups: tuple[FileGroup, ...] = ()
    added: tuple[str, ...] | None = None
    excluded: tuple[SourceFile, ...] = ()
    own_landings: tuple[int, ...] = ()
    gaps: tuple[str, ...] = ()
    is_whole: bool = True
    format: str = "parquet"

    @property
    def is_full(self) -> bool:
        """Whether all is read anew."""
        return self.added is None

    @property
    def unread(self) -> set[SourceFile]:
        """The files in the folder that do not count."""
        return {*self.excluded, *(damage.file for damage in self.damaged)}

    def heals(self, damaged: SourceFile) -> bool:
        """Whether a file that was damaged once does no harm any more."""
        return damaged not in self.unread

    @property
    def files(self) -> list[SourceFile]:
        """Every file that was there, readable or not."""
        listed = {file for group in self.groups for file in group.files}
        return sorted(listed | self.unread)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inputs that a text of `as_json` holds."""
        values = _common(text)
        groups = tuple(
            FileGroup(_columns(columns), _files(files)) for columns, files in values["groups"]
        )
        added = None if values["added"] is None else tuple(values["added"])
        files: dict[str, object] = {"groups": groups, "added": added}
        files["excluded"] = _files(values["excluded"])
        # Nothing is known of those that version 0.1 read: any may lack a place.
        unknown = [file.path for group in groups for file in group.files]
        files["gaps"] = tuple(values.get("gaps", unknown))
        return cls(**values | files | _landings(values))

    def older(self) -> Self:
        """Without the files of the batches before: each of them says its own."""
        rest = replace(self, own_landings=())
        if self.added is None:
            return rest
        new = set(self.added)
        gaps = tuple(path for path in self.gaps if path in new)
        return replace(rest, groups=groups_with(self.groups, new), gaps=gaps, is_whole=False)


def groups_with(groups: Iterable[FileGroup], paths: Set[str]) -> tuple[FileGroup, ...]:
    """The groups with the files of these paths alone; none is empty."""
    reduced = (replace(g, files=tuple(f for f in g.files if f.path in paths)) for g in groups)
    return tuple(group for group in reduced if group.files)


SinkInputs = DeltaInputs | ParquetInputs
SomeSinkInputs = TypeVar("SomeSinkInputs", DeltaInputs, ParquetInputs)
MOST_LANDINGS = 1000


def sink_inputs(text: str) -> SinkInputs:
    """The inputs of a sink's batch, of whatever format."""
    is_delta = json.loads(text)["format"] == "delta"
    return DeltaInputs.from_json(text) if is_delta else ParquetInputs.from_json(text)


def files_then(batches: Iterable[SinkInputs]) -> set[SourceFile]:
    """The files of a folder that a batch had, readable or not; none of a table.

    Input:
        batches: it, and those of the sink before it, newest first.
    """
    files = set[SourceFile]()
    for batch in batches:
        if not isinstance(batch, ParquetInputs):
            break
        files |= batch.unread | {file for group in batch.groups for file in group.files}
        if batch.is_whole:
            break
    return files


def with_landings(inputs: SomeSinkInputs, landings: Iterable[int]) -> SomeSinkInputs:
    """The same, knowing of more times at which a backfill of ours landed rows, in µs since 1970.

    They tell our rows for good: a file that bears a mark of ours is one day rewritten together with
    others. The newest are kept; behind older ones the consumer is anyway.
    """
    known = sorted({*inputs.own_landings, *landings})
    return replace(inputs, own_landings=tuple(known[-MOST_LANDINGS:]))


def _plain(value: object) -> object:
    """Lists in the place of our classes: as short as JSON can be, for there may be many files."""
    match value:
        case Eras():
            return value.as_values()
        case SourceFile():
            return astuple(value)
        case DamagedFile():
            return [_plain(value.file), value.reason]
        case FileGroup():
            group = [dict(value.columns), _plain(value.files)]
            return [*group, value.spans] if isinstance(value, KeptFiles) else group
        case tuple() | list():
            return [_plain(item) for item in value]
    return value


def _common(text: str) -> dict[str, Any]:  # Any: JSON
    values: dict[str, Any] = json.loads(text)
    damaged = tuple(DamagedFile(SourceFile(*file), why) for file, why in values["damaged"])
    return values | {"shape": eras_of_values(values["shape"]), "damaged": damaged}


def _landings(values: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:  # Any: JSON
    """None in what version 0.1 wrote."""
    return {"own_landings": tuple(values.get("own_landings", ()))}


def _files(values: Sequence[Sequence[Any]]) -> tuple[SourceFile, ...]:  # Any: JSON
    return tuple(SourceFile(*value) for value in values)


def _columns(values: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, str]]:
    return {name: (column, kind) for name, (column, kind) in values.items()}


def _kept_files(values: Sequence[Any] | None) -> KeptFiles | None:  # Any: JSON
    if values is None:
        return None
    columns, files, spans = values
    return KeptFiles(_columns(columns), _files(files), tuple((low, high) for low, high in spans))
