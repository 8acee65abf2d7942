"""Verdicts of two sides on the same things: how far one is milder, and how far they agree, over cells.

Several judges rule on one trace, and several traces are on one cell: verdicts of a cell stand or fall together, so that
intervals and tests are over cells.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics._complete_cases import Floats
from auditor.metrics.error import Estimate

MIN_CELLS = 5
"""With fewer a bootstrap sees too little of how they differ."""
REPLICATES, EXACT_UP_TO = 2000, 14


class Flips(NamedTuple):
    """Two sides' verdicts.

    Attributes:
        change: share of VALID on the second side less that on the first.
        p_value: two-sided, of a sign-flip test over cells; None where no cell leans to either side.
        kappa: agreement beyond chance (Scott's pi, which is Fleiss' kappa of two).
    """

    change: Estimate
    p_value: float | None
    kappa: Estimate


def flips_by_cell(tallies: ArrayLike, seed: int = 0) -> Flips:
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
    table = np.asarray(tallies, dtype=np.float64).reshape(-1, 4)
    if np.isnan(table).any() or (table < 0).any():
        raise ValueError("tallies must be numbers of verdicts, at least 0")
    table = table[table.sum(axis=1) > 0]
    n = int(table.sum())
    if not n:
        nothing = Estimate(None, 0, 0, None, None, "no verdict on both sides")
        return Flips(nothing, None, nothing)
    rng = np.random.default_rng(seed)
    drawn = table[rng.integers(0, len(table), (REPLICATES, len(table)))].sum(axis=1)
    total = table.sum(axis=0)
    none_flipped = "no verdict flipped: no interval" if not total[1] + total[2] else None
    change = _estimate(_change(total), _change(drawn), n, len(table), none_flipped)
    kappa = _estimate(_kappa(total), _kappa(drawn), n, len(table), None)
    return Flips(change, _p_value(table[:, 1] - table[:, 2], rng), kappa)


def _change(tally: Floats) -> Floats:
    found: Floats = (tally[..., 1] - tally[..., 2]) / tally.sum(axis=-1)
    return found


def _kappa(tally: Floats) -> Floats:
    """Scott (Public Opinion Quarterly 19, 1955, 321-325); nan where all verdicts are the same."""
    n = tally.sum(axis=-1)
    same = (tally[..., 0] + tally[..., 3]) / n
    valid = (2 * tally[..., 0] + tally[..., 1] + tally[..., 2]) / (2 * n)
    chance = valid**2 + (1 - valid) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = np.where(chance < 1, (same - chance) / (1 - chance), np.nan)
    return found


def _estimate(value: Floats, drawn: Floats, n: int, cells: int, reason: str | None) -> Estimate:
    if np.isnan(value):
        return Estimate(None, n, 0, None, None, "all verdicts are the same")
    if reason is None and cells < MIN_CELLS:
        reason = f"fewer than {MIN_CELLS} cells: no interval"
    if reason is not None:
        return Estimate(float(value), n, 0, None, None, reason)
    low, high = np.quantile(drawn[~np.isnan(drawn)], (0.025, 0.975))
    return Estimate(float(value), n, 0, float(low), float(high))


def _p_value(leans: Floats, rng: np.random.Generator) -> float | None:
    leans = leans[leans != 0]
    m = len(leans)
    if not m:
        return None
    signs: NDArray[np.int64]
    if m <= EXACT_UP_TO:
        signs = (np.arange(2**m)[:, None] >> np.arange(m)) % 2 * 2 - 1
        return float(np.mean(np.abs(signs @ leans) >= abs(leans.sum()) - 1e-9))
    signs = rng.integers(0, 2, (REPLICATES - 1, m)) * 2 - 1
    return float((1 + np.sum(np.abs(signs @ leans) >= abs(leans.sum()) - 1e-9)) / REPLICATES)
