"""Guesses of a country's score on a topic from the countries that answer the other topics most alike.

They use no model, but more than means do: the country's own answers to the other topics. A model that is further from
people than such a guess adds nothing to a published table of other topics.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import Floats

MIN_SHARED_TOPICS = 5
"""Fewest other topics over which two countries are compared."""


def estimate_from_nearest(table: ArrayLike, n_nearest: Collection[int] = (1, 3)) -> dict[int, Floats]:
    """Predict each score as the mean of the countries nearest to it, without using the score itself.

    The distance of two countries is the mean squared difference over all other topics that both have, at least five.
    Equal distances are settled by the order of the rows.

    Args:
        table: shape (countries, topics), scores of people; nan where not asked.
        n_nearest: numbers of countries to average.

    Returns:
        By number of countries, predictions of the shape of `table`; nan where the score is missing or fewer countries
        can be compared.

    Raises:
        ValueError: not two-dimensional.
    """
    scores = np.asarray(table, dtype=np.float64)
    if scores.ndim != 2:
        raise ValueError(f"the table must have the shape (countries, topics), but has {scores.shape}")
    present = ~np.isnan(scores)
    filled = np.where(present, scores, 0.0)
    weights = present.astype(np.float64)
    n_shared = weights @ weights.T
    squares = (filled**2) @ weights.T
    distance = squares + squares.T - 2 * filled @ filled.T  # the sum of squared differences over shared topics
    predictions = {k: np.full(scores.shape, np.nan) for k in n_nearest}
    for topic in range(scores.shape[1]):
        column, has_topic = filled[:, topic], present[:, topic]
        both = np.outer(has_topic, has_topic)
        n_others = n_shared - both
        sums = distance - np.where(both, (column[:, None] - column[None, :]) ** 2, 0.0)
        is_donor = both & (n_others >= MIN_SHARED_TOPICS)
        np.fill_diagonal(is_donor, val=False)
        # Rounded: donors with equal answers must not be ordered by rounding errors.
        means = np.where(is_donor, np.round(sums / np.maximum(n_others, 1), 12), np.inf)
        order = np.argsort(means, axis=1, kind="stable")
        for k, predicted in predictions.items():
            has_enough = is_donor.sum(axis=1) >= k
            predicted[has_enough, topic] = column[order[has_enough, :k]].mean(axis=1)
    return predictions
