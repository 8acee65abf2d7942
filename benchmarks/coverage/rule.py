"""The rule by which the study judges an interval from the runs in which it was computed.

An interval fails if the upper 99.9% limit of its coverage (Clopper & Pearson, Biometrika 26, 1934) is below 92%, or its
mean width is more than 1.3 times that of the oracle. The oracle knows the true standard error of the estimator, which
is the standard deviation of its errors over all runs, and uses the same quantile of Student's distribution, with the
smaller number of units minus 1 degrees of freedom. For an interval that holds for several figures at once, such as all
pairs of regions, the oracle's is as wide as 95% of the runs need for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.stats import beta, t

MIN_COVERAGE = 0.92
MAX_COVERAGE = 0.999
MAX_WIDTH_RATIO = 1.3
MONTE_CARLO_LEVEL = 0.999
SMALL_SIDE = 6
"""With at most this many units on a side an interval may cover in more than 99.9% of runs."""
CHECKPOINTS = (300, 1000, 2000)
"""Runs after which a figure is judged: it needs more only while its limits are on both sides of 92%."""

Interval = tuple[float, float | None, float | None]
"""A figure with the ends of its interval, None without one."""


@dataclass(slots=True)
class Record:
    """What the runs of one figure in one world and design gave."""

    n_covered: int = 0
    n_without_interval: int = 0
    errors: list[float] = field(default_factory=list)
    """Value minus truth in each run with a value."""
    widths: list[float] = field(default_factory=list)
    max_errors: list[float] = field(default_factory=list)
    """Of an interval that holds for several figures at once: the largest absolute error among them in each run."""

    def add(self, interval: Interval, truth: float, max_error: float | None = None) -> None:
        """Count one run."""
        value, low, high = interval
        if low is None or high is None:
            self.n_without_interval += 1
            return
        self.errors.append(value - truth)
        if max_error is not None:
            self.max_errors.append(max_error)
        self.widths.append(high - low)
        # A truth at an end of the scale, such as 0, is covered by an interval that ends there.
        self.n_covered += low - 1e-12 <= truth <= high + 1e-12

    def summarize(self, smaller_side: int, *, has_width_rule: bool = True) -> Summary:
        """Compare with the rule's limits.

        Args:
            smaller_side: the smaller of the numbers of units that were resampled.
            has_width_rule: see `Figure`; without it, covering too often is no fault either.
        """
        n = len(self.widths)
        if n < 2:
            return Summary(n, self.n_without_interval, 0.0, 0.0, 1.0, None, None, smaller_side)
        half_width = float(t.ppf(0.975, smaller_side - 1)) * float(np.std(self.errors))
        oracle = 2 * (half_width if not self.max_errors else float(np.quantile(self.max_errors, 0.95)))
        mean_ratio, median_ratio = (
            float(width) / oracle if oracle > 1e-9 and has_width_rule else None
            for width in (np.mean(self.widths), np.median(self.widths))
        )
        low, high = clopper_pearson_limits(self.n_covered, n)
        return Summary(
            n, self.n_without_interval, self.n_covered / n, low, high, mean_ratio, median_ratio, smaller_side
        )


@dataclass(frozen=True, slots=True)
class Summary:
    """Coverage and width of one figure in one world and design.

    Attributes:
        n_runs: runs with an interval; n_without_interval: the others, which are not part of the coverage.
        coverage_low, coverage_high: one-sided 99.9% Monte Carlo limits.
        mean_width, median_width: as multiples of the oracle's width; None where they are not compared.
    """

    n_runs: int
    n_without_interval: int
    coverage: float
    coverage_low: float
    coverage_high: float
    mean_width: float | None
    median_width: float | None
    smaller_side: int

    @property
    def is_covering(self) -> bool:
        """Whether the coverage is not shown to be below 92%."""
        return self.coverage_high >= MIN_COVERAGE

    @property
    def is_decided(self) -> bool:
        """Whether more runs would not change the verdict on coverage."""
        is_clearly_enough = self.coverage_low >= MIN_COVERAGE and (self.coverage < 1 or self.mean_width is None)
        return is_clearly_enough or not self.is_covering

    @property
    def is_too_wide(self) -> bool:
        """Whether the mean width is more than 1.3 times the oracle's."""
        return self.mean_width is not None and self.mean_width > MAX_WIDTH_RATIO

    @property
    def is_overcovering(self) -> bool:
        """Whether the interval covers in more than 99.9% of runs, with more than 6 units on each side."""
        has_width_rule = self.mean_width is not None
        return has_width_rule and self.coverage > MAX_COVERAGE and self.smaller_side > SMALL_SIDE


def clopper_pearson_limits(n_covered: int, n_runs: int) -> tuple[float, float]:
    """One-sided 99.9% lower and upper limits of a share of runs."""
    alpha = 1 - MONTE_CARLO_LEVEL
    low = 0.0 if n_covered == 0 else float(beta.ppf(alpha, n_covered, n_runs - n_covered + 1))
    high = 1.0 if n_covered == n_runs else float(beta.ppf(1 - alpha, n_covered + 1, n_runs - n_covered))
    return low, high
