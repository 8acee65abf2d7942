"""Proportions with Wilson intervals."""

from __future__ import annotations

from math import sqrt

from auditor.metrics.confidence import NORMAL_QUANTILE
from auditor.metrics.estimate import Estimate


def proportion(part: int, whole: int, unit: str = "") -> Estimate:
    """Share of `part` in `whole` with the 95% score interval of Wilson (JASA 22, 1927, 209-212).

    The interval stays in [0, 1] and has a width even when all or none were counted. It assumes independent cases.

    Args:
        unit: what a case is, a key of `PLURAL_BY_UNIT` such as `item`, where the interval is over other cases.

    Returns:
        None with a reason if `whole` is 0.

    Raises:
        ValueError: not 0 <= part <= whole, or an unknown unit.
    """
    if not 0 <= part <= whole:
        raise ValueError(f"a part must be between 0 and the whole, but got {part} of {whole}")
    if whole == 0:
        return Estimate(None, 0, reason="nothing to count")
    p = part / whole
    return Estimate(p, whole, *wilson_interval(p, whole), resampled=(unit,) if unit else ())


def wilson_interval(p: float, n: float) -> tuple[float, float]:
    """Wilson's 95% interval of a share `p` in [0, 1] over `n` > 0 cases; n may be fractional."""
    z2 = NORMAL_QUANTILE**2
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = NORMAL_QUANTILE * sqrt(p * (1 - p) / n + z2 / (4 * n**2)) / (1 + z2 / n)
    return (0.0 if p == 0 else centre - half), (1.0 if p == 1 else centre + half)
