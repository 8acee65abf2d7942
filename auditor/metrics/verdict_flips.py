"""Paired verdicts on the same traces: difference in leniency and agreement, with intervals over cells.

Several judges rule on one trace, and several traces are on one cell. Verdicts on one cell are correlated, so intervals
and tests are over cells.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics._complete_cases import Floats
from auditor.metrics.error import IntervalEstimate

MIN_CELLS = 5
"""Fewest cells for an interval: fewer show too little of how cells differ."""
REPLICATES, MAX_EXACT_CELLS = 2000, 14


class VerdictFlips(NamedTuple):
    """Differences between two sides' verdicts on the same traces.

    Attributes:
        change: share of VALID on the second side minus that on the first.
        p_value: two-sided, of a sign-flip test over cells; None where every cell has as many flips either way.
        kappa: agreement beyond chance (Scott's pi, which is Fleiss' kappa of two).
    """

    change: IntervalEstimate
    p_value: float | None
    kappa: IntervalEstimate


def flips_by_cell(counts: ArrayLike, seed: int = 0) -> VerdictFlips:
    """Compare paired verdicts, with percentile intervals of a bootstrap of whole cells.

    The test flips the sign of each cell's flips to VALID minus those to INVALID: all sign patterns for up to 14 cells
    with a nonzero difference, else 2000 drawn ones. With one verdict a cell it is McNemar's exact test.

    Args:
        counts: shape (cells, 4), verdicts that are VALID in both, VALID in the second only, VALID in the first only,
            INVALID in both.
        seed: of the bootstrap, and of the drawn signs.

    Raises:
        ValueError: not such a table, or a number is negative.
    """
    table = np.asarray(counts, dtype=np.float64).reshape(-1, 4)
    if np.isnan(table).any() or (table < 0).any():
        raise ValueError("tallies must be numbers of verdicts, at least 0")
    table = table[table.sum(axis=1) > 0]
    n_verdicts = int(table.sum())
    if not n_verdicts:
        undefined = IntervalEstimate(None, 0, 0, None, None, "no verdict on both sides")
        return VerdictFlips(undefined, None, undefined)
    rng = np.random.default_rng(seed)
    resampled_totals = table[rng.integers(0, len(table), (REPLICATES, len(table)))].sum(axis=1)
    total = table.sum(axis=0)
    missing_reason = "no verdict flipped: no interval" if not total[1] + total[2] else None
    change = _bootstrap_estimate(
        _share_change(total), _share_change(resampled_totals), n_verdicts, len(table), missing_reason
    )
    kappa = _bootstrap_estimate(_scotts_pi(total), _scotts_pi(resampled_totals), n_verdicts, len(table), None)
    return VerdictFlips(change, _sign_flip_p_value(table[:, 1] - table[:, 2], rng), kappa)


def _share_change(counts: Floats) -> Floats:
    """Share of VALID on the second side minus that on the first, from counts of shape (..., 4).

    Columns: VALID in both, in the second only, in the first only, in neither.
    """
    change: Floats = (counts[..., 1] - counts[..., 2]) / counts.sum(axis=-1)
    return change


def _scotts_pi(counts: Floats) -> Floats:
    """Scott's pi (Public Opinion Quarterly 19, 1955, 321-325) of counts (..., 4); nan if all verdicts are the same."""
    n_verdicts = counts.sum(axis=-1)
    agreement = (counts[..., 0] + counts[..., 3]) / n_verdicts
    valid_share = (2 * counts[..., 0] + counts[..., 1] + counts[..., 2]) / (2 * n_verdicts)
    chance = valid_share**2 + (1 - valid_share) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        pi: Floats = np.where(chance < 1, (agreement - chance) / (1 - chance), np.nan)
    return pi


def _bootstrap_estimate(
    estimate: Floats, resampled: Floats, n: int, n_cells: int, reason: str | None
) -> IntervalEstimate:
    """The estimate with its percentile interval, or the reason for none."""
    if np.isnan(estimate):
        return IntervalEstimate(None, n, 0, None, None, "all verdicts are the same")
    if reason is None and n_cells < MIN_CELLS:
        reason = f"fewer than {MIN_CELLS} cells: no interval"
    if reason is not None:
        return IntervalEstimate(float(estimate), n, 0, None, None, reason)
    low, high = np.quantile(resampled[~np.isnan(resampled)], (0.025, 0.975))
    return IntervalEstimate(float(estimate), n, 0, float(low), float(high))


def _sign_flip_p_value(differences: Floats, rng: np.random.Generator) -> float | None:
    """Two-sided p-value of the sign-flip test; None where all differences are 0."""
    differences = differences[differences != 0]
    n_nonzero = len(differences)
    if not n_nonzero:
        return None
    signs: NDArray[np.int64]
    if n_nonzero <= MAX_EXACT_CELLS:
        signs = (np.arange(2**n_nonzero)[:, None] >> np.arange(n_nonzero)) % 2 * 2 - 1
        return float(np.mean(np.abs(signs @ differences) >= abs(differences.sum()) - 1e-9))
    signs = rng.integers(0, 2, (REPLICATES - 1, n_nonzero)) * 2 - 1
    return float((1 + np.sum(np.abs(signs @ differences) >= abs(differences.sum()) - 1e-9)) / REPLICATES)
