"""Shares that also count the cases without a measurement."""

from __future__ import annotations

from dataclasses import dataclass

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
