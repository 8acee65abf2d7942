"""What r would be without the noise of few samples: a mean of k samples correlates less than the model's own leaning.

Spearman's correction (American Journal of Psychology 15, 1904, 72-101): r' = r / sqrt(reliability), for the models'
side only; what noise the survey has is in its ceiling. The reliability of the cells' means is the share of their
variance that is not noise, 1 - (mean of s² / n over cells) / variance of the means: with equal n it is 1 - 1 / F of the
one-way analysis of variance, which is Shrout and Fleiss' ICC(1, k) (Psychological Bulletin 86, 1979, 420-428).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics._complete_cases import Z_95, Floats, complete_cases, is_constant
from auditor.metrics.bootstrap import Statistic, TwoWayEstimate
from auditor.metrics.jackknife import crossed_jackknife

MIN_CELLS = 4
OVERCORRECTED_REASON = "the correction overshoots 1: so little is left beside the noise that r cannot be told from it"


@dataclass(frozen=True, slots=True)
class CorrectedCorrelation:
    """A correlation without sampling noise, in [-1, 1]; `reason` says why it, or its interval, is None.

    Attributes:
        reliability: share of the variance of the cells' means that is not noise, at most 1; None where unknown.
    """

    r: float | None
    ci_low: float | None
    ci_high: float | None
    n: int
    n_dropped: int
    reliability: float | None
    reason: str | None = None


def corrected_pearson(
    scores: ArrayLike, truth: ArrayLike, variances: ArrayLike, samples: ArrayLike
) -> CorrectedCorrelation:
    """Pearson's r of cells' means with the truth, as it would be with any number of samples a cell.

    The 95% interval leaves out each cell in turn (jackknife on Fisher's scale), so that not knowing the noise exactly
    is part of it. Sampling that stops early where samples agree makes noise look smaller than it is, so that the
    correction falls short.

    Args:
        scores: shape (n,), means of the samples; a cell with a nan in scores or truth is dropped and counted.
        truth: shape (n,).
        variances: shape (n,), of the samples of a cell (n - 1 in the denominator); nan where there is one sample only,
            which then has the variance of the others.
        samples: shape (n,), how many there are.

    Returns:
        None with a reason for fewer than 4 cells, a constant side, no cell with two samples, no variance beside noise,
        or a correction beyond 1.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    moments, keep, reason = _cell_moments(scores, truth, variances, samples)
    n, dropped = int(keep.sum()), int((~keep).sum())
    if moments is None:
        return CorrectedCorrelation(None, None, None, n, dropped, None, reason)
    total = moments.sum(axis=0)
    reliability, z = float(_reliability(total[None])[0]), float(_corrected_fisher_z(total[None])[0])
    if not np.isfinite(z):
        reason = OVERCORRECTED_REASON if reliability > 0 else "no variance beside noise"
        return CorrectedCorrelation(None, None, None, n, dropped, reliability, reason)
    without = _corrected_fisher_z(total - moments)
    spread = (n - 1) / n * float(((without - without.mean()) ** 2).sum())
    if not np.isfinite(spread):
        return CorrectedCorrelation(
            float(np.tanh(z)), None, None, n, dropped, reliability, "leaving a cell out leaves no value"
        )
    low, high = (float(np.tanh(z + side * Z_95 * spread**0.5)) for side in (-1, 1))
    return CorrectedCorrelation(float(np.tanh(z)), low, high, n, dropped, reliability)


def crossed_corrected(
    scores: ArrayLike,
    truth: ArrayLike,
    variances: ArrayLike,
    samples: ArrayLike,
    countries: ArrayLike,
    topics: ArrayLike,
) -> TwoWayEstimate:
    """As `corrected_pearson`, with the interval over other countries and other topics of `crossed_jackknife`."""
    moments, keep, reason = _cell_moments(scores, truth, variances, samples)
    places = [np.asarray(labels)[keep] for labels in (countries, topics)]
    if moments is None:
        sizes = [len(np.unique(labels)) for labels in places]
        return TwoWayEstimate(None, None, None, sizes[0], sizes[1], int(keep.sum()), 0, reason)
    statistic = Statistic(lambda x, y: moments, _corrected_fisher_z)
    column = np.zeros(len(moments))
    found = crossed_jackknife(statistic, column, column, *places)
    estimate, low, high = (None if v is None else float(np.tanh(v)) for v in (found.estimate, found.low, found.high))
    sizes = [found.n_countries, found.n_topics]
    why = found.reason
    if estimate is None:
        why = OVERCORRECTED_REASON if _reliability(moments.sum(axis=0)[None])[0] > 0 else "no variance beside noise"
    return TwoWayEstimate(estimate, low, high, sizes[0], sizes[1], found.n_cells, found.replicates, why)


def _cell_moments(
    scores: ArrayLike, truth: ArrayLike, variances: ArrayLike, samples: ArrayLike
) -> tuple[Floats | None, NDArray[np.bool_], str | None]:
    """What is summed over cells, shape (n, 7), which cells they are, and why there is nothing."""
    (x, y), keep = complete_cases(scores, truth)
    variance, size = (np.asarray(column, dtype=np.float64) for column in (variances, samples))
    if variance.shape != keep.shape or size.shape != keep.shape:
        raise ValueError(f"variances and samples must have the shape {keep.shape}, as the scores have")
    variance, size = variance[keep], size[keep]
    if np.isinf(variance).any():
        raise ValueError("variances must be finite, or nan where there is one sample only, but one is infinite")
    if len(x) < MIN_CELLS:
        return None, keep, f"fewer than {MIN_CELLS} cells ({len(x)})"
    flat = [name for name, side in (("x", x), ("y", y)) if is_constant(side)]
    if flat:
        return None, keep, f"{' and '.join(flat)} constant"
    known = ~np.isnan(variance)
    if not known.any():
        return None, keep, "no cell has two samples"
    pooled = np.average(variance[known], weights=np.maximum(size[known] - 1, 1))
    noise = np.where(known, variance, pooled) / np.maximum(size, 1)
    largest = np.abs(x - x.mean()).max()
    u, v = (x - x.mean()) / largest, (y - y.mean()) / np.abs(y - y.mean()).max()
    return np.stack([np.ones_like(u), u, v, u * u, v * v, u * v, noise / largest**2], axis=1), keep, None


def _variance_components(sums: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Variance of the means, that of the truth, their covariance, and the noise, each as if divided by n."""
    n = np.maximum(sums[:, 0], 2.0)
    mu, mv, uu, vv, uv, noise = sums[:, 1:].T / n
    return uu - mu * mu, vv - mv * mv, uv - mu * mv, noise * (n - 1) / n


def _reliability(sums: Floats) -> Floats:
    variance, _, _, noise = _variance_components(sums)
    share: Floats = 1 - noise / np.where(variance > 1e-12, variance, np.nan)
    return share


def _corrected_fisher_z(sums: Floats) -> Floats:
    """The corrected r on Fisher's scale; nan where there is none, or it would be 1 or more."""
    variance, truth, shared, noise = _variance_components(sums)
    true = (variance - noise) * truth
    r = shared / np.sqrt(np.where(true > 1e-12, true, np.nan))
    z: Floats = np.arctanh(np.where(np.abs(r) < 1 - 1e-12, r, np.nan))
    return z
