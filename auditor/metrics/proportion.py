"""Proportions with Wilson intervals."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from auditor.metrics._complete_cases import Z_95


@dataclass(frozen=True, slots=True)
class Proportion:
    """A share of `n`, with its 95% Wilson interval; all None if n is 0."""

    value: float | None
    n: int
    ci_low: float | None
    ci_high: float | None
    reason: str | None = None


def proportion(part: int, whole: int) -> Proportion:
    """Share of `part` in `whole` with the score interval of Wilson (JASA 22, 1927, 209-212).

    The interval stays in [0, 1] and has a width even when all or none were counted.

    Raises:
        ValueError: not 0 <= part <= whole.
    """
    if not 0 <= part <= whole:
        raise ValueError(f"a part must be between 0 and the whole, but got {part} of {whole}")
    if whole == 0:
        return Proportion(None, 0, None, None, "nothing to count")
    p = part / whole
    return Proportion(p, whole, *wilson_interval(p, whole))


def wilson_interval(p: float, n: float) -> tuple[float, float]:
    """Wilson's 95% interval of a share `p` in [0, 1] over `n` > 0 cases; n may be fractional."""
    z2 = Z_95**2  # squared 97.5% quantile of the standard normal distribution
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = Z_95 * sqrt(p * (1 - p) / n + z2 / (4 * n**2)) / (1 + z2 / n)
    return (0.0 if p == 0 else centre - half), (1.0 if p == 1 else centre + half)
