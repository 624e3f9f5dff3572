"""On which hops each message of an audit may be lost: by what places traced of its minute."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from shardaudit.audit.route.place_counts import SeenAlike
from shardaudit.model.route.dark_places import DARK
from shardaudit.model.route.lost_hops import LostHops, TracedAlike
from shardaudit.model.route.trace_loss import (
    FEW_TRACED,
    Traced,
    end_losses,
    losses_of_a_minute,
)


def lost_on_hops(
    groups: Sequence[SeenAlike],
    landed: Mapping[datetime, Traced],
    lost: LostHops,
    begins: Mapping[str, datetime],
) -> list[TracedAlike]:
    """The groups, the missing ones with the hops on which they may be lost.

    Input:
        landed: by bucket what its places traced of what landed; lost: of `_with_usual`; begins: of
            `traces_begin`: of a message of before a place is silent.
    """
    silent = [
        (lost.silent | {name for name, at in begins.items() if group.bucket_start < at})
        # A place may give a message a later time than the producer does.
        .difference(group.seen)
        for group in groups
    ]
    known: dict[frozenset[str], tuple[LostHops, dict[datetime, LostHops]]] = {}
    for each in set(silent):
        both = zip(groups, silent, strict=True)
        some = [group for group, of in both if of == each and group.is_missing]
        here = replace(lost, silent=each)
        has_losses = bool(lost.trace_losses)
        known[each] = _by_minute(some, landed, here) if has_losses else (here.unknowing(), {})
    alike = []
    for group, each in zip(groups, silent, strict=True):
        usual, there = known[each]
        hops = there.get(group.bucket_start, usual).of(group.seen) if group.is_missing else None
        alike.append(TracedAlike(group.ids, group.seen, hops, each))
    return alike


def _by_minute(
    groups: Sequence[SeenAlike], landed: Mapping[datetime, Traced], lost: LostHops
) -> tuple[LostHops, dict[datetime, LostHops]]:
    """With how often each hop loses messages; and the same with the trace losses of each minute.

    What was lost around a dark place tells nothing of the other minutes.

    Input:
        groups: missing ones.
    """
    route, usual, ends = lost.route, lost.trace_losses, lost.end_losses

    def within(minute: Traced) -> LostHops:
        return replace(
            lost,
            trace_losses=losses_of_a_minute(route, minute, usual),
            end_losses=end_losses(route, minute, ends, least=FEW_TRACED),
            dark=frozenset(name for name, share in minute.unread.items() if share >= DARK),
        )

    there = {start: within(minute) for start, minute in landed.items()}
    usually = within(Traced())
    seen = {group.text: group.seen for group in groups}
    known, unread = Counter[str](), Counter[tuple[str, frozenset[str]]]()
    for group in groups:
        here = there.get(group.bucket_start, usually)
        if here.may_have_passed(here.dark, group.seen):
            unread[group.text, here.dark] += group.ids
        # Where traces lack, those that came say too little of where messages are lost.
        elif here.dark or not landed.get(group.bucket_start, Traced()).unread:
            known[group.text] += group.ids
    missing = [(seen[text], ids) for text, ids in known.items()]
    beside = [(seen[text], dict.fromkeys(dark, 1.0), ids) for (text, dark), ids in unread.items()]
    then = usually.with_loss_rates(missing, beside).loss_rates
    usually = usually.with_loss_rates(missing)
    return usually, {
        start: replace(here, loss_rates=then if here.dark else usually.loss_rates)
        for start, here in there.items()
    }
