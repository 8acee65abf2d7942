"""Verdicts of two sides on the same things: how far one is milder, and how far they agree, over cells.

Several judges rule on one trace, and several traces are on one cell: verdicts of a cell stand or fall together, so that
intervals and tests are over cells.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics._complete_cases import Floats
from auditor.metrics.error import IntervalEstimate

MIN_CELLS = 5
"""With fewer a bootstrap sees too little of how they differ."""
REPLICATES, MAX_EXACT_CELLS = 2000, 14


class VerdictFlips(NamedTuple):
    """Two sides' verdicts.

    Attributes:
        change: share of VALID on the second side less that on the first.
        p_value: two-sided, of a sign-flip test over cells; None where no cell leans to either side.
        kappa: agreement beyond chance (Scott's pi, which is Fleiss' kappa of two).
    """

    change: IntervalEstimate
    p_value: float | None
    kappa: IntervalEstimate


def flips_by_cell(counts: ArrayLike, seed: int = 0) -> VerdictFlips:
    """Figures of paired verdicts, with percentile intervals of a bootstrap of whole cells.

    The test flips the sign of each cell's flips to VALID less those to INVALID: all ways up to 14 cells that lean, else
    2000 drawn. With one verdict a cell it is McNemar's exact test.

    Args:
        tallies: shape (cells, 4), verdicts that are VALID in both, VALID in the second only, VALID in the first only,
            INVALID in both.
        seed: of the bootstrap, and of the draw.

    Raises:
        ValueError: not such a table, or a number is negative.
    """
    table = np.asarray(counts, dtype=np.float64).reshape(-1, 4)
    if np.isnan(table).any() or (table < 0).any():
        raise ValueError("tallies must be numbers of verdicts, at least 0")
    table = table[table.sum(axis=1) > 0]
    n = int(table.sum())
    if not n:
        nothing = IntervalEstimate(None, 0, 0, None, None, "no verdict on both sides")
        return VerdictFlips(nothing, None, nothing)
    rng = np.random.default_rng(seed)
    drawn = table[rng.integers(0, len(table), (REPLICATES, len(table)))].sum(axis=1)
    total = table.sum(axis=0)
    none_flipped = "no verdict flipped: no interval" if not total[1] + total[2] else None
    change = _bootstrap_estimate(_share_change(total), _share_change(drawn), n, len(table), none_flipped)
    kappa = _bootstrap_estimate(_scotts_pi(total), _scotts_pi(drawn), n, len(table), None)
    return VerdictFlips(change, _sign_flip_p_value(table[:, 1] - table[:, 2], rng), kappa)


def _share_change(counts: Floats) -> Floats:
    found: Floats = (counts[..., 1] - counts[..., 2]) / counts.sum(axis=-1)
    return found


def _scotts_pi(counts: Floats) -> Floats:
    """Scott (Public Opinion Quarterly 19, 1955, 321-325); nan where all verdicts are the same."""
    n = counts.sum(axis=-1)
    same = (counts[..., 0] + counts[..., 3]) / n
    valid = (2 * counts[..., 0] + counts[..., 1] + counts[..., 2]) / (2 * n)
    chance = valid**2 + (1 - valid) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = np.where(chance < 1, (same - chance) / (1 - chance), np.nan)
    return found


def _bootstrap_estimate(
    estimate: Floats, resampled: Floats, n: int, n_cells: int, reason: str | None
) -> IntervalEstimate:
    if np.isnan(estimate):
        return IntervalEstimate(None, n, 0, None, None, "all verdicts are the same")
    if reason is None and n_cells < MIN_CELLS:
        reason = f"fewer than {MIN_CELLS} cells: no interval"
    if reason is not None:
        return IntervalEstimate(float(estimate), n, 0, None, None, reason)
    low, high = np.quantile(resampled[~np.isnan(resampled)], (0.025, 0.975))
    return IntervalEstimate(float(estimate), n, 0, float(low), float(high))


def _sign_flip_p_value(differences: Floats, rng: np.random.Generator) -> float | None:
    differences = differences[differences != 0]
    m = len(differences)
    if not m:
        return None
    signs: NDArray[np.int64]
    if m <= MAX_EXACT_CELLS:
        signs = (np.arange(2**m)[:, None] >> np.arange(m)) % 2 * 2 - 1
        return float(np.mean(np.abs(signs @ differences) >= abs(differences.sum()) - 1e-9))
    signs = rng.integers(0, 2, (REPLICATES - 1, m)) * 2 - 1
    return float((1 + np.sum(np.abs(signs @ differences) >= abs(differences.sum()) - 1e-9)) / REPLICATES)
