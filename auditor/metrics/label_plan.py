"""How many labels a wanted precision takes, and what no number of labels reaches."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, inf

from auditor.metrics._special import ndtri, stdtrit
from auditor.metrics.confidence import NORMAL_QUANTILE, SIGNIFICANCE_LEVEL, UPPER_QUANTILE

DEFAULT_POWER = 0.8


def labels_for_half_width(half_width: float, sd: float, n_traces: float = inf) -> int:
    """Labels for a 95% interval of a mean over these traces: n = n₀ / (1 + n₀ / N), n₀ = (t sd / half-width)².

    Cochran, Sampling Techniques, 3rd ed. 1977, section 4.6, with Student's t of n - 1 degrees of freedom.

    Args:
        half_width: of the interval, above 0.
        sd: standard deviation of what is labelled within strata, such as of people's label minus the judge's verdict;
            at most 0.5 of a label within the strata of a verdict.
        n_traces: number of traces, all of which are as many labels as can be.

    Raises:
        ValueError: the half-width is not above 0, or sd is negative.
    """
    if not half_width > 0 or sd < 0:
        raise ValueError(f"half_width must be above 0 and sd at least 0, but they are {half_width!r} and {sd!r}")
    n, quantile = 2, NORMAL_QUANTILE
    for _ in range(50):
        base = (quantile * sd / half_width) ** 2
        needed = max(2, ceil(base / (1 + base / n_traces)))
        if needed <= n:
            break
        n, quantile = needed, float(stdtrit(needed - 1, UPPER_QUANTILE))
    return int(min(n, n_traces))


def labels_for_difference(difference: float, sd: float, *, n_comparisons: int = 1, power: float = DEFAULT_POWER) -> int:
    """Labels of each of two groups to show a difference of two means: 2 sd² ((z₁ + z₂) / difference)².

    z₁ is the two-sided quantile of 5% divided by the number of comparisons (Bonferroni), z₂ that of the power.

    Args:
        difference: the smallest one to be shown, above 0.
        sd: standard deviation within each group.

    Raises:
        ValueError: the difference is not above 0, or another argument is out of its range.
    """
    if not difference > 0 or sd < 0:
        raise ValueError(f"difference must be above 0 and sd at least 0, but they are {difference!r} and {sd!r}")
    quantiles = detectable_difference(1.0, n_comparisons=n_comparisons, power=power)
    return max(2, ceil(2 * (sd * quantiles / difference) ** 2))


def detectable_difference(std_error: float, *, n_comparisons: int = 1, power: float = DEFAULT_POWER) -> float:
    """The difference that a test shows with a probability of `power`: std_error (z₁ + z₂), as for the labels.

    Args:
        std_error: of the difference.

    Raises:
        ValueError: an argument is out of its range.
    """
    if std_error < 0 or n_comparisons < 1 or not 0 < power < 1:
        raise ValueError("std_error must be at least 0, n_comparisons at least 1 and power between 0 and 1")
    return std_error * float(ndtri(1 - SIGNIFICANCE_LEVEL / n_comparisons / 2) + ndtri(power))


def half_width_floor(sd_by_unit: Mapping[str, float], n_by_unit: Mapping[str, int]) -> float:
    """Half-width of a 95% interval over other units that no number of labels passes: t √Σ sd² / n.

    Args:
        sd_by_unit: for each kind of unit, such as `topic`, the standard deviation over its units of the mean of what is
            labelled.
        n_by_unit: number of units of each kind, at least 2.

    Returns:
        With t of the smallest number of units minus 1; for 19 topics with a standard deviation of 0.10 it is 0.048.

    Raises:
        ValueError: the kinds differ, there are none, or a kind has fewer than 2 units.
    """
    if not sd_by_unit or set(sd_by_unit) != set(n_by_unit) or min(n_by_unit.values()) < 2:
        raise ValueError("sd_by_unit and n_by_unit must have the same kinds of units, each of at least 2 units")
    variance = sum(sd**2 / n_by_unit[unit] for unit, sd in sd_by_unit.items())
    return float(stdtrit(min(n_by_unit.values()) - 1, UPPER_QUANTILE) * float(variance) ** 0.5)
