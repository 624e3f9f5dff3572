"""What share of their messages audits found wrong: its interval under sampling, its changes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log, sqrt
from statistics import median

_IN_A_ROW = 3  # audits that must agree before a rate has changed
_BEFORE_IT = 10  # audits that say what was usual, at least
_LEFT_OUT = 30  # of so many the worst one is no measure
_FARTHER = 1.5  # times as far from the usual as all before
_SMALL = 10  # audits of less than such a part of the usual number of messages say nothing
_Z = 1.959963984540054  # 95 % of a normal distribution lie within so many standard deviations
_Z_SURE = 3.290526731491926  # 99.9 % of it
_BY_CHANCE = 0.0005  # what lies below that interval


@dataclass(frozen=True, slots=True)
class Rate:
    """So many messages of a number of them, in a sample.

    `share`: as a fraction; None: of nothing. `between`: the 95 % interval of the share of all
    messages.
    """

    count: int
    of: int
    share: float | None
    between: tuple[float, float]


def audit_rates(counts: Mapping[str, int], *, sample_rate: float) -> dict[str, Rate]:
    """What is `missing` of what was sent to land, `duplicated` and `untraced` of what landed.

    None of them where all ids are audited: the counts are exact.

    Input:
        counts: of ids, by the names of the audits table; sample_rate: of the stream.
    """
    return sampled_rates(counts_of_rates(counts), sample_rate=sample_rate)


def sampled_rates(counts: Mapping[str, tuple[int, int]], *, sample_rate: float) -> dict[str, Rate]:
    """So many, each of so many, with the intervals; none of them where all ids are audited."""
    if sample_rate == 1:
        return {}
    return {
        name: Rate(count, of, count / of if of else None, wilson_interval(count, of))
        for name, (count, of) in counts.items()
    }


def had_by_traces(received: int, sent: int, left_out: int) -> int:
    """How many messages a place had: of one it may have lost the trace that says `received`.

    The same of columns is `had_messages` of `ingest/rules/sighted.py`.
    """
    return max(received, sent + left_out)


def came_to(traced: int, trace_loss: float | None) -> int:
    """How many messages came to a place that traced so many; these, where nobody can tell."""
    share = 1 - (trace_loss or 0)
    return round(traced / share) if share else traced


def counts_at_place(
    counts: Mapping[str, int | None],
    *,
    trace_loss: float | None,
    passed: int | None = None,
) -> dict[str, tuple[int, int]]:
    """Of a place of a route `lost`, `doubtful`, `doubled`, `trace_loss`, each with what it is of.

    Where they are known: of what came to it, traced or not, or may have been lost before it; of
    what came to it; of what passed it.

    Input:
        counts: of messages, these three and what it `had` by its traces; trace_loss: a fraction;
        passed: those of which the trace loss is known; None: of all that it had.
    """
    lost, doubled = counts["lost"], counts["doubled"]
    came = came_to(counts["had"] or 0, trace_loss)
    due = came + (lost or 0) + (counts["doubtful"] or 0)
    passed = came if passed is None else passed
    known = {
        "lost": (lost, due),
        "doubtful": (counts["doubtful"], due),
        "doubled": (doubled, max(came, doubled or 0)),
        "trace_loss": (None if trace_loss is None else round(trace_loss * passed), passed),
    }
    return {name: (count, of) for name, (count, of) in known.items() if count is not None}


DUE = ("matched", "missing", "pending")  # of what was sent all that no filter left out by design


def due_ids(counts: Mapping[str, int]) -> int:
    """How many were sent and are to land: those of `DUE`, by what filters left out."""
    return counts["sent"] - (counts.get("filtered") or 0)


def landed_ids(counts: Mapping[str, int]) -> int:
    """How many landed, however often each did."""
    return counts["matched"] + counts["untraced"]


def counts_of_rates(counts: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """What is `missing`, `duplicated` and `untraced`, each with what it is a share of."""
    landed = landed_ids(counts)
    of_each = {"missing": due_ids(counts), "duplicated": landed, "untraced": landed}
    # An id that counts in another window may have landed twice in this one.
    return {name: (min(counts[name], of), of) for name, of in of_each.items()}


def rate_changes(audits: Sequence[tuple[int, int]]) -> dict[int, float]:
    """Where a rate changed: the first audit of the change, and what was usual before, a fraction.

    Usual is the middle one of all audits since the change before, of which there must be some.
    It changed where several audits in a row lie farther from it on one side than all before, by
    half of that, and all of them together are surely beside all before: neither nights as bad as
    some that were, nor a rare loss, is a change. The worst one in thirty is left out on each side.

    Input:
        audits: counts as of `wilson_interval`, oldest first, of windows that do not overlap; those
            of far fewer messages than the middle one are passed over.
    """
    least = median(of for _, of in audits) / _SMALL if audits else 0
    told = [at for at, (_, of) in enumerate(audits) if of and of >= least]
    found: dict[int, float] = {}
    first = 0
    for at in range(len(told) - _IN_A_ROW + 1):
        before = [audits[one] for one in told[first:at]]
        if len(before) < _BEFORE_IT:
            continue
        usual = median(count / of for count, of in before)
        if _is_beyond([audits[one] for one in told[at : at + _IN_A_ROW]], before, usual):
            found[told[at]] = usual
            first = at
    return found


def _is_beyond(
    some: Sequence[tuple[int, int]], before: Sequence[tuple[int, int]], usual: float
) -> bool:
    """Whether all of some lie beyond all before, or all of them on this side of it."""
    shares = [count / of for count, of in some]
    left_out = len(before) // _LEFT_OUT
    ordered = sorted(before, key=lambda one: one[0] / one[1])[left_out : len(before) - left_out]
    lowest, highest = (count / of for count, of in (ordered[0], ordered[-1]))
    is_above = min(shares) > usual + _FARTHER * (highest - usual)
    is_below = max(shares) < usual - _FARTHER * (usual - lowest)
    if not (is_above or is_below):
        return False
    now, earlier = (
        wilson_interval(sum(count for count, _ in of), sum(n for _, n in of), z=_Z_SURE)
        for of in (some, ordered)
    )
    return now[0] > earlier[1] if is_above else now[1] < earlier[0]


def wilson_interval(count: int, of: int, *, z: float = _Z) -> tuple[float, float]:
    """Where the share of all lies, as fractions, when `count` of a sample of `of` were found.

    95 of 100 such intervals hold it. Of a sample of nothing: from 0 to 1.

    Input:
        z: so many standard deviations make another interval than of 95 %.

    Source: E. B. Wilson, Probable inference, the law of succession, and statistical inference,
        Journal of the American Statistical Association 22 (1927), 209-212.
    """
    if of == 0:
        return 0.0, 1.0
    share, weight = count / of, z * z / of
    middle = (share + weight / 2) / (1 + weight)
    reach = sqrt(weight * share * (1 - share) + weight * weight / 4) / (1 + weight)
    # At the ends the sums above are off by a rounding error.
    return (0.0 if count == 0 else middle - reach), (1.0 if count == of else middle + reach)


def is_surely_below(count: int, of: int, share: float, *, chance: float = _BY_CHANCE) -> bool:
    """Whether `count` of `of` are fewer than a share of at least `share` gives by chance.

    Less often than that they are as few, however few messages there are: of few, the interval of
    `wilson_interval` is too narrow for that.

    Input:
        share: as a fraction, above 0; of 1 each message that lacks is one too many.

    Source: H. Chernoff, A measure of asymptotic efficiency for tests of a hypothesis based on the
        sum of observations, Annals of Mathematical Statistics 23 (1952), 493-507; as W. Hoeffding,
        Probability inequalities for sums of bounded random variables, Journal of the American
        Statistical Association 58 (1963), 13-30, theorem 1.
    """
    if of == 0 or count >= share * of:
        return False
    if share >= 1:
        return True
    found = count / of
    apart = (1 - found) * log((1 - found) / (1 - share))
    if count:
        apart += found * log(found / share)
    return of * apart > -log(chance)
