"""Figures at a smaller number of samples a cell, from random subsets of the recorded samples.

Samples are resampled within each cell, without replacement, so the range is a statement about other samples of the
same cells, not about other countries and topics.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import Floats
from auditor.metrics.confidence import LOWER_QUANTILE, UPPER_QUANTILE
from auditor.metrics.estimate import Estimate

MAX_DRAWN_VALUES = 2_000_000
"""Random numbers that are drawn together; bounds the memory."""


def draw_subset_means(sample_scores: Floats, n_samples: int, n_subsets: int, rng: np.random.Generator) -> Floats:
    """Means of samples drawn without replacement in each cell.

    Args:
        sample_scores: shape (cells, samples); nan where a sample is not usable.
        n_samples: number of samples drawn in each cell, at most those recorded.

    Returns:
        Shape (n_subsets, cells); nan where no drawn sample is usable.
    """
    n_per_block = max(1, MAX_DRAWN_VALUES // max(1, sample_scores.size))
    blocks = [
        _draw_means(sample_scores, n_samples, min(n_per_block, n_subsets - start), rng)
        for start in range(0, n_subsets, n_per_block)
    ]
    return np.concatenate(blocks)


def _draw_means(sample_scores: Floats, n_samples: int, n_subsets: int, rng: np.random.Generator) -> Floats:
    """Means of some subsets, shape (n_subsets, cells); drawn in the same order as one by one."""
    order = rng.random((n_subsets, *sample_scores.shape)).argsort(axis=2)[:, :, :n_samples]
    drawn_scores = np.take_along_axis(sample_scores[None], order, axis=2)
    n_usable = (~np.isnan(drawn_scores)).sum(axis=2)
    return np.where(n_usable > 0, np.nansum(drawn_scores, axis=2) / np.maximum(n_usable, 1), np.nan)


def estimate_over_subsets(
    figures: ArrayLike, n_cells: int, unused_share: float, bounds: tuple[float, float]
) -> Estimate:
    """Mean of a figure over subsets, with the 95% range expected for new answers; `n` counts cells.

    A subset of k of K samples has (1 - k / K) of the variance of k new samples, so that the range of the subsets'
    figures is divided by the root of that share.

    Args:
        figures: shape (subsets,), such as r or MAE of each subset; nan where undefined.
        unused_share: 1 - k / K.
        bounds: limits of the range.

    Returns:
        None with a reason without any figure; no range, with a reason, for a single subset.
    """
    subset_figures = np.asarray(figures, dtype=np.float64)
    known = subset_figures[~np.isnan(subset_figures)]
    if not len(known):
        return Estimate(None, n_cells, reason="too few cells, or no variation among them")
    if len(subset_figures) == 1:
        return Estimate(float(known[0]), n_cells, reason="all samples: there is only one subset, so no range")
    mean = float(known.mean())
    low, high = np.clip(
        mean + (np.quantile(known, (LOWER_QUANTILE, UPPER_QUANTILE)) - mean) / np.sqrt(unused_share), *bounds
    )
    return Estimate(mean, n_cells, float(low), float(high), resampled=("sample",))


def subset_standard_error(sample_scores: Floats, n_samples: int) -> float | None:
    """Standard error of a mean of `n_samples`, from the within-cell variance pooled over cells.

    Args:
        sample_scores: shape (cells, samples); nan where a sample is not usable.

    Returns:
        None where no cell has two usable samples.
    """
    n_usable = (~np.isnan(sample_scores)).sum(axis=1)
    has_several = n_usable > 1
    if not has_several.any():
        return None
    variance: Floats = np.nanvar(sample_scores[has_several], axis=1, ddof=1)
    return float(np.sqrt(variance.mean() / n_samples))
