"""The interval for a figure of which only bounds can be estimated, since some observations are lost."""

from __future__ import annotations

import numpy as np

from auditor.metrics._root import find_root
from auditor.metrics._special import stdtr, stdtrit
from auditor.metrics.confidence import CONFIDENCE_LEVEL
from auditor.metrics.jackknife_interval import JackknifeInterval


def imbens_manski_interval(
    low: JackknifeInterval, high: JackknifeInterval, confidence_level: float = CONFIDENCE_LEVEL
) -> tuple[float, float] | None:
    """Compute the interval that covers the figure itself, wherever it lies between its bounds.

    Imbens & Manski (Econometrica 72, 2004, equations 6 and 7): low - c s_low to high + c s_high, where c solves
    F(c + (high - low) / max(s_low, s_high)) - F(-c) = 0.95. It is the two-sided interval where both bounds are equal,
    and one-sided at each end where they are far apart, since the figure can be near one of them only. It is valid for
    all widths, since estimated bounds are never in the wrong order (Stoye, Econometrica 77, 2009, lemma 3). F is
    Student's distribution here, as in all intervals over few units.

    Args:
        low, high: the jackknife intervals of the bounds, on one scale; centre -inf or inf for a bound that is exact.
        confidence_level: of the interval.

    Returns:
        The ends; None where a bound has no standard error.
    """
    if low.ends_at is None or high.ends_at is None:
        return None
    if low.centre is None or high.centre is None or low.std_error is None or high.std_error is None:
        return None
    std_error, df = max(low.std_error, high.std_error), min(low.df, high.df)
    width = max(high.centre - low.centre, 0.0) / std_error if std_error > 0 else np.inf
    quantile: float = find_root(
        lambda c: stdtr(df, c + width) - stdtr(df, -c) - confidence_level,
        stdtrit(df, confidence_level) - 1e-6,  # the one-sided and the two-sided quantile
        stdtrit(df, (1 + confidence_level) / 2) + 1e-6,
    )
    return low.ends_at(quantile)[0], high.ends_at(quantile)[1]
