"""Correlations corrected for the noise of few samples, which attenuates r of the cells' means.

Spearman's correction (American Journal of Psychology 15, 1904, 72-101): r' = r / sqrt(reliability), for the models'
side only; noise of the survey is part of its noise ceiling. The reliability of the cells' means is the share of their
variance that is not noise, 1 - (mean of s² / n over cells) / variance of the means: with equal n it is 1 - 1 / F of the
one-way analysis of variance, which is Shrout and Fleiss' ICC(1, k) (Psychological Bulletin 86, 1979, 420-428).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics._complete_cases import Floats, complete_cases, is_constant
from auditor.metrics._two_way_table import UnitLabels, select_labels
from auditor.metrics.estimate import Estimate
from auditor.metrics.jackknife import jackknife_sums

MIN_CELLS = 4
OVERCORRECTED_REASON = "the corrected correlation is above 1, so the correction is not reliable"


@dataclass(frozen=True, slots=True)
class CorrectedCorrelation(Estimate):
    """A correlation without sampling noise, in [-1, 1]; `n` counts cells."""

    reliability: float | None = None
    """Share of the variance of the cells' means that is not noise, at most 1; None where unknown."""


def crossed_corrected(
    scores: ArrayLike,
    truth: ArrayLike,
    variances: ArrayLike,
    samples: ArrayLike,
    countries: ArrayLike | UnitLabels,
    topics: ArrayLike,
) -> CorrectedCorrelation:
    """Pearson's r of cell means with the truth, estimated for an unlimited number of samples a cell.

    Sampling that stops early when samples agree underestimates the noise, which makes the correction too small. The
    interval is over other countries and topics, as that of `crossed_jackknife`, on Fisher's z. It includes the
    uncertainty about the noise.

    Args:
        scores: shape (n,), means of the samples; a cell with a nan in scores or truth is left out.
        truth, countries, topics: shape (n,).
        variances: shape (n,), of the samples of a cell (n - 1 in the denominator); nan where there is one sample only,
            for which the pooled variance of the other cells is used.
        samples: shape (n,), number of samples of each cell.

    Returns:
        None with a reason for fewer than 4 cells, a constant side, no cell with two samples, no variance beyond the
        noise, or a corrected r of 1 or more.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    moments, is_complete, reason = _cell_moments(scores, truth, variances, samples)
    if moments is None:
        return CorrectedCorrelation(None, int(is_complete.sum()), reason=reason)
    reliability = float(_reliability(moments.sum(axis=0)[None])[0])
    country, topic = (select_labels(labels, is_complete) for labels in (countries, topics))
    z = jackknife_sums(moments, _corrected_fisher_z, country, topic)
    if z.value is None:
        reason = OVERCORRECTED_REASON if reliability > 0 else "no variance beyond sampling noise"
        return CorrectedCorrelation(None, z.n, reason=reason, reliability=reliability)
    low, high = (None if end is None else float(np.tanh(end)) for end in (z.ci_low, z.ci_high))
    return CorrectedCorrelation(float(np.tanh(z.value)), z.n, low, high, z.reason, z.resampled, reliability=reliability)


def _cell_moments(
    scores: ArrayLike, truth: ArrayLike, variances: ArrayLike, samples: ArrayLike
) -> tuple[Floats | None, NDArray[np.bool_], str | None]:
    """The moments that are summed over cells, shape (n, 7), the mask of complete cells, and a reason if there are none.

    Columns: 1, u, v, u², v², uv and the noise variance, u and v being standardized scores and truth.
    """
    (x, y), is_complete = complete_cases(scores, truth)
    variance, size = (np.asarray(column, dtype=np.float64) for column in (variances, samples))
    if variance.shape != is_complete.shape or size.shape != is_complete.shape:
        raise ValueError(f"variances and samples must have the shape {is_complete.shape}, as the scores have")
    variance, size = variance[is_complete], size[is_complete]
    if np.isinf(variance).any():
        raise ValueError("variances must be finite, or nan where there is one sample only, but one is infinite")
    if len(x) < MIN_CELLS:
        return None, is_complete, f"fewer than {MIN_CELLS} cells ({len(x)})"
    constant_sides = [name for name, side in (("x", x), ("y", y)) if is_constant(side)]
    if constant_sides:
        return None, is_complete, f"{' and '.join(constant_sides)} constant"
    has_variance = ~np.isnan(variance)
    if not has_variance.any():
        return None, is_complete, "no cell has two samples"
    pooled = np.average(variance[has_variance], weights=np.maximum(size[has_variance] - 1, 1))
    noise = np.where(has_variance, variance, pooled) / np.maximum(size, 1)
    score_scale = np.abs(x - x.mean()).max()
    u, v = (x - x.mean()) / score_scale, (y - y.mean()) / np.abs(y - y.mean()).max()
    return np.stack([np.ones_like(u), u, v, u * u, v * v, u * v, noise / score_scale**2], axis=1), is_complete, None


def _variance_components(sums: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Variance of the means, variance of the truth, their covariance, and the noise variance, all with divisor n.

    Args:
        sums: shape (replicates, 7), sums over cells of the columns of `_cell_moments`; column 0 is the number of cells.
    """
    n = np.maximum(sums[:, 0], 2.0)
    mean_u, mean_v, uu, vv, uv, noise = sums[:, 1:].T / n
    return uu - mean_u * mean_u, vv - mean_v * mean_v, uv - mean_u * mean_v, noise * (n - 1) / n


def _reliability(sums: Floats) -> Floats:
    """Share of the variance of the cells' means that is not noise; nan where the means do not vary."""
    variance, _, _, noise = _variance_components(sums)
    reliability: Floats = 1 - noise / np.where(variance > 1e-12, variance, np.nan)
    return reliability


def _corrected_fisher_z(sums: Floats) -> Floats:
    """Fisher's z of the corrected r; nan where r is undefined or 1 or more."""
    variance, truth_variance, covariance, noise = _variance_components(sums)
    noise_free_product = (variance - noise) * truth_variance
    r = covariance / np.sqrt(np.where(noise_free_product > 1e-12, noise_free_product, np.nan))
    z: Floats = np.arctanh(np.where(np.abs(r) < 1 - 1e-12, r, np.nan))
    return z
