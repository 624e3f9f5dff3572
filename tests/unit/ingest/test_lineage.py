"""Who waits for whom when a stream was resharded."""

import pytest

from shardaudit.ingest.rules.lineage import ancestors, behind_parents

OF_TWO = {"a": (), "b": (), "c": ("a", "b"), "d": ("c",), "e": ("d", "gone")}
OF_SISTERS = {"old": (), "parent": ("old",), "young": ("child",)} | dict.fromkeys(
    ("child", "sister"), ("parent",)
)


@pytest.mark.parametrize(
    ("parents", "begun", "undrained", "found"),
    [
        ({"child": ("parent",)}, "", "parent", {"child": "parent"}),
        ({"child": ("parent",)}, "parent", "parent", {"child": "parent"}),
        ({"child": ("parent",)}, "parent", "", {}),
        ({"child": ("parent",)}, "child", "parent", {}),  # it has not waited
        (OF_TWO, "a", "b e", {"c": "b", "d": "b", "e": "b"}),  # over generations and merges
        # The parent's last message is lost: that hides no child that stands still for days.
        (OF_SISTERS, "sister", "parent old child young", {"young": "child"}),
    ],
)
def test_child_waits_for_its_nearest_ancestor_unless_the_consumer_is_past_that(
    parents: dict[str, tuple[str, ...]], begun: str, undrained: str, found: dict[str, str]
) -> None:
    names = set(begun.split()), set(undrained.split())
    assert behind_parents(parents, begun=names[0], undrained=names[1]) == found


def test_a_shard_that_is_split_and_merged_each_day_has_each_ancestor_once() -> None:
    parents: dict[str, tuple[str, ...]] = {"s0": ()}
    for day in range(40):
        parents |= {f"a{day}": (f"s{day}",), f"b{day}": (f"s{day}",)}
        parents[f"s{day + 1}"] = (f"a{day}", f"b{day}")
    found = list(ancestors("s40", parents))
    assert (len(found), set(found)) == (120, set(parents) - {"s40"})
