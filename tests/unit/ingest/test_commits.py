"""Commits of a Delta log → the files that came and went, net."""

import json
from collections.abc import Mapping, Sequence

import pytest

from shardaudit.ingest.rules.commits import (
    UnknownFileError,
    backfilled_files,
    net_change,
    rearranged_files,
    still_there,
)
from shardaudit.model.source import DeltaFile, backfill_tag

Action = dict[str, object]


def vector(name: str) -> dict[str, object]:
    return {
        "storageType": "u",
        "pathOrInlineDv": name,
        "offset": 1,
        "sizeInBytes": 4,
        "cardinality": 2,
    }


def add(path: str, *, dv: str | None = None, data: bool = True, rows: int | None = None) -> Action:
    file: Action = {"path": path, "partitionValues": {"day": "d"}, "size": 5, "dataChange": data}
    stats = {} if rows is None else {"stats": json.dumps({"numRecords": rows})}
    return {"add": file | stats | ({"deletionVector": vector(dv)} if dv else {})}


def remove(
    path: str, *, dv: str | None = None, data: bool = True, rows: int | None = None
) -> Action:
    action = add(path, dv=dv, data=data, rows=rows)["add"]
    assert isinstance(action, dict)
    return {"remove": action}


def rewrite(before: int | None, after: int | None, *, dv: str | None = None) -> str:
    """A commit that says to change no data, with how many rows its files have."""
    return commit(remove("a", data=False, dv=dv, rows=before), add("b", data=False, rows=after))


def commit(*actions: Mapping[str, object]) -> str:
    other = {"commitInfo": {"operation": "WRITE", "note": 'not an {"add"'}}
    return "\n".join(json.dumps(action) for action in (other, *actions)) + "\n"


def files(found: Sequence[DeltaFile]) -> list[tuple[str, str | None]]:
    named = [(file.path, file.vector.place if file.vector else None) for file in found]
    return sorted(named, key=str)


def test_added_files_are_read_when_appended() -> None:
    change = net_change([commit(add("a")), commit(add("b"))])
    assert (files(change.added), files(change.removed)) == ([("a", None), ("b", None)], [])
    assert change.added[0] == DeltaFile("a", 5, 0, {"day": "d"})


def test_nothing_is_read_when_files_are_only_rewritten() -> None:
    optimize = commit(remove("a", data=False), remove("b", data=False), add("c", data=False))
    change = net_change([optimize])
    assert (files(change.added), files(change.removed)) == ([], [])


@pytest.mark.parametrize(
    ("rewritten", "is_read"),
    [
        (rewrite(5, 5), False),
        (rewrite(5, 3, dv="two of its rows are deleted"), False),
        (rewrite(5, None), False),
        (rewrite(None, 4), False),
        (commit(add("b", data=False, rows=5)), False),  # the same file again, with statistics
        (rewrite(5, 4), True),
        (commit(remove("a", data=False, rows=5)), True),
    ],
)
def test_rows_that_a_rewrite_drops_are_missed(rewritten: str, *, is_read: bool) -> None:
    change = net_change([rewritten])
    assert bool(change.removed) is is_read


def test_file_cancels_out_when_it_comes_and_goes() -> None:
    change = net_change([commit(add("a")), commit(remove("a"), add("b"))])
    assert (files(change.added), files(change.removed)) == ([("b", None)], [])


def test_old_file_is_subtracted_when_overwritten() -> None:
    change = net_change([commit(remove("old"), add("new"))])
    assert (files(change.added), files(change.removed)) == ([("new", None)], [("old", None)])


def test_file_is_read_twice_when_rows_are_deleted_by_a_vector() -> None:
    change = net_change([commit(remove("a"), add("a", dv="1"))])
    assert (files(change.added), files(change.removed)) == ([("a", "1")], [("a", None)])


def test_middle_vector_cancels_out_when_rows_are_deleted_twice() -> None:
    change = net_change(
        [commit(remove("a"), add("a", dv="1")), commit(remove("a", dv="1"), add("a", dv="2"))]
    )
    assert (files(change.added), files(change.removed)) == ([("a", "2")], [("a", None)])


def test_compacted_file_is_subtracted_when_deleted_later() -> None:
    change = net_change(
        [
            commit(add("a")),
            commit(remove("a", data=False), add("c", data=False)),
            commit(remove("c"), add("d")),
        ]
    )
    assert files(change.added) == [("a", None), ("d", None)]
    assert files(change.removed) == [("c", None)]


def test_file_counts_twice_when_restored_after_compaction() -> None:
    change = net_change(
        [
            commit(add("a")),
            commit(remove("a", data=False), add("c", data=False)),
            commit(remove("c"), add("a")),
        ]
    )
    assert files(change.added) == [("a", None), ("a", None)]
    assert files(change.removed) == [("c", None)]


def test_unreadable_files_are_left_alone_when_excluded() -> None:
    change = net_change([commit(remove("broken"), add("a"))], excluded=["broken"])
    assert (files(change.added), files(change.removed)) == ([("a", None)], [])


def test_thin_removal_is_refused_when_the_file_was_not_added_here() -> None:
    thin = {"remove": {"path": "a", "dataChange": True, "deletionTimestamp": 1}}
    with pytest.raises(UnknownFileError):
        net_change([commit(thin)])


def test_thin_removal_is_enough_when_the_file_was_added_here() -> None:
    thin = {"remove": {"path": "c", "dataChange": True}}
    change = net_change([commit(add("c", data=False)), commit(thin)])
    assert files(change.removed) == [("c", None)]


def test_path_is_gone_when_its_last_action_removes_it() -> None:
    commits = [commit(remove("a"), remove("b"), remove("b2")), commit(add("b"))]
    assert still_there(["a", "b", "c"], commits) == {"b", "c"}


def test_file_stays_when_a_commit_gives_it_a_vector_in_whatever_order() -> None:
    for actions in ((remove("a"), add("a", dv="1")), (add("a", dv="1"), remove("a"))):
        assert still_there(["a"], [commit(*actions)]) == {"a"}


def optimized(*gone: str, into: str, day: str = "d") -> list[Action]:
    actions = [*(remove(path, data=False) for path in gone), add(into, data=False)]
    for action in actions:
        [file] = action.values()
        assert isinstance(file, dict)
        file["partitionValues"] = {"day": day}
    return actions


def test_rewritten_file_has_nothing_new_unless_one_came_to_its_partition_meanwhile() -> None:
    two_days = [*optimized("a", "b", into="c"), *optimized("new", into="e", day="x")]
    commits = [commit(add("new")), commit(*two_days), commit(*optimized("c", into="f"))]
    assert rearranged_files(commits, unread=()) == {"c", "f"}
    again = [*commits, commit(*optimized("e", into="g", day="x"))]
    assert rearranged_files(again, unread=()) == {"c", "f"}
    assert rearranged_files(commits, unread=["b"]) == set()
    thin = commit({"remove": {"path": "new", "dataChange": False}}, add("c", data=False))
    assert rearranged_files([commit(add("new")), thin], unread=()) == set()


def test_file_that_loses_rows_to_a_vector_is_not_new() -> None:
    commits = [commit(remove("a"), add("a", dv="1")), commit(*optimized("a", into="b"))]
    assert rearranged_files(commits, unread=()) == {"b"}


def test_files_of_a_backfill_are_known_by_the_tag_of_their_commit() -> None:
    def tagged(metadata: object, *actions: Mapping[str, object]) -> str:
        text = commit(*actions)
        first, rest = text.split("\n", 1)
        told = json.loads(first)
        told["commitInfo"]["userMetadata"] = metadata
        return f"{json.dumps(told)}\n{rest}"

    commits = [
        tagged(backfill_tag("plan"), add("ours"), add("ours, too")),
        tagged('{"by": "shardaudit dedupe"}', remove("ours"), add("mixed")),
        tagged("shardaudit backfill", add("a user's own words")),
        tagged('["shardaudit backfill"]', add("a list")),
        commit(add("a user's")),
        commit(remove("mixed"), add("shardaudit backfill")),
    ]
    assert files(backfilled_files(commits)) == [("ours", None), ("ours, too", None)]
