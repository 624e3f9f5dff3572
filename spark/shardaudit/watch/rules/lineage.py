"""Which shard came out of which: a child is not judged before its ancestors are drained."""

from collections.abc import Collection, Mapping, Sequence


def undrained_ancestor(
    shard_id: str, parents: Mapping[str, Sequence[str]], *, undrained: Collection[str]
) -> str | None:
    """The nearest ancestor, over all generations, of which messages have not landed yet.

    An ancestor that Kinesis no longer lists has expired: nothing of it can be waited for.
    """
    seen: set[str] = set()
    generation = list(parents.get(shard_id, ()))
    while generation:
        for ancestor in generation:
            if ancestor in undrained:
                return ancestor
        seen |= set(generation)
        older = [p for ancestor in generation for p in parents.get(ancestor, ())]
        generation = [ancestor for ancestor in older if ancestor not in seen]
    return None
