"""The outer end of the interval of a rare share, whose cases may be concentrated in few countries, topics or items.

Where the log odds of units differ widely, most of a small share comes from few of them. A sample without these has a
small share and a small variance, so an interval from its variance is too short. The likelihood of a model in which the
log odds of units are normal allows for such units, although none was drawn.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.special import expit, log_expit, logit

from auditor.metrics._complete_cases import Floats

_LOG_ODDS = np.linspace(-22.0, 12.0, 341)
"""Grid over which a unit's log odds are integrated."""
_SPREADS = np.linspace(0.1, 5.0, 21)
"""Standard deviations of the log odds over units that are tried."""
_MEANS = np.linspace(-22.0, 12.0, 137)
"""Means of the log odds for which the mean share is tabulated."""
_MAX_INFORMATION = 400.0
"""Counts that tell more about a unit's log odds than the grid resolves are scaled down to this information."""
_STEPS = np.arange(-8, 25)
"""Positions of the means that are tried, in steps from the mean that gives the observed share."""
_MAX_DOUBLINGS = 6
MAX_DEVIANCE = 1.8**2
"""Between those of a one-sided and a two-sided 95% interval (1.645², 1.96²). With topics whose log odds have a standard
deviation of 2, shares of 0.5 to 5% are covered in 91 to 93% of simulated audits with the first, in 93 to 96% with the
second, whose mean width is up to 1.3 times that of this one (docs/coverage.md)."""


def likelihood_upper_end(hits: Floats, totals: Floats, other_end: float) -> float:
    """The upper end of the profile likelihood interval of a mean share over other units.

    Hits are binomial in each unit, and the log odds normal over units (Coull & Agresti, Biometrics 56, 2000). The
    interval holds the means whose deviance is at most `MAX_DEVIANCE`.

    Args:
        hits, totals: shape (units,), of each unit, with 0 < sum of hits < sum of totals.
        other_end: an upper end by another method, above the share; it sets the step of the search.
    """
    share = float(hits.sum() / totals.sum())
    unit_likelihoods, n_equal = _unit_likelihoods(hits, totals, share)
    centres = np.array([np.interp(share, row, _MEANS) for row in _mean_share_table()])
    step = max(0.01, float(logit(min(other_end, 1 - 1e-9)) - logit(share)) / 8)
    for _ in range(_MAX_DOUBLINGS):
        weights = _normal_weights(np.clip(centres[:, None] + step * _STEPS, _MEANS[0], _MEANS[-1]))
        log_likelihood = np.log(weights @ unit_likelihoods + 1e-300) @ n_equal
        deviance = 2 * (log_likelihood.max() - log_likelihood)
        is_plausible = deviance <= MAX_DEVIANCE
        if not is_plausible[:, -1].any():
            break
        step *= 2
    log_odds = logit(np.minimum(weights @ expit(_LOG_ODDS), 1 - 1e-12))
    last = len(_STEPS) - 1 - is_plausible[:, ::-1].argmax(axis=1)  # position of the last plausible mean, by spread
    return max(
        float(expit(np.interp(MAX_DEVIANCE, deviance[row, i : i + 2], log_odds[row, i : i + 2])))
        for row, i in enumerate(last)
        if is_plausible[row, i]
    )


def _unit_likelihoods(hits: Floats, totals: Floats, share: float) -> tuple[Floats, Floats]:
    """Likelihoods of distinct pairs of hits and totals, shape (grid, pairs), and how many units have each pair."""
    scale = np.minimum(1.0, _MAX_INFORMATION / (totals * share * (1 - share)))
    (k, n), n_equal = np.unique(np.stack([hits * scale, totals * scale]), axis=1, return_counts=True)
    log_likelihoods = k * log_expit(_LOG_ODDS)[:, None] + (n - k) * log_expit(-_LOG_ODDS)[:, None]
    likelihoods: Floats = np.exp(log_likelihoods - log_likelihoods.max(axis=0))
    return likelihoods, n_equal.astype(np.float64)


def _normal_weights(means: Floats) -> Floats:
    """Weights of the grid's points for normal log odds; means of shape (spreads, k), result (spreads, k, grid)."""
    weights = np.exp(-0.5 * ((_LOG_ODDS - means[..., None]) / _SPREADS[:, None, None]) ** 2)
    normalized: Floats = weights / weights.sum(axis=-1, keepdims=True)
    return normalized


@cache
def _mean_share_table() -> Floats:
    """Mean share over units for each spread and each of `_MEANS`, shape (spreads, means)."""
    table: Floats = _normal_weights(np.broadcast_to(_MEANS, (len(_SPREADS), len(_MEANS)))) @ expit(_LOG_ODDS)
    return table
