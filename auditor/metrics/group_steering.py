"""Whether naming a group moves a model's answers towards this group, and how groups differ inside.

All distances are squared differences of cumulative shares, corrected for sampling error (`squared_distance`), as means
over the cuts of the scale. Figures are per cell: their means and intervals are those of `mean_over_units`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import Floats
from auditor.metrics._shares import cumulate, cut_widths, read_shares, unit_points
from auditor.metrics.answer_diversity import share_variance
from auditor.metrics.wasserstein_distance import wasserstein


def specificity(first: tuple[ArrayLike, ArrayLike], second: tuple[ArrayLike, ArrayLike], points: ArrayLike) -> Floats:
    """How much closer the answers for each of two groups are to this group's people than to the other group's.

    Half of d(Q1, P2) + d(Q2, P1) - d(Q1, P1) - d(Q2, P2), in which all sampling variances cancel. It equals the sum
    over cuts of the product of the model's and of people's difference between the groups.

    Args:
        first, second: people's and the model's shares of each group, shape (..., K) each.
        points: shape (K,), increasing.

    Returns:
        Shape (...), in [-1, 1]: above 0 only if naming a group moves answers towards it; 0 for a model that ignores
        the group; below 0 if it moves away.

    Raises:
        ValueError: invalid shares or points, or shapes that do not match.
    """
    people_gap = cumulate(first[0]) - cumulate(second[0])
    model_gap = cumulate(first[1]) - cumulate(second[1])
    products: Floats = (people_gap * model_gap) @ cut_widths(points, people_gap.shape[-1] + 1)
    return products


def steering_gain(
    country_to_group: ArrayLike, group_to_group: ArrayLike, country_to_all: ArrayLike, placebo_to_all: ArrayLike
) -> Floats:
    """By how much naming a group reduces the distance to it, less what naming an irrelevant attribute reduces.

    [d(Q_country, P_group) - d(Q_group, P_group)] - [d(Q_country, P_all) - d(Q_placebo, P_all)], each shape (...).

    Args:
        country_to_group: squared distance of the answers for the country from people of the group.
        group_to_group: that of the answers for the group from people of the group.
        country_to_all, placebo_to_all: those of the answers for the country, and for the country with the irrelevant
            attribute, from all people of the country.

    Returns:
        Above 0 where the group's name tells the model something.
    """
    parts = [
        np.asarray(a, dtype=np.float64) for a in (country_to_group, group_to_group, country_to_all, placebo_to_all)
    ]
    gains: Floats = (parts[0] - parts[1]) - (parts[2] - parts[3])
    return gains


def coherence_distance(groups: ArrayLike, weights: ArrayLike, country: ArrayLike, points: ArrayLike) -> Floats:
    """Distance of the groups' answers, put together by the groups' shares among people, from those for the country.

    Args:
        groups: shape (..., groups, K), the model's shares for each group.
        weights: shape (..., groups), the groups' shares of people, at least 0.
        country: shape (..., K), the model's shares for the whole country.
        points: shape (K,), increasing.

    Returns:
        Wasserstein distance, shape (...), in [0, 1]; 0 for a model whose groups add up to its country.

    Raises:
        ValueError: invalid shares, weights or points.
    """
    portions = read_shares(weights)
    total = (portions[..., None] * read_shares(groups)).sum(axis=-2)
    return wasserstein(total, country, points)


def group_variances(
    groups: ArrayLike, weights: ArrayLike, points: ArrayLike, n: ArrayLike = np.inf
) -> tuple[Floats, Floats]:
    """Variance of answers within groups and between them, on the scale rescaled to [0, 1].

    Args:
        groups: shape (..., groups, K), shares of each group.
        weights: shape (..., groups), the groups' shares of people.
        points: shape (K,), increasing.
        n: answers of each group, or the effective number, shape (..., groups) or a number; inf for stated shares.

    Returns:
        Both unbiased, shape (...) each: the mean variance within groups, and the variance of the groups' means, from
        which their sampling error is subtracted, so that it may be below 0. Divide the sums of a model's by those of
        people's with `VARIANCE_RATIO`: little within and much between is a caricature.
    """
    portions, shares = read_shares(weights), read_shares(groups)
    within = share_variance(shares, points, n)
    means = shares @ unit_points(points, shares.shape[-1])
    centre = (portions * means).sum(axis=-1, keepdims=True)
    # The variance of a mean counts with 1 - its weight, since it also moves the centre.
    noise = (portions * (1 - portions) * within / np.asarray(n, dtype=np.float64)).sum(axis=-1)
    between: Floats = (portions * (means - centre) ** 2).sum(axis=-1) - noise
    return (portions * within).sum(axis=-1), between
