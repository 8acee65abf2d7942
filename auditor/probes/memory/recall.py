"""Whether answers hit published figures more often than a model's ordinary error allows.

A **target** is a published figure of every cell: that of the wave that was asked for, or of another wave. A **hit** is
an answer within a tolerance of the target. The chance of a hit is that of the model's ordinary answers, in which it
estimates the same percentage without being told of any publication.

A model may know the table of some countries only, and then all of their cells are hits, which is a strong sign even
where few countries are known. So the statistic of one target and tolerance is that of a mixture over countries j,

    T = sum_j log(1 - w + w * prod_i L_ij),   L_ij = (1 - u) / p + u for a hit, u for a miss,

the likelihood ratio of a model that recites a share w of the countries, with a share u of its answers as usual, to one
whose hits have the chance p. A model may know some countries better than others, so p is estimated by country. The
distribution of T without recall is simulated: ordinary answers and answers are both drawn from the model's ordinary
errors, with their variance between countries and between topics, and p is estimated from the drawn ordinary answers as
it is from the model's. The p-values of all targets and tolerances are adjusted together by the smallest p-value of
each simulated audit (Westfall & Young, Resampling-Based Multiple Testing, 1993).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.metrics.intervals.special_functions import ndtr

Floats = NDArray[np.float64]

POINTS = 5.0
"""The wider of the two tolerances, in the unit of the published figure."""
N_RESAMPLES = 2000
USUAL_SHARE = 0.05
"""Share u of the answers on a recited country that are as usual."""
RECITED_SHARE = 0.25
"""Share w of the countries that a reciting model is taken to recite."""
KERNEL = 0.2
"""Bandwidth of the smoothed density of the errors, in their standard deviations."""
SHARED_CELLS = 5.0
"""Cells with the errors of all countries that each country's chance is estimated from, besides its own cells."""
MIN_SPREAD = 0.25
"""Smallest standard deviation of ordinary errors that a chance is computed with, in the unit of the figure."""


class RecallTest(NamedTuple):
    """The result for one target and one tolerance.

    Attributes:
        statistic: T.
        chance: chance p of a hit without recall, in [0, 1].
        p_value: of one test alone.
        adjusted_p_value: adjusted for all targets and tolerances of the model.
    """

    statistic: float
    chance: float
    p_value: float
    adjusted_p_value: float


def kernel_shares(errors: Floats, half_unit: Floats) -> Floats:
    """What each ordinary error adds to the chances of hits within rounding and within `POINTS`.

    Hits within rounding are too rare to be counted, so the density of the errors is smoothed, with their variance.

    Args:
        errors: shape (..., n): ordinary answers minus the target.
        half_unit: shape (n,): half a unit of each published figure's last digit.

    Returns:
        Shape (..., 2, n), in [0, 1]; the chances are the means over n.
    """
    mean = errors.mean(axis=-1, keepdims=True)
    bandwidth = KERNEL * np.maximum(errors.std(axis=-1, keepdims=True), MIN_SPREAD)
    centres = mean + (errors - mean) * (1 - KERNEL**2) ** 0.5
    shares = []
    for tolerance in (half_unit, half_unit + POINTS):
        widths, counts = np.unique(tolerance, return_counts=True)
        weighted = [
            count * (ndtr((width - centres) / bandwidth) - ndtr((-width - centres) / bandwidth))
            for width, count in zip(widths, counts, strict=True)
        ]
        shares.append(np.sum(weighted, axis=0) / len(half_unit))
    return np.stack(shares, axis=-2)


def chances(errors: Floats, half_unit: Floats, countries: NDArray[np.int64]) -> Floats:
    """The chance of each cell's hit within rounding and within `POINTS`: shape (..., 2, n), in (0, 1).

    It is the mean of the country's `kernel_shares` and of `SHARED_CELLS` cells with the mean of all countries: a model
    that knows some countries well hits their figures often without reciting them.
    """
    shares = kernel_shares(errors, half_unit)
    sizes = np.bincount(countries)
    is_in_country = (countries[:, None] == np.arange(len(sizes))).astype(np.float64)
    shared = SHARED_CELLS * shares.mean(axis=-1, keepdims=True)
    by_country = (shares @ is_in_country + shared) / (sizes + SHARED_CELLS)
    smallest = 0.5 / (errors.shape[-1] + 1)
    clipped: Floats = np.clip(by_country[..., countries], smallest, 1 - smallest)
    return clipped


def hits(errors: Floats, half_unit: Floats) -> NDArray[np.bool_]:
    """Whether errors are within rounding, and within `POINTS`: shape (..., 2, n)."""
    size = np.abs(errors)
    return np.stack([size <= half_unit + 1e-9, size <= POINTS + half_unit - 1e-9], axis=-2)


def mixture_statistic(is_hit: NDArray[np.bool_], chance: Floats, countries: NDArray[np.int64]) -> Floats:
    """The statistic T; see the module.

    Args:
        is_hit, chance: shape (..., n).
        countries: shape (n,): number of each cell's country, from 0.
    """
    ratio = np.where(is_hit, np.log((1 - USUAL_SHARE) / chance + USUAL_SHARE), np.log(USUAL_SHARE))
    order = np.argsort(countries, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(countries[order]) > 0])
    by_country = np.add.reduceat(ratio[..., order], starts, axis=-1)
    total: Floats = np.logaddexp(np.log(1 - RECITED_SHARE), np.log(RECITED_SHARE) + by_country).sum(axis=-1)
    return total


def compare_with_targets(
    ordinary: Floats,
    recalled: Floats,
    targets: Floats,
    half_unit: Floats,
    countries: Sequence[str],
    topics: Sequence[str],
    *,
    seed: int,
    n_resamples: int = N_RESAMPLES,
) -> list[list[RecallTest]]:
    """Test whether answers hit targets beyond chance.

    Args:
        ordinary, recalled: shape (n,), the model's ordinary answers and those to the question about the publication.
        targets: shape (t, n), published figures; nan where a target has none for a cell.
        half_unit: shape (n,).
        countries, topics: of each cell.

    Returns:
        For each target, the results within rounding and within `POINTS`.
    """
    country, topic = (np.unique(np.asarray(labels), return_inverse=True)[1] for labels in (countries, topics))
    rng = np.random.default_rng(seed)
    drawn = draw_errors(ordinary - targets[0], country, topic, rng, (2, n_resamples))
    observed, simulated, chance = [], [], []
    for target in targets:
        present = ~np.isnan(target)
        units, offset = half_unit[present], (targets[0] - target)[present]
        places = np.unique(country[present], return_inverse=True)[1]
        estimated = chances((ordinary - target)[present], units, places)
        observed += list(mixture_statistic(hits((recalled - target)[present], units), estimated, places))
        chance += list(estimated.mean(axis=-1))
        errors = drawn[..., present] + offset
        statistics = mixture_statistic(hits(errors[1], units), chances(errors[0], units, places), places)
        simulated += list(statistics.T)
    values, null = np.array(observed), np.array(simulated)  # (tests,), (tests, resamples)
    p_values = (1 + (null >= values[:, None] - 1e-9).sum(axis=1)) / (n_resamples + 1)
    ranks = 1 + np.array([np.searchsorted(-np.sort(-row)[::-1], row, side="left") for row in null])
    null_p = (n_resamples + 1 - ranks + 1) / (n_resamples + 1)
    smallest = null_p.min(axis=0)
    adjusted = [(1 + (smallest <= p).sum()) / (n_resamples + 1) for p in p_values]
    rows = [
        RecallTest(float(v), float(c), float(p), float(max(p, a)))
        for v, c, p, a in zip(values, chance, p_values, adjusted, strict=True)
    ]
    return [rows[i : i + 2] for i in range(0, len(rows), 2)]


def draw_errors(
    errors: Floats,
    country: NDArray[np.int64],
    topic: NDArray[np.int64],
    rng: np.random.Generator,
    shape: tuple[int, ...],
) -> Floats:
    """Draw errors like these, with their variances between countries, between topics and of single cells.

    Returns:
        Shape (*shape, n).
    """
    mean, n = float(errors.mean()), len(errors)
    centred = errors - mean
    variances, residuals = [], centred.copy()
    for labels in (country, topic):
        sizes = np.bincount(labels)
        means = np.bincount(labels, residuals) / sizes
        residuals = residuals - means[labels]
        within = float((residuals**2).sum()) / max(1, n - len(sizes))
        variances.append(max(0.0, float((sizes * means**2).sum() / max(1, len(sizes) - 1) - within) / (n / len(sizes))))
    total = float((centred**2).sum()) / max(1, n - 1)
    spread = max(total - sum(variances), 0.05 * total)
    kernel = 0.5 * n**-0.2  # a smoothed bootstrap, whose variance is that of the errors
    scale = residuals.std() or 1.0
    cells = rng.choice(residuals / scale, (*shape, n)) + kernel * rng.standard_normal((*shape, n))
    drawn: Floats = mean + cells * np.sqrt(spread / (1 + kernel**2))
    for variance, labels in zip(variances, (country, topic), strict=True):
        effects = rng.standard_normal((*shape, int(labels.max()) + 1)) * np.sqrt(variance)
        drawn = drawn + effects[..., labels]
    return drawn
