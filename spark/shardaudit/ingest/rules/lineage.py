"""Which shards took whose place when a stream was resharded, and who waits for whom by that."""

from collections.abc import Iterator, Mapping, Sequence, Set

BEHIND_PARENT = "not judged before its parent is drained: "  # whose id follows


def ancestors(shard_id: str, parents: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The shards of all generations before it, the nearest first.

    One that Kinesis no longer lists is the last of its line: it has expired.
    """
    seen: set[str] = set()
    generation = list(parents.get(shard_id, ()))
    while generation:
        yield from generation
        seen |= set(generation)
        # Each once: what is split and merged again and again has more lines than shards.
        older = dict.fromkeys(p for ancestor in generation for p in parents.get(ancestor, ()))
        generation = [ancestor for ancestor in older if ancestor not in seen]


def behind_parents(
    parents: Mapping[str, Sequence[str]], *, begun: Set[str], undrained: Set[str]
) -> dict[str, str]:
    """The shards that a consumer has not begun, each with its nearest ancestor that it must drain.

    The KCL reads a parent to its end before it begins a child. Where something landed of one of its
    descendants the consumer is past it: what lacks of it keeps no other one back.

    Input:
        parents: of all shards.
        begun: of which something landed.
        undrained: of which something is still to be read, or was until just now.
    """
    passed = {ancestor for shard in begun for ancestor in ancestors(shard, parents)}
    before = undrained - passed
    found: dict[str, str] = {}
    for shard in parents.keys() - begun:
        nearest = next((a for a in ancestors(shard, parents) if a in before), None)
        if nearest is not None:
            found[shard] = nearest
    return found
