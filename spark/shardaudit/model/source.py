"""A file of an input, as a listing or a Delta log shows it, and by what our own are known."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

BACKFILL = "shardaudit backfill"
_PREFIX = "shardaudit-"
KEPT_BACK = "storage does not give it: "  # begins the reason why such a file was set aside
DEADLY = "it is not opened any more: "  # as well


@dataclass(frozen=True, order=True)
class SourceFile:
    """One version of one file: rewritten, it has another size or another time."""

    path: str
    size_bytes: int
    modified_ms: int


@dataclass(frozen=True)
class FileGroup:
    """Files that are read in one way: standard name -> (column, Spark type)."""

    columns: Mapping[str, tuple[str, str]]
    files: tuple[SourceFile, ...]


@dataclass(frozen=True)
class KeptFiles(FileGroup):
    """Copies of a batch's files, by their paths below the warehouse's folder of such.

    `columns`: none when their rows are judged one by one. `spans`: the least and the greatest
    `sent_at` of each file, in microseconds since 1970.
    """

    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class DeletionVector:
    """Where the numbers of a file's deleted rows are, as a Delta log says it.

    `storage`: `i`: they are in `place`; `u`, `p`: in a file that it names.
    """

    storage: str
    place: str
    offset: int | None
    size_bytes: int
    cardinality: int

    @classmethod
    def from_log(cls, described: Mapping[str, Any] | None) -> Self | None:  # Any: JSON
        """The vector that an action of the log describes, if it has one."""
        if described is None:
            return None
        return cls(
            storage=described["storageType"],
            place=described["pathOrInlineDv"],
            offset=described.get("offset"),
            size_bytes=described["sizeInBytes"],
            cardinality=described["cardinality"],
        )


@dataclass(frozen=True, slots=True)
class DeltaFile:
    """A data file with its path as a Delta log has it, and the rows that do not count any more.

    `partition_values`: by the columns' physical names, as texts.
    """

    path: str
    size_bytes: int
    modified_ms: int
    partition_values: Mapping[str, str | None]
    vector: DeletionVector | None = None


def backfill_tag(plan_id: str) -> str:
    """What a backfill's commit to a Delta sink bears as `userMetadata`."""
    return json.dumps({"by": BACKFILL, "plan_id": plan_id})


def is_backfill_tag(text: object) -> bool:
    """Whether a commit's `userMetadata` is that of a backfill."""
    if not isinstance(text, str):
        return False
    try:
        tag = json.loads(text)
    except ValueError:  # a user's own words
        return False
    return isinstance(tag, dict) and tag.get("by") == BACKFILL


def appended_name(job_id: str, name: str) -> str:
    """What a file is called that a backfill adds to a folder; `name`: what Spark called it."""
    return f"{_PREFIX}{job_id}-{name}"


def is_appended(path: str) -> bool:
    """Whether a file in a folder was added by a backfill."""
    return path.rpartition("/")[2].startswith(_PREFIX)
