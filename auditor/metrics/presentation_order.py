"""How much a model's answers depend on the order in which the scale is shown."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import Floats
from auditor.metrics._shares import read_shares, unit_points
from auditor.metrics.wasserstein_distance import sampling_floor, wasserstein


class OrderEffect(NamedTuple):
    """Effects of the order per cell, each of shape (...).

    Attributes:
        shift: by how much of the scale answers move towards the end that is shown first, in [-1, 1]; below 0 they move
            towards the last. Unbiased at any number of answers.
        distance: Wasserstein distance of the answers in both orders, in [0, 1].
        floor: the distance that sampling alone would cause; 0 for stated shares.
    """

    shift: Floats
    distance: Floats
    floor: Floats


def order_effect(
    up: ArrayLike, down: ArrayLike, points: ArrayLike, n_up: ArrayLike = np.inf, n_down: ArrayLike = np.inf
) -> OrderEffect:
    """Compare answers on the scale from low to high with those on the scale from high to low.

    Args:
        up, down: shape (..., K), shares or counts in the two orders, both from the scale's lower to its upper end.
        points: shape (K,), increasing.
        n_up, n_down: number of answers in each order; inf for stated shares.

    Raises:
        ValueError: invalid shares or points, or a size below 1.
    """
    first, second = read_shares(up), read_shares(down)
    # Half of the difference of the means: each order moves answers by the effect, in opposite directions.
    shift: Floats = (second - first) @ unit_points(points, first.shape[-1]) / 2
    return OrderEffect(
        shift, wasserstein(first, second, points), sampling_floor((first + second) / 2, points, n_up, n_down)
    )
