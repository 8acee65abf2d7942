"""Shares that also count the cases without a measurement."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor

from auditor.metrics.proportion import Proportion, proportion


@dataclass(frozen=True, slots=True)
class Share(Proportion):
    """A share of the `n` measured cases; `lost` cases had no measurement and are not part of the fraction."""

    lost: int = 0


def wilson_share(hits: int, n: int, lost: int = 0) -> Share:
    """The share `hits / n` with Wilson's 95% interval; None, with a reason, where n is 0.

    Raises:
        ValueError: not 0 <= hits <= n.
    """
    p = proportion(hits, n)
    return Share(p.value, p.n, p.ci_low, p.ci_high, p.reason, lost)


def mean_share(total: float, n: int, lost: int = 0) -> Share:
    """The mean of n fractions in [0, 1] with sum `total`, with a conservative interval.

    A variable in [0, 1] varies at most as much as a binary one of the same mean, so Wilson's interval over n cases is
    conservative; for a fractional total, the lower bound is that of its floor and the upper bound that of its ceiling.

    Raises:
        ValueError: not 0 <= total <= n.
    """
    low, high = proportion(floor(total), n), proportion(ceil(total - 1e-9), n)
    return Share(total / n if n else None, n, low.ci_low, high.ci_high, low.reason, lost)
