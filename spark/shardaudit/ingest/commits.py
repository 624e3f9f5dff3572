"""Delta commits → the data files that came and went, net: plain values, no engine.

Only actions that changed data are counted: what OPTIMIZE rewrites stays the same rows. A file that
came and went in between cancels out. A file may come twice (OPTIMIZE replaces it, RESTORE brings it
back, both within these commits), which is why this counts instead of keeping sets.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Action = dict[str, Any]  # Any: one JSON object of Delta's log, as its protocol defines it
FileKey = tuple[str, str]


class UnknownFileError(LookupError):
    """A commit removes a file without saying enough of it to read it again."""


@dataclass(frozen=True, slots=True)
class Change:
    """The files to read and add, and those to read and subtract, as `add` lines of Delta's log.

    In layers: none holds a path twice, so each can be read as one DataFrame.
    """

    added: Sequence[Sequence[str]]
    removed: Sequence[Sequence[str]]

    @property
    def added_count(self) -> int:
        """How many files came."""
        return sum(map(len, self.added))

    @property
    def added_paths(self) -> set[str]:
        """The paths of the files that came, as the log has them."""
        return {json.loads(line)["add"]["path"] for layer in self.added for line in layer}

    @property
    def removed_count(self) -> int:
        """How many files went."""
        return sum(map(len, self.removed))


def net_change(commits: Iterable[str], *, excluded: Iterable[str] = ()) -> Change:
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
        key = (file["path"], _vector_id(file.get("deletionVector")))
        if sign > 0 or key not in described:
            described[key] = file
        if file["dataChange"]:
            balance[key] += sign
    return Change(
        added=_layers(balance, described),
        removed=_layers(Counter({key: -count for key, count in balance.items()}), described),
    )


def still_there(paths: Iterable[str], commits: Iterable[str]) -> set[str]:
    """Those of the paths that the commits leave in the table."""
    there = set(paths)
    looked_for = frozenset(there)
    for action in _file_actions(commits):
        path = (action.get("add") or action["remove"])["path"]
        if path in looked_for:
            (there.add if "add" in action else there.discard)(path)
    return there


def _file_actions(commits: Iterable[str]) -> Iterable[Action]:
    for commit in commits:
        for line in filter(None, commit.split("\n")):
            action = json.loads(line)
            if "add" in action or "remove" in action:
                yield action


def _vector_id(vector: Mapping[str, Any] | None) -> str:
    """What tells two deletion vectors of one file apart."""
    if vector is None:
        return ""
    return f"{vector['storageType']}{vector['pathOrInlineDv']}@{vector.get('offset')}"


def _layers(balance: Counter[FileKey], described: Mapping[FileKey, Action]) -> list[list[str]]:
    layers: list[dict[str, str]] = []
    for key, count in sorted(balance.items()):
        for _ in range(count):
            layer = next((layer for layer in layers if key[0] not in layer), None)
            if layer is None:
                layer = {}
                layers.append(layer)
            layer[key[0]] = _as_add(described[key])
    return [list(layer.values()) for layer in layers]


def _as_add(file: Action) -> str:
    """The line that adds the file, also where only its removal is at hand."""
    if file.get("partitionValues") is None or file.get("size") is None:
        raise UnknownFileError(file["path"])
    add = {
        "path": file["path"],
        "partitionValues": file["partitionValues"],
        "size": file["size"],
        "modificationTime": file.get("modificationTime", 0),
        "dataChange": True,
    }
    if file.get("deletionVector"):
        add["deletionVector"] = file["deletionVector"]
    return json.dumps({"add": add})
