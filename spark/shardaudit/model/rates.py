"""What share of its messages an audit found wrong, and between what it is where ids are sampled."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt

_Z = 1.959963984540054  # 95 % of a normal distribution lie within so many standard deviations


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
    """What is `missing` of what was sent, `duplicated` and `untraced` of what landed.

    None of them where all ids are audited: the counts are exact.

    Input:
        counts: of ids, by the names of the audits table; sample_rate: of the stream.
    """
    if sample_rate == 1:
        return {}
    landed = counts["matched"] + counts["untraced"]
    of_each = {"missing": counts["sent"], "duplicated": landed, "untraced": landed}
    # An id that counts in another window may have landed twice in this one.
    found = {name: (min(counts[name], of), of) for name, of in of_each.items()}
    return {
        name: Rate(count, of, count / of if of else None, wilson_interval(count, of))
        for name, (count, of) in found.items()
    }


def wilson_interval(count: int, of: int) -> tuple[float, float]:
    """Where the share of all lies, as fractions, when `count` of a sample of `of` were found.

    95 of 100 such intervals hold it. Of a sample of nothing: from 0 to 1.

    Source: E. B. Wilson, Probable inference, the law of succession, and statistical inference,
        Journal of the American Statistical Association 22 (1927), 209-212.
    """
    if of == 0:
        return 0.0, 1.0
    share, weight = count / of, _Z * _Z / of
    middle = (share + weight / 2) / (1 + weight)
    reach = sqrt(weight * share * (1 - share) + weight * weight / 4) / (1 + weight)
    return max(0.0, middle - reach), min(1.0, middle + reach)
