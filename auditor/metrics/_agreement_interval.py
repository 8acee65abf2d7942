"""The interval of kappa and alpha of two categories, such as VALID and INVALID, by way of the rarer one.

Let q be the share of the rarer ratings. Then kappa = 1 - (1 - s) / (1 - q), where s is the specific agreement on the
rarer category (Cicchetti & Feinstein, J. of Clinical Epidemiology 43, 1990): the probability that a second rating of an
item is the rarer one, if a first is. So s is a share of the rarer ratings, and has the interval of shares
(`auditor.metrics.unit_means`): that of Clopper & Pearson at the number of independent ratings that would give the same
variance. Student's interval of kappa itself is too short where nearly all ratings are the same: the few rarer ratings
often do not agree at all, and their jackknife variance is then too small (docs/coverage.md).
"""

from __future__ import annotations

import numpy as np

from auditor.metrics._complete_cases import Floats
from auditor.metrics._unit_counts import Labels, clopper_pearson, few_units_factor
from auditor.metrics.estimate import PLURAL_BY_UNIT, Estimate
from auditor.metrics.jackknife_interval import (
    MIN_UNITS,
    UNDEFINED_REASON,
    combine_variances,
    jackknife_variance,
    too_few_reason,
)
from auditor.metrics.unit_replicates import UnitReplicates


def estimate_two_category_agreement(
    value: float, n: int, replicates: UnitReplicates, rarer: Floats, n_ratings: float, units: Labels
) -> Estimate:
    """Kappa or alpha of two categories with its interval over units.

    Args:
        value: the coefficient over all rows; n: what the estimate counts, such as items.
        replicates: the coefficient without each unit and each cell.
        rarer: shape (rows,), ratings of each row in the category that is the rarer one over all rows.
        n_ratings: ratings of all rows.
        units: for each kind of unit, the unit of each row, shape (rows,).

    Returns:
        No interval, with a reason, below 5 units of a kind, where the rarer ratings are in fewer than 5 units of a
        kind, or where the coefficient is undefined with a unit left out.
    """
    n_units = {unit: len(values) for unit, values in replicates.units.items()}
    n_with_rarer = {unit: len(np.unique(np.asarray(labels)[rarer > 0])) for unit, labels in units.items()}
    reason = too_few_reason({unit: [k] for unit, k in n_units.items()}) or _few_rarer_reason(n_with_rarer)
    by_cell = [] if replicates.cells is None else [replicates.cells]
    if reason is None and not all(np.isfinite(values).all() for values in [*replicates.units.values(), *by_cell]):
        reason = UNDEFINED_REASON
    if reason is not None:
        return Estimate(value, n, reason=reason)
    variances = [jackknife_variance([values]) for values in replicates.units.values()]
    variance = float(combine_variances(variances, jackknife_variance(by_cell)))
    n_rarer = float(rarer.sum())
    common_share = 1 - n_rarer / n_ratings
    specific = float(np.clip(1 - (1 - value) * common_share, 0.0, 1.0))
    specific_variance, binomial_variance = variance * common_share**2, specific * (1 - specific) / n_rarer
    if min(binomial_variance, specific_variance) > 1e-12:
        n_effective = n_rarer / max(1.0, specific_variance / binomial_variance)
    else:  # nothing shows how the rarer ratings cluster, so each unit that has one counts as one case
        n_effective = float(min(n_with_rarer.values()))
    ends = clopper_pearson(specific, n_effective * few_units_factor(min(n_units.values())))
    low, high = (1 - (1 - end) / common_share for end in ends)
    return Estimate(value, n, max(-1.0, min(low, value)), max(high, value), resampled=tuple(units))


def _few_rarer_reason(n_with_rarer: dict[str, int]) -> str | None:
    """Why there is no interval for ratings of which the rarer ones are in these numbers of units; None if enough."""
    few = [PLURAL_BY_UNIT[unit] for unit, n_units in n_with_rarer.items() if n_units < MIN_UNITS]
    if not few:
        return None
    units = " and ".join(f"fewer than {MIN_UNITS} {plural}" for plural in few)
    others = " and ".join(PLURAL_BY_UNIT[unit] for unit in n_with_rarer)
    return f"the rarer of the two ratings occurs in {units}, too few for an interval for other {others}"
