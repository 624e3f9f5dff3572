"""Delta commits → the data files that came and went, net: plain values, no engine.

Only actions that changed data are counted: what OPTIMIZE rewrites stays the same rows. What a
rewrite of somebody's own dropped is a change, whatever its commit says (`_drops_rows`). A file that
came and went in between cancels out. A file may come twice (OPTIMIZE replaces it, RESTORE brings it
back, both within these commits), which is why this counts instead of keeping sets.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shardaudit.model.source import BACKFILL, DeletionVector, DeltaFile, is_backfill_tag

Action = dict[str, Any]  # Any: one JSON object of Delta's log, as its protocol defines it
FileKey = tuple[str, DeletionVector | None]


class UnknownFileError(LookupError):
    """A commit removes a file without saying enough of it to read it again."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """The files to read and add, and those to read and subtract; each as often as it counts."""

    added: Sequence[DeltaFile]
    removed: Sequence[DeltaFile]


def net_change(commits: Iterable[str], *, excluded: Iterable[str] = ()) -> FileChange:
    """What the commits, in their order, change of the table's rows.

    Input:
        commits: each the text of one commit file.
        excluded: paths, as the log has them, of files that were unreadable and never counted.

    Raises:
        UnknownFileError: a removed file is described too thinly.
    """
    left_out = set(excluded)
    balance: Counter[FileKey] = Counter()
    described: dict[FileKey, Action] = {}
    for action in _file_actions(commits):
        sign, file = (1, action["add"]) if "add" in action else (-1, action["remove"])
        if file["path"] in left_out:
            continue
        key = (file["path"], DeletionVector.from_log(file.get("deletionVector")))
        if sign > 0 or key not in described:
            described[key] = file
        if file["dataChange"]:
            balance[key] += sign
    return FileChange(
        added=_counted(balance, described),
        removed=_counted(Counter({key: -count for key, count in balance.items()}), described),
    )


def backfilled_files(commits: Iterable[str]) -> list[DeltaFile]:
    """The files that backfills of ours added; what became of them later does not matter."""
    found: list[DeltaFile] = []
    for commit in commits:
        if BACKFILL not in commit:
            continue
        actions = [json.loads(line) for line in commit.split("\n") if line]
        if any(is_backfill_tag(_information(action).get("userMetadata")) for action in actions):
            found += [_file(action["add"], None) for action in actions if "add" in action]
    return found


def still_there(paths: Iterable[str], commits: Iterable[str]) -> set[str]:
    """Those of the paths that the commits leave in the table."""
    there = set(paths)
    looked_for = frozenset(there)
    for action in _file_actions(commits):
        path = (action.get("add") or action["remove"])["path"]
        if path in looked_for:
            (there.add if "add" in action else there.discard)(path)
    return there


def rearranged_files(commits: Iterable[str], *, unread: Iterable[str]) -> set[str]:
    """The paths of files that came, and have no row that was not in the table before.

    A commit that changes no data (OPTIMIZE) puts the rows of files that go into others of the same
    partition. Where one of them came meanwhile, all that is written there may have rows of it.

    Input:
        commits: in their order; unread: paths of files of which no row counted before.
    """
    fresh, found = set(unread), set[str]()
    for commit in commits:
        actions = [json.loads(line) for line in commit.split("\n") if line]
        gone = {file["path"]: file for action in actions if (file := action.get("remove"))}
        places = [file.get("partitionValues") for path, file in gone.items() if path in fresh]
        for file in (action["add"] for action in actions if "add" in action):
            if file["path"] in gone:  # it gets a deletion vector: fewer rows, and none is new
                continue
            is_fresh = file["dataChange"] or any(
                place in (None, file.get("partitionValues")) for place in places
            )
            (fresh if is_fresh else found).add(file["path"])
    return found - fresh


def _information(action: Action) -> Action:
    return action.get("commitInfo") or {}


def _file_actions(commits: Iterable[str]) -> Iterable[Action]:
    """Within a commit what goes comes first: a file that gets a vector does both, in any order."""
    for commit in commits:
        actions = [json.loads(line) for line in commit.split("\n") if line]
        gone = [action for action in actions if "remove" in action]
        come = [action for action in actions if "add" in action]
        if _drops_rows(gone, come):
            for action in (*gone, *come):
                (action.get("add") or action["remove"])["dataChange"] = True
        yield from (*gone, *come)


def _drops_rows(gone: Iterable[Action], come: Iterable[Action]) -> bool:
    """Whether the files that came without a change have fewer rows than those that went so.

    Delta takes a writer's word for it (`dataChange = false`). Not the other way round: a file that
    is there may be added once more, for its statistics. Where a count is not said, nobody knows.
    """
    went = [_row_count(action["remove"]) for action in gone if not action["remove"]["dataChange"]]
    came = [_row_count(action["add"]) for action in come if not action["add"]["dataChange"]]
    before, after = (
        None if None in counts else sum(filter(None, counts)) for counts in (went, came)
    )
    return before is not None and after is not None and before > after


def _row_count(file: Action) -> int | None:
    """How many rows a file has, less those that its vector deletes; None: it does not say."""
    rows = json.loads(file.get("stats") or "{}").get("numRecords")
    deleted = (file.get("deletionVector") or {}).get("cardinality", 0)
    return None if rows is None else int(rows) - int(deleted)


def _counted(balance: Counter[FileKey], described: Mapping[FileKey, Action]) -> list[DeltaFile]:
    counted = [(key, count) for key, count in balance.items() if count > 0]
    files = [(_file(described[key], key[1]), count) for key, count in counted]
    return [file for file, count in sorted(files, key=_by_path) for _ in range(count)]


def _by_path(counted: tuple[DeltaFile, int]) -> tuple[str, str]:
    return counted[0].path, str(counted[0].vector)


def _file(action: Action, vector: DeletionVector | None) -> DeltaFile:
    """The file, also where only its removal is at hand."""
    if action.get("partitionValues") is None or action.get("size") is None:
        raise UnknownFileError(action["path"])
    return DeltaFile(
        path=action["path"],
        size_bytes=action["size"],
        modified_ms=action.get("modificationTime", 0),
        partition_values=action["partitionValues"],
        vector=vector,
    )
